"""Penalties on kernel weights, and what they say about the optimum.

The dual value of machines on a weighted sum of kernels, as a function of the weights.

``J(w) = max_u linear(u) - sum_gi w_gi S_gi(u) / 2`` with ``S_gi(u) = sum_t (u_t o b_ig)' K_i (u_t o
b_ig)``: convex in the weights, and its slopes are the forms ``S`` of the machines. Methods differ
in which weights are allowed and what they cost.

The dual value of machines on a product of Gaussian kernels with learned exponents.

Alternation between machines and the weights that are best for them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp, softmax, xlogy

from lokl._arrays import Array
from lokl.gates.base import weigh
from lokl.gates.functions import project_simplex
from lokl.gram import GatedGram, InnerProducts
from lokl.kernels import AnisotropicRBF
from lokl.optimizers.objective import Evaluation, Objective, Step
from lokl.solvers import Machines, Solution

# Smaller weights count as this much, so that their logarithm is finite.
_LEAST_WEIGHT = 1e-300


@dataclass(frozen=True)
class Regularizer(ABC):
    """``r(d)`` on weights ``d >= 0``, which with `simplex` also sum to one."""

    simplex: bool = False

    @abstractmethod
    def value(self, d: Array) -> float:
        """``r(d)``."""

    @abstractmethod
    def gradient(self, d: Array) -> Array:
        """``dr/dd``."""

    @abstractmethod
    def lowest(self, z: Array) -> float:
        """``min_d r(d) - z'd`` over the allowed weights: minus the convex conjugate."""

    def start(self, n_kernels: int) -> Array:
        """Parameters of equal weights that sum to one."""
        return np.full(n_kernels, 1.0 / n_kernels)

    def weights(self, params: Array) -> Array:
        """Weights from what an optimiser moves, which is mostly the weights themselves."""
        return params

    def pullback(self, params: Array, slopes: Array) -> Array:
        """Turn a gradient in the weights into one in the parameters."""
        return slopes

    def project(self, params: Array) -> Array:
        """Nearest allowed parameters."""
        if self.simplex:
            return project_simplex(params[np.newaxis])[0]
        return np.maximum(params, 0.0)

    def bound(self, linear: float, S: Array, strength: float) -> float:
        """Lower bound on ``min_d max_u`` that coefficients with these forms certify.

        ``linear(u) - d'S(u) / 2 + strength r(d)`` is a bound for every feasible `u`, so its minimum
        over `d` is one for the optimum.
        """
        return linear + strength * self.lowest(0.5 * S / strength)


@dataclass(frozen=True)
class SumOfWeights(Regularizer):
    """``r(d) = sum_i d_i``, the l_1 norm: few kernels."""

    def value(self, d: Array) -> float:
        return float(d.sum())

    def gradient(self, d: Array) -> Array:
        return np.ones_like(d)

    def lowest(self, z: Array) -> float:
        if self.simplex:
            return 1.0 - float(z.max())
        return 0.0 if z.max() <= 1.0 else -np.inf

    def bound(self, linear: float, S: Array, strength: float) -> float:
        if self.simplex or S.max() <= 2.0 * strength:
            return super().bound(linear, S, strength)
        # Shorter coefficients are feasible too: those that just satisfy S_i <= 2 strength.
        return linear * float(np.sqrt(2.0 * strength / S.max()))


@dataclass(frozen=True)
class HalfSquaredNorm(Regularizer):
    """``r(d) = |d|_p^2 / 2``."""

    p: float = 2.0

    def value(self, d: Array) -> float:
        return 0.5 * float(np.linalg.norm(d, ord=self.p)) ** 2

    def gradient(self, d: Array) -> Array:
        norm = float(np.linalg.norm(d, ord=self.p))
        if norm == 0:
            return np.zeros_like(d)
        return np.asarray(norm * (d / norm) ** (self.p - 1.0))

    def lowest(self, z: Array) -> float:
        if self.simplex:
            return self._lowest_on_simplex(z)
        dual = np.inf if self.p == 1.0 else self.p / (self.p - 1.0)
        return -0.5 * float(np.linalg.norm(np.maximum(z, 0.0), ord=dual)) ** 2

    def _lowest_on_simplex(self, z: Array) -> float:
        if self.p == 1.0:
            return 0.5 - float(z.max())
        # A convex function lies above its tangent, and the tangent is lowest at a corner of the
        # simplex: that is a bound even where the search below has not ended.
        d = project_simplex(z[np.newaxis])[0]
        if self.p != 2.0:
            for _ in range(100):
                d = project_simplex((d - 0.5 * (self.gradient(d) - z))[np.newaxis])[0]
        slope = self.gradient(d) - z
        return self.value(d) - float(z @ d) + float(slope.min()) - float(slope @ d)


