"""SPG-GMKL: sums or products of kernels under any penalty, by spectral projected gradient."""

from typing import Any

import numpy as np

from lokl._arrays import Array, as_dense
from lokl.base import Classifier, IterativeEstimator, Regressor, Training, setting, settings
from lokl.base.model import GatedMachine
from lokl.base.settings import NORM, POSITIVE, learning_tolerance, one_of
from lokl.gates import ConstantGate
from lokl.kernels import RBF, Kernel, per_feature
from lokl.optimizers import (
    Entropy,
    HalfSquaredNorm,
    Penalised,
    ProductObjective,
    Regularizer,
    SumOfWeights,
    spectral_gradient,
)
from lokl.solvers import Solver


@settings
class _GMKL(IterativeEstimator):
    """Weights of a sum, or exponents of a product, with a penalty.

    Attributes
    ----------
    weights_ : array of shape (n_kernels,)
        Weights of a sum, exponents of a product.
    history_ : array
        Objective after every round; it may rise in single rounds.
    duality_gap_ : float
        Certified distance from the optimum over weights and machines; NaN for products.
    """

    combine: str = setting(
        "sum",
        one_of("sum", "product"),
        'With "product" all kernels are RBF, and None is one for each column.',
    )
    regularizer: str = setting(
        "l2",
        one_of("l1", "l2", "lp", "entropy"),
        "``r(w)`` is the sum of the weights, half their squared l_2 or l_p norm, or their negative "
        "entropy ``sum_i w_i log w_i`` (on the simplex).",
    )
    p: float = setting(2.0, NORM, 'Of ``regularizer="lp"``, at least 1.')
    lam: float = setting(1.0, POSITIVE, "Strength of the penalty.")
    constraint: str = setting(
        "auto",
        one_of("auto", "orthant", "simplex"),
        'Weights are not negative; with "simplex" they also sum to one. "auto" is the simplex for '
        "the entropy only.",
    )
    learn_tol: float = learning_tolerance()
    max_iter: int = 2000

    def _check_combinations(self, solver: Solver) -> None:
        super()._check_combinations(solver)
        if np.isinf(self.p):
            raise ValueError("p must be finite; use LpMKL for equal weights")
        if self.combine == "product" and solver.is_low_rank:
            raise ValueError(
                "combine='product' needs gradients in the widths of the kernels, which low-rank "
                "features do not have; use combine='sum', or solver='exact'"
            )
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

    def _accepts_missing_views(self) -> bool:
        # The product of the other factors is not the same kernel.
        return self.combine == "sum"

    def _default_kernels(self, X: Any) -> Any:
        # Before fit, settings may be anything.
        if self.kernels is None and str(self.combine) == "product":
            if X is None:
                return {}
            shaped = X if hasattr(X, "shape") else np.asarray(X)
            if len(shaped.shape) == 2 and shaped.shape[1] > 0:
                return per_feature(RBF(), shaped)
            # Later checks reject data that is not a table.
            return [RBF()]
        return self.kernels

    def _learn(self, training: Training) -> GatedMachine:
        if self.combine == "product":
            return self._learn_product(training)
        return self._learn_weights(
            training,
            lambda **common: spectral_gradient(
                Penalised(**common, regularizer=self._penalty(), strength=float(self.lam)),
                self.learn_tol,
            ),
            # The search uses loosely solved SVMs; another start leads to another solution.
            resume=False,
        )

    def _learn_product(self, training: Training) -> GatedMachine:
        X = as_dense(training.samples.filled)
        objective = ProductObjective(
            training.machines(),
            training.solver.inner_products(X),
            _widths(training.kernels, training.names, X.shape[1]),
            self._penalty(),
            float(self.lam),
        )
        trace = self._run(spectral_gradient(objective, self.learn_tol))
        # The learned kernel is one kernel; its factors have no contributions of their own.
        gate, exponents = ConstantGate(), trace.last.params
        return trace.model(training, gate, np.ones(1), names=["product"], weights_=exponents)


def _widths(kernels: list[Kernel], names: list[str], n_features: int) -> Array:
    """Return the gamma of each factor and column; raise ValueError if a kernel is not Gaussian."""
    gammas = np.zeros((len(kernels), n_features))
    for i, kernel in enumerate(kernels):
        term = kernel.term()
        if term is None or not term.is_rbf or term.normalizer is not None:
            raise ValueError(
                f"combine='product' multiplies RBF kernels, got {names[i]!r}; leave kernels=None "
                "for one RBF per column, or use combine='sum'"
            )
        columns = range(n_features) if term.columns is None else term.columns
        scale = np.array(term.column_scale or np.ones(len(columns)))
        np.add.at(gammas[i], np.array(columns), term.formula.gamma * scale**2)
    return gammas


@settings
class GMKLClassifier(_GMKL, Classifier):
    """Generalised multiple kernel learning: sums or products of kernels, any penalty.

    Minimises the dual objective of the SVM on ``sum_i w_i k_i`` plus ``lam r(w)`` over ``w >= 0``
    by spectral projected gradient. The problem is convex, and the duality gap is certified. With
    ``combine="product"`` the kernel is ``prod_i k_i^(w_i)`` of RBF kernels, by default one for each
    column, which learns a width for every feature. That problem is not convex; it starts from
    equal exponents.

    Notes
    -----
    With ``combine="product"`` the fitted model has one kernel, named "product". ``weights(X)`` is
    then one column of ones, and ``weights_`` has one entry per feature. Sparse samples are made
    dense.

    References
    ----------
    .. [1] M. Varma, B. R. Babu. More Generality in Efficient Multiple Kernel Learning.
       International Conference on Machine Learning (ICML), 1065-1072, 2009.
    .. [2] A. Jain, S. V. N. Vishwanathan, M. Varma. SPF-GMKL: Generalized Multiple Kernel Learning
       with a Million Kernels. ACM SIGKDD Conference on Knowledge Discovery and Data Mining,
       750-758, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import GMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = GMKLClassifier().fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    1.0
    >>> model.weights_.shape
    (3,)
    """


@settings
class GMKLRegressor(_GMKL, Regressor):
    """Generalised multiple kernel learning for one or several numeric targets.

    References
    ----------
    .. [1] M. Varma, B. R. Babu. More Generality in Efficient Multiple Kernel Learning.
       International Conference on Machine Learning (ICML), 1065-1072, 2009.
    .. [2] A. Jain, S. V. N. Vishwanathan, M. Varma. SPF-GMKL: Generalized Multiple Kernel Learning
       with a Million Kernels. ACM SIGKDD Conference on Knowledge Discovery and Data Mining,
       750-758, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import GMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = GMKLRegressor(["linear", "rbf"], C=10).fit(X, np.sin(X[:, 0]))
    >>> round(model.score(X, np.sin(X[:, 0])), 2)
    0.99
    """
