"""Dual problem of all SVMs, in signed coefficients.

With signed coefficients ``u`` the decision function is ``f = K u + b`` for every loss, so solvers,
gradients and certificates are the same for classification and regression.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lokl._arrays import Array, read_only, row_keys

# Limit on the steps towards an intercept.
_INTERCEPT_STEPS = 100
# Relative rounding error of a sum of many moves.
_ROUNDING = 64 * np.finfo(np.float64).eps
# Fraction of the tolerance that counts as zero.
_NEGLIGIBLE = 1e-4


@dataclass(frozen=True, eq=False)
class Problem:
    """``max_u  t'u - epsilon |u|_1 - u'(K + R)u / 2``  with ``lower <= u <= upper``, ``1'u = 0``.

    The hinge loss has targets ``t = y`` and boxes on one side of zero. The epsilon-insensitive loss
    has boxes on both sides, or on one side for censored samples, and the squared loss has no
    bounds. The ridge ``R`` belongs to training only: the decision function is ``f = K u + b``.

    Attributes
    ----------
    target, lower, upper : arrays of shape (n_samples,)
        ``lower <= 0 <= upper``; a sample with ``lower = upper = 0`` is absent.
    epsilon : float
        Width of the tube of a regression.
    ridge : array of shape (n_samples,)
        Added to the diagonal; ``1 / C`` turns the hinge into the squared hinge.
    is_classification : bool, default=False
        Whether the targets are classes, 1 and -1.

    See Also
    --------
    lokl.solvers.hinge : C-SVC.
    lokl.solvers.epsilon_insensitive : Epsilon-SVR.
    lokl.solvers.squared_loss : Squared loss.
    lokl.solvers.Dual : Its solution.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.solvers import hinge
    >>> problem = hinge(np.array([-1.0, 1.0]), C=2.0)
    >>> problem.lower, problem.upper
    (array([-2.,  0.]), array([0., 2.]))
    """

    target: Array
    lower: Array
    upper: Array
    epsilon: float
    ridge: Array
    is_classification: bool = False

    @property
    def is_squared(self) -> bool:
        """Whether the loss is squared: coefficients have no bounds and solve a linear system."""
        free = np.isinf(self.lower) & np.isinf(self.upper)
        return not self.epsilon and bool(free.any() and (free | ~self.present).all())

    @property
    def present(self) -> Array:
        """Mask of the samples that are not absent, (n_samples,)."""
        return np.asarray((self.lower < 0) | (self.upper > 0))

    @property
    def box(self) -> tuple[Array, Array, float, Array]:
        """Bounds, epsilon and ridge, for compiled loops."""
        return read_only(self.lower), read_only(self.upper), self.epsilon, read_only(self.ridge)

    @property
    def bound(self) -> Array:
        """Largest size of each coefficient, (n_samples,)."""
        return np.maximum(-self.lower, self.upper)

    @property
    def cost(self) -> Array:
        """Cost ``C`` of each sample, 0 for absent ones, (n_samples,)."""
        bound = self.bound
        return np.where(np.isinf(bound), _inverse(self.ridge), bound)

    def is_free(self, coef: Array) -> Array:
        """Return the mask of coefficients that are neither zero nor at a bound, (n_samples,)."""
        return np.asarray((coef > self.lower) & (coef < self.upper) & (coef != 0))

    @property
    def signs(self) -> Array:
        """Class of each sample, 1 or -1; 0 for absent samples and in regressions."""
        return np.sign(self.upper) + np.sign(self.lower)

    def one_sided(self, coef: Array) -> tuple[Array, Array]:
        """Return bounds between which coefficients keep their sign, if the slope jumps at zero."""
        lower = np.where((coef > 0) & (self.epsilon > 0), 0.0, self.lower)
        return lower, np.where((coef < 0) & (self.epsilon > 0), 0.0, self.upper)

    def violations(self, coef: Array, gradient: Array) -> tuple[Array, Array]:
        """Return the gain of raising and the loss of lowering each coefficient.

        They are minus and plus infinity at a bound. `gradient` is ``t - (K + R) u``. At the
        optimum ``max(up) <= min(down)``: no pair of coefficients can be moved with gain.
        """
        epsilon = self.epsilon
        up = np.where(coef < self.upper, gradient, -np.inf)
        down = np.where(coef > self.lower, gradient, np.inf)
        if epsilon:
            up = up + np.where(coef >= 0, -epsilon, epsilon)
            down = down + np.where(coef > 0, -epsilon, epsilon)
        return up, down

    def violation(self, coef: Array, gradient: Array) -> float:
        """Return the largest violation of the optimality conditions, ``max(up) - min(down)``."""
        up, down = self.violations(coef, gradient)
        return float(up.max(initial=-np.inf) - down.min(initial=np.inf))

    def objective(self, coef: Array, gradient: Array) -> float:
        """Return the dual value, from ``u'(K + R)u = t'u - gradient'u``."""
        linear = float(self.target @ coef)
        absolute = float(np.abs(coef).sum()) if self.epsilon else 0.0
        return 0.5 * (linear + float(gradient @ coef)) - self.epsilon * absolute

    def gap(self, coef: Array, gradient: Array, intercept: float) -> float:
        """Return the certified duality gap: no coefficients are better than these by more."""
        loss = self.losses(self.target - gradient - self.ridge * coef + intercept)
        if np.isinf(loss).any():
            return float("inf")
        linear = float(self.target @ coef)
        quadratic = linear - float(gradient @ coef) - float(self.ridge @ coef**2)
        return max(0.5 * quadratic + float(loss.sum()) - self.objective(coef, gradient), 0.0)

    def losses(self, decision: Array) -> Array:
        """Return the primal loss of each sample times its cost, (n_samples,).

        It is the largest ``v (t - f) - epsilon |v| - r v^2 / 2`` over the box of the sample: the
        hinge, half the squared hinge, or the epsilon-insensitive loss.
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

    def intercept(self, coef: Array, gradient: Array) -> float:
        """Return the intercept at the optimum.

        It is the mean over the free samples or, if there are none, the middle of the interval that
        optimality allows.
        """
        free = self.is_free(coef)
        if free.any():
            return float((gradient[free] - self.epsilon * np.sign(coef[free])).mean())
        up, down = self.violations(coef, gradient)
        limits = up.max(initial=-np.inf), down.min(initial=np.inf)
        ends = [end for end in limits if not np.isinf(end)]
        return float(sum(ends) / max(len(ends), 1))

    def squared_hinge_intercept(self, coef: Array, gradient: Array) -> float:
        """Return the intercept of the least primal value under a squared hinge, in a few steps."""
        y = self.signs
        cost = np.where(y == 0, 0.0, _inverse(self.ridge))
        # y (t - f) without the intercept; the loss is cost / 2 times its squared positive part.
        short = y * (gradient + self.ridge * coef)
        b = 0.0
        for _ in range(_INTERCEPT_STEPS):
            active = cost * (short - y * b > 0)
            total = float(active.sum())
            move = float(active @ (y * (short - y * b))) / total if total > 0 else 0.0
            b += move
            if abs(move) <= 1e-12 * max(1.0, abs(b)):
                break
        return b

    def least_loss_intercept(self, coef: Array, gradient: Array) -> float:
        """Return the intercept of the least primal value under any loss, far from the optimum.

        The loss is convex in the intercept, and its minimum lies between the smallest and the
        largest residual, so that interval is narrowed.
        """
        scores = self.target - gradient - self.ridge * coef
        residual = (self.target - scores)[self.present]
        low, high = float(residual.min()), float(residual.max())
        for _ in range(_INTERCEPT_STEPS):
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
        """Return the result of a solver, with its objective and certified gap.

        Without `intercept`, the optimality conditions give it; if they do not hold yet, it is the
        intercept of the least loss.
        """
        if intercept is None:
            find = self.intercept if converged else self.least_loss_intercept
            intercept = find(coef, gradient)
        value, gap = self.objective(coef, gradient), self.gap(coef, gradient, intercept)
        decision = self.target - gradient - self.ridge * coef + intercept
        return Dual(coef, intercept, value, gap, n_iter, converged, decision)

    def feasible(self, coef: Array) -> Array:
        """Return the coefficients moved into the boxes and onto ``1'u = 0``, towards zero."""
        coef = np.clip(coef, self.lower, self.upper)
        excess = coef.sum()
        if abs(excess) <= 1e-14 * np.abs(coef).sum():
            return coef
        side = coef > 0 if excess > 0 else coef < 0
        opposite = -coef[~side].sum()
        coef[side] *= opposite / coef[side].sum()
        # The largest coefficient of that side absorbs the rounding error.
        largest = int(np.argmax(np.abs(coef) * side))
        rest = coef.sum()
        if np.sign(rest) == np.sign(excess) and abs(rest) <= abs(coef[largest]):
            coef[largest] -= rest
        return coef

    def balanced(self, coef: Array) -> Array:
        """Return coefficients that sum to zero, with the excess taken from the free ones.

        Coefficients at a bound stay there: a tiny step away from it would look like a large
        violation.
        """
        coef = coef.copy()
        for _ in range(10):
            excess = float(coef.sum())
            if abs(excess) <= 1e-14 * float(np.abs(coef).sum()):
                return coef
            free = np.flatnonzero(self.is_free(coef))
            if len(free) == 0:
                break
            floor, ceiling = self.one_sided(coef)
            coef[free] = np.clip(coef[free] - excess / len(free), floor[free], ceiling[free])
        return self.feasible(coef)

    def snap(self, coef: Array, start: Array | None, scale: float, tol: float) -> Array:
        """Return the coefficients with those within rounding of zero or a bound put there.

        Pair moves bring coefficients to their bounds, and coefficients of a warm start back to
        zero, except for the last digits of sums. Such a remainder would still count as free and fix
        the intercept. `scale` is the largest kernel value: times the remainder, it is far below
        `tol`.
        """
        rest = 0.0
        if start is not None and scale > 0.0:
            rest = min(_ROUNDING * np.abs(start).max(initial=0.0), _NEGLIGIBLE * tol / scale)
        rounding = np.maximum(rest, _ROUNDING * np.abs(coef))
        for end in (self.lower, self.upper):
            coef = np.where(np.abs(coef - end) <= rounding, end, coef)
        coef[np.abs(coef) <= rest] = 0.0
        return coef

    def take(self, index: Array) -> "Problem":
        """Return the problem of some of the samples."""
        names = ("target", "lower", "upper", "ridge")
        return replace(self, **{name: getattr(self, name)[index] for name in names})

    def restrict(self, index: Array) -> "Problem":
        """Return the problem of all samples in which only those of `index` are present."""
        lower, upper = np.zeros_like(self.lower), np.zeros_like(self.upper)
        lower[index], upper[index] = self.lower[index], self.upper[index]
        return replace(self, lower=lower, upper=upper)

    def weighted(self, factor: Array) -> "Problem":
        """Return the problem with the cost of each sample multiplied, `factor` of (n_samples,)."""
        kept = factor > 0
        ridge = np.divide(self.ridge, factor, out=np.zeros_like(self.ridge), where=kept)
        # The squared hinge has infinite bounds, and its cost is in the ridge.
        lower = np.multiply(self.lower, factor, out=np.zeros_like(self.lower), where=kept)
        upper = np.multiply(self.upper, factor, out=np.zeros_like(self.upper), where=kept)
        return replace(self, lower=lower, upper=upper, ridge=ridge)

    def merged(self, first: Array, inverse: Array) -> "Problem":
        """Return the problem of unique samples, with the costs of duplicates added up.

        Parameters
        ----------
        first : array of shape (n_unique,)
            One sample of each group of duplicates.
        inverse : array of shape (n_samples,)
            Group of each sample.
        """
        total = np.bincount(inverse, weights=self.cost, minlength=len(first))
        ratio = np.divide(total, self.cost[first], out=np.zeros(len(first)), where=total > 0)
        return self.take(first).weighted(ratio)


