"""Explanations: contributions add up, and removed views are missing views."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import lokl
from lokl.datasets import make_views
from lokl.explain import Explanation, explain, nearest_samples
from lokl.kernels import RBF, Linear, per_view
from lokl.search import CalibratedMKLClassifier, KernelSearchCV

X, y, VIEWS, _ = make_views(90, missing=0.15, random_state=0)
PLACES = {name: list(range(12))[own] for name, own in VIEWS.items()}
NUMBERS = np.nansum(X[:, ::4], axis=1)
# Two kernels of the first view, one of each other.
KERNELS = {**per_view(RBF(0.1), VIEWS), "more": Linear().on(slice(0, 4))}

CLASSIFIERS = {
    "vote": lokl.TrustedVoteClassifier(KERNELS, C=2, random_state=0),
    "mix": lokl.UniformMKLClassifier(KERNELS, C=2),
    "weights": lokl.SimpleMKLClassifier(KERNELS, C=2),
    "calibrated": CalibratedMKLClassifier(lokl.UniformMKLClassifier(KERNELS, C=2), 3),
    "search": KernelSearchCV(
        make_pipeline(StandardScaler(), lokl.UniformMKLClassifier(KERNELS)),
        {"uniformmklclassifier__C": [0.5, 2.0]},
        cv=3,
    ),
}
quiet = pytest.mark.filterwarnings(
    "ignore:.* samples lack a view", "ignore:the best .* of the grid"
)


@quiet
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_contributions_add_up_to_the_margin_over_the_runner_up(name, classes):
    labels = np.array(["a", "b", "c"])[(y + (X[:, 3] > 1)) % classes]
    model = CLASSIFIERS[name].fit(X, labels)
    found = explain(model, X, labels, views=PLACES)
    assert found.views == list(VIEWS)
    decision = np.asarray(model.decision_function(X))
    by_class = decision if decision.ndim == 2 else np.column_stack([np.zeros(len(X)), decision])
    rows = np.arange(len(X))
    others = by_class.copy()
    others[rows, found.predicted_codes] = -np.inf
    np.testing.assert_array_equal(found.runner_up_codes, others.argmax(axis=1))
    expected = by_class[rows, found.predicted_codes] - others.max(axis=1)
    total = found.base_values + found.contributions.sum(axis=1)
    assert found.unit == ("log-odds" if hasattr(model, "predict_proba") else "")
    if found.unit:
        p = model.predict_proba(X)
        expected = np.log(p[rows, found.predicted_codes] / p[rows, found.runner_up_codes])
    np.testing.assert_allclose(total, expected, atol=1e-5)
    np.testing.assert_array_equal(found.predictions, model.predict(X))
    fresh = replace(found, learned=None)
    np.testing.assert_array_equal(fresh.wrong, model.predict(X) != labels)
    assert not found.wrong.any()
    lacking = np.column_stack([np.isnan(X[:, own]).all(axis=1) for own in VIEWS.values()])
    np.testing.assert_array_equal(found.presence, ~lacking)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)
    assert (found.weights[lacking] == 0).all()
    assert (found.trust is not None) == hasattr(model, "trust")
    assert (found.alone_codes[lacking] == -1).all()
    assert not found.decisive[lacking].any()
    assert (found.probabilities is None) == (not hasattr(model, "predict_proba"))


def only(kept):
    """Samples that have some views only."""
    columns = [c for view in kept for c in list(PLACES.values())[view]]
    alone = np.full_like(X, np.nan)
    alone[:, columns] = X[:, columns]
    return alone


@quiet
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_removed_views_are_missing_views(name):
    model = CLASSIFIERS[name].fit(X, y)
    found = explain(model, X, y, views=PLACES)
    for view in range(3):
        rows = found.presence[:, view]
        alone = only([view])[rows]
        np.testing.assert_array_equal(found.alone_codes[rows, view], model.predict(alone))
        # Probabilities differ by their distance, not only by the class that is ahead.
        if name in ("calibrated", "search"):
            assert 0 < found.disagreement[rows].mean() < 0.5
            assert len(np.unique(found.disagreement)) > 20
        if hasattr(model, "predict_proba"):
            chances = model.predict_proba(alone)
            picked = chances[np.arange(rows.sum()), found.alone_codes[rows, view]]
            np.testing.assert_allclose(found.alone_probabilities[rows, view], picked)
        rows = rows & (found.presence.sum(axis=1) > 1)
        without = model.predict(only({0, 1, 2} - {view})[rows])
        np.testing.assert_array_equal(found.decisive[rows, view], without != model.predict(X[rows]))


METHODS = (
    "TrustedVote", "UniformMKL", "SimpleMKL", "LpMKL", "EasyMKL", "LMKL", "CLMKL", "LDMKL"
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=4)
@given(seed=st.integers(0, 999), n_views=st.integers(2, 4), n_classes=st.integers(2, 3))
def test_decisive_views_change_the_prediction_and_views_that_agree_do_not(
    method, seed, n_views, n_classes
):
    table, labels, places, _ = make_views(60, n_views=n_views, missing=0.1, random_state=seed)
    labels = (labels + (np.nan_to_num(table[:, 0]) > 1) * (n_classes - 2)) % n_classes
    kind = getattr(lokl, f"{method}Classifier")
    model = kind(per_view(RBF(0.2), places), C=1, random_state=0).fit(table[::2], labels[::2])
    found = explain(model, table)
    changed = np.zeros(found.decisive.shape, dtype=bool)
    for v, columns in enumerate(places.values()):
        less = table.copy()
        less[:, columns] = np.nan
        rows = np.flatnonzero(found.presence[:, v] & (found.presence.sum(axis=1) > 1))
        predicted = model.predict(less[rows])
        changed[rows, v] = predicted != found.predictions[rows]
        np.testing.assert_array_equal(found.without[rows, v], predicted)
    np.testing.assert_array_equal(found.decisive, changed)
    assert set(found.status) <= {"agree", "hinges", "contradict", "unsure"}
    assert not changed[found.status == "agree"].any()
    assert changed[found.status == "hinges"].any(axis=1).all()


def several_sets():
    """Ten multi-view sets: names, samples, classes and views."""
    for seed in range(6):
        table, labels, places, _ = make_views(
            80, n_views=2 + seed % 3, missing=0.1 * (seed % 2), random_state=seed
        )
        yield f"made {seed}", table, labels, places
    for load, ends in (
        (load_iris, [2]),
        (load_wine, [5, 9]),
        (load_breast_cancer, [10, 20]),
        (load_digits, [20, 44]),
    ):
        table, labels = load(return_X_y=True)
        starts = [0, *ends, table.shape[1]]
        places = {f"part {k}": slice(a, b) for k, (a, b) in enumerate(pairwise(starts))}
        rows = slice(0, None, max(1, len(table) // 150))
        yield load.__name__, scale(table)[rows], labels[rows], places


def contradicting_rows(text):
    """Views of a printed sample that predict one class and add evidence for another one."""
    _, _, table = text.partition("Evidence of the views for ")
    caption, *rows = table.splitlines()
    first, _, second = caption.removesuffix(", in log-odds:").partition(" over ")
    start = rows[0].index("predicts alone")
    for row in rows[1:]:
        cells = row[start:].split()
        if row.strip().startswith("base value"):
            return
        if cells != ["missing"]:
            added = [float(cell) for cell in cells if re.fullmatch(r"[+-]?\d+\.\d\d", cell)][-1]
            favoured = first if added > 0 else second
            if added and cells[0] != favoured:
                yield row[:start].strip()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["TrustedVote", "UniformMKL", "LpMKL"])
@pytest.mark.parametrize("name", [name for name, *_ in several_sets()])
def test_no_view_predicts_one_class_and_favours_another_without_a_sentence(name, method):
    table, labels, places = next(rest for own, *rest in several_sets() if own == name)
    kind = getattr(lokl, f"{method}Classifier")
    model = kind(per_view(RBF(0.1), places), C=1, random_state=0)
    if method != "TrustedVote":
        model = CalibratedMKLClassifier(model, 3)
    found = explain(model.fit(table[::2], labels[::2]), table[1::2], labels[1::2], views=None)
    for k in range(len(found)):
        sample = found.sample_at(k)
        views = list(contradicting_rows(str(sample)))
        sentences = sample.view_remarks()
        assert len(sentences) == len(views)
        for view, sentence in zip(views, sentences, strict=True):
            assert sentence.startswith(f"{view} alone predicts ")
            assert sentence.split()[0] in str(sample)


@quiet
def test_a_model_recognises_the_samples_that_it_has_learned_from():
    for name in ("vote", "calibrated", "search"):
        model = CLASSIFIERS[name].fit(X[::2], y[::2])
        found = explain(model, X, y, views=PLACES)
        np.testing.assert_array_equal(found.learned, np.arange(90) % 2 == 0)
        np.testing.assert_array_equal(found.judged, ~found.learned)
        assert found.sample_at(0).learned
        assert "has learned from this sample" in str(found.sample_at(0))
        assert "has learned" not in str(found.sample_at(1))
        if name != "search":
            # Samples of a scaled model differ by rounding errors in single precision.
            single = explain(model, X.astype(np.float32), views=PLACES)
            np.testing.assert_array_equal(single.learned, found.learned)
    for estimator in (
        lokl.RegionClassifier(CLASSIFIERS["mix"], max_region_size=30, covers=2, random_state=0),
        lokl.RegionClassifier(
            lokl.UniformMKLClassifier(["rbf"]), max_region_size=30, scale_features="shared"
        ),
    ):
        # Regions of one class have no rows of their own, but their samples were learned from.
        complete = np.nan_to_num(X)
        found = explain(estimator.fit(complete[::2], y[::2]), complete, y)
        np.testing.assert_array_equal(found.learned, np.arange(90) % 2 == 0)
    other = make_pipeline(StandardScaler(), LogisticRegression()).fit(np.nan_to_num(X), y)
    assert explain(other, np.nan_to_num(X)).learned is None


@quiet
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_sample_has_the_first_status_that_applies(name):
    model = CLASSIFIERS[name].fit(X, y)
    found = explain(model, X, y, views=PLACES)
    for k, status in enumerate(found.status):
        sure, p = found.presence[k].copy(), found.alone_probabilities[k]
        if hasattr(model, "predict_proba"):
            sure &= p >= 2 * (1 - p)
        predicted = set(found.alone_codes[k, sure].tolist())
        expected = "agree"
        if len(predicted) > 1:
            expected = "contradict"
        elif not predicted:
            expected = "unsure"
        elif found.decisive[k].any():
            expected = "hinges"
        assert status == expected
    assert "agree" in repr(found)


def test_kernels_that_cannot_be_removed_have_their_contributions_subtracted():
    Z = np.nan_to_num(X)
    product = lokl.GMKLClassifier(per_view(RBF(0.1), VIEWS), combine="product", C=2).fit(Z, y)
    assert (explain(product, Z).alone_codes >= 0).all()
    model = lokl.UniformMKLClassifier(["rbf", "linear"], C=2).fit(Z, y)
    found = explain(model, Z)
    assert len(found.views) == 2
    assert np.isnan(found.alone_probabilities).all()
    np.testing.assert_array_equal(found.alone_codes, model.contributions(Z) > 0)
    left = model.decision_function(Z)[:, np.newaxis] - model.contributions(Z)
    np.testing.assert_array_equal(found.decisive, (left > 0) != found.predictions[:, np.newaxis])
    assert found.decisive.any()


@quiet
def test_values_by_view():
    for model in (
        lokl.TrustedVoteRegressor(KERNELS, C=10, random_state=0).fit(X, NUMBERS),
        lokl.UniformMKLRegressor(KERNELS, C=10).fit(X, NUMBERS),
    ):
        found = explain(model, X, NUMBERS, views=PLACES)
        total = found.base_values + found.contributions.sum(axis=1)
        np.testing.assert_allclose(total, model.predict(X), atol=1e-6)
        assert found.is_regression
        assert found.probabilities is found.decisive is found.status is None
        assert np.isnan(found.alone[~found.presence]).all()
        assert np.isnan(found.alone_probabilities).all()
        for view in range(3):
            rows = found.presence[:, view]
            np.testing.assert_allclose(found.alone[rows, view], model.predict(only([view])[rows]))
        assert "Contributions of the views" in str(found.sample(3))
        rows = found.presence.sum(axis=1) > 1
        without = model.predict(only([1, 2]))
        has = rows & found.presence[:, 0]
        np.testing.assert_allclose(found.without[has, 0], without[has])
        assert np.isnan(found.without[~rows]).all()


def test_without_names_of_views_kernels_on_the_same_columns_are_one():
    model = CLASSIFIERS["vote"].fit(X, y)
    found, named = explain(model, X), explain(model, X, views=PLACES)
    assert [name.split(",")[0] for name in found.views] == list(VIEWS)
    parts = model.contributions(X)
    sign = np.where(found.predictions == 1, 1, -1)
    np.testing.assert_allclose(found.contributions[:, 0], sign * (parts[:, 0] + parts[:, 3]))
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(12)])
    same = explain(CLASSIFIERS["vote"].fit(frame, y), frame)
    for field in ("alone", "alone_probabilities", "contributions", "trust", "presence", "status"):
        np.testing.assert_array_equal(getattr(same, field), getattr(found, field))
        np.testing.assert_array_equal(getattr(named, field), getattr(found, field))


def test_familiarity_finds_unfamiliar_samples():
    model = CLASSIFIERS["vote"].fit(X, y)
    far = np.nan_to_num(X[:5]) + 100.0
    assert (explain(model, far, views=PLACES).familiarity[:, 1:] < 0.1).all()
    near = model.familiarity(X)
    assert near.shape == (90, 4)
    assert (near[np.isnan(X[:, 4])][:, 1] == 0).all()
    assert model.familiarity(X, labels=True).columns.tolist() == list(KERNELS)


def test_a_kernel_of_several_views_is_rejected():
    model = lokl.UniformMKLClassifier({"both": RBF().on(slice(0, 8)), "c": RBF().on([9])})
    model.fit(np.nan_to_num(X), y)
    with pytest.raises(ValueError, match="'both'"):
        explain(model, np.nan_to_num(X), views=PLACES)
    with pytest.raises(TypeError, match="StandardScaler"):
        explain(StandardScaler().fit(np.nan_to_num(X)), np.nan_to_num(X))


def test_models_without_views_have_predictions():
    Z = np.nan_to_num(X)
    found = explain(make_pipeline(StandardScaler(), LogisticRegression()).fit(Z, y), Z, y)
    assert found.views == []
    assert found.status is found.weights is found.trust is None
    assert found.probabilities.shape == (90, 2)
    assert found.sample(5).views == ()
    assert list(found.to_frame()) == ["truth", "prediction", "probability 0", "probability 1"]
    assert explain(LinearRegression().fit(Z, NUMBERS), Z).predictions.shape == (90,)


def test_one_view_predicts_what_the_model_predicts():
    model = CalibratedMKLClassifier(lokl.UniformMKLClassifier(["rbf", "linear"]), 3)
    Z = np.nan_to_num(X)
    found = explain(model.fit(Z, y), Z, views={"all": range(12)})
    np.testing.assert_array_equal(found.alone[:, 0], found.predictions)
    assert not found.decisive.any()
    assert set(found.status) <= {"agree", "unsure"}


@quiet
def test_samples_tables_and_pages():
    frame = pd.DataFrame(X, index=[f"p{k}" for k in range(90)]).rename(columns=str)
    model = CLASSIFIERS["vote"].fit(frame, np.where(y, "ill", "well"))
    truth = np.where(y, "ill", "well").astype(object)
    truth[0] = None
    found = explain(model, frame, truth, views=PLACES)
    k = int(np.flatnonzero(~found.presence.all(axis=1))[0])
    sample = found.sample(f"p{k}")
    assert sample.prediction == found.predictions[k]
    assert sample.probabilities[sample.prediction] == found.probabilities[k].max()
    assert [own.contribution for own in sample.views if own.present] == (
        found.contributions[k, found.presence[k]].tolist()
    )
    missing = sample.views[int(np.argmin(found.presence[k]))]
    assert missing.present is False
    assert missing.trust is missing.contribution is missing.predicts is None
    assert "missing" in str(sample)
    assert repr(sample) == str(sample)
    table = found.to_frame()
    assert table.index.tolist() == frame.index.tolist()
    assert table[f"trust {found.views[1]}"].tolist() == found.trust[:, 1].tolist()
    assert table["status"].tolist() == found.status.tolist()
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["samples"][k]["id"] == f"p{k}"
    assert plain["samples"][0]["truth"] is None
    assert f"<td>{found.trust[0, 0]:.2f}</td>" in found._repr_html_()
    assert "<b>" not in replace(found, views=["<b>", "2", "3"])._repr_html_()
    assert not found.known[0]
    assert not found.wrong[0]
    with pytest.raises(KeyError, match="p0, p1, p2"):
        found.sample("nobody")


def test_shapes_ids_and_targets_must_match():
    Z = np.nan_to_num(X)
    model = lokl.UniformMKLClassifier(["rbf"]).fit(Z, y)
    with pytest.raises(ValueError, match="90 samples, got 2"):
        explain(model, Z, ids=["a", "b"])
    with pytest.raises(ValueError, match="90 samples, got 3"):
        explain(model, Z, y[:3])
    found = explain(model, Z)
    for field in ("contributions", "predictions", "weights"):
        with pytest.raises(ValueError, match=field):
            replace(found, **{field: getattr(found, field)[:3]})
    assert isinstance(found, Explanation)


@settings(max_examples=10)
@given(row=st.integers(0, 89), count=st.integers(1, 5))
def test_nearest_samples_are_the_largest_values_of_the_kernel(row, count):
    Z = np.nan_to_num(X)
    model = lokl.UniformMKLClassifier(["rbf", "poly2"], C=2).fit(Z, y)
    found = nearest_samples(model, Z, row, count)
    K = model.kernel_(Z)
    similarity = K[row] / np.sqrt(K[row, row] * K.diagonal())
    expected = sorted(np.delete(similarity, row))[::-1][:count]
    np.testing.assert_allclose([value for _, value in found], expected, rtol=1e-6)
    assert row not in [k for k, _ in found]
    vote = CLASSIFIERS["vote"].fit(X, y)
    assert len(nearest_samples(vote, X, row, count)) == count