@dataclass(frozen=True)
class Entropy(Regularizer):
    """``r(d) = sum_i d_i log d_i`` on the simplex: no kernel is left out.

    Its slope is infinite where a weight is zero, so that gradients in the weights lead nowhere near
    the boundary; parameters are logarithms of the weights, up to a constant.
    """

    simplex: bool = True

    def start(self, n_kernels: int) -> Array:
        return np.zeros(n_kernels)

    def weights(self, params: Array) -> Array:
        return np.asarray(softmax(params))

    def pullback(self, params: Array, slopes: Array) -> Array:
        d = self.weights(params)
        return np.asarray(d * (slopes - d @ slopes))

    def project(self, params: Array) -> Array:
        return params

    def value(self, d: Array) -> float:
        return float(xlogy(d, d).sum())

    def gradient(self, d: Array) -> Array:
        return np.log(np.maximum(d, _LEAST_WEIGHT)) + 1.0

    def lowest(self, z: Array) -> float:
        return -float(logsumexp(z))


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


@dataclass(frozen=True, eq=False)
class ProductEvaluation(Evaluation):
    """An evaluation that knows the exponents its parameters stand for."""

    exponents: Array

    @property
    def gate_params(self) -> Array:
        return self.exponents


@dataclass(frozen=True, eq=False)
class ProductObjective(Objective[Evaluation]):
    """``J(exp(-sum_i d_i D_i)) + strength r(d)``, where ``D_i`` are squared distances."""

    machines: Machines
    inner: InnerProducts  # of dense training samples
    gammas: Array  # (n_factors, n_features): D_i(x, z) = sum_c gammas_ic (x_c - z_c)^2
    regularizer: Regularizer
    strength: float

    def start(self) -> Array:
        return self.regularizer.start(len(self.gammas))

    def project(self, params: Array) -> Array:
        return self.regularizer.project(params)

    def kernel(self, d: Array) -> AnisotropicRBF:
        """Return the kernel of some exponents."""
        return AnisotropicRBF(np.maximum(d, 0.0) @ self.gammas)

    def at(self, params: Array, ceiling: float = float("inf")) -> Evaluation | None:
        d = self.regularizer.weights(params)
        penalty = self.strength * self.regularizer.value(d)
        gram = self.inner.gated([self.kernel(d)])
        solution = self.machines.solve_below(gram, ceiling - penalty)
        if solution is None:
            return None

        def gradient() -> Array:
            slopes = self.gammas @ self._column_slopes(gram, solution)
            slopes += self.strength * self.regularizer.gradient(d)
            return self.regularizer.pullback(params, np.asarray(slopes))

        objective = solution.objective + penalty
        return ProductEvaluation(params, objective, solution.gap, gradient, solution, d)

    def _column_slopes(self, gram: GatedGram, solution: Solution) -> Array:
        """``sum_jk u_j u_k K_jk (x_jc - x_kc)^2 / 2`` of every column, by one product with K."""
        # Differences do not change when all samples move, but lose fewer digits.
        X = self.inner.X - self.inner.X.mean(axis=0)
        slopes = np.zeros(X.shape[1])
        for u in solution.coef.T:
            products = gram.dot(np.column_stack([u, u[:, np.newaxis] * X]))
            loads = u[:, np.newaxis] * X
            slopes += (loads * X * products[:, :1]).sum(axis=0)
            slopes -= (loads * products[:, 1:]).sum(axis=0)
        return slopes


def closed_form(objective: NormBall, tol: float = 1e-3) -> Iterator[Step]:
    """Yield points of falling objective, to a certified relative gap.

    Parameters
    ----------
    objective : NormBall
        Weights whose best values are known once the machines are.
    tol : float, default=1e-3
        Relative duality gap that ends the alternation.
    """
    params = objective.start()
    while True:
        current = objective.evaluate(params)
        gap = objective.gap(current)
        yield current.step(gap)
        # The gap that machines leave is a matter of the solver's tolerance: more rounds do not
        # help against it.
        if gap <= tol * abs(current.objective):
            return
        params = objective.best(current)
