"""Objectives of kernel weights: penalties, constraints, and alternating minimisation.

The dual value of SVMs on a weighted sum of kernels is

``J(w) = max_u linear(u) - sum_gi w_gi S_gi(u) / 2`` with
``S_gi(u) = sum_t (u_t o b_ig)' K_i (u_t o b_ig)``.

It is convex in the weights, and its slopes are the quadratic forms ``S`` of the optimal ``u``.
Methods differ in the feasible weights and in their penalty. Weights and forms are arrays of shape
(n_groups, n_kernels); most methods have one group. Products of Gaussian kernels with learned
exponents have an objective of the same kind (:class:`ProductObjective`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from scipy.special import logsumexp, softmax, xlogy

from lokl._arrays import Array
from lokl.gates.base import apply_weights, project_simplex
from lokl.gram import GatedGram, InnerProducts
from lokl.kernels import AnisotropicRBF
from lokl.optimizers.objective import Objective, ObjectiveValue, OptimizerStep
from lokl.solvers import Machines, Solution

# Weights below this are raised to it, so that their logarithm is finite.
_SMALLEST_WEIGHT = 1e-300
# If all weights are smaller than this, no kernel is left.
_ALL_ZERO = 1e-5
# Weights on the simplex below this are set to zero.
_ZERO_WEIGHT = 1e-8
# Smallest start weight on the norm ball, as a share of equal weights. Rounds multiply the weights:
# a weight near zero would take long to grow.
_SMALLEST_START = 1e-2


@dataclass(frozen=True)
class Regularizer(ABC):
    """Penalty ``r(d)`` on weights ``d >= 0``, (n_kernels,).

    Attributes
    ----------
    simplex : bool, default=False
        Whether weights must also sum to one.

    See Also
    --------
    lokl.optimizers.SumOfWeights : Selects few kernels.
    lokl.optimizers.HalfSquaredNorm : Spreads weights.
    lokl.optimizers.Entropy : Keeps all kernels.
    lokl.optimizers.Penalised : Weights under a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.optimizers import SumOfWeights
    >>> penalty = SumOfWeights(simplex=True)
    >>> penalty.project(np.array([0.9, 0.3])).round(2)
    array([0.8, 0.2])
    """

    simplex: bool = False

    @abstractmethod
    def value(self, d: Array) -> float:
        """Return ``r(d)``."""

    @abstractmethod
    def gradient(self, d: Array) -> Array:
        """Return ``dr/dd``."""

    @abstractmethod
    def lowest(self, z: Array) -> float:
        """Return ``min_d r(d) - z'd`` over the feasible weights: minus the convex conjugate."""

    def start(self, n_kernels: int) -> Array:
        """Return the parameters of equal weights that sum to one."""
        return np.full(n_kernels, 1.0 / n_kernels)

    def weights(self, params: Array) -> Array:
        """Return weights from the parameters that an optimiser moves; by default the same."""
        return params

    def pullback(self, params: Array, slopes: Array) -> Array:
        """Return the gradient in the parameters from the gradient in the weights."""
        return slopes

    def project(self, params: Array) -> Array:
        """Return the nearest feasible parameters."""
        if self.simplex:
            return project_simplex(params[np.newaxis])[0]
        return np.maximum(params, 0.0)

    def bound(self, linear: float, S: Array, strength: float) -> float:
        """Return the lower bound on ``min_d max_u`` that coefficients with these forms certify.

        ``linear(u) - d'S(u) / 2 + strength r(d)`` is a bound for every feasible `u`, so its minimum
        over `d` bounds the optimum.
        """
        return linear + strength * self.lowest(0.5 * S / strength)


@dataclass(frozen=True)
class SumOfWeights(Regularizer):
    """``r(d) = sum_i d_i``, the l_1 norm, which selects few kernels.

    Attributes
    ----------
    simplex : bool, default=False
        Whether weights must also sum to one.

    See Also
    --------
    lokl.optimizers.HalfSquaredNorm : Spreads weights.
    lokl.optimizers.Entropy : Keeps all kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.optimizers import SumOfWeights
    >>> SumOfWeights().value(np.array([0.5, 2.0]))
    2.5
    """

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
        # Shorter coefficients are also feasible: those that just satisfy S_i <= 2 strength.
        return linear * float(np.sqrt(2.0 * strength / S.max()))


