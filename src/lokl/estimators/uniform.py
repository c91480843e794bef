"""UNIFORM: every kernel counts alike, everywhere. With one kernel, the plain SVM."""

from lokl.estimators.base import Training
from lokl.estimators.machine import Fitted, GatedClassifier, GatedMachine, GatedRegressor
from lokl.gates import Constant
from lokl.optimizers import Machines


class _Uniform(GatedMachine):
    """One machine on the average of the kernels: ``k = (1/m) sum_i k_i``."""

    def _learn(self, training: Training) -> Fitted:
        gate = Constant()
        params = gate.init(training.samples, len(training.kernels), training.rng)
        H = gate(training.samples, params, training.present)
        gram = training.solver.gram(training.kernels, training.X, H)
        solution = Machines(gram, training.solver, training.problems).solve(gram.points.gates)
        return Fitted(gram, gate, params, solution, [solution.objective], solution.gap)


class UniformMKLClassifier(_Uniform, GatedClassifier):
    """Support vector classification with the average of several kernels.

    ``f(x) = sum_j u_j (1/m) sum_i k_i(x_j, x) + b``, hinge loss. With one kernel this is the plain
    support vector machine, several times faster than LibSVM.

    Parameters
    ----------
    kernels : list or mapping of kernels, str or None, default=None
        None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`).
        A mapping gives the kernels names.
    C : float, default=1.0
        Cost of margin violations.
    solver : {"exact", "libsvm", "mwu"} or Solver, default="exact"
    tol : float, default=1e-3
        Largest violation of the optimality conditions that is left. Below 1e-4 everything is
        computed in float64.
    max_iter : int, default=-1
        Limit on the steps of the solver, -1 for none.
    cache_size : float, default=512
        Megabytes for rows of the Gram matrix; the answer does not depend on it.
    class_weight : dict, "balanced" or None, default=None
        Factors of `C` by class.
    random_state : int, RandomState or None, default=None
        Not used by this method; common to all.
    n_jobs : int or None, default=None
        Not used by this method; common to all.
    verbose : int, default=0
        1 logs a line about the fit to the logger ``lokl``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    kernel_ : GatedKernel
        The combined kernel, usable wherever a kernel is: ``SVC(kernel=model.kernel_)``.
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
        Dual objective, summed over the machines.
    duality_gap_ : float
        Certified: the objective is at most this far from the optimum.
    n_iter_ : int
        Steps of the solver.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the training samples came with column names.

    Notes
    -----
    Probabilities: wrap the model in :class:`sklearn.calibration.CalibratedClassifierCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import UniformMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = UniformMKLClassifier(["linear", "rbf"]).fit(X, y)
    >>> model.kernel_names_
    ['linear', 'rbf']
    >>> bool(model.score(X, y) > 0.9)
    True
    """


class UniformMKLRegressor(_Uniform, GatedRegressor):
    """Support vector regression with the average of several kernels.

    ``f(x) = sum_j u_j (1/m) sum_i k_i(x_j, x) + b``, epsilon-insensitive loss. With one kernel this
    is plain support vector regression, several times faster than LibSVM.

    Parameters
    ----------
    kernels : list or mapping of kernels, str or None, default=None
        None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`).
    C : float, default=1.0
        Cost of residuals beyond `epsilon`.
    epsilon : float, default=0.1
        Residuals up to here are free.
    solver : {"exact", "libsvm", "mwu"} or Solver, default="exact"
    tol : float, default=1e-3
    max_iter : int, default=-1
    cache_size : float, default=512
        Megabytes for rows of the Gram matrix; the answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Not used by this method; common to all.
    n_jobs : int or None, default=None
        Not used by this method; common to all.
    verbose : int, default=0

    Attributes
    ----------
    kernel_ : GatedKernel
    kernels_, kernel_names_ : list
    support_ : array of shape (n_support,)
    support_vectors_ : {array, CSR matrix} of shape (n_support, n_features)
    dual_coef_ : array of shape (n_targets, n_support)
    intercept_ : array of shape (n_targets,)
    support_fraction_ : float
    history_ : array
    duality_gap_ : float
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import UniformMKLRegressor
    >>> X = np.linspace(0, 6, 50)[:, np.newaxis]
    >>> model = UniformMKLRegressor(["rbf"], C=10).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.95)
    True
    """
