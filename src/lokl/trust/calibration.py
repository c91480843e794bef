"""What a decision is worth: probabilities that fit decisions about samples not learned from."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array
from lokl.trust.newton import minimize_in_box
from lokl.trust.outcomes import Outcomes, softmax

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
