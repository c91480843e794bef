"""Measures of censored predictions against sums over all pairs, and against scikit-survival."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lokl
from lokl.metrics import (
    concordance_index,
    concordance_index_ipcw,
    cumulative_dynamic_auc,
    integrated_brier_score,
)


@st.composite
def outcomes(draw, ties=None):
    """Targets of training and test samples, and risk scores, with ties in both or in neither."""
    rng = np.random.RandomState(draw(st.integers(0, 2**31 - 1)))
    n, n_test = draw(st.integers(20, 60)), draw(st.integers(10, 40))
    ties = draw(st.booleans()) if ties is None else ties
    time = rng.exponential(size=n + n_test) * 10 + 0.1
    score = rng.normal(size=n_test) - 0.3 * np.log(time[n:])
    if ties:
        time, score = np.ceil(time), np.round(score, 1)
    event = rng.rand(n + n_test) < 0.6
    # The distribution of censoring is known up to the largest time, and a comparable pair exists.
    last = np.argmax(time)
    time[[0, last]], event[0] = time[[last, 0]], False
    event[n + np.argmin(time[n:])] = True
    y = lokl.survival_target(event, time)
    return y[:n], y[n:], score


def censoring_survival_at(y, t):
    """Product over censored times up to t; events at the same time are no longer at risk."""
    value = 1.0
    for time in np.unique(y["time"][y["time"] <= t]):
        events = (y["event"] & (y["time"] == time)).sum()
        censored = (~y["event"] & (y["time"] == time)).sum()
        at_risk = (y["time"] >= time).sum() - events
        value *= 1.0 - censored / at_risk if at_risk else 1.0
    return value


def pairs(y, score, weight, tol=1e-8):
    concordant = discordant = tied = tied_time = 0
    won = total = 0.0
    for i in np.flatnonzero(y["event"]):
        for j in range(len(y)):
            later = y["time"][j] > y["time"][i]
            same = y["time"][j] == y["time"][i] and not y["event"][j]
            if not (later or same):
                continue
            tied_time += same
            total += weight[i]
            if abs(score[i] - score[j]) <= tol:
                tied += 1
                won += 0.5 * weight[i]
            elif score[j] < score[i]:
                concordant += 1
                won += weight[i]
            else:
                discordant += 1
    return won / total, concordant, discordant, tied, tied_time


@given(outcomes())
@settings(max_examples=30, deadline=None)
def test_concordance_counts_all_pairs(case):
    _, y, score = case
    found = concordance_index(y["event"], y["time"], score)
    assert found == pytest.approx(pairs(y, score, np.ones(len(y))))


@given(outcomes(), st.booleans())
@settings(max_examples=30, deadline=None)
def test_uno_weights_pairs_by_the_square_of_the_censoring(case, cut):
    train, y, score = case
    tau = float(np.quantile(y["time"], 0.8)) + 0.01 if cut else None
    weight = [
        censoring_survival_at(train, t) ** -2 if e and (tau is None or t < tau) else 0.0
        for e, t in zip(y["event"], y["time"], strict=True)
    ]
    found = concordance_index_ipcw(train, y, score, tau)
    assert found == pytest.approx(pairs(y, score, weight))


def middle_times(y):
    low, high = y["time"].min(), y["time"].max()
    return np.linspace(low + 0.1 * (high - low), high - 0.1 * (high - low), 5)


@given(outcomes())
@settings(max_examples=30, deadline=None)
def test_auc_counts_cases_against_controls(case):
    train, y, score = case
    times = middle_times(y)
    auc, mean = cumulative_dynamic_auc(train, y, score, times)
    for t, value in zip(times, auc, strict=True):
        won = total = 0.0
        for i in np.flatnonzero(y["event"] & (y["time"] <= t)):
            weight = 1.0 / censoring_survival_at(train, y["time"][i])
            for j in np.flatnonzero(y["time"] > t):
                total += weight
                difference = score[i] - score[j]
                won += weight * (0.5 if abs(difference) <= 1e-8 else float(difference > 0))
        assert value == pytest.approx(won / total)
    assert auc.min() - 1e-12 <= mean <= auc.max() + 1e-12


@given(outcomes())
@settings(max_examples=30, deadline=None)
def test_brier_score_weights_squared_errors(case):
    train, y, score = case
    times = middle_times(y)
    curves = np.exp(-np.exp(score[:, None]) * times / 10)
    score_at = []
    for i, t in enumerate(times):
        loss = 0.0
        for j in range(len(y)):
            if y["event"][j] and y["time"][j] <= t:
                loss += curves[j, i] ** 2 / censoring_survival_at(train, y["time"][j])
            elif y["time"][j] > t:
                loss += (1 - curves[j, i]) ** 2 / censoring_survival_at(train, t)
        score_at.append(loss / len(y))
    area = sum((a + b) / 2 for a, b in pairwise(score_at)) / 4
    assert integrated_brier_score(train, y, curves, times) == pytest.approx(area)


@given(outcomes())
@settings(max_examples=30, deadline=None)
def test_results_equal_those_of_scikit_survival(case):
    theirs = pytest.importorskip("sksurv.metrics")
    train, y, score = case
    times = middle_times(y)
    curves = np.exp(-np.exp(score[:, None]) * times / 10)
    ours = concordance_index(y["event"], y["time"], score)
    assert ours == pytest.approx(theirs.concordance_index_censored(y["event"], y["time"], score))
    expected = theirs.concordance_index_ipcw(train, y, score)
    assert concordance_index_ipcw(train, y, score) == pytest.approx(expected)
    auc, mean = cumulative_dynamic_auc(train, y, score, times)
    expected, expected_mean = theirs.cumulative_dynamic_auc(train, y, score, times)
    np.testing.assert_allclose(auc, expected)
    assert mean == pytest.approx(expected_mean)
    expected = theirs.integrated_brier_score(train, y, curves, times)
    assert integrated_brier_score(train, y, curves, times) == pytest.approx(expected)


def test_many_samples_are_counted_in_blocks():
    rng = np.random.RandomState(0)
    y = lokl.survival_target(rng.rand(1500) < 0.5, np.ceil(rng.exponential(size=1500) * 200))
    score = np.round(rng.normal(size=1500), 1)
    comparable = y["event"][:, None] & (
        (y["time"][:, None] < y["time"]) | ((y["time"][:, None] == y["time"]) & ~y["event"])
    )
    found = concordance_index(y["event"], y["time"], score)
    assert found.concordant == (comparable & (score[:, None] > score)).sum()
    assert found.discordant == (comparable & (score[:, None] < score)).sum()


def test_perfect_reversed_and_constant_scores():
    time = np.arange(1.0, 11.0)
    event = np.ones(10, dtype=bool)
    assert concordance_index(event, time, -time).cindex == 1.0
    assert concordance_index(event, time, time).cindex == 0.0
    assert concordance_index(event, time, np.zeros(10)).cindex == 0.5


@pytest.mark.parametrize(
    ("event", "time", "message"),
    [
        ([1, 0, 2], [1, 2, 3], "2 in row 2"),
        ([1, 0, None], [1, 2, 3], "None in row 2"),
        ([1, 0, 1], [1, -2, 3], "-2.0 in row 1"),
        ([1, 0, 1], [1, np.nan, 3], "nan in row 1"),
        ([1, 0, 1], [1, "x", 3], "x"),
        ([1, 0], [1, 2, 3], "2 samples"),
        ([[1, 0]], [1, 2], r"\(1, 2\)"),
    ],
)
def test_bad_targets_name_value_and_row(event, time, message):
    with pytest.raises(ValueError, match=message):
        lokl.survival_target(event, time)


def test_targets_of_several_forms_are_the_same():
    pandas = pytest.importorskip("pandas")
    y = lokl.survival_target([True, False, True], [3, 1, 2])
    score = [1.0, 2.0, 3.0]
    expected = concordance_index_ipcw(y, y, score)
    columns = np.column_stack([y["event"], y["time"]])
    frame = pandas.DataFrame({"died": y["event"], "days": y["time"]})
    renamed = np.array(y.tolist(), dtype=[("status", bool), ("days", float)])
    for form in (columns, columns.tolist(), frame, renamed):
        assert concordance_index_ipcw(form, form, score) == expected
    for form in (columns[:, :1], columns[:, ::-1], y["time"], np.zeros(3, [("a", float)])):
        with pytest.raises(ValueError, match="event"):
            concordance_index_ipcw(form, form, score)


def test_undefined_measures_name_the_reason():
    y = lokl.survival_target([True, False, True, True], [1, 2, 3, 4])
    with pytest.raises(ValueError, match="0 events"):
        concordance_index([False] * 3, [1, 2, 3], [1, 2, 3])
    with pytest.raises(ValueError, match=r"\(3,\)"):
        concordance_index(y["event"], y["time"], [1, 2, 3])
    with pytest.raises(ValueError, match="sample 1"):
        concordance_index(y["event"], y["time"], [1, np.nan, 2, 3])
    for times in ([1, 4], [3, 2], [0.5], []):
        with pytest.raises(ValueError, match="follow-up"):
            cumulative_dynamic_auc(y, y, [1, 2, 3, 4], times)
    with pytest.raises(ValueError, match="two or more"):
        integrated_brier_score(y, y, np.ones((4, 1)), [2])
    known = lokl.survival_target([True, False, True], [1, 2, 3])
    with pytest.raises(ValueError, match="up to time 3"):
        concordance_index_ipcw(known, y, [1, 2, 3, 4])
    with pytest.raises(ValueError, match="zero at time 3"):
        concordance_index_ipcw(lokl.survival_target([True, False], [1, 2]), y, [1, 2, 3, 4])