@dataclass(frozen=True, eq=False)
class Dual:
    """Solution of one problem.

    Attributes
    ----------
    coef : array of shape (n_samples,)
        Signed coefficients ``u``; the decision function is ``K u + intercept``.
    intercept : float
        Constant of the decision function.
    objective : float
        Dual value.
    gap : float
        Certified duality gap.
    n_iter : int
        Steps of the solver.
    converged : bool
        Whether the solver reached its tolerance.
    decision : array of shape (n_samples,)
        Decision values of all samples, including absent ones, without the ridge.

    See Also
    --------
    lokl.solvers.solve_svc : Solves a two-class SVM.
    lokl.solvers.Solution : Solutions of all SVMs of a fit.

    Examples
    --------
    >>> from lokl.kernels import Linear
    >>> from lokl.solvers import solve_svc
    >>> dual = solve_svc(Linear(), [[-1.0], [1.0]], [-1, 1], C=10.0, tol=1e-8)
    >>> dual.decision, dual.objective, dual.converged
    (array([-1.,  1.]), 0.5, True)
    """

    coef: Array
    intercept: float
    objective: float
    gap: float
    n_iter: int
    converged: bool
    decision: Array


def hinge(y: Array, C: Array | float) -> Problem:
    """Return the problem of a C-SVC.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels -1 and 1.
    C : float or array of shape (n_samples,)
        Cost; 0 leaves a sample out.

    Returns
    -------
    problem : Problem
        For :meth:`Solver.solve` and :class:`Machines`.

    See Also
    --------
    lokl.solvers.squared_hinge : No upper bound, but a ridge.
    lokl.solvers.solve_svc : Solves a two-class SVM.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.solvers import hinge
    >>> hinge(np.array([-1.0, 1.0]), C=2.0).upper
    array([0., 2.])
    """
    y, cost = _checked(y, C)
    lower, upper = np.minimum(y, 0) * cost, np.maximum(y, 0) * cost
    return Problem(y, lower, upper, 0.0, np.zeros(len(y)), True)