@dataclass(frozen=True)
class HalfSquaredNorm(Regularizer):
    """``r(d) = |d|_p^2 / 2``.

    Attributes
    ----------
    simplex : bool, default=False
        Whether weights must also sum to one.
    p : float, default=2.0
        Norm of the weights.

    See Also
    --------
    lokl.optimizers.SumOfWeights : Selects few kernels.
    lokl.optimizers.Entropy : Keeps all kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.optimizers import HalfSquaredNorm
    >>> HalfSquaredNorm().value(np.array([3.0, 4.0]))
    12.5
    """

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
        # simplex: that is a bound even if the search below has not converged.
        d = project_simplex(z[np.newaxis])[0]
        if self.p != 2.0:
            for _ in range(100):
                d = project_simplex((d - 0.5 * (self.gradient(d) - z))[np.newaxis])[0]
        slope = self.gradient(d) - z
        return self.value(d) - float(z @ d) + float(slope.min()) - float(slope @ d)


@dataclass(frozen=True)
class Entropy(Regularizer):
    """``r(d) = sum_i d_i log d_i`` on the simplex, which keeps all kernels.

    Its slope is infinite at a weight of zero, so gradients in the weights fail near the boundary.
    Parameters are logarithms of the weights, up to a constant.

    Attributes
    ----------
    simplex : bool, default=True
        Weights sum to one.

    See Also
    --------
    lokl.optimizers.SumOfWeights : Selects few kernels.
    lokl.optimizers.HalfSquaredNorm : Spreads weights.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.optimizers import Entropy
    >>> round(Entropy().value(np.array([0.5, 0.5])), 3)
    -0.693
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
        return np.log(np.maximum(d, _SMALLEST_WEIGHT)) + 1.0

    def lowest(self, z: Array) -> float:
        return -float(logsumexp(z))


@dataclass(frozen=True, eq=False)
class WeightObjectiveValue(ObjectiveValue):
    """An objective at some weights, with the quadratic forms of the kernels.

    Attributes
    ----------
    gate_params : array of shape (n_groups, n_kernels)
        The weights.
    compute_forms : callable
        Computes the forms at the first call.
    """

    compute_forms: Callable[[], Array] = field(kw_only=True)

    @property
    def weights(self) -> Array:
        """Weights of the kernels, (n_groups, n_kernels)."""
        return np.asarray(self.gate_params)

    @property
    def forms(self) -> Array:
        """Forms ``S`` under the known gates alone, (n_groups, n_kernels).

        They also give the slope of a kernel whose weight is zero.
        """
        return self.compute_forms()


@dataclass(eq=False, kw_only=True)
class WeightObjective(Objective[WeightObjectiveValue]):
    """SVMs on ``sum_i sum_r w_gi (b_ir b_ir') o K_i`` with known gates ``b``.

    Attributes
    ----------
    machines : Machines
        SVMs to solve.
    gram : GatedGram
        The kernels under the known gates alone.
    base : array of shape (n_samples, n_kernels) or (n_samples, n_kernels, rank)
        The known gates.
    by_rank : bool, default=False
        Whether each rank has its own group of weights. Otherwise all ranks share one group.
    first : array of shape (n_groups, n_kernels), optional
        Weights of a similar problem to start from.

    See Also
    --------
    lokl.optimizers.NormBall : Weights of bounded norm.
    lokl.optimizers.Simplex : Weights that sum to one.
    lokl.optimizers.Penalised : Weights under a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> from lokl.optimizers import Simplex
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    >>> base = np.full((4, 2), 1.0)
    >>> gram = GatedGram([Linear(), RBF(1.0)], X, base)
    >>> machines = Machines(Exact(tol=1e-6), [hinge(y, 1.0)])
    >>> objective = Simplex(machines=machines, gram=gram, base=base)
    >>> objective.shape, objective.start()
    ((1, 2), array([[0.5, 0.5]]))
    """

    machines: Machines
    gram: GatedGram
    base: Array
    by_rank: bool = False
    first: Array | None = None

    is_certified = True

    @property
    def shape(self) -> tuple[int, int]:
        """Number of groups and of kernels."""
        return self.base.shape[2] if self.by_rank else 1, self.base.shape[1]

    def weights(self, params: Array) -> Array:
        """Return the weights, (n_groups, n_kernels), of parameters."""
        return params

    def penalty(self, weights: Array) -> float:
        """Return the penalty on the weights."""
        return 0.0

    def slopes(self, params: Array, weights: Array, forms: Array) -> Array:
        """Return the gradient in the parameters."""
        return -0.5 * forms

    def at(self, params: Array, ceiling: float = float("inf")) -> WeightObjectiveValue | None:
        weights = self.weights(params)
        penalty = self.penalty(weights)
        if penalty > ceiling:
            return None
        gram = self.gram.regated(apply_weights(self.base, weights))
        limit = ceiling - penalty if np.isfinite(penalty) else ceiling
        solution = self.machines.solve_below(gram, limit)
        if solution is None:
            return None

        # These functions do not refer to the value that holds them: in a reference cycle, the rows
        # of a Gram matrix would stay in memory until the garbage collector runs.
        @cache
        def forms() -> Array:
            S = self.gram.kernel_forms(solution.coef)
            return np.maximum(S.T if self.by_rank else S.sum(axis=1)[np.newaxis], 0.0)

        def gradient() -> Array:
            return self.slopes(params, weights, forms())

        objective = solution.objective + penalty
        return WeightObjectiveValue(
            *(params, objective, solution.gap, gradient, solution),
            gate_params=weights,
            compute_forms=forms,
        )


@dataclass(eq=False, kw_only=True)
class NormBall(WeightObjective):
    """``w >= 0``, ``|w_g|_p <= 1`` for every group: l_p-norm MKL (one group), C-LMKL (several).

    The dual ``max_u linear(u) - sum_g |S_g(u)|_p* / 2`` is also convex and certifies the gap.

    Attributes
    ----------
    machines, gram, base, by_rank, first
        As for :class:`WeightObjective`.
    p : float, default=2.0
        Norm of the weights, at least 1.

    See Also
    --------
    lokl.optimizers.alternating : Minimises it.
    lokl.optimizers.Simplex : Weights that sum to one.
    lokl.LpMKLClassifier : The method with one group of weights.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> from lokl.optimizers import NormBall, alternating
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    >>> base = np.full((4, 2), 1.0)
    >>> gram = GatedGram([Linear(), RBF(1.0)], X, base)
    >>> machines = Machines(Exact(tol=1e-6), [hinge(y, 1.0)])
    >>> objective = NormBall(machines=machines, gram=gram, base=base, p=4.0)
    >>> *_, last = alternating(objective)
    >>> np.linalg.norm(last.params, ord=4, axis=1).round(3)
    array([1.])
    """

    p: float = 2.0

    def start(self) -> Array:
        groups, m = self.shape
        equal = np.full((groups, m), m ** (-1.0 / self.p))
        if self.first is None:
            return equal
        weights = np.maximum(self.first, _SMALLEST_START * equal)
        return np.asarray(weights / np.linalg.norm(weights, ord=self.p, axis=1, keepdims=True))

    def gap(self, value: WeightObjectiveValue) -> float:
        S = value.forms
        distance = dual_norm(S, self.p) - (value.weights * S).sum(axis=1)
        return max(0.5 * float(distance.sum()), 0.0)


@dataclass(eq=False, kw_only=True)
class Simplex(NormBall):
    """``w >= 0``, ``sum w = 1``: SimpleMKL.

    Attributes
    ----------
    machines, gram, base, by_rank, first
        As for :class:`WeightObjective`.
    p : float, default=1.0
        Norm of the weights.

    See Also
    --------
    lokl.optimizers.reduced_gradient : Minimises it.
    lokl.optimizers.NormBall : Weights of bounded norm.
    lokl.SimpleMKLClassifier : The method.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> from lokl.optimizers import Simplex, reduced_gradient
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    >>> base = np.full((4, 2), 1.0)
    >>> gram = GatedGram([Linear(), RBF(1.0)], X, base)
    >>> machines = Machines(Exact(tol=1e-6), [hinge(y, 1.0)])
    >>> *_, last = reduced_gradient(Simplex(machines=machines, gram=gram, base=base))
    >>> last.params.sum(axis=1).round(3)
    array([1.])
    """

    p: float = 1.0

    def start(self) -> Array:
        groups, m = self.shape
        return np.full((groups, m), 1.0 / m) if self.first is None else self.first

    def project(self, params: Array) -> Array:
        params = np.where(params < _ZERO_WEIGHT, 0.0, params)
        return np.asarray(params / params.sum(axis=1, keepdims=True))


@dataclass(eq=False, kw_only=True)
class Penalised(WeightObjective):
    """``J(w) + strength r(w)``: SPG-GMKL with sums of kernels.

    Attributes
    ----------
    machines, gram, base, by_rank, first
        As for :class:`WeightObjective`.
    regularizer : Regularizer
        Penalty ``r``.
    strength : float, default=1.0
        Its factor.

    See Also
    --------
    lokl.optimizers.spectral_gradient : Minimises it.
    lokl.optimizers.Regularizer : Penalties.
    lokl.GMKLClassifier : The method.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> from lokl.optimizers import Penalised, SumOfWeights, spectral_gradient
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    >>> base = np.full((4, 2), 1.0)
    >>> gram = GatedGram([Linear(), RBF(1.0)], X, base)
    >>> machines = Machines(Exact(tol=1e-6), [hinge(y, 1.0)])
    >>> penalty = SumOfWeights()
    >>> objective = Penalised(machines=machines, gram=gram, base=base, regularizer=penalty)
    >>> *_, last = spectral_gradient(objective)
    >>> last.params.round(2)
    array([[0.  , 1.77]])
    """

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
        if weights.max() < _ALL_ZERO:
            # Infinite, so that a search that loses all kernels turns back.
            return float("inf")
        return self.strength * self.regularizer.value(weights[0])

    def slopes(self, params: Array, weights: Array, forms: Array) -> Array:
        slopes = self.strength * self.regularizer.gradient(weights[0])
        return self.regularizer.pullback(params, slopes - 0.5 * forms[0])

    def gap(self, value: WeightObjectiveValue) -> float:
        weights, forms = value.weights[0], value.forms[0]
        linear = value.solution.objective + 0.5 * float(weights @ forms)
        bound = self.regularizer.bound(linear, forms, self.strength)
        return max(value.objective - bound, 0.0)


def dual_norm(S: Array, p: float) -> Array:
    """Return ``|S_g|_p*`` of every row, with ``1/p + 1/p* = 1``."""
    if p == 1.0:
        return np.asarray(S.max(axis=1))
    if np.isinf(p):
        return np.asarray(S.sum(axis=1))
    return np.asarray(np.linalg.norm(S, ord=p / (p - 1.0), axis=1))


def best_weights(weights: Array, S: Array, p: float) -> Array:
    """Return the minimisers of ``sum_i |v_i|^2 / w_i`` on the l_p sphere, in closed form.

    ``|v_i| = weights_i sqrt(S_i)`` is the norm of the solution in the space of kernel ``i``. Groups
    in which all norms are zero keep their weights.

    Parameters
    ----------
    weights, S : arrays of shape (n_groups, n_kernels)
    p : float
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


def alternating(objective: NormBall, tol: float = 1e-3) -> Iterator[OptimizerStep]:
    """Alternate between the SVMs and the weights that are best for them, in closed form.

    Parameters
    ----------
    objective : NormBall
        Function to minimise, with the point to start from.
    tol : float, default=1e-3
        Relative duality gap that ends the alternation.

    Yields
    ------
    step : OptimizerStep
        Accepted point; the last one is the result.

    See Also
    --------
    lokl.optimizers.NormBall : Weights of bounded norm.
    lokl.optimizers.reduced_gradient : For weights on the simplex.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> from lokl.optimizers import NormBall, alternating
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    >>> base = np.full((4, 2), 1.0)
    >>> gram = GatedGram([Linear(), RBF(1.0)], X, base)
    >>> machines = Machines(Exact(tol=1e-6), [hinge(y, 1.0)])
    >>> objective = NormBall(machines=machines, gram=gram, base=base, p=2.0)
    >>> [step.params.round(2).tolist() for step in alternating(objective, tol=1e-2)][-1]
    [[0.0, 1.0]]
    """
    params = objective.start()
    while True:
        current = objective.evaluate(params)
        gap = objective.gap(current)
        yield current.step(gap)
        # The gap of the SVMs is left out: it depends on the solver's tolerance, and more rounds do
        # not reduce it.
        if gap <= tol * abs(current.objective):
            return
        params = best_weights(current.weights, current.forms, objective.p)


@dataclass(frozen=True, eq=False)
class ProductObjective(Objective[ObjectiveValue]):
    """``J(exp(-sum_i d_i D_i)) + strength r(d)``, where ``D_i`` are squared distances.

    Attributes
    ----------
    machines : Machines
        SVMs to solve.
    inner : InnerProducts
        Of dense training samples.
    gammas : array of shape (n_factors, n_features)
        ``D_i(x, z) = sum_c gammas_ic (x_c - z_c)^2``.
    regularizer : Regularizer
        Penalty ``r``.
    strength : float
        Its factor.

    See Also
    --------
    lokl.optimizers.Penalised : Weights under a penalty.
    lokl.GMKLClassifier : The method, with ``combine="product"``.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import InnerProducts
    >>> from lokl.optimizers import HalfSquaredNorm, ProductObjective, spectral_gradient
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X = np.array([[-2.0, 0.1], [-1.0, 0.3], [1.0, 0.2], [2.0, 0.0]])
    >>> machines = Machines(Exact(), [hinge(np.array([1.0, -1.0, -1.0, 1.0]), 10.0)])
    >>> objective = ProductObjective(machines, InnerProducts(X), np.eye(2), HalfSquaredNorm(), 1.0)
    >>> *_, last = spectral_gradient(objective)
    >>> last.params.round(1)
    array([1.2, 0.1])
    """

    machines: Machines
    inner: InnerProducts
    gammas: Array
    regularizer: Regularizer
    strength: float

    def start(self) -> Array:
        return self.regularizer.start(len(self.gammas))

    def project(self, params: Array) -> Array:
        return self.regularizer.project(params)

    def kernel(self, d: Array) -> AnisotropicRBF:
        """Return the kernel of exponents."""
        return AnisotropicRBF(np.maximum(d, 0.0) @ self.gammas)

    def at(self, params: Array, ceiling: float = float("inf")) -> ObjectiveValue | None:
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
        return ObjectiveValue(params, objective, solution.gap, gradient, solution, d)

    def _column_slopes(self, gram: GatedGram, solution: Solution) -> Array:
        """Return ``sum_jk u_j u_k K_jk (x_jc - x_kc)^2 / 2`` of every column, (n_features,)."""
        # Centring does not change differences, and saves digits.
        X = self.inner.X - self.inner.X.mean(axis=0)
        slopes = np.zeros(X.shape[1])
        for u in solution.coef.T:
            loads = u[:, np.newaxis] * X
            products = gram.dot(np.column_stack([u, loads]))
            slopes += (loads * X * products[:, :1]).sum(axis=0)
            slopes -= (loads * products[:, 1:]).sum(axis=0)
        return slopes
