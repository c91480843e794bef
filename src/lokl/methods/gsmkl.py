"""GS-MKL: groups of samples, each with its own weights of the kernels."""

import numpy as np

from lokl.base import Classifier, IterativeEstimator, Regressor, Training, settings
from lokl.base.model import GatedMachine
from lokl.base.settings import learning_tolerance
from lokl.gates import GroupGate, RepresentationGate
from lokl.methods.clusters import CLUSTERING, N_CLUSTERS, SAMPLE_SIZE, find_clusters
from lokl.optimizers import GateObjective, spectral_gradient


@settings
class _GSMKL(IterativeEstimator):
    """Weights ``eta_ci`` of kernel `i` in group `c`, on the simplex, by projected gradient.

    Attributes
    ----------
    weights_ : array of shape (n_clusters, n_kernels)
        Weights of each group.
    clusters_ : Clusters
        ``clusters_.assign(X)`` returns the groups of any samples.
    history_ : array
        Objective after every round; it may rise in single rounds.
    duality_gap_ : float
        NaN: the problem is not convex, so the distance from the optimum is unknown.
    """

    n_clusters: int = N_CLUSTERS
    clustering: str = CLUSTERING
    sample_size: int = SAMPLE_SIZE
    learn_tol: float = learning_tolerance()

    def _learn(self, training: Training) -> GatedMachine:
        clusters, distances = find_clusters(self, training, np.inf)
        gate = RepresentationGate(GroupGate(clusters.n_clusters), clusters)
        groups, present = distances.argmin(axis=1), training.samples.present
        start = gate.gate.init(groups, training.n_kernels, training.rng)
        gram = training.gram(gate.values(groups, start, present), keep=True)
        objective = GateObjective(training.machines(), gram, gate, groups, present, start)
        trace = self._run(spectral_gradient(objective, self.learn_tol))
        return trace.model(training, gate, weights_=trace.last.params, clusters_=clusters)


@settings
class GSMKLClassifier(_GSMKL, Classifier):
    """Group-sensitive multiple kernel learning: one set of kernel weights for each group.

    ``k(x, z) = sum_i w_{c(x), i} w_{c(z), i} k_i(x, z)`` with groups ``c(x)`` from kernel k-means.
    The optimal dual objective is minimised over the weights of each group, which sum to one, by
    spectral projected gradient. The problem is not convex.

    References
    ----------
    .. [1] J. Yang, Y. Li, Y. Tian, L. Duan, W. Gao. Group-Sensitive Multiple Kernel Learning for
       Object Categorization. IEEE International Conference on Computer Vision (ICCV), 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import GSMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = GSMKLClassifier(random_state=0).fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    0.99
    """


@settings
class GSMKLRegressor(_GSMKL, Regressor):
    """Group-sensitive multiple kernel learning for one or several numeric targets.

    References
    ----------
    .. [1] J. Yang, Y. Li, Y. Tian, L. Duan, W. Gao. Group-Sensitive Multiple Kernel Learning for
       Object Categorization. IEEE International Conference on Computer Vision (ICCV), 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import GSMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = GSMKLRegressor(["linear", "rbf"], C=10, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> round(model.score(X, np.sin(X[:, 0])), 2)
    0.99
    """