def squared_hinge(y: Array, C: Array | float) -> Problem:
    """Return the problem of the 2-norm soft margin: no upper bound, but a ridge of ``1 / C``.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels -1 and 1.
    C : float or array of shape (n_samples,)
        Cost; 0 leaves a sample out.

    Returns
    -------
    problem : Problem
        For :meth:`Solver.solve` and :class:`Machines`.

    See Also
    --------
    lokl.solvers.hinge : Bounded coefficients.
    lokl.solvers.as_squared_hinge : From a problem with the hinge.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.solvers import squared_hinge
    >>> squared_hinge(np.array([-1.0, 1.0]), C=2.0).ridge
    array([0.5, 0.5])
    """
    y, cost = _checked(y, C)
    bound = np.where(cost > 0, np.inf, 0.0)
    lower = np.where(y < 0, -bound, 0.0)
    return Problem(y, lower, np.where(y > 0, bound, 0.0), 0.0, _inverse(cost), True)


def as_squared_hinge(problem: Problem) -> Problem:
    """Return a classification problem with the squared hinge instead of the hinge, at equal cost.

    Samples whose loss is already squared do not change.

    Parameters
    ----------
    problem : Problem
        Of a classification.

    Returns
    -------
    problem : Problem
        For :meth:`Solver.solve` and :class:`Machines`.

    See Also
    --------
    lokl.solvers.squared_hinge : From labels and costs.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.solvers import as_squared_hinge, hinge
    >>> as_squared_hinge(hinge(np.array([-1.0, 1.0]), C=4.0)).ridge
    array([0.25, 0.25])
    """
    bound = problem.bound
    ridge = problem.ridge + _inverse(np.where(np.isfinite(bound), bound, 0.0))
    lower = np.where(problem.lower < 0, -np.inf, 0.0)
    return replace(
        problem, lower=lower, upper=np.where(problem.upper > 0, np.inf, 0.0), ridge=ridge
    )


