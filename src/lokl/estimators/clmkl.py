"""C-LMKL: convex localized learning, one set of kernel weights for each region."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._checks import check_positive as positive
from lokl.clustering import Clusters, find_clusters
from lokl.estimators.base import Training
from lokl.estimators.learned_gate import LearnedGate
from lokl.estimators.machine import Fitted, GatedClassifier, GatedRegressor
from lokl.estimators.validation import check_choice, check_count, check_norm
from lokl.gates import Weighted
from lokl.gates.weighted import share_missing, weigh
from lokl.optimizers import closed_form

CLUSTERINGS = ("auto", "exact", "sample", "approximate")


@dataclass(frozen=True, eq=False)
class Memberships:
    """The known part of the gate: how far a sample belongs to each cluster, for every kernel."""

    clusters: Clusters
    n_kernels: int

    def __call__(self, X: Any, present: Array | None = None) -> Array:
        return self.of(self.clusters.memberships(X), present)

    def of(self, c: Array, present: Array | None) -> Array:
        """Gates from memberships."""
        return share_missing(np.repeat(c[:, np.newaxis, :], self.n_kernels, axis=1), present)


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

    def _clusters(self, training: Training, sharpness: float | None) -> tuple[Clusters, Array]:
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
        m = len(training.kernels)
        clusters, distances = self._clusters(training, np.inf if self.hard else self.sharpness)
        memberships = Memberships(clusters, m)
        gate = Weighted(memberships, by_rank=True)
        base = memberships.of(clusters.shares(distances), training.present)
        start = np.full((clusters.n_clusters, m), m ** (-1.0 / self.p))
        machines = self._machines(training, weigh(base, start))
        path = closed_form(
            machines, base, p=float(self.p), by_rank=True, tol=self.learn_tol, start=start
        )
        fitted = self._walk(path, machines.gram, gate)
        self.clusters_ = clusters
        self.weights_ = fitted.params
        return fitted


@dataclass(eq=False, repr=False)
class CLMKLClassifier(_CLMKL, GatedClassifier):
    """Convex localized multiple kernel learning: one set of kernel weights for each region.

    ``k(x, z) = sum_l sum_i beta_li c_l(x) c_l(z) k_i(x, z)``: kernel k-means with the average
    kernel gives memberships ``c_l(x)`` of clusters, and weights ``beta_l`` of norm at most one are
    learned with the machine, in closed form, up to a certified gap.

    Parameters
    ----------
    kernels : list or mapping of kernels, str or None, default=None
        None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`).
        A mapping gives the kernels names.
    C : float, default=1.0
        Cost of margin violations.
    n_clusters : int, default=3
    p : float, default=2.0
        Norm of the weights of a cluster: 1 is sparse, larger is more even.
    clustering : {"auto", "exact", "sample", "approximate"}, default="auto"
        Cluster all samples; a random sample of them; or all with centres in the span of a random
        sample. "auto" is "exact" up to `sample_size` samples, "sample" beyond.
    sample_size : int, default=1000
    sharpness : float or None, default=None
        Memberships are ``softmax(-sharpness * distance^2)``; None is one over the mean squared
        distance of the samples to their own centre.
    hard : bool, default=False
        Every sample belongs to one cluster alone.
    solver : {"exact", "libsvm", "mwu"} or Solver, default="exact"
    tol : float, default=1e-3
        Largest violation of the optimality conditions that a machine leaves.
    max_iter : int, default=100
        Limit on the rounds of the method, -1 for none.
    learn_tol : float, default=1e-3
        Relative duality gap of the weights that ends the rounds.
    callback : callable, optional
        Called with every :class:`~lokl.optimizers.Step`; the method stops when it returns True.
    cache_size : float, default=512
        Megabytes for rows of the Gram matrix.
    class_weight : dict, "balanced" or None, default=None
        Factors of `C` by class.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Not used by this method; common to all.
    verbose : int, default=0
        1 logs a line for every round to the logger ``lokl``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
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
    weights_ : array of shape (n_clusters, n_kernels)
    clusters_ : Clusters
        ``clusters_.memberships(X)`` and ``clusters_.assign(X)`` of any samples.
    history_ : array
        Objective after every round, falling.
    duality_gap_ : float
        Certified distance from the optimum of machines and weights together.
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
    >>> from lokl import CLMKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), CLMKLClassifier(random_state=0)).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model[-1].weights_.shape
    (3, 3)
    """


@dataclass(eq=False, repr=False)
class CLMKLRegressor(_CLMKL, GatedRegressor):
    """Convex localized multiple kernel learning for one or several numeric targets.

    Settings and attributes are those of :class:`CLMKLClassifier`, and

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
    >>> from lokl import CLMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = CLMKLRegressor(["linear", "rbf"], C=10, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.8)
    True
    """
