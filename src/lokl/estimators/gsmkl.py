"""GS-MKL: groups of samples, each with its own shares of the kernels."""

from dataclasses import dataclass

import numpy as np

from lokl.estimators.base import Training
from lokl.estimators.clmkl import Clustered
from lokl.estimators.machine import Fitted, GatedClassifier, GatedRegressor
from lokl.gates import Groups
from lokl.optimizers import GateObjective, spectral


@dataclass(eq=False, repr=False, kw_only=True)
class _GSMKL(Clustered):
    """Shares ``eta_ci`` of kernel `i` in group `c`, on the simplex, by projected gradient."""

    def _learn(self, training: Training) -> Fitted:
        clusters, distances = self._clusters(training, np.inf)
        gate = Groups(clusters.assign, clusters.n_clusters)
        start = gate.init(training.samples, len(training.kernels), training.rng)
        # Groups do not move: one assignment serves every step.
        labels = distances.argmin(axis=1)
        settled = Groups(lambda X: labels, clusters.n_clusters)
        machines = self._machines(training, settled(training.samples, start, training.present))

        objective = GateObjective(
            machines,
            lambda shares: settled(training.samples, shares, training.present),
            lambda shares, H, slopes: settled.pullback(training.samples, shares, H, slopes),
        )
        path = spectral(objective.at, start, gate.project, self.learn_tol)
        fitted = self._walk(path, machines.gram, gate)
        self.clusters_ = clusters
        self.weights_ = fitted.params
        return fitted


@dataclass(eq=False, repr=False)
class GSMKLClassifier(_GSMKL, GatedClassifier):
    """Group-sensitive multiple kernel learning: every group has its shares of the kernels.

    ``k(x, z) = sum_i w_{c(x), i} w_{c(z), i} k_i(x, z)``: kernel k-means divides the samples into
    groups ``c(x)``, and the shares of a group, which sum to one, are learned by projected gradient.

    Parameters
    ----------
    kernels : list or mapping of kernels, str or None, default=None
        None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`).
        A mapping gives the kernels names.
    C : float, default=1.0
        Cost of margin violations.
    n_clusters : int, default=3
        Number of groups.
    clustering : {"auto", "exact", "sample", "approximate"}, default="auto"
        As in :class:`CLMKLClassifier`.
    sample_size : int, default=1000
    solver : {"exact", "libsvm", "mwu"} or Solver, default="exact"
    tol : float, default=1e-3
        Largest violation of the optimality conditions that a machine leaves.
    max_iter : int, default=100
        Limit on the rounds of the method, -1 for none.
    learn_tol : float, default=1e-3
        Projected gradient, or fall of the objective in five rounds, relative to the objective,
        that ends the search.
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
        Shares of the groups.
    clusters_ : Clusters
    history_ : array
        Objective after every round; it may rise for a round.
    duality_gap_ : float
        NaN: the problem is not convex, no distance from the optimum is known.
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
    >>> from lokl import GSMKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), GSMKLClassifier(random_state=0)).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """


@dataclass(eq=False, repr=False)
class GSMKLRegressor(_GSMKL, GatedRegressor):
    """Group-sensitive multiple kernel learning for one or several numeric targets.

    Settings and attributes are those of :class:`GSMKLClassifier`, and

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
    >>> from lokl import GSMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = GSMKLRegressor(["linear", "rbf"], C=10, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.8)
    True
    """
