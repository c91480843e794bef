"""Penalties on kernel weights, and what they say about the optimum."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax, xlogy

from lokl._arrays import Array
from lokl.gates.groups import project_simplex

# Smaller weights count as this much, so that their logarithm is finite.
_LEAST = 1e-300


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
        return np.log(np.maximum(d, _LEAST)) + 1.0

    def lowest(self, z: Array) -> float:
        return -float(logsumexp(z))
