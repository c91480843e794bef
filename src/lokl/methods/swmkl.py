"""SwMKL: kernels weighted by their predicted success, pair by pair."""

from dataclasses import dataclass, replace

import numpy as np

from lokl._arrays import Array, Samples
from lokl.base import Classifier, Regressor, Training, setting, settings
from lokl.base.model import GatedMachine
from lokl.base.settings import one_of
from lokl.gates import WeightedGate
from lokl.gram import GatedGram
from lokl.kernels import Precomputed
from lokl.methods.single_kernel import KEPT_SHARE, RegressedSuccess, SuccessEstimator
from lokl.solvers import Problem, Solution, Solver
from lokl.solvers.squared import leave_one_out

# Least weight of a kernel, so that every sample has some.
_FLOOR = 1e-3
# The published kernel and its repairs divide by a sum for each pair.
_PAIRS = ("none", "clip", "shift")


@dataclass(frozen=True, eq=False)
class SuccessGates:
    """Gates from predicted success, normalised according to `psd`."""

    success: RegressedSuccess
    psd: str

    def __call__(self, samples: Samples) -> Array:
        return self.of(self.success(samples))

    def of(self, success: Array) -> Array:
        """Turn predicted success into gates, 0 for missing views."""
        g = np.where(np.isneginf(success), 0.0, np.clip(success, _FLOOR, 1.0))
        if self.psd == "cosine":
            return np.asarray(g / np.linalg.norm(g, axis=1, keepdims=True))
        if self.psd == "pointwise":
            return np.asarray(g / g.sum(axis=1, keepdims=True))
        return g


class SuccessGate(WeightedGate):
    """Gate with weights that are shares of the kernels in the pair of a sample with itself."""

    base: SuccessGates

    def kernel_weights(self, H: Array) -> Array:
        share = H if self.base.psd == "pointwise" else H**2
        return np.asarray(share / share.sum(axis=1, keepdims=True))


@settings
class _SwMKL(SuccessEstimator):
    """SVMs on kernels weighted by predicted success.

    Attributes
    ----------
    success_ : array of shape (n_samples, n_kernels)
        Success of every kernel at the training samples with a weight, NaN for missing views.
    duality_gap_ : float
        Certified, for the final SVMs.
    """

    psd: str = setting(
        "cosine",
        one_of("cosine", "pointwise", "none", "clip", "shift"),
        'The published kernel, "none", divides by ``sum_i g_i(x) g_i(z)`` and is not positive '
        'semidefinite. "cosine" divides by the norms ``|g(x)| |g(z)|`` instead, "pointwise" by the '
        'sums; "clip" removes negative eigenvalues, "shift" raises the diagonal (both need the '
        "whole matrix).",
    )

    def _check_combinations(self, solver: Solver) -> None:
        super()._check_combinations(solver)
        if self.psd in _PAIRS and solver.is_low_rank:
            raise ValueError(
                f"psd={self.psd!r} divides pair by pair, which low-rank features cannot; use "
                "psd='cosine' or 'pointwise', or solver='exact'"
            )

    def _learn(self, training: Training) -> GatedMachine:
        fits, success, regressed, regressors = self._learn_success(training)
        gates = SuccessGates(regressors, self.psd)
        H = gates.of(regressed)
        share = 1.0 - KEPT_SHARE if any(single.kept for single in fits) else 1.0
        # Free the memory of single kernels before the combined one needs it.
        del fits
        gram = training.gram(H, share=share, pair_normalized=self.psd in _PAIRS)
        solved_on, problems = gram, training.problems
        if self.psd == "clip":
            solution, solved_on = _clipped(training, gram)
        elif self.psd == "shift":
            solution, problems = _shifted(training, gram)
        else:
            # The published kernel is indefinite: the solution depends on the start.
            resume = None if self.psd == "none" else "machines"
            solution = training.machines(resume=resume).solve(gram)
        params = np.ones((1, training.n_kernels))
        gate = SuccessGate(gates)
        model = training.model(gate, params, solution, success_=success)
        if self.psd in ("clip", "shift"):
            model = replace(model, left_out=leave_one_out(solved_on, problems))
        return model


def _clipped(training: Training, gram: GatedGram) -> tuple[Solution, GatedGram]:
    """Train on the positive part of the matrix, and project new samples onto it.

    With the projector ``P`` on the positive eigenvectors, ``f(x) = k(x, .) P u + b``, so prediction
    only needs projected coefficients. Also returns the matrix of the positive part.
    """
    values, vectors = np.linalg.eigh(gram.block(np.arange(gram.n_samples)).astype(float))
    kept = vectors[:, values > 0]
    K = (kept * values[values > 0]) @ kept.T
    repaired = Precomputed(0.5 * (K + K.T))
    index = np.arange(gram.n_samples, dtype=float)[:, np.newaxis]
    positive = training.solver.inner_products(index).gated([repaired])
    solved = training.machines().solve(positive)
    solution = Solution([replace(d, coef=kept @ (kept.T @ d.coef)) for d in solved.duals], gram)
    return solution, positive


def _shifted(training: Training, gram: GatedGram) -> tuple[Solution, list[Problem]]:
    """Raise the diagonal of the training matrix by its lowest eigenvalue.

    Also returns the problems with the raised diagonal.
    """
    lowest = np.linalg.eigvalsh(gram.block(np.arange(gram.n_samples)).astype(float))[0]
    lift = max(-float(lowest), 0.0)
    problems = [replace(p, ridge=p.ridge + lift) for p in training.problems]
    return training.machines(problems).solve(gram), problems


@settings
class SwMKLClassifier(_SwMKL, Classifier):
    """Success-weighted combination of kernels.

    SVMs are trained on every kernel alone, and their success ``g_i(x)`` is regressed on the
    samples. The final SVM uses ``k(x, z) = sum_i g_i(x) g_i(z) k_i(x, z)``, normalised according to
    `psd`.

    References
    ----------
    .. [1] R. Kannao, P. Guha. Success Based Locally Weighted Multiple Kernel Combination. Pattern
       Recognition 68, 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import SwMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = SwMKLClassifier(random_state=0).fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    1.0
    """


@settings
class SwMKLRegressor(_SwMKL, Regressor):
    """Success-weighted combination of kernels for one or several numeric targets.

    References
    ----------
    .. [1] R. Kannao, P. Guha. Success Based Locally Weighted Multiple Kernel Combination. Pattern
       Recognition 68, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import SwMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = SwMKLRegressor(["linear", "rbf"], C=10, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> round(model.score(X, np.sin(X[:, 0])), 2)
    0.99
    """
