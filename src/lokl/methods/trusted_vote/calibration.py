"""Few numbers in a box: Newton's method, to rounding.

What a decision is worth: probabilities that fit decisions about samples not learned from.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array
from lokl.methods.trusted_vote.outcomes import Outcomes, softmax

# Value, gradient and a positive semidefinite curvature at some numbers.
Smooth = Callable[[Array], tuple[float, Array, Array]]

_ROUNDS, _HALVINGS = 200, 20
_FLAT = 1e-11
_LEAST_CURVATURE = 1e-10
# A step that promises less than this, relative to the value, is the last.
_ROUNDING = 1e-15


def minimize_in_box(function: Smooth, start: Array, lower: Array, upper: Array) -> Array:
    """Return where a smooth function is least inside a box.

    Numbers at a bound that the gradient holds there are left out of a step; a step that does not
    help is halved. Gradients end at rounding, so that equal problems whose sums were taken in
    another order have equal answers.
    """
    x = np.clip(np.asarray(start, dtype=float), lower, upper)
    value, gradient, curvature = function(x)
    for _ in range(_ROUNDS):
        held = ((x <= lower) & (gradient >= 0)) | ((x >= upper) & (gradient <= 0))
        free = np.flatnonzero(~held)
        if len(free) == 0 or np.abs(gradient[free]).max() <= _FLAT:
            break
        step = np.zeros_like(x)
        own = curvature[np.ix_(free, free)]
        lift = _LEAST_CURVATURE * max(float(own.diagonal().max()), 1.0)
        step[free] = -np.linalg.solve(own + lift * np.eye(len(free)), gradient[free])
        if -float(gradient @ step) <= _ROUNDING * max(abs(value), 1e-3):
            # Values can no longer tell which is better; the gradient still can.
            x = np.clip(x + step, lower, upper)
            break
        found = _along(function, x, value, step, lower, upper)
        if found is None:
            steepest = np.where(held, 0.0, -gradient)
            found = _along(function, x, value, steepest, lower, upper)
        if found is None:
            break
        x, value, gradient, curvature = found
    return x


def _along(
    function: Smooth, x: Array, value: float, step: Array, lower: Array, upper: Array
) -> tuple[Array, float, Array, Array] | None:
    """Return the first of ever shorter steps that lowers the function, None where none does."""
    for halving in range(_HALVINGS):
        tried = np.clip(x + 0.5**halving * step, lower, upper)
        found = function(tried)
        if found[0] < value:
            return tried, *found
    return None


# Penalties on the shifts of single outcomes and on the slope of the temperature.
_SHIFT_PENALTY, _SLOPE_PENALTY = 0.01, 0.001
_LOG_SCALES, _SLOPES = (-3.0, 5.0), (0.0, 2.0)


@dataclass(frozen=True, eq=False)
class Calibration:
    """``q(y|x) = softmax_y(exp(alpha + beta z(x)) F_y(x) + d_y)`` with scores ``F``.

    The temperature is local: where samples nearby were predicted well, ``z`` is high and the same
    decision counts for more.

    Attributes
    ----------
    log_scale : float
        ``alpha``.
    slope : float
        ``beta``; 0 where the temperature is the same everywhere.
    shift : array of shape (n_outcomes,)
        ``d``.
    unit : float
        Size of an error of this expert, by which scores are divided.
    """

    log_scale: float
    slope: float
    shift: Array
    unit: float

    def chances(self, outcomes: Outcomes, decision: Array, local: Array | None = None) -> Array:
        """Probabilities (n_samples, n_outcomes) of decisions at samples of local success `z`."""
        power = self.log_scale + (0.0 if local is None else self.slope * local[:, np.newaxis])
        scores = outcomes.scores(decision[:, outcomes.tasks], self.unit)
        return softmax(np.exp(power) * scores + self.shift)


def calibrate(
    outcomes: Outcomes,
    decision: Array,
    truth: Array,
    weight: Array,
    local: Array | None = None,
    start: Calibration | None = None,
) -> Calibration:
    """Fit probabilities to held-out decisions: largest likelihood, with a small penalty.

    Parameters
    ----------
    outcomes : Outcomes
    decision : array of shape (n_samples, n_tasks)
    truth : array of int of shape (n_samples,)
        The right outcome of each sample.
    weight : array of shape (n_samples,)
    local : array of shape (n_samples,), optional
        Local success; None fits one temperature for all samples.
    start : Calibration, optional
        Where to start from.
    """
    own, count = decision[:, outcomes.tasks], len(outcomes.prior)
    total = float(weight.sum())
    if total <= 0:
        return Calibration(0.0, 0.0, np.zeros(count), 1.0)
    unit = outcomes.unit(own, truth, weight) if start is None else start.unit
    scores = outcomes.scores(own, unit)
    likelihood = _Likelihood(scores, truth, weight / total, local, outcomes.shifts)
    shifts = count if outcomes.shifts else 0
    before = np.zeros(2 + shifts)
    if start is not None:
        before = np.concatenate([[start.log_scale, start.slope], start.shift[:shifts]])
    slopes = (0.0, 0.0) if local is None else _SLOPES
    lower = np.concatenate([[_LOG_SCALES[0], slopes[0]], np.full(shifts, -np.inf)])
    upper = np.concatenate([[_LOG_SCALES[1], slopes[1]], np.full(shifts, np.inf)])
    found = minimize_in_box(likelihood, before, lower, upper)
    shift = found[2:] if shifts else np.zeros(count)
    return Calibration(float(found[0]), float(found[1]), shift, unit)


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """Mean negative log likelihood with penalties, of ``(alpha, beta, d_1, ...)``."""

    scores: Array
    truth: Array
    share: Array  # of each sample, summing to one
    local: Array | None
    shifts: bool

    def __call__(self, x: Array) -> tuple[float, Array, Array]:
        z = np.zeros(len(self.truth)) if self.local is None else self.local
        scaled = np.exp(x[0] + x[1] * z)[:, np.newaxis] * self.scores
        p = softmax(scaled + x[2:] if self.shifts else scaled)
        rows, share = np.arange(len(p)), self.share
        right = np.maximum(p[rows, self.truth], np.finfo(float).tiny)
        value = -share @ np.log(right) + 0.5 * _SLOPE_PENALTY * x[1] ** 2
        value += 0.5 * _SHIFT_PENALTY * float(x[2:] @ x[2:])
        # By the log scale of one sample: slope, and variance of the scaled scores.
        mean = (p * scaled).sum(axis=1)
        slope = mean - scaled[rows, self.truth]
        centred = scaled - mean[:, np.newaxis]
        spread = share * (p * centred**2).sum(axis=1)
        levers = np.stack([np.ones_like(z), z])
        gradient, curvature = np.zeros_like(x), np.zeros((len(x), len(x)))
        gradient[:2] = levers @ (share * slope)
        curvature[:2, :2] = (levers * spread) @ levers.T
        if self.shifts:
            expected = share @ p
            weighted = share[:, np.newaxis] * p
            gradient[2:] = expected - np.bincount(self.truth, share, minlength=p.shape[1])
            curvature[:2, 2:] = levers @ (weighted * centred)
            curvature[2:, :2] = curvature[:2, 2:].T
            curvature[2:, 2:] = np.diag(expected) - weighted.T @ p
        penalty = np.concatenate([[0.0, _SLOPE_PENALTY], np.full(len(x) - 2, _SHIFT_PENALTY)])
        return float(value), gradient + penalty * x, curvature + np.diag(penalty)
