"""C-LMKL: convex localized learning, one set of kernel weights for each region."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.clustering import Clusters, find_clusters
from lokl.estimators.base import Training
from lokl.estimators.learned_gate import LearnedGate
from lokl.estimators.machine import Fitted, GatedClassifier, GatedRegressor
from lokl.estimators.validation import check_choice, check_count, check_norm
from lokl.gates import Weighted
from lokl.gates.weighted import share_missing, weigh
from lokl.kernels.dot import positive
from lokl.optimizers import closed_form

CLUSTERINGS = ("auto", "exact", "sample", "approximate")


@dataclass(frozen=True, eq=False)
class Memberships:
    """The known part of the gate: how far a sample belongs to each cluster, for every kernel."""

    clusters: Clusters
    n_kernels: int

    def __call__(self, X: Any, present: Array | None = None) -> Array:
        c = self.clusters.memberships(X)[:, np.newaxis, :]
        return share_missing(np.repeat(c, self.n_kernels, axis=1), present)


@dataclass(eq=False, repr=False, kw_only=True)
class Clustered(LearnedGate):
    """Settings of methods that divide the data into regions first."""

    n_clusters: int = 3
    clustering: str = "auto"
    sample_size: int = 1000

    def _check(self) -> None:
        super()._check()
        check_count("n_clusters", self.n_clusters)
        check_count("sample_size", self.sample_size)
        check_choice("clustering", self.clustering, CLUSTERINGS)

    def _clusters(self, training: Training, sharpness: float | None) -> Clusters:
        return find_clusters(
            training.kernels,
            training.samples,
            training.X,
            training.present,
            training.weight,
            n_clusters=self.n_clusters,
            rng=training.rng,
            how=self.clustering,
            sample_size=self.sample_size,
            sharpness=sharpness,
            names=training.names,
        )


@dataclass(eq=False, repr=False, kw_only=True)
class _CLMKL(Clustered):
    """Weights ``beta_li`` of kernel `i` in cluster `l`, ``|beta_l|_p <= 1``."""

    p: float = 2.0
    sharpness: float | None = None
    hard: bool = False

    def _check(self) -> None:
        super()._check()
        check_norm("p", self.p)
        if self.sharpness is not None:
            positive("sharpness", self.sharpness)

    def _learn(self, training: Training) -> Fitted:
        clusters = self._clusters(training, np.inf if self.hard else self.sharpness)
        gate = Weighted(Memberships(clusters, len(training.kernels)), by_rank=True)
        base = gate.base(training.samples, training.present)
        m = len(training.kernels)
        start = np.full((clusters.n_clusters, m), m ** (-1.0 / self.p))
        machines = self._machines(training, weigh(base, start))
        path = closed_form(
            machines, base, p=float(self.p), by_rank=True, tol=self.learn_tol, start=start
        )
        fitted = self._walk(path, machines, gate)
        self.clusters_ = clusters
        self.weights_ = fitted.params
        return fitted


@dataclass(eq=False, repr=False)
class CLMKLClassifier(_CLMKL, GatedClassifier):
    """Convex localized multiple kernel learning for classification."""


@dataclass(eq=False, repr=False)
class CLMKLRegressor(_CLMKL, GatedRegressor):
    """Convex localized multiple kernel learning for regression."""
