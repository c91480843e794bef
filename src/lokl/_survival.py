"""Censored outcomes: targets, step functions and product-limit estimates."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array

TARGET_DTYPE = [("event", bool), ("time", float)]


def survival_target(event: Any, time: Any) -> Array:
    """Return the target of survival models: an event or a censored time for each sample.

    Parameters
    ----------
    event : array-like of shape (n_samples,)
        True (or 1) if the event was observed, False (or 0) if the sample is censored.
    time : array-like of shape (n_samples,)
        Time of the event, or of the last observation of a censored sample.

    Returns
    -------
    y : structured array of shape (n_samples,)
        With the fields ``event`` (bool) and ``time`` (float), as in scikit-survival.

    See Also
    --------
    lokl.AutoMKLSurvival : Chooses everything.
    lokl.TrustedVoteSurvival : Several views.
    lokl.metrics.concordance_index : The score.

    Examples
    --------
    >>> import lokl
    >>> lokl.survival_target([1, 0], [12.5, 30])
    array([( True, 12.5), (False, 30. )],
          dtype=[('event', '?'), ('time', '<f8')])
    """
    event, time = _checked_event(np.asarray(event)), _checked_time(np.asarray(time))
    if len(event) != len(time):
        raise ValueError(f"event has {len(event)} samples, time has {len(time)}")
    y = np.empty(len(time), dtype=TARGET_DTYPE)
    y["event"], y["time"] = event, time
    return y


def read_target(y: Any) -> Array:
    """Return the target of :func:`survival_target` from any of the accepted forms.

    Parameters
    ----------
    y : structured array, data frame or array of shape (n_samples, 2)
        First the event (boolean, or 0 and 1), then the time.
    """
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is not None:
        if len(names) != 2 or y.ndim != 1:
            raise ValueError(
                "y must have one field for the event and one for the time, got "
                f"{', '.join(map(repr, names))} in {y.ndim} dimensions; use "
                "lokl.survival_target(event, time)"
            )
        return survival_target(y[names[0]], y[names[1]])
    shape = np.shape(y)
    if len(shape) != 2 or shape[1] != 2:
        raise ValueError(
            "y of a survival model must have two columns, the event and the time, got shape "
            f"{shape}; use lokl.survival_target(event, time)"
        )
    if hasattr(y, "iloc"):
        return survival_target(y.iloc[:, 0], y.iloc[:, 1])
    columns = np.asarray(y)
    return survival_target(columns[:, 0], columns[:, 1])


def as_columns(y: Array) -> Array:
    """Return a target as an array of shape (n_samples, 2), for code that expects numbers."""
    return np.column_stack([y["event"], y["time"]])


def as_target(columns: Array) -> Array:
    """Return the target of the columns of :func:`as_columns`."""
    return survival_target(columns[:, 0], columns[:, 1])


def _checked_event(event: Array) -> Array:
    if event.ndim != 1:
        raise ValueError(f"events must have one value per sample, got shape {event.shape}")
    if event.dtype == bool:
        return event
    is_other = np.array([value not in (0, 1) for value in event.tolist()], dtype=bool)
    if is_other.any():
        row = int(np.argmax(is_other))
        raise ValueError(
            f"event must be True or False (1 or 0), got {event.tolist()[row]!r} in row {row}; the "
            "event is the first column of y, the time the second"
        )
    return event.astype(bool)


def _checked_time(time: Array) -> Array:
    if time.ndim != 1:
        raise ValueError(f"times must have one value per sample, got shape {time.shape}")
    try:
        time = time.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"times must be numbers: {error}") from error
    is_bad = ~(np.isfinite(time) & (time >= 0))
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise ValueError(
            f"time must be finite and not negative, got {time[row]} in row {row}; remove the "
            "sample, or censor it at its last observation"
        )
    return time


# Times at which curves are compared, and the quantiles of the event times between which they lie.
_N_TIMES, _EARLY, _LATE = 20, 0.05, 0.95


def event_times(y: Array) -> Array:
    """Return evenly spaced times between early and late events, before the last observation."""
    times = y["time"][y["event"]]
    low, high = np.quantile(times, [_EARLY, _LATE])
    high = min(high, np.nextafter(y["time"].max(), 0.0))
    # All events may be at one time.
    return np.linspace(low if low < high else high / 2, high, _N_TIMES)


@dataclass(frozen=True, eq=False)
class StepFunction:
    """A right-continuous function of time that changes at known times.

    Parameters
    ----------
    x : array of shape (n_times,)
        Times of the steps, increasing.
    y : array of shape (n_times,)
        Values from each time on.
    before : float
        Value before the first time.
    """

    x: Array
    y: Array
    before: float = 0.0

    @property
    def domain(self) -> tuple[float, float]:
        """Times from zero to the last step; later values are unknown."""
        return 0.0, float(self.x[-1])

    def __call__(self, time: Any) -> Any:
        """Return the value at one or several times."""
        time = np.asarray(time, dtype=float)
        low, high = self.domain
        if not ((time >= low) & (time <= high)).all():
            raise ValueError(
                f"times must be within [{low:g}, {high:g}], got {time.min():g} to {time.max():g}"
            )
        return steps_at(self.x, self.y, time, self.before)


def steps_at(x: Array, y: Array, time: Any, before: float) -> Any:
    """Return the values of a step function; `before` is its value before the first step.

    Parameters
    ----------
    x : array of shape (n_times,)
    y : array of shape (..., n_times)
    time : float or array of shape (n,)
    before : float

    Returns
    -------
    values : float or array of shape (..., n)
    """
    padded = np.concatenate([np.full((*y.shape[:-1], 1), before), y], axis=-1)
    return padded[..., np.searchsorted(x, time, side="right")]


def risk_table(y: Array, weight: Array | None = None) -> tuple[Array, Array, Array, Array]:
    """Return unique times, and the numbers of events, of censored samples and at risk at each."""
    times, index = np.unique(y["time"], return_inverse=True)
    weight = np.ones(len(y)) if weight is None else weight
    events = np.bincount(index, weights=weight * y["event"], minlength=len(times))
    censored = np.bincount(index, weights=weight * ~y["event"], minlength=len(times))
    at_risk = np.cumsum((events + censored)[::-1])[::-1]
    return times, events, censored, at_risk


def kaplan_meier(y: Array) -> StepFunction:
    """Return the product-limit estimate of the probability that no event has happened yet."""
    times, events, _, at_risk = risk_table(y)
    return StepFunction(times, np.cumprod(1.0 - events / at_risk), 1.0)


def nelson_aalen(y: Array, weight: Array | None = None) -> StepFunction:
    """Return the Nelson-Aalen estimate of the cumulative hazard; samples may have weights."""
    times, events, _, at_risk = risk_table(y, weight)
    rate = np.divide(events, at_risk, out=np.zeros_like(at_risk), where=at_risk > 0)
    return StepFunction(times, np.cumsum(rate))


def deviance_residuals(y: Array, weight: Array) -> Array:
    """Return the deviance residuals of the model without covariates, (n_samples,).

    With the Nelson-Aalen estimate ``H`` of the cumulative hazard, the martingale residual of a
    sample is ``M = event - H(time)``: observed events minus expected events. The deviance residual
    ``sign(M) sqrt(-2 (M + event log(event - M)))`` has the same sign and is nearly symmetric. It is
    large for early events and negative for samples that survive long. It depends on the order of
    the times only.
    """
    hazard = nelson_aalen(y, weight)(y["time"])
    event = y["event"].astype(float)
    # Only events of weight zero can have a cumulative hazard of zero.
    log = np.log(np.maximum(hazard, np.finfo(float).tiny))
    deviance = 2.0 * (hazard - event - event * log)
    return np.sign(event - hazard) * np.sqrt(np.maximum(deviance, 0.0))


def censoring_survival(y: Array) -> StepFunction:
    """Return the product-limit estimate of the probability that a sample is not censored yet.

    At tied times events come first, so they are not at risk of being censored.
    """
    times, events, censored, at_risk = risk_table(y)
    at_risk = at_risk - events
    rate = np.divide(censored, at_risk, out=np.zeros_like(at_risk), where=at_risk > 0)
    return StepFunction(times, np.cumprod(1.0 - rate), 1.0)
