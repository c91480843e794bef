"""Scores of held-out predictions: scikit-learn as reference, weights, standard errors, limits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, spearmanr
from sklearn import metrics

from lokl import metrics as survival_metrics
from lokl import survival_target
from lokl.study.scores import (
    CLASSIFICATION_SCORES,
    POSITIVE_SCORES,
    REGRESSION_SCORES,
    SURVIVAL_SCORES,
    HeldOut,
    estimate,
    jackknife_parts,
    score_named,
)
from lokl.tables import TableError


def classified(rng, n=40, n_classes=3, n_folds=1, positive=None):
    truth = np.concatenate([np.arange(n_classes), rng.randint(n_classes, size=n - n_classes)])
    # Few values, so that there are ties.
    logits = rng.randint(-2, 3, size=(n, n_classes)) + 1.5 * (truth[:, None] == range(n_classes))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    names = [f"class {k}" for k in range(n_classes)]
    fold = np.arange(n) % n_folds
    return HeldOut(truth, logits.argmax(axis=1), probabilities, fold, names, positive)


def regressed(rng, n=40, n_folds=1):
    truth = rng.normal(size=n)
    return HeldOut(truth, truth + rng.normal(size=n), None, np.arange(n) % n_folds, [])


def censored(rng, n=40, n_folds=1):
    """Times with ties, risks with ties, and curves that fall; the last sample is censored."""
    time = np.ceil(10 * rng.exponential(size=n))
    event = rng.rand(n) < 0.6
    last, first = np.argmax(time), np.argmin(time)
    event[last], event[first], time[first] = False, True, 0.5
    time[last] += 1
    risk = np.round(rng.normal(size=n) - 0.1 * time, 1)
    times = np.linspace(2.0, time.max() - 1.5, 6)
    curves = np.exp(-np.exp(risk / 2)[:, None] * times / 10)
    y = survival_target(event, time)
    return HeldOut(y, risk, curves, np.arange(n) % n_folds, [], None, times)


def named(name):
    scores = (*CLASSIFICATION_SCORES, *REGRESSION_SCORES, *SURVIVAL_SCORES, *POSITIVE_SCORES)
    return next(score for score in scores if score.name == name)


@given(seed=st.integers(0, 2**31 - 1), n_classes=st.integers(2, 4))
def test_scores_of_classes_are_those_of_scikit_learn(seed, n_classes):
    h = classified(np.random.RandomState(seed), n_classes=n_classes)
    y, predicted, p = h.truth, h.predicted, h.probabilities
    is_class = np.eye(n_classes)[y]
    column = p[:, 1] if n_classes == 2 else p
    precision = metrics.average_precision_score(is_class, p, average=None)
    brier = ((p - is_class) ** 2).sum(axis=1).mean() / (2 if n_classes == 2 else 1)
    expected = {
        "accuracy": metrics.accuracy_score(y, predicted),
        "balanced accuracy": metrics.balanced_accuracy_score(y, predicted),
        "AUROC": metrics.roc_auc_score(y, column, multi_class="ovr"),
        "average precision": precision[1] if n_classes == 2 else precision.mean(),
        "log loss": metrics.log_loss(y, p),
        "Brier score": brier,
        "F1": metrics.f1_score(y, predicted, average="macro"),
        "MCC": metrics.matthews_corrcoef(y, predicted),
    }
    assert {score.name: score(h) for score in CLASSIFICATION_SCORES} == pytest.approx(expected)


@given(seed=st.integers(0, 2**31 - 1))
def test_scores_of_values_are_those_of_scikit_learn(seed):
    h = regressed(np.random.RandomState(seed))
    expected = {
        "R squared": metrics.r2_score(h.truth, h.predicted),
        "mean absolute error": metrics.mean_absolute_error(h.truth, h.predicted),
        "root mean squared error": metrics.root_mean_squared_error(h.truth, h.predicted)
        if hasattr(metrics, "root_mean_squared_error")
        else metrics.mean_squared_error(h.truth, h.predicted) ** 0.5,
        "Spearman correlation": spearmanr(h.truth, h.predicted).statistic,
    }
    assert {score.name: score(h) for score in REGRESSION_SCORES} == pytest.approx(expected)


@given(seed=st.integers(0, 2**31 - 1))
def test_scores_of_a_positive_class(seed):
    h = classified(np.random.RandomState(seed), n=200, n_classes=2, positive=0)
    y, predicted = h.truth == 0, h.predicted == 0
    assert named("sensitivity")(h) == pytest.approx(metrics.recall_score(y, predicted))
    assert named("specificity")(h) == pytest.approx(metrics.recall_score(~y, ~predicted))
    assert named("precision")(h) == pytest.approx(metrics.precision_score(y, predicted))
    assert named("F1")(h) == pytest.approx(metrics.f1_score(y, predicted))
    assert named("AUROC")(h) == pytest.approx(metrics.roc_auc_score(y, h.probabilities[:, 0]))


@given(seed=st.integers(0, 2**31 - 1))
def test_scores_of_censored_times_are_those_of_the_metrics(seed):
    """With one fold, and censoring estimated from the same samples."""
    h = censored(np.random.RandomState(seed))
    y, risk, times = h.truth, h.predicted, h.times
    expected = {
        "concordance": survival_metrics.concordance_index(y["event"], y["time"], risk).cindex,
        "Uno's concordance": survival_metrics.concordance_index_ipcw(y, y, risk).cindex,
        "integrated Brier score": survival_metrics.integrated_brier_score(
            y, y, h.probabilities, times
        ),
        "time-dependent AUC": survival_metrics.cumulative_dynamic_auc(y, y, risk, times)[1],
    }
    assert {score.name: score(h) for score in SURVIVAL_SCORES} == pytest.approx(expected)


def test_only_samples_of_one_fold_are_compared():
    """Risks of another fold may be in another unit."""
    h = censored(np.random.RandomState(0), n_folds=2)
    shifted = replace(h, predicted=h.predicted + 100.0 * h.fold)
    for name in ("concordance", "Uno's concordance", "time-dependent AUC"):
        assert named(name)(shifted) == pytest.approx(named(name)(h))


def test_calibration_of_truth_that_is_drawn_from_the_probabilities():
    rng = np.random.RandomState(0)
    odds = rng.normal(size=20_000)
    p = 1 / (1 + np.exp(-odds))
    y = (rng.rand(len(p)) < p).astype(int)

    def held_out(q):
        return HeldOut(y, (q > 0.5).astype(int), np.column_stack([1 - q, q]), 0 * y, ["a", "b"], 1)

    slope, intercept = named("calibration slope"), named("calibration intercept")
    assert slope(held_out(p)) == pytest.approx(1, abs=0.06)
    assert intercept(held_out(p)) == pytest.approx(0, abs=0.06)
    # Twice too sure, and one unit of log-odds too low.
    assert slope(held_out(1 / (1 + np.exp(-2 * odds)))) == pytest.approx(0.5, abs=0.05)
    assert intercept(held_out(1 / (1 + np.exp(1 - odds)))) == pytest.approx(1, abs=0.06)


@given(seed=st.integers(0, 2**31 - 1), n_folds=st.integers(1, 3))
def test_a_weight_of_two_is_a_sample_twice(seed, n_folds):
    rng = np.random.RandomState(seed)
    for h, scores in (
        (classified(rng, n_folds=n_folds, positive=1), (*CLASSIFICATION_SCORES, *POSITIVE_SCORES)),
        (regressed(rng, n_folds=n_folds), REGRESSION_SCORES),
        # Censoring is estimated once, so that only this score is a function of the weights alone.
        (censored(rng, n_folds=n_folds), [named("concordance")]),
    ):
        weight = rng.randint(3, size=len(h.truth)).astype(float)
        repeated = h.take(np.repeat(np.arange(len(weight)), weight.astype(int)))
        for score in scores:
            if score.name in ("AUROC", "average precision", "Spearman correlation"):
                # Folds are weighted by all of their samples, and ranks are those of all samples.
                continue
            got = score.compute(h, weight[None])[0]
            assert got == pytest.approx(score(repeated), nan_ok=True, rel=1e-6, abs=1e-8)


@given(seed=st.integers(0, 2**31 - 1), n_folds=st.integers(1, 4))
def test_intervals_contain_the_score_and_end_inside_its_limits(seed, n_folds):
    rng = np.random.RandomState(seed)
    for h, scores in (
        (classified(rng, n_folds=n_folds), CLASSIFICATION_SCORES),
        (regressed(rng, n_folds=n_folds), REGRESSION_SCORES),
        (censored(rng, n_folds=n_folds), SURVIVAL_SCORES),
    ):
        rows = np.arange(len(h.truth))
        for score in scores:
            found = estimate(score, [h], [rows])
            value, low, high = score.interval(found)
            assert value == pytest.approx(score(h))
            assert score.low <= low <= value <= high <= score.high, score.name


def test_the_interval_of_an_accuracy_is_that_of_wilson():
    rng = np.random.RandomState(0)
    accuracy = named("accuracy")
    for n_right in (0, 17, 60):
        truth = np.zeros(60, dtype=int)
        h = HeldOut(truth, (np.arange(60) >= n_right).astype(int), None, truth, ["a", "b"])
        found = estimate(accuracy, [h], [rng.permutation(60)])
        ends = binomtest(n_right, 60).proportion_ci(method="wilson")
        _, low, high = accuracy.interval(found)
        assert (low, high) == pytest.approx((ends.low, ends.high), abs=0.002)


def test_copies_of_samples_do_not_narrow_the_interval_of_groups():
    rng = np.random.RandomState(0)
    h = classified(rng, n=50)
    four = h.take(np.repeat(np.arange(50), 4))
    rows, groups = np.arange(200), np.repeat(np.arange(50), 4)
    accuracy = named("accuracy")
    alone = estimate(accuracy, [h], [np.arange(50)])
    grouped = estimate(accuracy, [four], [rows], groups)
    assert grouped.error == pytest.approx(alone.error)
    assert estimate(accuracy, [four], [rows]).error < 0.6 * alone.error


def test_equal_predictions_do_not_differ():
    h = classified(np.random.RandomState(0), n_folds=3)
    rows = np.arange(len(h.truth))
    for score in CLASSIFICATION_SCORES:
        first, second = (estimate(score, [h], [rows]) for _ in range(2))
        assert (first - second).difference() == (0.0, 0.0, 0.0)


@given(n=st.integers(2, 3000), n_groups=st.integers(2, 800), most=st.integers(2, 600))
def test_parts_of_the_jackknife(n, n_groups, most):
    groups = np.arange(n) % n_groups
    parts = jackknife_parts(n, groups, most)
    assert sorted(set(parts)) == list(range(min(n, n_groups, most)))
    for part in range(0, parts.max() + 1, 50):
        assert not set(groups[parts == part]) & set(groups[parts != part])


@pytest.mark.parametrize(
    ("name", "reference"),
    [("f1_weighted", None), ("neg_log_loss", "log loss"), ("top_k_accuracy", None)],
)
def test_scorers_of_scikit_learn(name, reference):
    h = classified(np.random.RandomState(0))
    score = score_named(name, "classification")
    assert np.isfinite(score(h))
    if reference is not None:
        assert -score(h) == pytest.approx(named(reference)(h))
    found = estimate(score, [h], [np.arange(len(h.truth))])
    assert found.error > 0


def test_names_of_scores():
    assert score_named(None, "classification").name == "accuracy"
    assert score_named(None, "regression").name == "R squared"
    assert score_named("roc_auc", "classification").name == "AUROC"
    assert score_named("rmse", "regression").name == "root mean squared error"
    assert score_named("Balanced-Accuracy", "classification").name == "balanced accuracy"
    assert np.isfinite(score_named("neg_median_absolute_error", "regression")(regressed(np.random)))
    for name, task, word in (
        ("balanced accurac", "classification", "did you mean balanced accuracy"),
        ("R squared", "classification", "not a score of classification"),
        ("AUROC", "regression", "not a score of regression"),
        ("accuracy", "survival", "not a score of survival"),
    ):
        with pytest.raises(TableError, match=word):
            score_named(name, task)
