"""What all methods share: settings, the way from samples to problems, classes and targets."""

import logging
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state, column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl._threads import one_pool
from lokl.estimators.validation import check_samples, check_settings, check_weights
from lokl.kernels import Kernel, named_kernels
from lokl.kernels.presence import split_missing
from lokl.solvers import Problem, Solver, epsilon_insensitive, hinge, resolve_solver

logger = logging.getLogger("lokl")


@dataclass(eq=False)
class Training:
    """The samples that count, bound kernels, and one problem for each class or target.

    Attributes
    ----------
    samples : {array, CSR matrix}
        As given: NaN where a view is missing. Gates look at these.
    X : {array, CSR matrix}
        The same with 0 for NaN. Kernels look at these.
    present : boolean array of shape (n_samples, n_kernels) or None
    frame : data frame or None
        As given, for gates that select columns by name.
    weight : array of shape (n_samples,)
    kernels, names : list
    problems : list of Problem
    solver : Solver
    rng : RandomState
    """

    samples: Any
    X: Any
    present: Array | None
    frame: Any
    weight: Array
    kernels: list[Kernel]
    names: list[str]
    problems: list[Problem]
    solver: Solver
    rng: np.random.RandomState

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    def with_view(self, i: int) -> Array:
        """Numbers of the samples that kernel `i` can see."""
        if self.present is None:
            return np.arange(self.n_samples)
        return np.flatnonzero(self.present[:, i])


# Settings are declared once, here and in the methods: dataclasses write the constructors.
@dataclass(eq=False, repr=False)
class KernelLearner(BaseEstimator):
    """Common path of fit and prediction; a method says how it learns and decides."""

    kernels: Any = None
    C: float = 1.0
    _: KW_ONLY
    solver: Any = "exact"
    tol: float = 1e-3
    max_iter: int = -1
    cache_size: float = 512
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    # Methods with an outer loop count its rounds with max_iter; others leave it to the solver.
    _counts_rounds = False

    @abstractmethod
    def _learn(self, training: Training) -> Any:
        """Learn gate and machines: the method itself."""

    @abstractmethod
    def _keep(self, X: Any, counted: Array, training: Training, learned: Any) -> None:
        """Store what prediction and inspection need."""

    @abstractmethod
    def _decide(self, X: Any) -> Array:
        """Decision values of every class or target, (n_samples, n_tasks)."""

    @abstractmethod
    def gate(self, X: Any) -> Array:
        """How far each kernel is trusted at each sample."""

    @abstractmethod
    def _parts(self, X: Any) -> Array:
        """Part of each kernel in the decision, (n_samples, n_kernels, n_tasks)."""

    @abstractmethod
    def _problem(self, target: Array, cost: Array) -> Problem:
        """Return the dual problem of one class or target."""

    @abstractmethod
    def _flat(self) -> bool:
        """Whether the decision is one number a sample."""

    def _check(self) -> None:
        """Raise where a setting of the method itself is out of range."""

    def _takes_missing_views(self) -> bool:
        """Whether samples may lack the view of a kernel, where all kernels are views."""
        return True

    def _default_kernels(self, X: Any) -> Any:
        """Return the kernels to use; methods may choose others than the standard for None."""
        return self.kernels

    def _fit(
        self, X: Any, named: dict[str, Kernel], weight: Array, targets: list[Any], frame: Any
    ) -> None:
        """Learn from validated samples and a list of (target, cost) pairs."""
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
        steps = -1 if self._counts_rounds else self.max_iter
        solver = resolve_solver(
            self.solver, tol=self.tol, cache_size=self.cache_size, max_iter=steps
        )
        problems = [self._problem(t[counted], cost[counted]) for t, cost in targets]
        training = Training(
            seen,
            filled,
            present,
            frame,
            weight[counted],
            kernels,
            names,
            [solver.prepare(problem) for problem in problems],
            solver,
            check_random_state(self.random_state),
        )
        with one_pool(training.n_samples):
            learned = self._learn(training)
        self.kernels_ = kernels
        self.kernel_names_ = names
        self._keep(X, counted, training, learned)
        if self.verbose:
            logger.info(
                "%s: objective %.6g, %d of %d samples support",
                type(self).__name__,
                self.history_[-1],
                len(self.support_),
                len(counted),
            )

    def _validated(self, X: Any) -> Any:
        """Samples to decide on, checked against those of training."""
        check_is_fitted(self)
        missing = self._takes_missing_views() and all(k.is_view for k in self.kernels_)
        return check_samples(self, X, fitting=False, missing=missing)

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
        parts = self._parts(X)
        return parts[:, :, 0] if self._flat() else parts.transpose(0, 2, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(eq=False, repr=False)
class KernelClassifier(ClassifierMixin, KernelLearner):
    """Two classes by one machine, more by one machine for each class against the rest."""

    class_weight: Any = field(default=None, kw_only=True)

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
        self._check()
        frame = X if hasattr(X, "columns") else None
        named = named_kernels(self._default_kernels(X))
        missing = self._takes_missing_views() and all(k.is_view for k in named.values())
        X, y = check_samples(self, X, y, fitting=True, missing=missing)
        if y.ndim == 2:
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
        self._fit(X, named, weight, targets, frame)
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


@dataclass(eq=False, repr=False)
class KernelRegressor(RegressorMixin, KernelLearner):
    """Epsilon-insensitive regression, one machine for each target."""

    epsilon: float = field(default=0.1, kw_only=True)

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
        self._check()
        frame = X if hasattr(X, "columns") else None
        named = named_kernels(self._default_kernels(X))
        missing = self._takes_missing_views() and all(k.is_view for k in named.values())
        X, y = check_samples(self, X, y, fitting=True, missing=missing)
        y = np.asarray(y, dtype=np.float64)
        weight = check_weights(sample_weight, X)
        self._one_target = y.ndim == 1
        columns = y[:, np.newaxis] if self._one_target else y
        cost = self.C * weight
        self._fit(X, named, weight, [(column, cost) for column in columns.T], frame)
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
