"""The dual problem every machine shares, written in signed coefficients."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array

_INTERCEPT_ROUNDS = 100
# Share of a number that sums of many moves may lose.
_ROUNDING = 64 * np.finfo(np.float64).eps
# Share of the tolerance that changes nothing.
_NOTHING = 1e-4


@dataclass(frozen=True, eq=False)
class Problem:
    """``max_u  t'u - epsilon |u|_1 - u'(K + R)u / 2``  with ``lower <= u <= upper``, ``1'u = 0``.

    Classification and regression differ only in these numbers: the hinge loss has targets
    ``t = y`` and boxes on one side of zero, the epsilon-insensitive loss has boxes on both sides.
    The decision function is ``f = K u + b``; the ridge ``R`` belongs to training only.

    Attributes
    ----------
    target, lower, upper : arrays of shape (n_samples,)
        ``lower <= 0 <= upper``; a sample with ``lower = upper = 0`` is absent.
    epsilon : float
    ridge : array of shape (n_samples,)
        Added to the diagonal; ``1 / C`` turns the hinge into the squared hinge.
    """

    target: Array
    lower: Array
    upper: Array
    epsilon: float
    ridge: Array

    @property
    def is_classification(self) -> bool:
        return not bool(((self.lower < 0) & (self.upper > 0)).any())

    def violations(self, coef: Array, gradient: Array) -> tuple[Array, Array]:
        """How much raising (lowering) each coefficient gains; minus (plus) infinity at a bound.

        `gradient` is ``t - (K + R) u``. At the optimum no pair can be moved with gain:
        ``max(up) <= min(down)``.
        """
        epsilon = self.epsilon
        up = np.where(coef < self.upper, gradient, -np.inf)
        down = np.where(coef > self.lower, gradient, np.inf)
        if epsilon:
            up = up + np.where(coef >= 0, -epsilon, epsilon)
            down = down + np.where(coef > 0, -epsilon, epsilon)
        return up, down

    def intercept(self, coef: Array, gradient: Array) -> float:
        """Mean over the free samples, else the middle of the interval that optimality allows."""
        free = (coef > self.lower) & (coef < self.upper) & (coef != 0)
        if free.any():
            return float((gradient[free] - self.epsilon * np.sign(coef[free])).mean())
        up, down = self.violations(coef, gradient)
        low, high = up.max(initial=-np.inf), down.min(initial=np.inf)
        if np.isinf(low) and np.isinf(high):
            return 0.0
        if np.isinf(low) or np.isinf(high):
            return float(high if np.isinf(low) else low)
        return float(0.5 * (low + high))

    def objective(self, coef: Array, gradient: Array) -> float:
        """Dual value, from ``u'(K + R)u = t'u - gradient'u``."""
        linear = float(self.target @ coef)
        absolute = float(np.abs(coef).sum()) if self.epsilon else 0.0
        return 0.5 * (linear + float(gradient @ coef)) - self.epsilon * absolute

    def gap(self, coef: Array, gradient: Array, intercept: float) -> float:
        """Certified duality gap: no coefficients are better than these by more."""
        loss = self.losses(self.target - gradient - self.ridge * coef + intercept)
        if np.isinf(loss).any():
            return float("inf")
        linear = float(self.target @ coef)
        quadratic = linear - float(gradient @ coef) - float(self.ridge @ coef**2)
        return max(0.5 * quadratic + float(loss.sum()) - self.objective(coef, gradient), 0.0)

    def losses(self, decision: Array) -> Array:
        """Primal loss of every sample at its decision value, times its cost.

        It is the largest ``v (t - f) - epsilon |v| - r v^2 / 2`` over the box of the sample: the
        hinge, half the squared hinge or the epsilon-insensitive loss in turn.
        """
        residual = self.target - decision
        excess = np.sign(residual) * np.maximum(np.abs(residual) - self.epsilon, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.where(self.ridge > 0, excess / self.ridge, np.copysign(np.inf, excess))
        best = np.where(excess == 0, 0.0, np.clip(best, self.lower, self.upper))
        unbounded = np.isinf(best)
        best = np.where(unbounded, 0.0, best)
        loss = best * excess - 0.5 * self.ridge * best**2
        return np.asarray(np.where(unbounded, np.inf, loss))

    def take(self, index: Array) -> "Problem":
        """Return the problem of some of the samples."""
        return Problem(
            self.target[index],
            self.lower[index],
            self.upper[index],
            self.epsilon,
            self.ridge[index],
        )

    @property
    def cost(self) -> Array:
        """What an error of each sample costs, 0 for one that is absent."""
        bound = np.maximum(-self.lower, self.upper)
        ridge = np.divide(1.0, self.ridge, out=np.zeros_like(bound), where=self.ridge > 0)
        return np.where(np.isinf(bound), ridge, bound)

    def merged(self, first: Array, inverse: Array) -> "Problem":
        """Return the problem of distinct samples, equal ones with their costs added up.

        `first` is one sample of each kind, `inverse` the kind of every sample.
        """
        kinds = len(first)
        total = np.bincount(inverse, weights=self.cost, minlength=kinds)
        ratio = np.divide(total, self.cost[first], out=np.zeros(kinds), where=total > 0)
        return self.take(first).weighted(ratio)

    def weighted(self, factor: Array) -> "Problem":
        """Return the problem with the cost of every sample multiplied."""
        taken = factor > 0
        ridge = np.divide(self.ridge, factor, out=np.zeros_like(self.ridge), where=taken)
        # A squared hinge has no bound: its cost is in the ridge alone.
        lower = np.multiply(self.lower, factor, out=np.zeros_like(self.lower), where=taken)
        upper = np.multiply(self.upper, factor, out=np.zeros_like(self.upper), where=taken)
        return Problem(self.target, lower, upper, self.epsilon, ridge)

    def only(self, index: Array) -> "Problem":
        """Return the problem with all samples absent but those of `index`."""
        lower, upper = np.zeros_like(self.lower), np.zeros_like(self.upper)
        lower[index], upper[index] = self.lower[index], self.upper[index]
        return Problem(self.target, lower, upper, self.epsilon, self.ridge)

    def best_intercept(self, coef: Array, gradient: Array) -> float:
        """Intercept of the least primal value for these coefficients, under a squared hinge."""
        y = np.sign(self.upper) + np.sign(self.lower)
        cost = np.divide(1.0, self.ridge, out=np.zeros_like(self.ridge), where=self.ridge > 0)
        cost = np.where(y == 0, 0.0, cost)
        # y (t - f) without the intercept; the loss is cost / 2 times its positive part squared.
        short = y * (gradient + self.ridge * coef)
        b = 0.0
        for _ in range(_INTERCEPT_ROUNDS):
            active = cost * (short - y * b > 0)
            total = float(active.sum())
            move = float(active @ (y * (short - y * b))) / total if total > 0 else 0.0
            b += move
            if abs(move) <= 1e-12 * max(1.0, abs(b)):
                break
        return b

    def least_loss_intercept(self, coef: Array, gradient: Array) -> float:
        """Intercept of the least primal value for these coefficients, under any loss.

        The loss is convex in the intercept, and least between the smallest and the largest
        residual: sections of that interval find it.
        """
        scores = self.target - gradient - self.ridge * coef
        taken = (self.lower < 0) | (self.upper > 0)
        residual = (self.target - scores)[taken]
        low, high = float(residual.min()), float(residual.max())
        for _ in range(_INTERCEPT_ROUNDS):
            third = (high - low) / 3.0
            if third <= 1e-12 * max(abs(low), abs(high)):
                break
            first, second = low + third, high - third
            if self.losses(scores + first).sum() <= self.losses(scores + second).sum():
                high = second
            else:
                low = first
        return 0.5 * (low + high)

    def dual(
        self,
        coef: Array,
        gradient: Array,
        n_iter: int,
        converged: bool,
        intercept: float | None = None,
    ) -> "Dual":
        """Sum up a solver's result."""
        b = self.intercept(coef, gradient) if intercept is None else intercept
        return Dual(
            coef,
            b,
            self.objective(coef, gradient),
            self.gap(coef, gradient, b),
            n_iter,
            converged,
            self.target - gradient - self.ridge * coef + b,
        )

    def settled(self, coef: Array, start: Array | None, scale: float, tol: float) -> Array:
        """Return the coefficients, at zero or at a bound where only rounding keeps them away.

        Pair moves bring coefficients to their bounds, and those of a start back to zero, but for
        the last digits of sums. Such a rest would still pin an intercept that is free. It counts
        for nothing: `scale`, the largest kernel value, makes far less than `tol` of it.
        """
        rest = 0.0
        if start is not None and scale > 0.0:
            rest = min(_ROUNDING * np.abs(start).max(initial=0.0), _NOTHING * tol / scale)
        rounding = np.maximum(rest, _ROUNDING * np.abs(coef))
        for end in (self.lower, self.upper):
            coef = np.where(np.abs(coef - end) <= rounding, end, coef)
        coef[np.abs(coef) <= rest] = 0.0
        return coef

    def feasible(self, coef: Array) -> Array:
        """Return the coefficients moved into the boxes and onto ``1'u = 0``, towards zero."""
        coef = np.clip(coef, self.lower, self.upper)
        excess = coef.sum()
        if abs(excess) <= 1e-14 * np.abs(coef).sum():
            return coef
        side = coef > 0 if excess > 0 else coef < 0
        other = -coef[~side].sum()
        coef[side] *= other / coef[side].sum()
        # What rounding left is taken from the largest coefficient of that side.
        largest = int(np.argmax(np.abs(coef) * side))
        rest = coef.sum()
        if np.sign(rest) == np.sign(excess) and abs(rest) <= abs(coef[largest]):
            coef[largest] -= rest
        return coef


@dataclass(frozen=True, eq=False)
class Dual:
    """What a solver found.

    Attributes
    ----------
    coef : array of shape (n_samples,)
        Signed coefficients ``u``; the decision function is ``K u + intercept``.
    intercept : float
    objective : float
        Dual value.
    gap : float
        Certified duality gap.
    n_iter : int
        Steps of the solver.
    converged : bool
    decision : array of shape (n_samples,)
        Decision values of the training samples, without the ridge.
    """

    coef: Array
    intercept: float
    objective: float
    gap: float
    n_iter: int
    converged: bool
    decision: Array


def hinge(y: Array, C: Array | float) -> Problem:
    """C-SVC for labels -1 and 1; `C` may differ by sample, 0 leaves the sample out."""
    y, cost = _checked(y, C)
    return Problem(y, np.minimum(y, 0) * cost, np.maximum(y, 0) * cost, 0.0, np.zeros(len(y)))


def squared_hinge(y: Array, C: Array | float) -> Problem:
    """The 2-norm soft margin: no upper bound, a ridge ``1 / C`` on the training diagonal."""
    y, cost = _checked(y, C)
    bound = np.where(cost > 0, np.inf, 0.0)
    with np.errstate(divide="ignore"):
        ridge = np.where(cost > 0, 1.0 / cost, 0.0)
    lower = np.where(y < 0, -bound, 0.0)
    return Problem(y, lower, np.where(y > 0, bound, 0.0), 0.0, ridge)


def squared(problem: Problem) -> Problem:
    """Return a classification problem with the squared hinge instead of the hinge, at equal cost.

    Samples whose loss is squared already stay as they are.
    """
    bound = np.maximum(-problem.lower, problem.upper)
    finite = np.isfinite(bound) & (bound > 0)
    ridge = problem.ridge + np.divide(1.0, bound, out=np.zeros_like(bound), where=finite)
    return Problem(
        problem.target,
        np.where(problem.lower < 0, -np.inf, 0.0),
        np.where(problem.upper > 0, np.inf, 0.0),
        problem.epsilon,
        ridge,
    )


def epsilon_insensitive(target: Array, C: Array | float, epsilon: float) -> Problem:
    """Epsilon-SVR: residuals up to `epsilon` are free."""
    target, cost = _checked(target, C)
    if not np.isfinite(epsilon) or epsilon < 0:
        raise ValueError(f"epsilon must be finite and not negative, got {epsilon!r}")
    return Problem(target, -cost, cost, float(epsilon), np.zeros(len(target)))


def _checked(target: Any, C: Any) -> tuple[Array, Array]:
    target = np.asarray(target, dtype=np.float64)
    if target.ndim != 1 or not np.isfinite(target).all():
        raise ValueError("targets are one finite number a sample")
    cost = np.asarray(C, dtype=np.float64)
    if cost.ndim and cost.shape != target.shape:
        raise ValueError(
            f"C is one number, or one for each of the {len(target)} samples, got shape {cost.shape}"
        )
    cost = np.broadcast_to(cost, target.shape)
    if not np.isfinite(cost).all() or (cost < 0).any() or (cost.size and not (cost > 0).any()):
        raise ValueError(f"C must be finite, not negative and not all zero, got {C!r}")
    return target, cost
