"""The dual value of machines on a weighted sum of kernels, as a function of the weights.

``J(w) = max_u linear(u) - sum_gi w_gi S_gi(u) / 2`` with ``S_gi(u) = sum_t (u_t o b_ig)' K_i (u_t o
b_ig)``: convex in the weights, and its slopes are the forms ``S`` of the machines. Methods differ
in which weights are allowed and what they cost.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lokl._arrays import Array
from lokl.gates.weighted import weigh
from lokl.gram import GatedGram
from lokl.optimizers.objective import Evaluation, Objective
from lokl.optimizers.regularizers import Regularizer
from lokl.solvers import Machines

# Where all weights are smaller there is no kernel left.
_NOTHING = 1e-5
# Weights on the simplex below this are set to zero.
_ABSENT = 1e-8
# Share of even weights that a weight on the norm ball starts from at least.
_LEAST = 1e-2


@dataclass(frozen=True, eq=False)
class WeightEvaluation(Evaluation):
    """An evaluation that knows the weights and the forms ``S`` of its machines."""

    weights: Array  # (n_groups, n_kernels)
    lazy: "_Forms"

    @property
    def gate_params(self) -> Array:
        return self.weights

    @property
    def forms(self) -> Array:
        """``S`` under the known gates alone, (n_groups, n_kernels).

        They also say what a kernel of weight zero would be worth.
        """
        return self.lazy.values


class _Forms:
    """Forms of some machines, computed when they are first needed.

    Apart from the evaluation, so that its gradient need not refer back to it: in a circle of
    references, the rows of a Gram matrix would stay in memory until the garbage collector runs.
    """

    def __init__(self, gram: GatedGram, by_rank: bool, coef: Array):
        self._work = gram, by_rank, coef

    @cached_property
    def values(self) -> Array:
        gram, by_rank, coef = self._work
        forms = gram.kernel_forms(coef)
        return np.maximum(forms.T if by_rank else forms.sum(axis=1)[np.newaxis], 0.0)


@dataclass(eq=False, kw_only=True)
class WeightObjective(Objective[WeightEvaluation]):
    """Machines on ``sum_i sum_r w_gi (b_ir b_ir') o K_i`` with known gates ``b``."""

    machines: Machines
    gram: GatedGram  # the kernels under the known gates alone
    base: Array  # the known gates, (n_samples, n_kernels[, rank])
    by_rank: bool = False  # whether each rank has weights of its own; else all share one group
    first: Array | None = None  # weights of a similar problem to start from, (n_groups, n_kernels)

    is_certified = True

    @property
    def shape(self) -> tuple[int, int]:
        """Number of groups and of kernels."""
        return self.base.shape[2] if self.by_rank else 1, self.base.shape[1]

    def weights(self, params: Array) -> Array:
        """Weights (n_groups, n_kernels) that parameters stand for."""
        return params

    def penalty(self, weights: Array) -> float:
        """What the weights themselves cost."""
        return 0.0

    def slopes(self, params: Array, weights: Array, forms: Array) -> Array:
        """Gradient in the parameters."""
        return -0.5 * forms

    def at(self, params: Array, ceiling: float = float("inf")) -> WeightEvaluation | None:
        weights = self.weights(params)
        penalty = self.penalty(weights)
        if penalty > ceiling:
            return None
        gram = self.gram.regated(weigh(self.base, weights))
        limit = ceiling - penalty if np.isfinite(penalty) else ceiling
        solution = self.machines.solve_below(gram, limit)
        if solution is None:
            return None
        forms = _Forms(self.gram, self.by_rank, solution.coef)

        def gradient() -> Array:
            return self.slopes(params, weights, forms.values)

        value = solution.objective + penalty
        return WeightEvaluation(params, value, solution.gap, gradient, solution, weights, forms)


@dataclass(eq=False, kw_only=True)
class NormBall(WeightObjective):
    """``w >= 0``, ``|w_g|_p <= 1`` for every group: l_p-norm MKL with one, C-LMKL with several.

    The dual ``max_u linear(u) - sum_g |S_g(u)|_p* / 2`` is convex as well and certifies the gap.
    """

    p: float = 2.0

    def start(self) -> Array:
        groups, m = self.shape
        even = np.full((groups, m), m ** (-1.0 / self.p))
        if self.first is None:
            return even
        # Rounds multiply the weights: what is nearly zero would take long to come back.
        weights = np.maximum(self.first, _LEAST * even)
        return np.asarray(weights / np.linalg.norm(weights, ord=self.p, axis=1, keepdims=True))

    def gap(self, evaluation: WeightEvaluation) -> float:
        S = evaluation.forms
        distance = dual_norm(S, self.p) - (evaluation.weights * S).sum(axis=1)
        return max(0.5 * float(distance.sum()), 0.0)

    def best(self, evaluation: WeightEvaluation) -> Array:
        """Return the best weights for the machines of an evaluation, which are in closed form."""
        return best_weights(evaluation.weights, evaluation.forms, self.p)


@dataclass(eq=False, kw_only=True)
class Simplex(WeightObjective):
    """``w >= 0``, ``sum w = 1``: SimpleMKL."""

    def start(self) -> Array:
        groups, m = self.shape
        return np.full((groups, m), 1.0 / m) if self.first is None else self.first

    def project(self, params: Array) -> Array:
        params = np.where(params < _ABSENT, 0.0, params)
        return np.asarray(params / params.sum(axis=1, keepdims=True))

    def gap(self, evaluation: WeightEvaluation) -> float:
        S = evaluation.forms
        return max(0.5 * float((S.max(axis=1) - (evaluation.weights * S).sum(axis=1)).sum()), 0.0)


@dataclass(eq=False, kw_only=True)
class Penalised(WeightObjective):
    """``J(w) + strength r(w)``: SPG-GMKL with sums of kernels."""

    regularizer: Regularizer
    strength: float = 1.0

    def start(self) -> Array:
        return self.regularizer.start(self.shape[1])

    def project(self, params: Array) -> Array:
        return self.regularizer.project(params)

    def refine(self, precision: float) -> bool:
        return self.machines.refine(precision)

    def weights(self, params: Array) -> Array:
        return self.regularizer.weights(params)[np.newaxis]

    def penalty(self, weights: Array) -> float:
        if weights.max() < _NOTHING:
            # A search that loses all kernels shall turn back.
            return float("inf")
        return self.strength * self.regularizer.value(weights[0])

    def slopes(self, params: Array, weights: Array, forms: Array) -> Array:
        slopes = self.strength * self.regularizer.gradient(weights[0])
        return self.regularizer.pullback(params, slopes - 0.5 * forms[0])

    def gap(self, evaluation: WeightEvaluation) -> float:
        weights, forms = evaluation.weights[0], evaluation.forms[0]
        linear = evaluation.solution.objective + 0.5 * float(weights @ forms)
        bound = self.regularizer.bound(linear, forms, self.strength)
        return max(evaluation.objective - bound, 0.0)


def dual_norm(S: Array, p: float) -> Array:
    """``|S_g|_p*`` of every row, ``1/p + 1/p* = 1``."""
    if p == 1.0:
        return np.asarray(S.max(axis=1))
    if np.isinf(p):
        return np.asarray(S.sum(axis=1))
    return np.asarray(np.linalg.norm(S, ord=p / (p - 1.0), axis=1))


def best_weights(weights: Array, S: Array, p: float) -> Array:
    """Minimisers of ``sum_i |w_i|^2 / weight_i`` on the l_p sphere, ``|w_i| = weight_i sqrt(S_i)``.

    Groups without any norm keep their weights: nothing speaks for others.
    """
    norms = weights * np.sqrt(S)
    top = norms.max(axis=1, keepdims=True)
    scaled = np.divide(norms, top, out=np.zeros_like(norms), where=top > 0)
    if np.isinf(p):
        new = (scaled > 0).astype(float)
    else:
        total = (scaled ** (2.0 * p / (p + 1.0))).sum(axis=1, keepdims=True) ** (1.0 / p)
        powers = scaled ** (2.0 / (p + 1.0))
        new = np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)
    return np.where(top > 0, new, weights)