def epsilon_insensitive(target: Array, C: Array | float, epsilon: float) -> Problem:
    """Return the problem of an epsilon-SVR: residuals up to `epsilon` cost nothing.

    Parameters
    ----------
    target : array of shape (n_samples,)
        Numbers to predict.
    C : float or array of shape (n_samples,)
        Cost; 0 leaves a sample out.
    epsilon : float
        Residuals up to this size cost nothing.

    Returns
    -------
    problem : Problem
        For :meth:`Solver.solve` and :class:`Machines`.

    See Also
    --------
    lokl.solvers.censored : Some targets are only bounds.
    lokl.solvers.solve_svr : Solves it.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.solvers import epsilon_insensitive
    >>> problem = epsilon_insensitive(np.array([0.5, 1.5]), C=2.0, epsilon=0.1)
    >>> problem.lower, problem.upper
    (array([-2., -2.]), array([2., 2.]))
    """
    target, cost = _checked(target, C)
    if not np.isfinite(epsilon) or epsilon < 0:
        raise ValueError(f"epsilon must be finite and not negative, got {epsilon!r}")
    return Problem(target, -cost, cost, float(epsilon), np.zeros(len(target)))


def censored(target: Array, C: Array | float, epsilon: float, is_event: Array) -> Problem:
    """Return the problem of a regression in which some targets are only upper bounds.

    A sample with an event pays on both sides of its target, a censored one only if its decision
    exceeds the target by more than `epsilon`: its coefficient is never positive.

    Parameters
    ----------
    target : array of shape (n_samples,)
        Numbers to predict; upper bounds for censored samples.
    C : float or array of shape (n_samples,)
        Cost; 0 leaves a sample out.
    epsilon : float
        Residuals up to this size cost nothing.
    is_event : array of bool of shape (n_samples,)
        Whether the target is known rather than a bound.

    Returns
    -------
    problem : Problem
        For :meth:`Solver.solve` and :class:`Machines`.

    See Also
    --------
    lokl.solvers.epsilon_insensitive : All targets are known.
    lokl.UniformMKLSurvival : An estimator for censored times.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.solvers import censored
    >>> problem = censored(np.array([0.5, 1.5]), 2.0, 0.1, np.array([True, False]))
    >>> problem.upper
    array([2., 0.])
    """
    problem = epsilon_insensitive(target, C, epsilon)
    return replace(problem, upper=np.where(is_event, problem.upper, 0.0))


