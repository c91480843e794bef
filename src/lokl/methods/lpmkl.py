"""l_p-norm MKL: weights of bounded norm, in closed form."""

from collections.abc import Iterator
from typing import Any

from lokl.base import (
    Classifier,
    IterativeEstimator,
    Regressor,
    Survival,
    Training,
    setting,
    settings,
)
from lokl.base.model import GatedMachine
from lokl.base.settings import NORM, learning_tolerance
from lokl.optimizers import NormBall, OptimizerStep, alternating

# Norm of the weights, shared by methods that update them in closed form.
P = setting(
    2.0,
    NORM,
    "Norm of the weights, at least 1: 1 selects few kernels, infinity weights all equally.",
)


@settings
class LpMKL(IterativeEstimator):
    """Weights of norm at most one, updated in turn with the SVMs, on equal or given gates.

    Attributes
    ----------
    weights_ : array of shape (n_kernels,)
        Weight of each kernel, of norm one.
    history_ : array
        Objective after every round, falling.
    duality_gap_ : float
        Certified: the objective is at most this far from the optimum over weights and machines.
    """

    p: float = P
    learn_tol: float = learning_tolerance()
    max_iter: int = 500

    def _steps(self, **objective: Any) -> Iterator[OptimizerStep]:
        return alternating(NormBall(**objective, p=float(self.p)), self.learn_tol)

    def _learn(self, training: Training) -> GatedMachine:
        return self._learn_weights(training, self._steps)


@settings
class LpMKLClassifier(LpMKL, Classifier):
    """l_p-norm multiple kernel learning: one weight for each kernel, of bounded norm.

    ``k = sum_i w_i k_i`` with ``w >= 0`` and ``|w|_p <= 1``. The dual objective of the SVM is
    minimised over the weights; weights in closed form and SVMs are updated in turn until the
    certified duality gap is small. The problem is convex.

    References
    ----------
    .. [1] M. Kloft, U. Brefeld, S. Sonnenburg, A. Zien. lp-Norm Multiple Kernel Learning. Journal
       of Machine Learning Research 12:953-997, 2011.
       https://jmlr.org/papers/v12/kloft11a.html

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import LpMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = LpMKLClassifier().fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    1.0
    >>> model.weights_.shape
    (3,)
    """


@settings
class LpMKLRegressor(LpMKL, Regressor):
    """l_p-norm multiple kernel learning for one or several numeric targets.

    References
    ----------
    .. [1] M. Kloft, U. Brefeld, S. Sonnenburg, A. Zien. lp-Norm Multiple Kernel Learning. Journal
       of Machine Learning Research 12:953-997, 2011.
       https://jmlr.org/papers/v12/kloft11a.html

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import LpMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = LpMKLRegressor(["linear", "rbf"], C=10).fit(X, np.sin(X[:, 0]))
    >>> round(model.score(X, np.sin(X[:, 0])), 2)
    0.99
    """


@settings
class LpMKLSurvival(LpMKL, Survival):
    """l_p-norm multiple kernel learning for censored times.

    One weight for each kernel, of bounded norm, as in :class:`LpMKLRegressor`. An event costs on
    both sides of a tube around minus its log time; a censored sample only if its predicted time is
    too early. The problem is convex.

    References
    ----------
    .. [1] M. Kloft, U. Brefeld, S. Sonnenburg, A. Zien. lp-Norm Multiple Kernel Learning. Journal
       of Machine Learning Research 12:953-997, 2011.
       https://jmlr.org/papers/v12/kloft11a.html
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
    >>> model = lokl.LpMKLSurvival(["linear", "rbf"]).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.85
    """
