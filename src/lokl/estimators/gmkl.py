"""SPG-GMKL: sums or products of kernels under any penalty, by spectral projected gradient."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lokl._arrays import Array, as_dense
from lokl._checks import check_positive as positive
from lokl.estimators.base import Training
from lokl.estimators.global_weights import GlobalWeights
from lokl.estimators.machine import Fitted, GatedClassifier, GatedRegressor
from lokl.estimators.validation import check_choice, check_norm
from lokl.gates import Constant
from lokl.kernels import RBF, Kernel, per_feature
from lokl.kernels.base import GAUSSIAN
from lokl.optimizers import Machines, Step, spectral
from lokl.optimizers.product import ProductObjective
from lokl.optimizers.regularizers import Entropy, HalfSquaredNorm, Regularizer, SumOfWeights
from lokl.optimizers.weights import WeightObjective

_COMBINATIONS = ("sum", "product")
_REGULARIZERS = ("l1", "l2", "lp", "entropy")
_CONSTRAINTS = ("auto", "orthant", "simplex")


@dataclass(eq=False, repr=False, kw_only=True)
class _GMKL(GlobalWeights):
    """Weights, or exponents, under a penalty."""

    combine: str = "sum"
    regularizer: str = "l2"
    p: float = 2.0
    lam: float = 1.0
    constraint: str = "auto"
    max_iter: int = field(default=2000)

    def _check(self) -> None:
        super()._check()
        check_choice("combine", self.combine, _COMBINATIONS)
        check_choice("regularizer", self.regularizer, _REGULARIZERS)
        check_choice("constraint", self.constraint, _CONSTRAINTS)
        check_norm("p", self.p)
        if np.isinf(self.p):
            raise ValueError("p must be finite; use LpMKL for equal weights")
        positive("lam", self.lam)
        if self.regularizer == "entropy" and self.constraint == "orthant":
            raise ValueError(
                "regularizer='entropy' needs weights that sum to one; use constraint='simplex'"
            )

    def _penalty(self) -> Regularizer:
        simplex = self.constraint == "simplex"
        if self.regularizer == "entropy":
            return Entropy()
        if self.regularizer == "l1":
            return SumOfWeights(simplex)
        return HalfSquaredNorm(simplex, 2.0 if self.regularizer == "l2" else float(self.p))

    def _takes_missing_views(self) -> bool:
        # A product has no part that a missing view could leave out.
        return self.combine == "sum"

    def _default_kernels(self, X: Any) -> Any:
        if self.combine == "product" and self.kernels is None:
            shaped = X if hasattr(X, "shape") else np.asarray(X)
            if len(shaped.shape) == 2 and shaped.shape[1] > 0:
                return per_feature(RBF(), shaped)
            # What is no table is refused later, with everything else that is wrong with it.
            return [RBF()]
        return self.kernels

    def _path(self, machines: Machines, base: Array) -> Iterator[Step]:
        penalty = self._penalty()
        objective = WeightObjective(machines, base, penalty, float(self.lam))
        steps = spectral(
            objective.at,
            penalty.start(base.shape[1]),
            penalty.project,
            self.learn_tol,
            objective.gap,
            machines.demand,
        )
        return (replace(step, params=penalty.weights(step.params)[np.newaxis]) for step in steps)

    def _learn(self, training: Training) -> Fitted:
        if self.combine == "sum":
            return super()._learn(training)
        X = as_dense(training.X)
        gammas = _distances(training.kernels, training.names, X.shape[1])
        penalty = self._penalty()
        objective = ProductObjective(
            X, gammas, training.problems, training.solver, penalty, float(self.lam)
        )
        start = penalty.start(len(gammas))
        path = spectral(objective.at, start, penalty.project, self.learn_tol)
        fitted = self._walk(path, objective.gram(penalty.weights(start)), Constant())
        self.weights_ = penalty.weights(fitted.params)
        self._learned_kernel = objective.kernel(self.weights_)
        gram = objective.gram(self.weights_)
        return replace(fitted, gram=gram, params=np.ones(1))

    def _keep(self, X: Any, counted: Array, training: Training, learned: Fitted) -> None:
        if self.combine == "product":
            # What was learned is one kernel; the factors are no parts of a decision.
            training = replace(training, kernels=[self._learned_kernel], names=["product"])
            self.kernels_, self.kernel_names_ = training.kernels, training.names
        super()._keep(X, counted, training, learned)


def _distances(kernels: list[Kernel], names: list[str], n_features: int) -> Array:
    """Widths by factor and column, for kernels that are all Gaussian."""
    gammas = np.zeros((len(kernels), n_features))
    for i, kernel in enumerate(kernels):
        term = kernel.term()
        if term is None or term.formula.operation != GAUSSIAN or term.factor is not None:
            raise ValueError(
                f"combine='product' multiplies RBF kernels, got {names[i]!r}; leave kernels=None "
                "for one RBF a column, or use combine='sum'"
            )
        columns = range(n_features) if term.columns is None else term.columns
        stretch = np.ones(len(columns)) if term.stretch is None else np.array(term.stretch)
        np.add.at(gammas[i], np.array(columns), term.formula.gamma * stretch**2)
    return gammas


@dataclass(eq=False, repr=False)
class GMKLClassifier(_GMKL, GatedClassifier):
    """Generalised multiple kernel learning: sums or products of kernels, any penalty.

    Minimises the dual value of the machine on ``sum_i w_i k_i`` plus ``lam r(w)`` over ``w >= 0``
    by spectral projected gradient, convex and up to a certified gap. With ``combine="product"``
    the kernel is ``prod_i k_i^(w_i)`` of RBF kernels, by default one for each column: a width for
    every feature is learned. That problem is not convex; it starts from equal exponents.

    Parameters
    ----------
    kernels : list or mapping of kernels, str or None, default=None
        None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`).
        A mapping gives the kernels names.
    C : float, default=1.0
        Cost of margin violations.
    combine : {"sum", "product"}, default="sum"
        With "product" all kernels are RBF, and None is one for each column.
    regularizer : {"l1", "l2", "lp", "entropy"}, default="l2"
        ``r(w)`` is the sum of the weights, half their squared l_2 or l_p norm, or
        ``sum_i w_i log w_i`` (on the simplex).
    p : float, default=2.0
        Of ``regularizer="lp"``, at least 1.
    lam : float, default=1.0
        Strength of the penalty.
    constraint : {"auto", "orthant", "simplex"}, default="auto"
        Weights not negative, or also of sum one. "auto" is "simplex" for the entropy only.
    solver : {"exact", "libsvm", "mwu"} or Solver, default="exact"
    tol : float, default=1e-3
        Largest violation of the optimality conditions that a machine leaves.
    max_iter : int, default=2000
        Limit on the rounds of the method, -1 for none.
    learn_tol : float, default=1e-3
        Certified gap relative to the objective, or for products the projected gradient or the
        fall in five rounds, that ends the search.
    callback : callable, optional
        Called with every :class:`~lokl.optimizers.Step`; the method stops when it returns True.
    cache_size : float, default=512
        Megabytes for rows of the Gram matrix.
    class_weight : dict, "balanced" or None, default=None
        Factors of `C` by class.
    random_state : int, RandomState or None, default=None
        Not used by this method; common to all.
    n_jobs : int or None, default=None
        Not used by this method; common to all.
    verbose : int, default=0
        1 logs a line for every round to the logger ``lokl``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    weights_ : array of shape (n_kernels,)
        Weight, or exponent, of each kernel given.
    kernel_ : GatedKernel
        The learned kernel, usable wherever a kernel is: ``SVC(kernel=model.kernel_)``.
    kernels_, kernel_names_ : list
        Kernels with learned settings, and their names.
    support_ : array of shape (n_support,)
        Rows of the training samples that carry a machine.
    support_vectors_ : {array, CSR matrix} of shape (n_support, n_features)
    dual_coef_ : array of shape (n_machines, n_support)
        Signed coefficients; one machine for two classes, else one for each class.
    intercept_ : array of shape (n_machines,)
    support_fraction_ : float
    history_ : array
        Objective after every round; it may rise for a round.
    duality_gap_ : float
        Certified distance from the optimum; NaN for products, which are not convex.
    n_iter_ : int
        Rounds.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the training samples came with column names.

    Notes
    -----
    With ``combine="product"`` the fitted model has one kernel, named "product": ``gate(X)`` is one
    column of ones, and ``weights_`` says what the features are worth. Samples are made dense.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lokl import GMKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), GMKLClassifier()).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model[-1].weights_.shape
    (3,)
    """


@dataclass(eq=False, repr=False)
class GMKLRegressor(_GMKL, GatedRegressor):
    """Generalised multiple kernel learning for one or several numeric targets.

    Settings and attributes are those of :class:`GMKLClassifier`, and

    Parameters
    ----------
    epsilon : float, default=0.1
        Residuals up to here are free.

    Attributes
    ----------
    dual_coef_ : array of shape (n_targets, n_support)
    intercept_ : array of shape (n_targets,)

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import GMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = GMKLRegressor(["linear", "rbf"], C=10).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.8)
    True
    """
