"""SwMKL: kernels weighted by their regressed success, pair by pair."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from lokl._arrays import Array, Samples
from lokl.base import Classifier, Regressor, Training, setting, settings
from lokl.base.model import AttributeDocs, GatedMachine
from lokl.base.settings import one_of
from lokl.gates import WeightedGate
from lokl.gram import GatedGram
from lokl.kernels import Precomputed
from lokl.methods.success import (
    RegressedSuccess,
    SuccessEstimator,
    at_training,
    learn_success,
    memory_left,
)
from lokl.solvers import Solution, Solver

# Trust never falls below this, so that no sample is left without any kernel.
_FLOOR = 1e-3
# Repairs of the published kernel, and that kernel itself, which divide by a sum for each pair.
_PAIRS = ("none", "clip", "shift")


@dataclass(frozen=True, eq=False)
class SuccessTrust:
    """Gates from regressed success, scaled as the repair wants it."""

    success: RegressedSuccess
    psd: str

    def __call__(self, samples: Samples) -> Array:
        return self.of(self.success(samples))

    def of(self, success: Array) -> Array:
        """Turn regressed success into gates, 0 where a view is missing."""
        g = np.where(np.isneginf(success), 0.0, np.clip(success, _FLOOR, 1.0))
        if self.psd == "cosine":
            return np.asarray(g / np.linalg.norm(g, axis=1, keepdims=True))
        if self.psd == "pointwise":
            return np.asarray(g / g.sum(axis=1, keepdims=True))
        return g


class SuccessGate(WeightedGate):
    """Trust is the share of a kernel in the pair of the sample with itself; rows sum to one."""

    base: SuccessTrust

    def kernel_weights(self, H: Array) -> Array:
        share = H if self.base.psd == "pointwise" else H**2
        return np.asarray(share / share.sum(axis=1, keepdims=True))


@settings
class _SwMKL(SuccessEstimator):
    """One machine on kernels weighted by success."""

    psd: str = setting(
        "cosine",
        one_of("cosine", "pointwise", "none", "clip", "shift"),
        'The published kernel, "none", divides by ``sum_i g_i(x) g_i(z)`` and is not positive '
        'semidefinite. "cosine" divides by the norms ``|g(x)| |g(z)|`` and "pointwise" by the sums '
        'instead; "clip" drops negative eigenvalues, "shift" lifts the diagonal (both need the '
        "whole matrix).",
    )

    _own_attributes: ClassVar[AttributeDocs] = {
        "success_": (
            "array of shape (n_samples, n_kernels)",
            "Success of every kernel at the training samples that count, NaN where a view is "
            "missing.",
        ),
        "duality_gap_": ("float", "Certified, for the last machine."),
    }

    def _check_combinations(self, solver: Solver) -> None:
        super()._check_combinations(solver)
        if self.psd in _PAIRS and solver.is_low_rank:
            raise ValueError(
                f"psd={self.psd!r} divides pair by pair, which features of low rank cannot; use "
                "psd='cosine' or 'pointwise', or solver='exact'"
            )

    def _learn(self, training: Training) -> GatedMachine:
        judged = learn_success(self, training)
        trust = SuccessTrust(RegressedSuccess([own.regressor for own in judged]), self.psd)
        H = trust.of(at_training(judged, training.n_samples))
        success = np.full((training.n_samples, len(judged)), np.nan)
        for i, own in enumerate(judged):
            success[own.alone.rows, i] = own.success
        # What is laid out for single kernels is done with: its memory goes to the combined one.
        share = memory_left(judged)
        del judged, own
        gram = training.gram(H, share=share, pair_normalized=self.psd in _PAIRS)
        if self.psd == "clip":
            solution = _clipped(training, gram)
        elif self.psd == "shift":
            solution = _shifted(training, gram)
        else:
            # The published kernel is not positive semidefinite: starts may lead elsewhere.
            resume = None if self.psd == "none" else "machines"
            solution = training.machines(resume=resume).solve(gram)
        params = np.ones((1, training.n_kernels))
        return training.model(SuccessGate(trust), params, solution, success_=success)


def _clipped(training: Training, gram: GatedGram) -> Solution:
    """Train on the positive part of the matrix; new samples are projected onto it as well.

    With ``P`` the projector on the positive eigenvectors, ``f(x) = k(x, .) P u + b``: the projected
    coefficients are all that prediction needs.
    """
    values, vectors = np.linalg.eigh(gram.block(np.arange(gram.n_samples)).astype(float))
    kept = vectors[:, values > 0]
    K = (kept * values[values > 0]) @ kept.T
    repaired = Precomputed(0.5 * (K + K.T))
    index = np.arange(gram.n_samples, dtype=float)[:, np.newaxis]
    own = training.solver.inner_products(index).gated([repaired])
    solved = training.machines().solve(own)
    return Solution([replace(d, coef=kept @ (kept.T @ d.coef)) for d in solved.duals], gram)


def _shifted(training: Training, gram: GatedGram) -> Solution:
    """Lift the diagonal of the training matrix by its lowest eigenvalue."""
    lowest = np.linalg.eigvalsh(gram.block(np.arange(gram.n_samples)).astype(float))[0]
    lift = max(-float(lowest), 0.0)
    problems = [replace(p, ridge=p.ridge + lift) for p in training.problems]
    return training.machines(problems).solve(gram)


@settings
class SwMKLClassifier(_SwMKL, Classifier):
    """Success-weighted combination of kernels.

    A machine is trained with every kernel alone, and its success is regressed on the samples:
    ``g_i(x)``. One more machine is trained with kernels weighted by the success of both samples of
    a pair.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import SwMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = SwMKLClassifier(random_state=0).fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.95)
    True
    """


@settings
class SwMKLRegressor(_SwMKL, Regressor):
    """Success-weighted combination of kernels for one or several numeric targets.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import SwMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = SwMKLRegressor(["linear", "rbf"], C=10, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.8)
    True
    """
