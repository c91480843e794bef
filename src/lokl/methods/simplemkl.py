"""SimpleMKL: weights on the simplex, by reduced gradient."""

from collections.abc import Iterator
from typing import Any

from lokl.base import Classifier, IterativeEstimator, Regressor, Survival, Training, settings
from lokl.base.model import GatedMachine
from lokl.base.settings import learning_tolerance
from lokl.optimizers import OptimizerStep, Simplex, level_method, reduced_gradient


@settings
class _SimpleMKL(IterativeEstimator):
    """Weights that sum to one, by descent along the reduced gradient.

    Attributes
    ----------
    weights_ : array of shape (n_kernels,)
        Weight of each kernel; they sum to one.
    history_ : array
        Objective after every round, falling.
    duality_gap_ : float
        Certified: the objective is at most this far from the optimum over weights and machines.
    """

    learn_tol: float = learning_tolerance(0.01)
    max_iter: int = 500

    def _learn(self, training: Training) -> GatedMachine:
        return self._learn_weights(training, self._steps)

    def _steps(self, **common: Any) -> Iterator[OptimizerStep]:
        objective = Simplex(**common)
        search = reduced_gradient if objective.first is None else level_method
        return search(objective, self.learn_tol)


@settings
class SimpleMKLClassifier(_SimpleMKL, Classifier):
    """SimpleMKL: weights of the kernels that sum to one, few of them not zero.

    ``k = sum_i w_i k_i`` with ``w >= 0`` and ``sum_i w_i = 1``. The dual objective of the SVM is
    minimised over the weights by reduced gradient until the certified duality gap is small. The
    problem is convex. It equals :class:`LpMKLClassifier` with ``p=1`` and needs fewer rounds.

    References
    ----------
    .. [1] A. Rakotomamonjy, F. R. Bach, S. Canu, Y. Grandvalet. SimpleMKL. Journal of Machine
       Learning Research 9:2491-2521, 2008. https://jmlr.org/papers/v9/rakotomamonjy08a.html

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import SimpleMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = SimpleMKLClassifier().fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    1.0
    >>> model.weights_.shape
    (3,)
    """


@settings
class SimpleMKLRegressor(_SimpleMKL, Regressor):
    """SimpleMKL for one or several numeric targets.

    References
    ----------
    .. [1] A. Rakotomamonjy, F. R. Bach, S. Canu, Y. Grandvalet. SimpleMKL. Journal of Machine
       Learning Research 9:2491-2521, 2008. https://jmlr.org/papers/v9/rakotomamonjy08a.html

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import SimpleMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = SimpleMKLRegressor(["linear", "rbf"], C=10).fit(X, np.sin(X[:, 0]))
    >>> round(model.score(X, np.sin(X[:, 0])), 2)
    0.99
    """


@settings
class SimpleMKLSurvival(_SimpleMKL, Survival):
    """SimpleMKL for censored times: weights of the kernels that sum to one, few of them not zero.

    An event costs on both sides of a tube around minus its log time; a censored sample only if its
    predicted time is too early. The problem is convex.

    References
    ----------
    .. [1] A. Rakotomamonjy, F. R. Bach, S. Canu, Y. Grandvalet. SimpleMKL. Journal of Machine
       Learning Research 9:2491-2521, 2008. https://jmlr.org/papers/v9/rakotomamonjy08a.html
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
    >>> model = lokl.SimpleMKLSurvival(["linear", "rbf"]).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.85
    """
