"""A support vector machine on one gated kernel: what all single-kernel-machine methods share."""

import logging
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl.estimators.validation import check_samples, check_settings, check_weights
from lokl.gates import Gate
from lokl.gram import GatedGram, GatedKernel
from lokl.gram.presence import split_missing
from lokl.kernels import Kernel, named_kernels
from lokl.solvers import Dual, Problem, Solver, epsilon_insensitive, hinge, resolve_solver

logger = logging.getLogger("lokl")


@dataclass
class Training:
    """The samples that count, bound kernels, and one problem for each class or target."""

    X: Any
    present: Array | None
    kernels: list[Kernel]
    names: list[str]
    problems: list[Problem]
    solver: Solver
    rng: np.random.RandomState


@dataclass
class Fitted:
    """A learned gate and the machines on its kernel."""

    gram: GatedGram
    gate: Gate
    params: Array
    duals: list[Dual]
    history: list[float]


class GatedMachine(BaseEstimator):
    """Common path of fit and prediction; a method says only how its gate is learned."""

    def __init__(
        self,
        kernels: Any = None,
        C: float = 1.0,
        *,
        solver: Any = "exact",
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: float = 512,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.kernels = kernels
        self.C = C
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @abstractmethod
    def _learn(self, training: Training) -> Fitted:
        """Learn the gate and the machines: the method itself."""

    def _fit(self, X: Any, weight: Array, targets: list[Any], frame: Any) -> None:
        """Learn from validated samples and a list of (target, cost) pairs."""
        named = named_kernels(self.kernels)
        counted = np.flatnonzero(weight > 0)
        everyone = len(counted) == X.shape[0]
        # A weight of zero is the same as no row at all, for scales and for the solver.
        seen = X if everyone else X[counted]
        if frame is not None and not everyone:
            frame = frame.iloc[counted]
        kernels = [kernel.bind(seen, weight[counted], frame) for kernel in named.values()]
        names = list(named)
        columns = getattr(self, "feature_names_in_", None)
        filled, present = split_missing(kernels, names, seen, columns, counted)
        training = Training(
            filled,
            present,
            kernels,
            names,
            [self._problem(t[counted], cost[counted]) for t, cost in targets],
            resolve_solver(
                self.solver, tol=self.tol, cache_size=self.cache_size, max_iter=self.max_iter
            ),
            check_random_state(self.random_state),
        )
        self._keep(X, counted, training, self._learn(training))

    @abstractmethod
    def _problem(self, target: Array, cost: Array) -> Problem:
        """Return the dual problem of one class or target."""

    def _keep(self, X: Any, counted: Array, training: Training, fitted: Fitted) -> None:
        """Store what prediction and inspection need: support rows only."""
        coef = np.column_stack([dual.coef for dual in fitted.duals])
        support = np.flatnonzero((coef != 0).any(axis=1))
        self.kernels_ = training.kernels
        self.kernel_names_ = training.names
        self.kernel_ = GatedKernel(
            training.kernels,
            fitted.gate,
            fitted.params,
            fitted.gram.mixture.pair_normalized,
            training.names,
        )
        self.support_ = counted[support]
        self.support_vectors_ = X[self.support_]
        self.dual_coef_ = coef[support].T
        self.intercept_ = np.array([dual.intercept for dual in fitted.duals])
        self.support_fraction_ = len(support) / len(counted)
        self.history_ = np.array(fitted.history)
        self.duality_gap_ = float(sum(dual.gap for dual in fitted.duals))
        self.n_iter_ = max(1, *(dual.n_iter for dual in fitted.duals))
        self._mixture = fitted.gram.mixture
        self._support_points = fitted.gram.points.take(support)
        if self.verbose:
            logger.info(
                "%s: objective %.6g, gap %.3g, %d of %d samples support",
                type(self).__name__,
                self.history_[-1],
                self.duality_gap_,
                len(support),
                len(counted),
            )

    def _points(self, X: Any) -> Any:
        check_is_fitted(self)
        X = check_samples(self, X, fitting=False, kernels=self.kernels_)
        return self.kernel_.points(self._mixture, X)

    def _decide(self, X: Any) -> Array:
        """Decision values of every class or target, (n_samples, n_tasks)."""
        points = self._points(X)
        product = self._mixture.product(points, self._support_points, self.dual_coef_.T)
        return np.asarray(product + self.intercept_)

    def gate(self, X: Any) -> Array:
        """How far each kernel is trusted at each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        trust : array of shape (n_samples, n_kernels)
            Not negative; 0 where a sample lacks the view of a kernel.
        """
        points = self._points(X)
        return np.asarray(
            self.kernel_.gate.trust(
                points.gates.squeeze(axis=2) if points.gates.shape[2] == 1 else points.gates
            )
        )

    def contributions(self, X: Any) -> Array:
        """Signed part of each kernel in the decision (or prediction) of each sample.

        Parts and intercept add up: ``contributions(X).sum(-1) + intercept_`` is the decision.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        parts : array of shape (n_samples, n_kernels)
            With more than two classes or several targets (n_samples, n_tasks, n_kernels).
        """
        points = self._points(X)
        parts = self._mixture.contributions(points, self._support_points, self.dual_coef_.T)
        return parts[:, :, 0] if self._flat() else parts.transpose(0, 2, 1)

    @abstractmethod
    def _flat(self) -> bool:
        """Whether the decision is one number a sample."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class GatedClassifier(ClassifierMixin, GatedMachine):
    """Two classes by one machine, more by one machine for each class against the rest."""

    def __init__(
        self,
        kernels: Any = None,
        C: float = 1.0,
        *,
        solver: Any = "exact",
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: float = 512,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        super().__init__(
            kernels,
            C,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            cache_size=cache_size,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from labelled samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type, two or more classes.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts like the row written twice, 0 like no row.

        Returns
        -------
        self
        """
        check_settings(self)
        frame = X if hasattr(X, "columns") else None
        named = named_kernels(self.kernels)
        X, y = check_samples(self, X, y, fitting=True, kernels=named.values())
        if y.ndim == 2:
            from sklearn.utils import column_or_1d

            y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        weight = check_weights(sample_weight, X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        counts = np.bincount(codes, weights=weight, minlength=len(self.classes_))
        if (counts > 0).sum() < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of two or more classes; the data has one "
                f"class: {self.classes_[int(np.argmax(counts))]}"
            )
        cost = self.C * weight * self._class_factors(y, codes, weight)
        # Decision values of exactly zero go to the larger class, the later one of equal classes.
        self._tie = int(len(counts) - 1 - np.argmax(counts[::-1]))
        if len(self.classes_) == 2:
            targets = [(np.where(codes == 1, 1.0, -1.0), cost)]
        else:
            targets = [(np.where(codes == c, 1.0, -1.0), cost) for c in range(len(self.classes_))]
        self._fit(X, weight, targets, frame)
        return self

    def _class_factors(self, y: Array, codes: Array, weight: Array) -> Array:
        if self.class_weight is None:
            return np.ones(len(y))
        if self.class_weight == "balanced":
            # Classes are counted with their weights, so that weights act like repeated rows.
            counts = np.bincount(codes, weights=weight)
            factors = np.divide(
                weight.sum(),
                (counts > 0).sum() * counts,
                out=np.zeros_like(counts),
                where=counts > 0,
            )
        else:
            factors = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        if (np.asarray(factors) < 0).any() or not np.isfinite(factors).all():
            raise ValueError(f"class weights must be finite and not negative, got {factors}")
        return np.asarray(factors[codes])

    def _problem(self, target: Array, cost: Array) -> Problem:
        return hinge(target, cost)

    def _flat(self) -> bool:
        return len(self.classes_) == 2

    def decision_function(self, X: Any) -> Array:
        """Signed distance from the boundary, in units of the margin.

        Returns
        -------
        decision : array of shape (n_samples,), or (n_samples, n_classes) for more than two
            Positive values speak for ``classes_[1]``, or for the class of the column.
        """
        decision = self._decide(X)
        return decision[:, 0] if self._flat() else decision

    def predict(self, X: Any) -> Array:
        """Class of each sample."""
        decision = self.decision_function(X)
        if decision.ndim == 2:
            return np.asarray(self.classes_[decision.argmax(axis=1)])
        chosen = np.where(decision == 0, self._tie, decision > 0)
        return np.asarray(self.classes_[chosen.astype(np.intp)])


class GatedRegressor(RegressorMixin, GatedMachine):
    """Epsilon-insensitive regression, one machine for each target on the same kernel."""

    def __init__(
        self,
        kernels: Any = None,
        C: float = 1.0,
        *,
        epsilon: float = 0.1,
        solver: Any = "exact",
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: float = 512,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        super().__init__(
            kernels,
            C,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            cache_size=cache_size,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.epsilon = epsilon

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from samples with one or several numeric targets.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts like the row written twice, 0 like no row.

        Returns
        -------
        self
        """
        check_settings(self)
        frame = X if hasattr(X, "columns") else None
        named = named_kernels(self.kernels)
        X, y = check_samples(self, X, y, fitting=True, kernels=named.values())
        y = np.asarray(y, dtype=np.float64)
        weight = check_weights(sample_weight, X)
        self._one_target = y.ndim == 1
        columns = y[:, np.newaxis] if self._one_target else y
        cost = self.C * weight
        self._fit(X, weight, [(column, cost) for column in columns.T], frame)
        return self

    def _problem(self, target: Array, cost: Array) -> Problem:
        return epsilon_insensitive(target, cost, self.epsilon)

    def _flat(self) -> bool:
        return self._one_target

    def predict(self, X: Any) -> Array:
        """Value of each sample, (n_samples,) or (n_samples, n_targets) as in training."""
        values = self._decide(X)
        return values[:, 0] if self._one_target else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
