"""SwMKL: kernels weighted by their regressed success, pair by pair."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.estimators.base import Training
from lokl.estimators.machine import Fitted, GatedClassifier, GatedMachine, GatedRegressor
from lokl.estimators.success import (
    RegressedSuccess,
    SuccessLearner,
    at_training,
    clipped,
    learn_success,
)
from lokl.estimators.validation import check_choice
from lokl.gates import Weighted
from lokl.kernels import Precomputed
from lokl.optimizers import Machines, Solution
from lokl.solvers import Dual

_REPAIRS = ("cosine", "pointwise", "none", "clip", "shift")


@dataclass(frozen=True, eq=False)
class SuccessTrust:
    """Gates from regressed success, scaled as the repair wants it."""

    success: RegressedSuccess
    psd: str

    def __call__(self, X: Any, present: Array | None = None) -> Array:
        return self.scaled(clipped(self.success(X, present)))

    def scaled(self, g: Array) -> Array:
        """Turn clipped success into gates."""
        if self.psd == "cosine":
            return np.asarray(g / np.linalg.norm(g, axis=1, keepdims=True))
        if self.psd == "pointwise":
            return np.asarray(g / g.sum(axis=1, keepdims=True))
        return g


@dataclass(eq=False, repr=False, kw_only=True)
class _SwMKL(SuccessLearner, GatedMachine):
    """One machine on kernels weighted by success."""

    psd: str = "cosine"

    def _check(self) -> None:
        super()._check()
        check_choice("psd", self.psd, _REPAIRS)

    def _learn(self, training: Training) -> Fitted:
        singles = learn_success(self, training)
        trust = SuccessTrust(RegressedSuccess([s.regressor for s in singles]), self.psd)
        H = trust.scaled(clipped(at_training(singles, training.n_samples)))
        self.success_ = np.full((training.n_samples, len(singles)), np.nan)
        for i, single in enumerate(singles):
            self.success_[single.rows, i] = single.success
        # The rows of the single kernels are done with: their memory goes to the combined one.
        del singles
        pairs = self.psd in ("none", "clip", "shift")
        gram = training.solver.gram(training.kernels, training.X, H, pair_normalized=pairs)
        machines = Machines(gram, training.solver, training.problems)
        if self.psd == "clip":
            solution = _clipped(training, gram, H)
        elif self.psd == "shift":
            solution = _shifted(training, gram, H)
        else:
            solution = machines.solve(H)
        gate = Weighted(trust)
        params = np.ones((1, len(training.kernels)))
        return Fitted(gram, gate, params, solution, [solution.objective], solution.gap)

    def gate(self, X: Any) -> Array:
        """How far each kernel counts at each sample, as in :meth:`GatedMachine.gate`.

        The share of the kernel in the pair of the sample with itself; rows sum to one.
        """
        X = self._validated(X)
        _, H = self.kernel_.gates(X)
        share = H if self.psd == "pointwise" else H**2
        return np.asarray(share / share.sum(axis=1, keepdims=True))


def _clipped(training: Training, gram: Any, H: Array) -> Solution:
    """Train on the positive part of the matrix; new samples are projected onto it as well.

    With ``P`` the projector on the positive eigenvectors, ``f(x) = k(x, .) P u + b``: the projected
    coefficients are all that prediction needs.
    """
    values, vectors = np.linalg.eigh(gram.block(np.arange(gram.n_samples)).astype(float))
    kept = vectors[:, values > 0]
    K = (kept * values[values > 0]) @ kept.T
    repaired = Precomputed(0.5 * (K + K.T))
    index = np.arange(gram.n_samples, dtype=float)[:, np.newaxis]
    own = training.solver.gram([repaired], index, np.ones((gram.n_samples, 1)))
    solved = Machines(own, training.solver, training.problems).solve(own.points.gates)
    duals: list[Dual] = [replace(d, coef=kept @ (kept.T @ d.coef)) for d in solved.duals]
    return Solution(duals, H)


def _shifted(training: Training, gram: Any, H: Array) -> Solution:
    """Lift the diagonal of the training matrix by its lowest eigenvalue."""
    lowest = np.linalg.eigvalsh(gram.block(np.arange(gram.n_samples)).astype(float))[0]
    lift = max(-float(lowest), 0.0)
    problems = [replace(p, ridge=p.ridge + lift) for p in training.problems]
    return Machines(gram, training.solver, problems).solve(H)


@dataclass(eq=False, repr=False)
class SwMKLClassifier(_SwMKL, GatedClassifier):
    """Success-weighted combination of kernels.

    A machine is trained with every kernel alone, and its success is regressed on the samples:
    ``g_i(x)``. One more machine is trained with kernels weighted by the success of both samples of
    a pair.

    Parameters
    ----------
    kernels : list or mapping of kernels, str or None, default=None
        None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`).
        A mapping gives the kernels names.
    C : float, default=1.0
        Cost of margin violations.
    psd : {"cosine", "pointwise", "none", "clip", "shift"}, default="cosine"
        The published kernel, "none", divides by ``sum_i g_i(x) g_i(z)`` and is not positive
        semidefinite. "cosine" divides by the norms ``|g(x)| |g(z)|`` and "pointwise" by the sums
        instead; "clip" drops negative eigenvalues, "shift" lifts the diagonal (both need the whole
        matrix).
    success : {"train", "cv"}, default="train"
        Success of a kernel on the training samples themselves, or on samples left out in turn (five
        folds).
    regressor : "same" or Kernel, default="same"
        Kernel of the regressions of success: that of the machine, or one for all.
    closeness : {"decay", "within"}, default="decay"
        Success in regression: ``exp(-residual / median residual)``, or whether the residual is
        within `epsilon`. Not used for classes.
    solver : {"exact", "libsvm", "mwu"} or Solver, default="exact"
    tol : float, default=1e-3
        Largest violation of the optimality conditions that a machine leaves.
    max_iter : int, default=-1
        Limit on the steps of the solver, -1 for none.
    cache_size : float, default=512
        Megabytes for rows of the Gram matrix.
    class_weight : dict, "balanced" or None, default=None
        Factors of `C` by class.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Kernels that are worked on at a time, in threads that share `cache_size`.
    verbose : int, default=0
        1 logs a line about the fit to the logger ``lokl``.

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
    success_ : array of shape (n_samples, n_kernels)
        Success of every kernel at the training samples that count, NaN where a view is missing.
    history_ : array
        Dual objective, summed over the machines.
    duality_gap_ : float
        Certified, for the last machine.
    n_iter_ : int
        Steps of the solver.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the training samples came with column names.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lokl import SwMKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), SwMKLClassifier(random_state=0)).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """


@dataclass(eq=False, repr=False)
class SwMKLRegressor(_SwMKL, GatedRegressor):
    """Success-weighted combination of kernels for one or several numeric targets.

    Settings and attributes are those of :class:`SwMKLClassifier`, and

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
    >>> from lokl import SwMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = SwMKLRegressor(["linear", "rbf"], C=10, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.8)
    True
    """
