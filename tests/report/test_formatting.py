"""Numbers, intervals, reliability and colours."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import explanation
from scipy.stats import binomtest
from study_cases import like_a_study

import lokl.report
from lokl.explain.reliability import calibration_bins, mean_interval, reliability
from lokl.report import Interval, LeaderboardEntry, Report
from lokl.report.figures import Axis, ramp
from lokl.report.formatting import (
    Formatter,
    Scale,
    decimals,
    fixed,
    format_seconds,
    short,
    significant,
)
from lokl.report.sections import Column, head_sentences, rank_by_interest, sets_sentence, verdict
from lokl.search import expected_calibration_error


@given(n=st.integers(1, 500), part=st.floats(0, 1))
def test_intervals_of_shares_are_wilsons(n, part):
    right = round(part * n)
    found = mean_interval(np.arange(n) < right)
    expected = binomtest(right, n).proportion_ci(method="wilson")
    assert found.low == pytest.approx(expected.low, abs=1e-5)
    assert found.high == pytest.approx(expected.high, abs=1e-5)
    assert found.low <= found.mean <= found.high


def test_intervals_of_means():
    values = [1.0, 2.0, 4.0]
    found = mean_interval(values)
    reach = 1.959964 * np.std(values, ddof=1) / np.sqrt(3)
    assert (found.low, found.high) == pytest.approx((7 / 3 - reach, 7 / 3 + reach))
    assert mean_interval([2.0]).mean == 2.0
    assert np.isnan(mean_interval([2.0]).reach)


@pytest.mark.parametrize(
    ("reach", "places"),
    [(29.0, 0), (4.9, 0), (2.9, 1), (0.84, 1), (0.084, 2), (0.012, 3), (0.0, 2)],
)
def test_no_more_digits_than_the_interval_deserves(reach, places):
    assert decimals(reach) == places


def test_words_of_numbers():
    assert fixed(-0.04, 1) == "0.0"
    assert fixed(-1.25, 1) == "−1.3"
    assert fixed(0.625, 2) == "0.63"
    assert fixed(1e300, 1).startswith("1000000000")
    assert significant(1234.5) == "1235"
    assert significant(0.000123) == "0.00012"
    assert [format_seconds(s) for s in (0.001, 0.05, 0.42, 7.35, 61.2, 600)] == [
        "< 0.01",
        "0.05",
        "0.42",
        "7.3",
        "61",
        "10 min",
    ]
    assert Scale().with_limits(Interval(0.953, 0.921, 0.98)).startswith("95.3 % (92.1 to 98.0")
    assert Scale().with_limits(Interval(0.953)) == "95.3 %"
    narrow = Scale(False).with_limits(Interval(0.8731, 0.81, 0.92))
    assert narrow.startswith("0.87 (0.81 to 0.92")
    assert Scale(False).mean(Interval(float("nan"))) == ""
    assert short("a class of a kind 12", 12) == "a class…d 12"


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.booleans())
def test_axes_hold_their_values_and_have_ticks(values, whole):
    axis = Axis.over(values, whole=whole)
    assert axis.low <= min(values)
    assert axis.high >= max(values)
    assert 1 <= len(axis.labels) <= 7
    assert all(0 <= axis.share(value) <= 1 for value in values)


def test_reliability_counts():
    found = explanation(200)
    judged = reliability(found)
    assert np.sum(judged.confusion) == 200
    right = np.trace(judged.confusion) / 200
    assert judged.score.mean == pytest.approx(right)
    assert judged.risk[0][0] == 1.0
    assert judged.risk[0][1].mean == pytest.approx(1 - right)
    assert judged.curve[-1] == (1.0, pytest.approx(1 - right))
    assert sum(n for _, n, _ in judged.patterns) == 200
    assert sum(b.n_samples for b in judged.calibration) == 200


@given(seed=st.integers(0, 2**16), n=st.integers(1, 60))
def test_the_calibration_error_is_that_of_the_library(seed, n):
    found = explanation(n, seed=seed)
    judged = reliability(found)
    expected = expected_calibration_error(found.truth_codes, found.probabilities, classes=[0, 1, 2])
    assert judged.error == pytest.approx(expected)


@given(
    stated=st.lists(st.floats(0, 1), min_size=1, max_size=200),
    seed=st.integers(0, 2**16),
)
def test_bins_of_probabilities_have_twenty_samples(stated, seed):
    stated = np.array(stated)
    right = np.random.RandomState(seed).uniform(size=len(stated)) < stated
    bins = calibration_bins(stated, right)
    assert sum(own.n_samples for own in bins) == len(stated)
    assert len(bins) == 1 or min(own.n_samples for own in bins) >= 20
    assert bins[-1].high == 1.0
    for below, above in pairwise(bins):
        assert below.high == above.low
    for own in bins:
        rows = (stated >= own.low) & ((stated < own.high) | (own.high == 1.0))
        assert own.n_samples == rows.sum()
        assert own.stated == pytest.approx(stated[rows].mean())
        assert own.right == mean_interval(right[rows])


@given(
    mean=st.floats(0, 1), reach=st.floats(0, 1), whole=st.booleans(), is_difference=st.booleans()
)
def test_percentages_are_short_and_stay_in_their_bounds(mean, reach, whole, is_difference):
    scale = Scale.of_score("balanced accuracy", n_samples=100 if whole else 1000)
    mean = mean - 0.5 if is_difference else mean
    scale = scale.differences if is_difference else scale
    value = Interval(mean, mean - reach, mean + reach)
    shown = [scale.mean(value), *filter(None, scale.limits(value).split(" to "))]
    assert "−0" not in [text.rstrip(".0") or "0" for text in shown]
    assert all(("." in text) != whole for text in shown)
    numbers = [float(text.replace("−", "-")) for text in shown]
    # Limits that look like the mean are left out: never "2 (2 to 2)".
    assert len(set(numbers)) > 1 or len(numbers) == 1
    if not is_difference:
        assert min(numbers) >= 0
        assert max(numbers) <= 100


def test_scales_of_scores():
    assert Scale.of_score("log loss").is_loss
    assert not Scale.of_score("log loss").percent
    assert Scale.of_score("sensitivity").percent
    assert Scale.of_score("AUROC").bounded(Interval(0.99, 0.95, 1.03)).high == 1.0
    assert Scale.of_score("R squared").bounded(Interval(0.1, -0.3, 1.2)) == (0.1, -0.3, 1.0)
    # Twenty digits do not appear for an interval without width.
    assert Scale.of_score("log loss").with_limits(Interval(0.3, 0.3, 0.3)) == "0.300"


def test_columns_leave_out_what_is_far_worse():
    scores = [Interval(m, m - 0.02, m + 0.02) for m in (0.95, 0.94, 0.93, 0.2)]
    column = Column(scores, Scale(), near_best=True)
    assert 0.85 < column.axis.low <= 0.91
    losses = [Interval(m, m - 0.02, m + 0.02) for m in (0.1, 0.12, 0.13, 2.0)]
    column = Column(losses, Scale.of_score("log loss"), near_best=True)
    assert column.axis.low <= 0.08
    assert column.axis.high < 0.5


def test_the_surest_answers_are_used_first():
    found = like_a_study(400).explanation
    judged = reliability(found)
    sure = found.probabilities.max(axis=1)
    kept = np.argsort(-sure, kind="stable")[:200]
    assert dict(judged.risk)[0.5].mean == pytest.approx(found.wrong[kept].mean())


def test_samples_without_truth_are_not_judged():
    found = explanation(50)
    truth = found.truth.copy()
    truth[:20] = None
    judged = reliability(replace(found, truth=truth))
    assert judged.n_samples == np.sum(judged.confusion) == 30
    assert reliability(replace(found, truth=None)) is None


def test_models_without_probabilities_are_ranked_by_their_decisions():
    found = replace(explanation(50), probabilities=None)
    judged = reliability(found)
    assert judged.calibration == []
    assert judged.error is None
    margin = found.base_values + found.contributions.sum(axis=1)
    kept = np.argsort(-margin, kind="stable")[:25]
    assert dict(judged.risk)[0.5].mean == pytest.approx(
        (found.truth != found.predictions)[kept].mean()
    )


def test_numbers_are_judged_by_their_errors():
    found = explanation(50)
    values = replace(
        found,
        classes=None,
        truth=np.arange(50.0),
        predictions=np.arange(50.0) + 2,
        probabilities=None,
    )
    judged = reliability(values)
    assert judged.score.mean == pytest.approx(2)
    assert judged.confusion.size == 0
    assert not values.wrong.any()


def sentences(**more):
    content = Report("t", "", "accuracy", ["a", "b"], [], **more)
    return verdict(content, Formatter.of(content), None)


def test_the_verdict_has_two_sentences_an_interval_and_a_baseline():
    best = LeaderboardEntry("vote", Interval(0.953, 0.921, 0.98), 1.0, chosen=True)
    forest = LeaderboardEntry("forest", Interval(0.92, 0.88, 0.95), 1.0, baseline=True)
    coin = LeaderboardEntry("coin", Interval(0.5, 0.4, 0.6), 1.0, baseline=True)
    found = sentences(leaderboard=[best, forest, coin])
    for part in ("vote", "95.3 %", "92.1 to 98.0", "forest", "92.0 %"):
        assert part in found
    assert "coin" not in found
    for behind, words in [
        (Interval(0.03, 0.01, 0.05), "clearly less (difference 3.0, interval 1.0 to 5.0)"),
        (Interval(0.03, -0.01, 0.07), "not clearly less (difference"),
        (Interval(-0.03, -0.05, -0.01), "clearly more (difference"),
    ]:
        assert words in sentences(leaderboard=[best, replace(forest, behind=behind)])
    assert "not compared" in sentences(leaderboard=[best])


def test_attention_goes_to_the_sure_and_wrong_first():
    found = explanation(40)
    calm = replace(found, disagreement=np.zeros(40))
    order, much = rank_by_interest(calm)
    assert calm.wrong[order[0]]
    assert (np.diff(much) <= 0).all()
    sure = calm.probabilities.max(axis=1)
    assert sure[order[0]] == sure[calm.wrong].max()


def head(report):
    parts = head_sentences(report, Formatter.of(report), reliability(report.explanation))
    return ["".join(text for text, _ in sentence) for sentence in parts]


def test_the_head_has_three_sentences():
    report = like_a_study()
    own = report.explanation
    first, views, samples = head(report)
    assert "accuracy 95" in first
    assert "best baseline (logistic)" in first
    assert max(report.views, key=lambda view: view.loss.mean).name in views
    counts = own.decisive.sum(axis=0)
    assert f"changes the prediction of {own.decisive.any(axis=1).sum()} samples" in views
    assert all(str(count) in views for count in counts[counts > 0])
    for status in ("contradict", "hinges", "unsure"):
        n = int((own.status == status).sum())
        assert not n or re.search(rf"\b{n} (other )?sample", samples)
    order = np.argsort(-own.disagreement, kind="stable")
    names = [own.ids[k] for k in order[own.status[order] == "contradict"][:2]]
    assert ", ".join(names) in samples
    assert f"{own.wrong.sum()} prediction" in samples


def test_clear_losses_and_scores_that_are_lost_have_their_words():
    report = like_a_study()
    for loss, words in (
        (
            Interval(0.05, 0.01, 0.09),
            "mrna matters most: without it, accuracy is 5 points (1 to 9)",
        ),
        (Interval(0.05, -0.01, 0.1), "No view is clearly needed: without mrna, accuracy is 5"),
        (Interval(-0.05, -0.1, -0.01), "No view is needed alone"),
    ):
        views = [
            replace(view, loss=loss if k == 0 else None) for k, view in enumerate(report.views)
        ]
        found = head(replace(report, views=views))[1]
        assert found.startswith(words)
    log = replace(report, score_name="log loss", percent=False, views=[
        replace(report.views[0], loss=Interval(0.2, 0.1, 0.3)), *report.views[1:]
    ])  # fmt: skip
    assert "log loss is 0.20 (0.10 to 0.30) higher" in head(log)[1]


def test_prediction_sets_are_counted():
    own = like_a_study().explanation
    sets = own.probabilities > 0.05
    with_sets = replace(own, sets=sets, coverage=0.9)
    inside = sets[np.arange(len(own)), own.truth_codes].mean()
    formatter = Formatter.of(like_a_study())
    found = sets_sentence(with_sets, formatter)
    assert found.startswith(f"90 % prediction sets contain the true class of {100 * inside:.0f} %")
    assert f"; {100 * (sets.sum(axis=1) == 1).mean():.0f} % of them" in found
    assert sets_sentence(own, formatter) == ""
    assert sets_sentence(replace(with_sets, truth=None), formatter) == ""


def test_samples_that_were_learned_from_do_not_count():
    report = replace(like_a_study(), leaderboard=[])
    own = report.explanation
    some = np.arange(len(own)) % 3 == 0
    found = replace(report, explanation=replace(own, learned=some))
    assert f"has learned from {some.sum()} of {len(own)} samples" in head(found)[0]
    judged = reliability(found.explanation)
    assert judged.n_samples == (own.known & ~some).sum()
    assert not found.explanation.wrong[some].any()
    every = replace(report, explanation=replace(own, learned=np.ones(len(own), dtype=bool)))
    assert "no accuracy is shown" in head(every)[0]
    page = lokl.report.render(every)
    assert "%" not in head(every)[0]
    assert 'id="confusion"' not in page
    assert " wrong" not in head(every)[2]


# Matrices of Machado, Oliveira and Fernandes (2009) for full protanopia, deuteranopia, tritanopia.
SIGHTS = {
    "usual": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def linear(colour):
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def oklab(rgb):
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    axes = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return np.cbrt(np.clip(rgb, 0, 1) @ cones.T) @ axes.T


def schemes():
    """Colours of the style sheet by name, of the light page and of the dark one."""
    text = (Path(lokl.report.__file__).parent / "templates/page.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", text, re.DOTALL)[:2]
    return [dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6});", part)) for part in (light, dark)]


@pytest.mark.parametrize("scheme", schemes(), ids=["light", "dark"])
def test_colours_of_views_survive_colour_blindness_and_printing(scheme):
    colours = np.array([linear(scheme[f"v{k}"]) for k in range(8)])
    apart = ~np.eye(8, dtype=bool)
    for matrix in SIGHTS.values():
        seen = oklab(colours @ np.array(matrix).T)
        distance = np.linalg.norm(seen[:, np.newaxis] - seen, axis=2)
        # Four times what an eye can just tell apart.
        assert distance[apart].min() > 0.08
    grey = np.cbrt(colours @ [0.2126, 0.7152, 0.0722])
    assert np.abs(grey[:, np.newaxis] - grey)[apart].min() > 0.035
    paper = linear(scheme["paper"])
    lights = np.append(colours, [paper], axis=0) @ [0.2126, 0.7152, 0.0722] + 0.05
    contrast = np.maximum(lights[:-1], lights[-1]) / np.minimum(lights[:-1], lights[-1])
    assert contrast.min() >= 3


@pytest.mark.parametrize("count", [1, 2, 10, 40])
def test_colours_of_classes_run_from_dark_to_light(count):
    grey = [linear(colour) @ [0.2126, 0.7152, 0.0722] for colour in ramp(count)]
    assert len(grey) == count
    assert (np.diff(grey) > 0).all()
