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
    """Success-weighted combination of kernels for classification."""


@dataclass(eq=False, repr=False)
class SwMKLRegressor(_SwMKL, GatedRegressor):
    """Success-weighted combination of kernels for regression."""
