"""Measures of predictions about censored times.

They take the arguments of scikit-survival's functions and return the same numbers. A risk score is
higher for an earlier event.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import trapezoid

from lokl._arrays import Array
from lokl._survival import (
    StepFunction,
    censoring_survival,
    kaplan_meier,
    read_target,
    steps_at,
    survival_target,
)

__all__ = [
    "Concordance",
    "concordance_index",
    "concordance_index_ipcw",
    "cumulative_dynamic_auc",
    "integrated_brier_score",
]

# Samples that are compared pair by pair; all later ones are looked up in sorted order.
_BLOCK = 512


class Concordance(NamedTuple):
    """Concordance index, and the numbers of pairs behind it.

    Two samples are comparable if one has an event while the other is still observed.

    Attributes
    ----------
    cindex : float
        Concordance index.
    concordant, discordant : int
        Pairs in the right and in the wrong order.
    tied_risk : int
        Pairs with equal scores.
    tied_time : int
        Pairs at the same time.

    See Also
    --------
    lokl.metrics.concordance_index : Computes it.

    Examples
    --------
    >>> from lokl.metrics import concordance_index
    >>> concordance_index([True, True, False], [1, 2, 3], [3.0, 1.0, 2.0])
    Concordance(cindex=0.6666666666666666, concordant=2, discordant=1, tied_risk=0, tied_time=0)
    """

    cindex: float
    concordant: int
    discordant: int
    tied_risk: int
    tied_time: int


def concordance_index(event: Any, time: Any, estimate: Any, tied_tol: float = 1e-8) -> Concordance:
    """Harrell's concordance index: share of comparable pairs in the right order.

    Parameters
    ----------
    event : array-like of shape (n_samples,)
        Whether the event was observed.
    time : array-like of shape (n_samples,)
        Time of the event, or of the end of the observation.
    estimate : array-like of shape (n_samples,)
        Risk scores; higher for earlier events.
    tied_tol : float, default=1e-8
        Scores that differ by at most this are tied; such a pair counts one half.

    Returns
    -------
    Concordance
        Its first field is the index: 1 for perfect order, 0.5 for chance. `tied_time` is the number
        of pairs of an event and a censored sample at the same time, which are comparable.

    See Also
    --------
    lokl.metrics.concordance_index_ipcw : Independent of the censoring.
    lokl.survival_target : Events and times in one array.

    References
    ----------
    .. [1] F. E. Harrell, R. M. Califf, D. B. Pryor, K. L. Lee, R. A. Rosati. Evaluating the Yield
       of Medical Tests. JAMA 247, 1982.

    Examples
    --------
    >>> from lokl.metrics import concordance_index
    >>> concordance_index([True, False, True], [1, 2, 3], [0.9, 0.1, 0.5]).cindex
    1.0
    """
    y = survival_target(event, time)
    return _concordance(y, _scores(estimate, y), np.ones(len(y)), tied_tol)


def concordance_index_ipcw(
    survival_train: Any,
    survival_test: Any,
    estimate: Any,
    tau: float | None = None,
    tied_tol: float = 1e-8,
) -> Concordance:
    """Uno's concordance index: pairs weighted by the inverse probability of censoring.

    Unlike Harrell's, it does not depend on the distribution of the censoring times.

    Parameters
    ----------
    survival_train : structured array, data frame or array of shape (n_train, 2)
        Events and times that the distribution of censoring is estimated from.
    survival_test : structured array, data frame or array of shape (n_samples, 2)
        Events and times of the samples to score.
    estimate : array-like of shape (n_samples,)
        Risk scores; higher for earlier events.
    tau : float, optional
        Events from this time on do not count.
    tied_tol : float, default=1e-8
        Scores that differ by at most this are tied.

    Returns
    -------
    Concordance
        Its first field is the index.

    See Also
    --------
    lokl.metrics.concordance_index : Without weights.

    References
    ----------
    .. [1] H. Uno, T. Cai, M. J. Pencina, R. B. D'Agostino, L. J. Wei. On the C-statistics for
       Evaluating Overall Adequacy of Risk Prediction Procedures with Censored Survival Data.
       Statistics in Medicine 30, 2011.

    Examples
    --------
    >>> import lokl
    >>> from lokl.metrics import concordance_index_ipcw
    >>> y = lokl.survival_target([1, 0, 1, 1], [1, 2, 3, 4])
    >>> round(concordance_index_ipcw(y, y, [4, 1, 3, 2]).cindex, 3)
    1.0
    """
    y = read_target(survival_test)
    scores = _scores(estimate, y)
    counted = np.ones(len(y), dtype=bool) if tau is None else y["time"] < tau
    weight = np.zeros(len(y))
    weight[counted] = _event_weights(read_target(survival_train), y[counted]) ** 2
    return _concordance(y, scores, weight, tied_tol)


def cumulative_dynamic_auc(
    survival_train: Any, survival_test: Any, estimate: Any, times: Any, tied_tol: float = 1e-8
) -> tuple[Array, float]:
    """Area under the ROC curve at several times: events until then against samples without one.

    Parameters
    ----------
    survival_train : structured array, data frame or array of shape (n_train, 2)
        Events and times that the distribution of censoring is estimated from.
    survival_test : structured array, data frame or array of shape (n_samples, 2)
        Events and times of the samples to score.
    estimate : array-like of shape (n_samples,) or (n_samples, n_times)
        Risk scores, higher for earlier events; with a second axis, one for each time.
    times : array-like of shape (n_times,)
        Increasing, within the times of `survival_test`, before the last.
    tied_tol : float, default=1e-8
        Scores that differ by at most this are tied.

    Returns
    -------
    auc : array of shape (n_times,)
        NaN at times before the first event.
    mean_auc : float
        Mean weighted by the decrease of the Kaplan-Meier estimate of `survival_test`.

    See Also
    --------
    lokl.metrics.concordance_index_ipcw : One number for all times.
    lokl.metrics.integrated_brier_score : Error of survival curves.

    References
    ----------
    .. [1] H. Uno, T. Cai, L. Tian, L. J. Wei. Evaluating Prediction Rules for t-Year Survivors with
       Censored Regression Models. Journal of the American Statistical Association 102, 2007.

    Examples
    --------
    >>> import lokl
    >>> from lokl.metrics import cumulative_dynamic_auc
    >>> y = lokl.survival_target([1, 0, 1, 1], [1, 2, 3, 4])
    >>> auc, mean = cumulative_dynamic_auc(y, y, [4, 1, 3, 2], [1, 3])
    >>> auc
    array([1., 1.])
    """
    y, times = read_target(survival_test), _times(times, survival_test)
    estimate = _estimates(estimate, y, times)
    weight = _event_weights(read_target(survival_train), y)
    auc = np.full(len(times), np.nan)
    for i, time in enumerate(times):
        is_case, is_control = y["event"] & (y["time"] <= time), y["time"] > time
        controls = np.sort(estimate[is_control, i])
        below = np.searchsorted(controls, estimate[is_case, i] - tied_tol, side="left")
        reach = np.searchsorted(controls, estimate[is_case, i] + tied_tol, side="right")
        if is_case.any():
            won = weight[is_case] @ (below + reach) / 2.0
            auc[i] = won / (weight[is_case].sum() * is_control.sum())
    if len(times) == 1:
        return auc, float(auc[0])
    survival = kaplan_meier(y)(times)
    decrease = -np.diff(survival, prepend=1.0)
    return auc, float(auc @ decrease / (1.0 - survival[-1]))


def integrated_brier_score(
    survival_train: Any, survival_test: Any, estimate: Any, times: Any
) -> float:
    """Mean squared error of predicted survival curves, weighted for censoring, over time.

    Parameters
    ----------
    survival_train : structured array, data frame or array of shape (n_train, 2)
        Events and times that the distribution of censoring is estimated from.
    survival_test : structured array, data frame or array of shape (n_samples, 2)
        Events and times of the samples to score.
    estimate : array-like of shape (n_samples, n_times)
        Predicted probabilities of no event until each time.
    times : array-like of shape (n_times,)
        Two or more, increasing, within the times of `survival_test`, before the last.

    Returns
    -------
    float
        0 is perfect; 0.25 is the score of a constant 0.5.

    See Also
    --------
    lokl.metrics.cumulative_dynamic_auc : Ranking at several times.

    References
    ----------
    .. [1] E. Graf, C. Schmoor, W. Sauerbrei, M. Schumacher. Assessment and Comparison of Prognostic
       Classification Schemes for Survival Data. Statistics in Medicine 18, 1999.

    Examples
    --------
    >>> import lokl
    >>> from lokl.metrics import integrated_brier_score
    >>> y = lokl.survival_target([1, 0, 1, 1], [1, 2, 3, 4])
    >>> integrated_brier_score(y, y, [[0.5, 0.5]] * 4, [1, 2])
    0.25
    """
    y, times = read_target(survival_test), _times(times, survival_test)
    if len(times) < 2:
        raise ValueError(f"the integral needs two or more times, got {len(times)}")
    estimate = _estimates(estimate, y, times)
    censoring = censoring_survival(read_target(survival_train))
    is_case = y["event"][:, np.newaxis] & (y["time"][:, np.newaxis] <= times)
    is_control = y["time"][:, np.newaxis] > times
    # Later times than the last one do not matter.
    until = np.minimum(y["time"], times[-1])
    loss = estimate**2 * is_case * _inverse(_uncensored(censoring, until))[:, np.newaxis]
    loss = loss + (1.0 - estimate) ** 2 * is_control * _inverse(_uncensored(censoring, times))
    return float(trapezoid(loss.mean(axis=0), times) / (times[-1] - times[0]))


def _concordance(y: Array, scores: Array, weight: Array, tied_tol: float) -> Concordance:
    """Return the index of weighted events, from sorted suffixes."""
    # At tied times events come first: they are comparable to the censored samples among them.
    order = np.lexsort((~y["event"], y["time"]))
    y, scores, weight = y[order], scores[order], weight[order]
    events = np.flatnonzero(y["event"])
    keys = y["time"][events]
    first_later = np.searchsorted(y["time"], keys, side="right")
    n_events = np.searchsorted(keys, keys, side="right") - np.searchsorted(keys, keys)
    start = np.searchsorted(y["time"], keys) + n_events
    below = _count_later(scores, start, scores[events] - tied_tol, "left")
    reach = _count_later(scores, start, scores[events] + tied_tol, "right")
    comparable, tied = len(y) - start, reach - below
    total = float(weight[events] @ comparable)
    if not total > 0:
        raise ValueError(
            "no two samples are comparable: no event happens while another sample is still "
            f"observed ({len(events)} events among {len(y)} samples)"
        )
    index = float(weight[events] @ (below + 0.5 * tied)) / total
    discordant, tied_time = comparable - reach, first_later - start
    return Concordance(index, *(int(n.sum()) for n in (below, discordant, tied, tied_time)))


def concordance_values(y: Array, scores: Array) -> Array:
    """Return a value for each sample whose mean is the concordance index.

    The values vary with the pairs of a sample, so that their standard deviation over the square
    root of their number estimates the standard error of the index.

    Parameters
    ----------
    y : structured array of shape (n_samples,)
        From :func:`lokl.survival_target`.
    scores : array of shape (n_samples,)

    Returns
    -------
    values : array of shape (n_samples,)
        0.5 if no two samples are comparable.
    """
    won, comparable = np.zeros(len(y)), np.zeros(len(y))
    events = np.flatnonzero(y["event"])
    for start in range(0, len(events), _BLOCK):
        rows = events[start : start + _BLOCK]
        time = y["time"][rows, np.newaxis]
        later = (y["time"] > time) | ((y["time"] == time) & ~y["event"])
        difference = scores[rows, np.newaxis] - scores
        right = later * (0.5 + 0.5 * np.sign(difference))
        won += right.sum(axis=0)
        won[rows] += right.sum(axis=1)
        comparable += later.sum(axis=0)
        comparable[rows] += later.sum(axis=1)
    n_pairs = comparable.sum() / 2.0
    if n_pairs == 0:
        return np.full(len(y), 0.5)
    index = won.sum() / (2.0 * n_pairs)
    return np.asarray(index + (won - index * comparable) * len(y) / n_pairs)


def _count_later(values: Array, start: Array, threshold: Array, side: Any) -> Array:
    """Return the numbers of ``values[start:]`` below each threshold, with equal ones if "right"."""
    count = np.zeros(len(start), dtype=np.intp)
    later = np.empty(0)
    for high in range(len(values), 0, -_BLOCK):
        low = max(high - _BLOCK, 0)
        block = values[low:high]
        asked = np.flatnonzero((start >= low) & (start < high))
        limit = threshold[asked, np.newaxis]
        is_below = block < limit if side == "left" else block <= limit
        is_below &= np.arange(low, high) >= start[asked, np.newaxis]
        count[asked] = is_below.sum(axis=1) + np.searchsorted(later, limit[:, 0], side=side)
        later = np.sort(np.concatenate([later, block]), kind="stable")
    return count


def _event_weights(train: Array, test: Array) -> Array:
    """Return the inverse probability of not being censored before each event, else 0."""
    weight, is_event = np.zeros(len(test)), test["event"]
    remaining = _uncensored(censoring_survival(train), test["time"][is_event])
    if (remaining == 0).any():
        time = test["time"][is_event][remaining == 0][0]
        raise ValueError(
            f"the probability of not being censored is zero at time {time:g}, when a test sample "
            "has an event; limit the times, for example with tau"
        )
    weight[is_event] = 1.0 / remaining
    return weight


def _uncensored(censoring: StepFunction, time: Array) -> Array:
    """Return the probability of not being censored, 0 after the last time if that is known."""
    if censoring.y[-1] == 1.0:  # no training sample is censored
        return np.ones(len(time))
    last = censoring.x[-1]
    if censoring.y[-1] > 0 and (time > last).any():
        raise ValueError(
            f"the distribution of censoring is known up to time {last:g} of the training samples, "
            f"got time {time.max():g}; limit the times, for example with tau"
        )
    values = steps_at(censoring.x, censoring.y, time, censoring.before)
    return np.asarray(np.where(time > last, 0.0, values))


def _inverse(values: Array) -> Array:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def _scores(estimate: Any, y: Array) -> Array:
    scores = np.asarray(estimate, dtype=float)
    if scores.shape != y.shape:
        raise ValueError(
            f"estimate must have one score for each of the {len(y)} samples, got shape "
            f"{scores.shape}"
        )
    return _finite(scores)


def _estimates(estimate: Any, y: Array, times: Array) -> Array:
    """Return one estimate for each sample and time."""
    values = np.asarray(estimate, dtype=float)
    if values.ndim == 1:
        values = np.repeat(values[:, np.newaxis], len(times), axis=1)
    if values.shape != (len(y), len(times)):
        raise ValueError(
            f"estimate must have the shape {(len(y), len(times))} of samples and times, got "
            f"{np.shape(estimate)}"
        )
    return _finite(values)


def _finite(values: Array) -> Array:
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise ValueError(f"estimate must be finite, got {values[row]} for sample {row}")
    return values


def _times(times: Any, survival_test: Any) -> Array:
    """Return increasing times within the follow-up."""
    times = np.atleast_1d(np.asarray(times, dtype=float))
    observed = read_target(survival_test)["time"]
    first, last = observed.min(), observed.max()
    is_increasing = times.ndim == 1 and len(times) > 0 and bool((np.diff(times) > 0).all())
    if not is_increasing or not (times[0] >= first and times[-1] < last):
        raise ValueError(
            f"times must increase within the follow-up of the test samples, from {first:g} to "
            f"below {last:g}, got {times}"
        )
    return times
