"""Settings of methods that divide the samples into clusters first."""

from typing import Any

from lokl._arrays import Array
from lokl.clustering import Clustering, Clusters
from lokl.estimators._base.rules import count, one_of
from lokl.estimators._base.settings import setting
from lokl.estimators._base.training import Training

N_CLUSTERS: Any = setting(3, count(), "Number of clusters.")
CLUSTERING: Any = setting(
    "auto",
    one_of("auto", "exact", "sample", "approximate"),
    "Cluster all samples; a random sample of them; or all with centres in the span of a random "
    'sample. "auto" is "exact" up to `sample_size` samples, "sample" beyond.',
)
SAMPLE_SIZE: Any = setting(1000, count(), "Number of samples that are drawn for clustering.")


def find_clusters(
    learner: Any, training: Training, sharpness: float | None
) -> tuple[Clusters, Array]:
    """Divide the training samples as the settings of a method say."""
    how = Clustering(learner.n_clusters, learner.clustering, learner.sample_size, sharpness)
    rng = training.rng
    return training.earlier.part(
        "clusters",
        lambda: how.find(training.kernels, training.names, training.samples, rng),
        rng,
    )
