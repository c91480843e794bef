"""What a view is worth: the same folds for every set of views, and nothing leaks in."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from lokl import LMKLClassifier, UniformMKLClassifier, UniformMKLRegressor, UniformMKLSurvival
from lokl.datasets import make_views
from lokl.explain import view_value
from lokl.explain.results import corrected_interval, score_limits
from lokl.kernels import RBF, Linear, per_view
from lokl.search import KernelSearchCV

X, y, VIEWS, _ = make_views(90, random_state=0)
KERNELS = per_view(RBF(), VIEWS)
FOLDS = list(StratifiedKFold(3).split(X, y))


def only(*names):
    return {name: KERNELS[name] for name in names}


def test_every_set_of_views_is_scored_on_the_same_folds():
    value = view_value(UniformMKLClassifier(KERNELS, C=10), X, y, cv=FOLDS)
    for subset, scores in value.scores.items():
        kept = KERNELS if subset == "all views" else only(*subset.split(" + "))
        plain = cross_val_score(UniformMKLClassifier(kept, C=10), X, y, cv=FOLDS)
        np.testing.assert_allclose(scores, plain, err_msg=subset)
    assert len(value.scores) == 7
    assert value.views.rows == tuple(VIEWS)
    full, without = value.scores["all views"], value.scores["view 1 + view 3"]
    assert value.views.row("view 2")["loss"] == pytest.approx((full - without).mean())
    assert value.views.row("view 2")["alone"] == pytest.approx(value.scores["view 2"].mean())
    assert (value.views["samples"] == 1).all()


def test_a_gate_cannot_look_at_a_view_that_is_withheld():
    other = X.copy()
    other[:, VIEWS["view 3"]] = np.random.RandomState(1).normal(size=(len(X), 4)) + 9 * y[:, None]
    model = LMKLClassifier(KERNELS, C=10, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model)
    for one in (model, pipeline):
        a, b = (view_value(one, data, y, cv=FOLDS).scores for data in (X, other))
        for subset in ("view 1", "view 2", "view 1 + view 2"):
            np.testing.assert_array_equal(a[subset], b[subset])


def test_pipelines_and_data_frames_give_the_same_as_steps_by_hand():
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    named = {name: frame.columns[columns].tolist() for name, columns in VIEWS.items()}
    model = UniformMKLClassifier(per_view(RBF(), named), C=10)
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), model)
    value = view_value(pipeline, frame, y, cv=FOLDS)
    plain = make_pipeline(StandardScaler(), UniformMKLClassifier(only("view 2"), C=10))
    np.testing.assert_allclose(value.scores["view 2"], cross_val_score(plain, X, y, cv=FOLDS))
    bare = view_value(model, frame, y, cv=FOLDS)
    plain = UniformMKLClassifier(only("view 1", "view 2"), C=10)
    np.testing.assert_allclose(
        bare.scores["view 1 + view 2"], cross_val_score(plain, X, y, cv=FOLDS)
    )


@pytest.mark.slow
def test_numbers_are_predicted_and_scored_as_asked():
    target = X[:, 0] - X[:, 5]
    folds = list(KFold(3).split(X))
    model = UniformMKLRegressor(KERNELS, C=10)
    value = view_value(model, X, target, cv=folds, scoring="neg_mean_absolute_error")
    plain = cross_val_score(
        UniformMKLRegressor(only("view 2"), C=10),
        X,
        target,
        cv=folds,
        scoring="neg_mean_absolute_error",
    )
    # Both stop at the tolerance of the solver, on different ways.
    np.testing.assert_allclose(value.scores["view 2"], plain, rtol=1e-3)
    assert "neg_mean_absolute_error" in str(value)
    assert "R squared" in str(view_value(model, X, target, cv=folds))


def test_who_lacks_a_view_is_left_out_of_it():
    holes, y, views, _ = make_views(150, missing=0.3, random_state=1)
    splits = list(StratifiedKFold(3).split(holes, y))
    value = view_value(UniformMKLClassifier(per_view(RBF(), views), C=10), holes, y, cv=splits)
    has = ~np.isnan(holes[:, views["view 1"]]).any(axis=1)
    assert value.views.row("view 1")["samples"] == pytest.approx(has.mean())
    folds = [(a[has[a]], b[has[b]]) for a, b in splits]
    plain = UniformMKLClassifier({"view 1": KERNELS["view 1"]}, C=10)
    by_hand = [plain.fit(holes[a], y[a]).score(holes[b], y[b]) for a, b in folds]
    np.testing.assert_allclose(value.scores["view 1"], by_hand)
    full = UniformMKLClassifier(per_view(RBF(), views), C=10)
    of_all = [
        full.fit(holes[a], y[a]).score(holes[b[has[b]]], y[b[has[b]]])
        for a, b in StratifiedKFold(3).split(holes, y)
    ]
    loss = value.subsets.row("view 1")["loss"]
    assert loss == pytest.approx(np.mean(np.array(of_all) - by_hand))


def test_intervals_know_that_folds_share_training_samples():
    scores = np.array([0.7, 0.8, 0.6, 0.9])
    folds = [(np.arange(30), np.arange(30, 40))] * 4
    mean, low, high = corrected_interval(scores, folds)
    reach = stats.t.ppf(0.975, 3) * np.sqrt((1 / 4 + 10 / 30) * scores.var(ddof=1))
    assert (mean, low, high) == pytest.approx((0.75, 0.75 - reach, 0.75 + reach))


def test_several_kernels_are_one_view():
    kernels = {"near": RBF().on([0, 1]), "flat": Linear().on([1, 0]), "rest": RBF().on([2, 3])}
    value = view_value(UniformMKLClassifier(kernels), X, y, cv=3)
    assert value.views.rows == ("near, flat", "rest")
    named = {"first": [0, 1, 2], "other": [3, 2]}
    value = view_value(UniformMKLClassifier(kernels), X, y, cv=3, views=named)
    assert value.views.rows == ("first", "other")
    assert value.subsets.rows == ("first", "other", "all views")
    with pytest.raises(ValueError, match="'rest'"):
        view_value(UniformMKLClassifier(kernels), X, y, views={"first": [0, 1], "other": [3]})


def test_kernels_on_all_columns_are_valued_one_by_one():
    value = view_value(UniformMKLClassifier(["linear", "rbf"]), X, y, cv=FOLDS)
    assert value.views.rows == ("linear", "rbf")
    plain = cross_val_score(UniformMKLClassifier(["rbf"]), X, y, cv=FOLDS)
    np.testing.assert_allclose(value.scores["rbf"], plain)


def test_of_many_views_single_ones_and_all_but_one_are_tried():
    kernels = per_view(RBF(), {f"pair {k}": [2 * k, 2 * k + 1] for k in range(6)})
    value = view_value(UniformMKLClassifier(kernels), X, y, cv=2)
    assert len(value.subsets.rows) == 13
    assert "all but pair 3" in value.subsets.rows


@pytest.mark.slow
def test_groups_are_kept_together():
    groups = np.arange(len(y)) // 5
    model = UniformMKLRegressor(KERNELS)
    value = view_value(model, X, X[:, 0], cv=3, groups=groups)
    plain = cross_val_score(
        UniformMKLRegressor(only("view 1")), X, X[:, 0], cv=GroupKFold(3), groups=groups
    )
    np.testing.assert_allclose(value.scores["view 1"], plain, rtol=1e-2)


def test_the_page_fits_the_terminal_and_needs_no_other_library():
    named = {f"{view} of a very long and telling name": k for view, k in KERNELS.items()}
    value = view_value(UniformMKLClassifier(named), X, y, cv=2)
    assert max(map(len, str(value).splitlines())) <= 80
    assert repr(value) == str(value)
    assert "…" in str(value)


def test_without_pandas_numbers_are_there_and_a_frame_is_a_clear_error(monkeypatch):
    value = view_value(UniformMKLClassifier(KERNELS), X, y, cv=2)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert str(value)
    with pytest.raises(ImportError, match="pandas"):
        value.to_frame()


def test_tables_are_data_frames_on_demand():
    value = view_value(UniformMKLClassifier(KERNELS), X, y, cv=2)
    frame = value.to_frame()
    assert list(frame.index) == list(VIEWS)
    assert frame.index.name == "view"
    np.testing.assert_array_equal(frame["alone"], value.views["alone"])
    assert list(value.subsets.to_frame().columns) == list(value.subsets.columns)
    with pytest.raises(KeyError, match="no column 'price'; there are alone"):
        value.views["price"]
    with pytest.raises(KeyError, match="no view 'view 9'; there are view 1"):
        value.views.row("view 9")


def test_labels_may_be_words_and_rows_lists():
    words = pd.Series(np.where(y == 1, "ill", "well"), dtype=object)
    value = view_value(UniformMKLClassifier(KERNELS, C=10), X.tolist(), words, cv=FOLDS)
    plain = view_value(UniformMKLClassifier(KERNELS, C=10), X, y, cv=FOLDS)
    np.testing.assert_allclose(value.subsets["score"], plain.subsets["score"], atol=0.05)


def test_of_a_search_the_chosen_model_is_scored():
    search = KernelSearchCV(UniformMKLClassifier(KERNELS), {"C": [1.0]}, cv=2)
    whole = make_pipeline(StandardScaler(), search).fit(X, y)
    plain = make_pipeline(StandardScaler(), UniformMKLClassifier(KERNELS, C=1.0))
    found, expected = (view_value(model, X, y, cv=FOLDS) for model in (whole, plain))
    np.testing.assert_array_equal(found.subsets["score"], expected.subsets["score"])


def test_errors_name_what_was_given():
    with pytest.raises(ValueError, match="scoring"):
        view_value(UniformMKLClassifier(KERNELS), X, y, scoring=["accuracy"])
    with pytest.raises(ValueError, match=r"got SVC$"):
        view_value(SVC(), X, y)
    search = KernelSearchCV(UniformMKLClassifier(KERNELS), {"C": [1.0]}, cv=2)
    with pytest.raises(ValueError, match="got KernelSearchCV; fit it first"):
        view_value(search, X, y)
    with pytest.raises(ValueError, match="got one: 'rbf'"):
        view_value(UniformMKLClassifier("rbf"), X, y)
    with pytest.raises(ValueError, match="1 split"):
        view_value(UniformMKLClassifier(KERNELS), X, y, cv=FOLDS[:1])
    holes = X.copy()
    holes[y == 1, VIEWS["view 1"]] = np.nan
    with pytest.raises(ValueError, match=r"too few samples have 'view 1': split 0 .* of 1 class"):
        view_value(UniformMKLClassifier(KERNELS), holes, y, cv=3)


@pytest.mark.parametrize(
    ("scoring", "low", "high"),
    [
        (None, 0, 1),
        ("balanced_accuracy", 0, 1),
        ("roc_auc_ovr", 0, 1),
        ("matthews_corrcoef", -1, 1),
        ("neg_mean_squared_error", -np.inf, 0),
        ("r2", -np.inf, 1),
    ],
)
def test_intervals_stay_inside_the_range_of_the_score(scoring, low, high):
    limits = score_limits(SVC(), scoring)
    assert limits == (low, high)
    rng = np.random.RandomState(0)
    for spread in (0.0, 1e-3, 0.3):
        for centre in (low, high, high - 0.02):
            if not np.isfinite(centre):
                continue
            scores = np.clip(centre + spread * rng.normal(size=3), low, high)
            mean, *ends = corrected_interval(scores, FOLDS, limits)
            assert low <= ends[0] <= mean <= ends[1] <= high


def test_scores_of_views_are_inside_the_range_as_well():
    # Two folds make the intervals as wide as they can be.
    value = view_value(UniformMKLClassifier(KERNELS, C=10), X, y, cv=2)
    for table, name in ((value.views, "alone"), (value.subsets, "score")):
        assert (table[f"{name}_low"] >= 0).all()
        assert (table[f"{name}_high"] <= 1).all()
        assert (table[f"{name}_low"] < table[name]).all()
    assert score_limits(UniformMKLRegressor(), None) == (-np.inf, 1)
    assert score_limits(UniformMKLSurvival(), None) == (0, 1)
    assert score_limits(SVC(), lambda model, X, y: 7.0) == (-np.inf, np.inf)
