"""l_p-norm MKL: weights of bounded norm, in closed form."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from lokl._arrays import Array
from lokl.estimators.global_weights import GlobalWeights
from lokl.estimators.machine import GatedClassifier, GatedRegressor
from lokl.estimators.validation import check_norm
from lokl.optimizers import Machines, Step, closed_form


@dataclass(eq=False, repr=False, kw_only=True)
class _LpMKL(GlobalWeights):
    """Weights of norm at most one, alternating with the machines."""

    p: float = 2.0
    max_iter: int = field(default=500)

    def _check(self) -> None:
        super()._check()
        check_norm("p", self.p)

    def _path(self, machines: Machines, base: Array) -> Iterator[Step]:
        return closed_form(machines, base, p=float(self.p), tol=self.learn_tol)


@dataclass(eq=False, repr=False)
class LpMKLClassifier(_LpMKL, GatedClassifier):
    """l_p-norm multiple kernel learning: one weight for each kernel, of bounded norm.

    ``k = sum_i w_i k_i`` with ``w >= 0`` and ``|w|_p <= 1``: weights and machine are learned
    together, in closed form, up to a certified gap. The problem is convex.

    Parameters
    ----------
    kernels : list or mapping of kernels, str or None, default=None
        None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`).
        A mapping gives the kernels names.
    C : float, default=1.0
        Cost of margin violations.
    p : float, default=2.0
        Norm of the weights, at least 1: 1 picks few kernels, infinity gives all the weight one.
    solver : {"exact", "libsvm", "mwu"} or Solver, default="exact"
    tol : float, default=1e-3
        Largest violation of the optimality conditions that a machine leaves.
    max_iter : int, default=500
        Limit on the rounds of the method, -1 for none.
    learn_tol : float, default=1e-3
        Certified duality gap, relative to the objective, that ends the search.
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
        Weight of each kernel, of norm one.
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
        Dual objective after every round, falling.
    duality_gap_ : float
        Certified: the objective is at most this far from the optimum over weights and machines.
    n_iter_ : int
        Rounds.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the training samples came with column names.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lokl import LpMKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LpMKLClassifier()).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model[-1].weights_.shape
    (3,)
    """


@dataclass(eq=False, repr=False)
class LpMKLRegressor(_LpMKL, GatedRegressor):
    """l_p-norm multiple kernel learning for one or several numeric targets.

    Settings and attributes are those of :class:`LpMKLClassifier`, and

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
    >>> from lokl import LpMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = LpMKLRegressor(["linear", "rbf"], C=10).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.8)
    True
    """
