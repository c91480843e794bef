"""Reports from fitted models."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import is_classifier
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lokl
from lokl import (
    AutoMKLClassifier,
    RegionClassifier,
    TrustedVoteClassifier,
    TrustedVoteRegressor,
    UniformMKLClassifier,
)
from lokl._methods import METHODS
from lokl.datasets import make_views
from lokl.explain import explain, kernel_alignment, view_value
from lokl.explain.similarity import SampleSimilarity, kernel_pca, nearest_rows, sample_similarity
from lokl.kernels import RBF, Linear, per_view
from lokl.report import render, report_from_model, sample_map
from lokl.report.from_model import count_duplicates
from lokl.report.sections import columns_section
from lokl.search import KernelSearchCV, calibrated

NAMES = [name for m in METHODS for name in (m.classifier, m.regressor) if name]


@pytest.fixture(scope="module")
def problem():
    X, y, views, _ = make_views(70, 3, missing=0.2, random_state=0)
    return X, y, per_view(RBF("scale"), dict(zip(["a", "b", "c"], views.values(), strict=True)))


def check_report(report, model, X):
    """Laws of the report about any model."""
    found, similar = report.explanation, report.sample_map
    n = len(found)
    assert ((found.trust_or_weights >= 0) & (found.trust_or_weights <= 1 + 1e-9)).all()
    assert similar.positions.shape == (n, 2)
    assert np.isfinite(similar.positions).all()
    assert all(k not in near for k, near in enumerate(similar.neighbours))
    assert [view.name for view in report.views] == found.views
    total = found.base_values + found.contributions.sum(axis=1)
    if not is_classifier(model):
        np.testing.assert_allclose(total, model.predict(X), atol=1e-6)
        return
    np.testing.assert_array_equal(found.predictions, model.predict(X))
    decision = np.asarray(model.decision_function(X)).reshape(n, -1)
    ranked = np.sort(decision, axis=1)
    margin = np.abs(ranked[:, 0]) if ranked.shape[1] == 1 else ranked[:, -1] - ranked[:, -2]
    np.testing.assert_allclose(total, margin, atol=1e-6)
    assert (found.alone_codes[~found.presence] == -1).all()
    assert (found.alone_codes[found.presence] >= 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_every_method_has_a_page(problem, name):
    X, y, kernels = problem
    three = np.array(["x", "y", "z"])[(y + (np.arange(len(y)) % 5 == 0)) % 3]
    target = X[:, 0] if name.endswith("Regressor") else three
    target = np.nan_to_num(target) if target.dtype.kind == "f" else target
    model = getattr(lokl, name)(kernels, C=10.0, random_state=0).fit(X[:50], target[:50])
    check_report(report_from_model(model, X[50:], target[50:]), model, X[50:])
    found = report_from_model(model, X[50:], target[50:], training=(X[:50], target[:50]))
    np.testing.assert_array_equal(found.explanation.presence[:, 0], ~np.isnan(X[50:, 0]))
    render(found)


def test_two_classes(problem):
    X, y, kernels = problem
    for kind in (TrustedVoteClassifier, UniformMKLClassifier):
        model = kind(kernels, C=10.0, random_state=0).fit(X, y)
        check_report(report_from_model(model, X, y), model, X)


def test_without_probabilities_disagreement_counts_pairs_of_views(problem):
    X, y, kernels = problem
    found = explain(UniformMKLClassifier(kernels, C=10.0).fit(X, y), X, y)
    assert found.probabilities is None
    assert np.isnan(found.alone_probabilities).all()
    apart = [
        np.mean([a != b for i, a in enumerate(s) for j, b in enumerate(s) if i != j] or [0])
        for s in (row[p] for row, p in zip(found.alone_codes, found.presence, strict=True))
    ]
    np.testing.assert_allclose(found.disagreement, apart)


def test_regression(problem):
    X, _, kernels = problem
    target = np.arange(len(X)) / 10
    model = TrustedVoteRegressor(kernels, random_state=0).fit(X, target)
    found = report_from_model(model, X, target, ids=[f"s{k}" for k in range(len(X))])
    check_report(found, model, X)
    assert np.isfinite(found.explanation.alone[found.explanation.presence]).all()
    assert found.explanation.ids[3] == "s3"
    page = render(found)
    assert "How large are its errors?" not in page
    assert f"learned from all {len(X)} samples" in page
    page = render(report_from_model(model, X + 0.01, target))
    assert "How large are its errors?" in page
    assert "learned from all" not in page


def test_columns_that_matter_are_listed_by_view(problem):
    X, y, kernels = problem
    both = {**kernels, "more": Linear().on(slice(0, 4))}
    model = UniformMKLClassifier(both, C=10.0).fit(X[::2], y[::2])
    report = report_from_model(model, X[1::2], y[1::2], columns=True)
    found = report.explanation.columns
    assert found.views == report.explanation.views
    section = columns_section(report.explanation)
    assert len(section["rows"]) == 12
    assert section["left"] == 0
    # Every view is among the first rows.
    n_views = len(found.views)
    assert sorted(row[0] for row in section["rows"][:n_views]) == list(range(n_views))
    for view, name, importance, selected in section["rows"]:
        own = [c for c, v in zip(found.columns, found.view, strict=True) if v == view]
        values = found.values[:, found.view == view][:, own.index(name)]
        assert importance.mean == pytest.approx(np.abs(values).mean())
        assert importance.low <= importance.mean <= importance.high
        assert selected == 1.0
    page = render(report)
    assert 'id="columns"' in page
    assert 'id="card-columns"' in page
    assert 'id="columns"' not in render(report_from_model(model, X[1::2], y[1::2]))


def wrapped_models(X, y, kernels):
    plain = UniformMKLClassifier(kernels, C=10.0)
    pipeline = make_pipeline(StandardScaler(), plain).fit(X, y)
    yield pipeline
    yield calibrated(pipeline, X, y)
    yield KernelSearchCV(plain, {"C": [1.0, 10.0]}, cv=2).fit(X, y)
    yield RegionClassifier(plain, max_region_size=30, tune=None, random_state=0).fit(X, y)


def test_what_is_around_a_model_is_looked_through(problem):
    X, y, kernels = problem
    for model in wrapped_models(X, y, kernels):
        report = report_from_model(model, X, y)
        found = report.explanation
        np.testing.assert_array_equal(found.predictions, model.predict(X))
        assert found.views == ["a", "b", "c"]
        if not hasattr(model, "predict_proba"):
            assert found.probabilities is None
        else:
            np.testing.assert_allclose(found.probabilities, model.predict_proba(X))
        render(report)


def test_kernels_on_the_same_columns_are_one_view():
    X, y, views, _ = make_views(80, 2, random_state=0)
    frame = pd.DataFrame(X, index=[f"p{k}" for k in range(80)])
    frame.columns = [f"c{k}" for k in range(X.shape[1])]
    kernels = {}
    for name, columns in zip(["blood", "scan"], views.values(), strict=True):
        kernels |= {f"{name}: linear": Linear().on(columns), f"{name}: rbf": RBF(0.1).on(columns)}
    model = UniformMKLClassifier(kernels).fit(X, y)
    found = explain(model, X, y)
    assert found.views == ["blood", "scan"]
    np.testing.assert_allclose(found.weights, 0.5)
    total = found.base_values + found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, np.abs(model.decision_function(X)), atol=1e-6)
    auto = AutoMKLClassifier(
        {"blood": list(frame.columns[:4]), "scan": list(frame.columns[4:])},
        cv=2,
        methods=["UNIFORM"],
        random_state=0,
    ).fit(frame, y)
    report = report_from_model(auto, frame, y)
    assert report.explanation.ids[:2] == ["p0", "p1"]
    render(report)


def test_views_may_be_named_by_their_columns(problem):
    X, y, kernels = problem
    model = UniformMKLClassifier(kernels, C=10.0).fit(X, y)
    named = {"ab": range(8), "c": range(8, 12)}
    found, plain = explain(model, X, y, views=named), explain(model, X, y)
    both = plain.contributions[:, :2].sum(axis=1)
    np.testing.assert_allclose(found.contributions[:, 0], both)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.presence[:, 0], plain.presence[:, :2].any(axis=1))
    whole = explain(model, X, y, views={"all": range(12)})
    np.testing.assert_allclose(whole.contributions[:, 0], plain.contributions.sum(axis=1))
    report = report_from_model(model, X, y, views=named)
    assert [(view.name, view.columns) for view in report.views] == [("ab", 8), ("c", 4)]
    with pytest.raises(ValueError, match="'a'"):
        explain(model, X, y, views={"x": [0, 1], "y": range(2, 12)})


def test_held_out_predictions_have_a_map(problem):
    X, y, kernels = problem
    model = UniformMKLClassifier(kernels, C=10.0).fit(X, y)
    found = explain(model, X, y)
    held_out = replace(found, predictions=1 - found.predictions)
    assert sample_map(model, X, held_out, training=(X, y)).support is not None


def test_a_model_of_named_columns_has_a_map_without_warnings(problem):
    X, y, kernels = problem
    frame = pd.DataFrame(X, columns=[f"column {k}" for k in range(X.shape[1])])
    model = TrustedVoteClassifier(kernels, random_state=0).fit(frame, y)
    assert sample_map(model, frame, explain(model, frame), training=(frame, y)).support is not None


def test_a_model_without_views_has_no_report(problem):
    X, y, _ = problem
    model = LogisticRegression().fit(np.nan_to_num(X), y)
    with pytest.raises(TypeError, match="LogisticRegression"):
        report_from_model(model, np.nan_to_num(X), y)


def test_truth_may_be_unknown(problem):
    X, y, kernels = problem
    model = TrustedVoteClassifier(kernels, random_state=0).fit(X, np.where(y, "ill", "well"))
    labels = np.where(y, "ill", "well").astype(object)
    labels[:5] = None
    found = explain(model, X, labels)
    assert (~found.known[:5]).all()
    assert found.known[5:].all()
    assert not found.wrong[:5].any()
    assert not explain(model, X).known.any()


def test_support_samples_are_the_most_similar(problem):
    X, y, kernels = problem
    model = UniformMKLClassifier(kernels, C=10.0).fit(X[:40], y[:40])
    ids = [f"p{k}" for k in range(70)]
    own = explain(model, X[40:], y[40:], ids=ids[40:])
    similar = sample_map(model, X[40:], own, training=(X[:40], y[:40], ids[:40]))
    support = similar.support
    assert support.ids == [f"p{row}" for row in model.support_]
    np.testing.assert_array_equal(support.truth, y[model.support_])
    K = model.kernel_(X[40:], X[model.support_])
    size = np.sqrt(np.outer(model.kernel_.diag(X[40:]), model.kernel_.diag(X[model.support_])))
    alike = K / size
    for own, near, how in zip(alike, similar.neighbours, support.similarities, strict=True):
        np.testing.assert_allclose(np.sort(own)[::-1][:3], how, atol=1e-9)
        np.testing.assert_allclose(own[near], how, atol=1e-9)
    # A training sample that is explained is not its own neighbour.
    own = explain(model, X[:40], y[:40], ids=ids[:40])
    again = sample_map(model, X[:40], own, training=(X[:40], y[:40], ids[:40]))
    assert all(
        name not in [again.support.ids[j] for j in near]
        for name, near in zip(own.ids, again.neighbours, strict=True)
    )
    own = explain(model, X[40:], y[40:])
    unnamed = sample_map(model, X[40:], own, training=(X[:40], y[:40])).support
    assert unnamed.ids[0] == f"training sample {model.support_[0]}"


def plain_similarity(K):
    return SampleSimilarity(lambda rows, columns: K[np.ix_(rows, columns)], np.diag(K))


@given(seed=st.integers(0, 2**16), n=st.integers(3, 40))
def test_the_picture_is_kernel_pca(seed, n):
    X = np.random.RandomState(seed).normal(size=(n, 3))
    K = rbf_kernel(X, gamma=0.3)
    place, explained = kernel_pca(plain_similarity(K), n)
    reference = KernelPCA(2, kernel="precomputed", eigen_solver="dense").fit(K)
    expected = reference.transform(K)
    np.testing.assert_allclose(np.abs(place), np.abs(expected), atol=1e-6)
    centred = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    assert explained == pytest.approx(reference.eigenvalues_.sum() / np.trace(centred))


def test_of_many_samples_some_span_the_picture():
    X = np.random.RandomState(0).normal(size=(1200, 2)) @ np.diag([3.0, 1.0])
    place, _ = kernel_pca(plain_similarity(X @ X.T), 1200)
    # Of a linear kernel it is the data itself, turned.
    centred = X - X[np.linspace(0, 1199, 500).astype(int)].mean(axis=0)
    np.testing.assert_allclose(
        np.linalg.norm(place, axis=1), np.linalg.norm(centred, axis=1), atol=1e-6
    )


def test_equal_samples_lie_on_one_point():
    place, explained = kernel_pca(plain_similarity(np.ones((6, 6))), 6)
    np.testing.assert_array_equal(place, 0.0)
    assert explained is None
    assert kernel_pca(plain_similarity(np.ones((1, 1))), 1)[1] is None


@given(seed=st.integers(0, 2**16), n=st.integers(1, 12))
def test_neighbours_are_the_most_similar_others(seed, n):
    K = rbf_kernel(np.random.RandomState(seed).normal(size=(n, 2)))
    near, how = nearest_rows(plain_similarity(K), *[np.arange(n)] * 3, 3)
    for k in range(n):
        others = np.delete(K[k], k)
        np.testing.assert_allclose(how[k], np.sort(others)[::-1][:3])
        assert k not in near[k]


def test_votes_have_a_kernel_of_unit_diagonal(problem):
    X, y, kernels = problem
    model = TrustedVoteClassifier(kernels, random_state=0).fit(X, y)
    alike = sample_similarity(model, X)
    rows = np.arange(len(X))
    K = alike.between(rows, rows)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(K), alike.diag, atol=1e-9)
    np.testing.assert_allclose(alike.diag, 1.0)
    assert np.linalg.eigvalsh(K).min() > -1e-9


def test_alignment_is_that_of_centred_matrices(problem):
    X, y, kernels = problem
    model = UniformMKLClassifier(kernels, C=10.0).fit(X, y)
    found = kernel_alignment(model, X, y)
    np.testing.assert_allclose(found.between, found.between.T)
    np.testing.assert_allclose(np.diag(found.between), 1.0)
    present = ~np.isnan(X[:, [kernel.columns_used()[0] for kernel in model.kernels_]])
    both = np.flatnonzero(present[:, 0] & present[:, 1])
    H = np.eye(len(both)) - 1 / len(both)
    A, B = (H @ kernel(np.nan_to_num(X)[both]) @ H for kernel in model.kernels_[:2])
    expected = np.sum(A * B) / np.linalg.norm(A) / np.linalg.norm(B)
    assert found.between[0, 1] == pytest.approx(expected)
    assert found.target.shape == (3,)
    filled = np.nan_to_num(X)
    assert kernel_alignment(UniformMKLClassifier([RBF()]).fit(filled, y), filled) is None
    assert kernel_alignment(model, X).target is None


@given(seed=st.integers(0, 2**16), missing=st.booleans())
def test_duplicates_are_rows_that_are_on_both_sides(seed, missing):
    rng = np.random.RandomState(seed)
    learned, asked = (rng.randint(3, size=(n, 2)).astype(float) for n in (6, 9))
    if missing:
        learned[0, 0] = asked[0, 0] = np.nan
    known = {str(row) for row in learned + 0.0}
    assert count_duplicates(learned, asked) == sum(str(row) in known for row in asked + 0.0)


def test_duplicates_of_words():
    words = np.array([["a", 1], ["b", 2]], dtype=object)
    assert count_duplicates(words, words[:1]) == 1


def test_values_of_views_are_shown(problem):
    X, y, kernels = problem
    model = UniformMKLClassifier(kernels, C=10.0).fit(X, y)
    value = view_value(model, X, y, cv=3)
    report = report_from_model(model, X, y, value=value)
    row = value.views.row("b")
    assert report.views[1].alone.mean == row["alone"]
    assert report.views[1].loss.low == row["loss_low"]
    assert report.views[1].missing == pytest.approx(np.isnan(X[:, 4]).mean())
    assert len(report.subsets) == 7
    assert max(report.subsets, key=lambda own: len(own.views)).views == ("a", "b", "c")
    scores = [subset.score.mean for subset in report.subsets]
    assert scores == sorted(scores, reverse=True)
    render(report)
