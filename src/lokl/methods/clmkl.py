"""C-LMKL: convex localized learning, one set of kernel weights for each region."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array, Samples
from lokl.base import Classifier, IterativeEstimator, Regressor, Training, setting, settings
from lokl.base.model import GatedMachine
from lokl.base.settings import FLAG, POSITIVE, learning_tolerance, or_none
from lokl.gates import WeightedGate
from lokl.gates.base import rescale_missing
from lokl.methods.clusters import CLUSTERING, N_CLUSTERS, SAMPLE_SIZE, Clusters, find_clusters
from lokl.methods.lpmkl import P
from lokl.optimizers import NormBall, alternating


@dataclass(frozen=True, eq=False)
class Memberships:
    """Fixed gates: membership of a sample in each cluster, the same for every kernel."""

    clusters: Clusters
    n_kernels: int

    def __call__(self, samples: Samples) -> Array:
        return self.of(self.clusters.memberships(samples), samples.present)

    def of(self, c: Array, present: Array | None) -> Array:
        """Return gates (n_samples, n_kernels, n_clusters) for memberships `c`."""
        return rescale_missing(np.repeat(c[:, np.newaxis, :], self.n_kernels, axis=1), present)


@settings
class _CLMKL(IterativeEstimator):
    """Weights ``beta_li`` of kernel `i` in cluster `l`, ``|beta_l|_p <= 1``.

    Attributes
    ----------
    weights_ : array of shape (n_clusters, n_kernels)
        Weights of each cluster.
    clusters_ : Clusters
        ``clusters_.memberships(X)`` and ``clusters_.assign(X)`` take any samples.
    history_ : array
        Objective after every round, falling.
    duality_gap_ : float
        Certified: the objective is at most this far from the optimum over weights and machines.
    """

    n_clusters: int = N_CLUSTERS
    clustering: str = CLUSTERING
    sample_size: int = SAMPLE_SIZE
    p: float = P
    learn_tol: float = learning_tolerance()

    sharpness: float | None = setting(
        None,
        or_none(POSITIVE),
        "Memberships are ``softmax(-sharpness * distance^2)``; None is one over the mean squared "
        "distance of the samples to their own centre.",
    )
    hard: bool = setting(
        False,
        FLAG,
        "Whether every sample belongs to one cluster. Kernels are then computed within clusters "
        "only, which saves time and memory if there are many clusters.",
    )

    def _learn(self, training: Training) -> GatedMachine:
        sharpness = np.inf if self.hard else self.sharpness
        clusters, distances = find_clusters(self, training, sharpness)
        memberships = Memberships(clusters, training.n_kernels)
        base = memberships.of(clusters.shares(distances), training.samples.present)

        return self._learn_weights(
            training,
            lambda **common: alternating(NormBall(**common, p=float(self.p)), self.learn_tol),
            gate=WeightedGate(memberships, by_rank=True),
            base=base,
            clusters_=clusters,
        )


@settings
class CLMKLClassifier(_CLMKL, Classifier):
    """Convex localized multiple kernel learning: one set of kernel weights for each region.

    ``k(x, z) = sum_l sum_i beta_li c_l(x) c_l(z) k_i(x, z)`` with memberships ``c_l(x)`` of
    clusters, found by kernel k-means with the average kernel. The dual objective of the SVM is
    minimised over the weights ``beta_l`` of each cluster, of norm at most one; weights in closed
    form and SVMs are updated in turn until the certified duality gap is small.

    References
    ----------
    .. [1] Y. Lei, A. Binder, U. Dogan, M. Kloft. Localized Multiple Kernel Learning - A Convex
       Approach. Asian Conference on Machine Learning (ACML), 2016.
       https://arxiv.org/abs/1506.04364

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import CLMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = CLMKLClassifier(random_state=0).fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    1.0
    >>> model.weights_.shape
    (3, 3)
    """


@settings
class CLMKLRegressor(_CLMKL, Regressor):
    """Convex localized multiple kernel learning for one or several numeric targets.

    References
    ----------
    .. [1] Y. Lei, A. Binder, U. Dogan, M. Kloft. Localized Multiple Kernel Learning - A Convex
       Approach. Asian Conference on Machine Learning (ACML), 2016.
       https://arxiv.org/abs/1506.04364

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import CLMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = CLMKLRegressor(["linear", "rbf"], C=10, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> round(model.score(X, np.sin(X[:, 0])), 2)
    0.99
    """
