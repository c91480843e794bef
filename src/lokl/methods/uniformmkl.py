"""UNIFORM: the average of the kernels. With one kernel, the plain SVM."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._threads import limit_blas_for
from lokl._warnings import DeferredWarnings
from lokl.base import Classifier, KernelEstimator, Regressor, Survival, Training, settings
from lokl.base.model import GatedMachine
from lokl.solvers.machines import Fold, check_any_left, held_out_decisions


@settings
class UniformMKL(KernelEstimator):
    """SVMs on the average of the kernels: ``k = (1/m) sum_i k_i``.

    The kernel does not depend on the targets, so that folds can share its Gram matrix.
    """

    def _learn(self, training: Training) -> GatedMachine:
        return training.average_model()

    def _held_out(self, X: Any, y: Any, folds: Iterable[Fold], sample_weight: Any = None) -> Array:
        """Return decisions about held-out samples, (n_samples, n_tasks), from one Gram matrix.

        Settings that depend on the samples, such as ``gamma="scale"``, and balanced class weights
        are computed from all samples. Decisions are 0 for samples without a weight and for samples
        that are never held out. Attributes of the columns are set as by `fit`: call this on a copy.
        """
        data = self._validate(X, y, sample_weight)
        with DeferredWarnings(), np.errstate(all="ignore"):
            training, _ = self._prepare(data)
            position = np.full(data.n_samples, -1)
            position[training.rows] = np.arange(training.n_samples)
            weighted = [
                (position[kept][position[kept] >= 0], position[left][position[left] >= 0])
                for kept, left in folds
            ]
            check_any_left(weighted)
            with limit_blas_for(training.work):
                gram, problems = training.average_gram(), training.problems
                held_out = held_out_decisions(training.solver, gram, problems, weighted)
        decisions = np.zeros((len(position), held_out.shape[1]))
        decisions[training.rows] = held_out
        return decisions


@settings
class UniformMKLClassifier(UniformMKL, Classifier):
    """Support vector classification with the average of several kernels.

    ``f(x) = sum_j u_j (1/m) sum_i k_i(x_j, x) + b``, hinge loss. With one kernel this is the plain
    support vector machine, several times faster than LibSVM.

    Notes
    -----
    Probabilities: :func:`lokl.search.calibrated`.

    References
    ----------
    .. [1] M. Gönen, E. Alpaydin. Multiple Kernel Learning Algorithms. Journal of Machine Learning
       Research 12:2211-2268, 2011.
       https://jmlr.org/papers/v12/gonen11a.html

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import UniformMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = UniformMKLClassifier(["linear", "rbf"]).fit(X, y)
    >>> model.kernel_names_
    ['linear', 'rbf']
    >>> round(model.score(X, y), 2)
    0.97
    """


@settings
class UniformMKLRegressor(UniformMKL, Regressor):
    """Support vector regression with the average of several kernels.

    ``f(x) = sum_j u_j (1/m) sum_i k_i(x_j, x) + b``, epsilon-insensitive loss. With one kernel this
    is plain support vector regression, several times faster than LibSVM.

    References
    ----------
    .. [1] M. Gönen, E. Alpaydin. Multiple Kernel Learning Algorithms. Journal of Machine Learning
       Research 12:2211-2268, 2011.
       https://jmlr.org/papers/v12/gonen11a.html

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import UniformMKLRegressor
    >>> X = np.linspace(0, 6, 50)[:, np.newaxis]
    >>> model = UniformMKLRegressor(["rbf"], C=10).fit(X, np.sin(X[:, 0]))
    >>> round(model.score(X, np.sin(X[:, 0])), 2)
    0.99
    """


@settings
class UniformMKLSurvival(UniformMKL, Survival):
    """Censored support vector regression with the average of several kernels.

    The risk is ``f(x) = sum_j u_j (1/m) sum_i k_i(x_j, x) + b``. An event costs on both sides of a
    tube around minus its log time; a censored sample only if its predicted time is too early.

    References
    ----------
    .. [1] M. Gönen, E. Alpaydin. Multiple Kernel Learning Algorithms. Journal of Machine Learning
       Research 12:2211-2268, 2011.
       https://jmlr.org/papers/v12/gonen11a.html
    .. [2] P. K. Shivaswamy, W. Chu, M. Jansche. A Support Vector Approach to Censored Targets. IEEE
       International Conference on Data Mining (ICDM), 655-660, 2007.
       https://doi.org/10.1109/ICDM.2007.93

    Examples
    --------
    >>> import numpy as np
    >>> import lokl
    >>> rng = np.random.RandomState(0)
    >>> X, ends = rng.normal(size=(100, 3)), rng.exponential(size=(100, 2))
    >>> event, censored = ends[:, 0] * np.exp(-2 * X[:, 0]), 3 * ends[:, 1]
    >>> y = lokl.survival_target(event <= censored, np.minimum(event, censored))
    >>> model = lokl.UniformMKLSurvival(["linear", "rbf"]).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.85
    """