def squared_loss(target: Array, C: Array | float, *, is_classification: bool = False) -> Problem:
    """Return the problem of the squared loss, ``C / 2`` times the squared residual.

    Parameters
    ----------
    target : array of shape (n_samples,)
        Numeric targets, or labels -1 and 1.
    C : float or array of shape (n_samples,)
        Cost; 0 leaves a sample out.
    is_classification : bool, default=False
        Whether targets are labels.

    Returns
    -------
    problem : Problem
        For :meth:`Solver.solve` and :class:`Machines`.

    See Also
    --------
    lokl.solvers.Squared : The squared loss.
    lokl.solvers.squared_path : Several costs on one matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.solvers import squared_loss
    >>> squared_loss(np.array([0.5, 1.5]), C=2.0).ridge
    array([0.5, 0.5])
    """
    target, cost = _checked(target, C)
    bound = np.where(cost > 0, np.inf, 0.0)
    return Problem(target, -bound, bound, 0.0, _inverse(cost), is_classification)


def _checked(target: Any, C: Any) -> tuple[Array, Array]:
    target = np.asarray(target, dtype=np.float64)
    if target.ndim != 1 or not np.isfinite(target).all():
        raise ValueError("targets must be one finite number per sample")
    cost = np.asarray(C, dtype=np.float64)
    if cost.ndim and cost.shape != target.shape:
        raise ValueError(
            f"C must be one number, or one for each of the {len(target)} samples, got shape "
            f"{cost.shape}"
        )
    cost = np.broadcast_to(cost, target.shape)
    if not np.isfinite(cost).all() or (cost < 0).any() or (cost.size and not (cost > 0).any()):
        raise ValueError(f"C must be finite, not negative and not all zero, got {C!r}")
    return target, cost


def _inverse(values: Array) -> Array:
    """Return ``1 / values``, 0 for values that are not positive."""
    return np.divide(1.0, values, out=np.zeros_like(values, dtype=float), where=values > 0)


@dataclass(frozen=True, eq=False)
class UniqueSamples:
    """Unique samples of a problem, in an order that does not depend on the order of the rows.

    Solvers that pick single samples treat a repeated row differently from a row of weight 2, and
    break ties by the order of the rows. On unique samples in a fixed order they do neither.
    """

    rows: Array  # (n_unique,), one row of each unique sample and label
    inverse: Array  # (n_samples,), position of each sample in `rows`
    share: Array  # (n_samples,), fraction of a sample in the cost of its duplicates
    problem: Problem  # of the unique samples, with costs added up

    @classmethod
    def find(cls, X: Any, problem: Problem) -> "UniqueSamples":
        """Group equal rows of `X`, of shape (n_samples, n_features), with equal labels."""
        keys = row_keys(X, problem.target)
        _, rows, inverse = np.unique(keys, return_index=True, return_inverse=True)
        merged = problem.merged(rows, inverse)
        return cls(rows, inverse, problem.cost / merged.cost[inverse], merged)

    def expand(self, dual: Dual) -> Dual:
        """Return a solution on the unique samples as one on all samples."""
        coef = dual.coef[self.inverse] * self.share
        return replace(dual, coef=coef, decision=dual.decision[self.inverse])
