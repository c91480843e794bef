"""Calibration of an expert: probabilities of the outcomes from held-out decisions."""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from lokl._arrays import Array
from lokl.methods.trusted_vote.outcomes import Outcomes
from lokl.optimizers.newton import minimize_in_box

# Penalties on the shifts of outcomes and on the slope of the log scale.
_SHIFT_PENALTY, _SLOPE_PENALTY = 0.01, 0.001
_LOG_SCALE_BOUNDS, _SLOPE_BOUNDS = (-3.0, 5.0), (0.0, 2.0)


@dataclass(frozen=True, eq=False)
class ExpertCalibration:
    """``q(y|x) = softmax_y(exp(alpha + beta z(x)) F_y(x) + d_y)`` with scores ``F``.

    The temperature is local: the more reliable the expert is near a sample (``z``), the more a
    decision of the same size counts.

    Attributes
    ----------
    log_scale : float
        ``alpha``.
    slope : float
        ``beta``; 0 for one temperature everywhere.
    shift : array of shape (n_outcomes,)
        ``d``.
    error_scale : float
        Typical error of the expert, by which scores are divided.
    """

    log_scale: float
    slope: float
    shift: Array
    error_scale: float

    def probabilities(
        self, outcomes: Outcomes, decision: Array, reliability: Array | None = None
    ) -> Array:
        """Compute the probabilities of the outcomes.

        Parameters
        ----------
        outcomes : Outcomes
        decision : array of shape (n_samples, n_tasks)
        reliability : array of shape (n_samples,), optional
            Local reliability ``z``; None is zero.

        Returns
        -------
        probabilities : array of shape (n_samples, n_outcomes)
        """
        local = 0.0 if reliability is None else self.slope * reliability[:, np.newaxis]
        scores = outcomes.scores(decision[:, outcomes.tasks], self.error_scale)
        return np.asarray(softmax(np.exp(self.log_scale + local) * scores + self.shift, axis=-1))


def calibrate(
    outcomes: Outcomes,
    decision: Array,
    truth: Array,
    weight: Array,
    reliability: Array | None = None,
    start: ExpertCalibration | None = None,
) -> ExpertCalibration:
    """Fit a calibration to held-out decisions by penalised maximum likelihood.

    Parameters
    ----------
    outcomes : Outcomes
    decision : array of shape (n_samples, n_tasks)
    truth : array of int of shape (n_samples,)
        Index of the true outcome.
    weight : array of shape (n_samples,)
    reliability : array of shape (n_samples,), optional
        Local reliability; None fits one temperature for all samples.
    start : ExpertCalibration, optional
        Starting point.
    """
    decision, n_outcomes = decision[:, outcomes.tasks], len(outcomes.prior)
    total = float(weight.sum())
    if total <= 0:
        return ExpertCalibration(0.0, 0.0, np.zeros(n_outcomes), 1.0)
    scale = outcomes.error_scale(decision, truth, weight) if start is None else start.error_scale
    scores = outcomes.scores(decision, scale)
    loss = _CalibrationLoss(scores, truth, weight / total, reliability, outcomes.allows_shift)
    n_shifts = n_outcomes if outcomes.allows_shift else 0
    initial = np.zeros(2 + n_shifts)
    if start is not None:
        initial = np.concatenate([[start.log_scale, start.slope], start.shift[:n_shifts]])
    slopes = (0.0, 0.0) if reliability is None else _SLOPE_BOUNDS
    lower = np.concatenate([[_LOG_SCALE_BOUNDS[0], slopes[0]], np.full(n_shifts, -np.inf)])
    upper = np.concatenate([[_LOG_SCALE_BOUNDS[1], slopes[1]], np.full(n_shifts, np.inf)])
    solution = minimize_in_box(loss, initial, lower, upper)
    shift = solution[2:] if n_shifts else np.zeros(n_outcomes)
    return ExpertCalibration(float(solution[0]), float(solution[1]), shift, scale)


@dataclass(frozen=True, eq=False)
class _CalibrationLoss:
    """Penalised mean negative log likelihood as a function of ``(alpha, beta, d_1, ...)``."""

    scores: Array
    truth: Array
    weight: Array  # of each sample, summing to one
    reliability: Array | None
    has_shifts: bool

    def __call__(self, x: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and a positive semidefinite approximation of the Hessian."""
        z = np.zeros(len(self.truth)) if self.reliability is None else self.reliability
        scaled = np.exp(x[0] + x[1] * z)[:, np.newaxis] * self.scores
        p = softmax(scaled + x[2:] if self.has_shifts else scaled, axis=-1)
        rows, weight = np.arange(len(p)), self.weight
        right = np.maximum(p[rows, self.truth], np.finfo(float).tiny)
        value = -weight @ np.log(right) + 0.5 * _SLOPE_PENALTY * x[1] ** 2
        value += 0.5 * _SHIFT_PENALTY * float(x[2:] @ x[2:])
        # Derivatives with respect to the log scale of each sample.
        mean = (p * scaled).sum(axis=1)
        slope = mean - scaled[rows, self.truth]
        centred = scaled - mean[:, np.newaxis]
        spread = weight * (p * centred**2).sum(axis=1)
        factors = np.stack([np.ones_like(z), z])
        gradient, curvature = np.zeros_like(x), np.zeros((len(x), len(x)))
        gradient[:2] = factors @ (weight * slope)
        curvature[:2, :2] = (factors * spread) @ factors.T
        if self.has_shifts:
            expected = weight @ p
            weighted = weight[:, np.newaxis] * p
            gradient[2:] = expected - np.bincount(self.truth, weight, minlength=p.shape[1])
            curvature[:2, 2:] = factors @ (weighted * centred)
            curvature[2:, :2] = curvature[:2, 2:].T
            curvature[2:, 2:] = np.diag(expected) - weighted.T @ p
        penalty = np.concatenate([[0.0, _SLOPE_PENALTY], np.full(len(x) - 2, _SHIFT_PENALTY)])
        return float(value), gradient + penalty * x, curvature + np.diag(penalty)
