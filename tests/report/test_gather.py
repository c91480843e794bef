"""From models to the content of a report."""

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
    UniformMKLRegressor,
)
from lokl._methods import METHODS
from lokl.datasets import make_views
from lokl.explain import answers_by_view, view_value
from lokl.explain.similarity import Likeness, kernel_pca, likeness, nearest
from lokl.kernels import RBF, Linear, per_view
from lokl.report import about, alignment_of, cases_from, cases_of, render, view_names
from lokl.report.gather import duplicates, sha256
from lokl.search import KernelSearchCV, calibrated

NAMES = [name for method in METHODS for name in method.classes]


@pytest.fixture(scope="module")
def problem():
    X, y, views, _ = make_views(70, 3, missing=0.2, random_state=0)
    return X, y, per_view(RBF("scale"), dict(zip(["a", "b", "c"], views.values(), strict=True)))


def check_cases(found, model, X):
    """What holds of the cases of any model."""
    n, m = found.trust.shape
    assert (
        found.parts.shape == found.says.shape == found.sure.shape == found.present.shape == (n, m)
    )
    assert ((found.trust >= 0) & (found.trust <= 1 + 1e-9)).all()
    assert found.place.shape == (n, 2)
    assert np.isfinite(found.place).all()
    assert all(k not in near for k, near in enumerate(found.near))
    total = found.start + found.parts.sum(axis=1)
    if not is_classifier(model):
        np.testing.assert_allclose(total, model.predict(X), atol=1e-6)
        return
    np.testing.assert_array_equal(model.classes_[found.predicted], model.predict(X))
    decision = np.asarray(model.decision_function(X)).reshape(n, -1)
    ranked = np.sort(decision, axis=1)
    margin = np.abs(ranked[:, 0]) if ranked.shape[1] == 1 else ranked[:, -1] - ranked[:, -2]
    np.testing.assert_allclose(total, margin, atol=1e-6)
    assert (found.says[~found.present] == -1).all()
    assert (found.says[found.present] >= 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_every_method_has_a_page(problem, name):
    X, y, kernels = problem
    three = np.array(["x", "y", "z"])[(y + (np.arange(len(y)) % 5 == 0)) % 3]
    target = X[:, 0] if name.endswith("Regressor") else three
    target = np.nan_to_num(target) if target.dtype.kind == "f" else target
    model = getattr(lokl, name)(kernels, C=10.0, random_state=0).fit(X[:50], target[:50])
    found = cases_of(model, X[50:], target[50:])
    check_cases(found, model, X[50:])
    np.testing.assert_array_equal(found.present[:, 0], ~np.isnan(X[50:, 0]))
    render(about(model, X[50:], target[50:], training=(X[:50], target[:50])))


def test_two_classes(problem):
    X, y, kernels = problem
    for kind in (TrustedVoteClassifier, UniformMKLClassifier):
        model = kind(kernels, C=10.0, random_state=0).fit(X, y)
        check_cases(cases_of(model, X, y), model, X)


def test_what_a_view_says_alone_is_said_with_the_others_taken_away(problem):
    X, y, kernels = problem
    model = UniformMKLClassifier(kernels, C=10.0).fit(X, y)
    found = cases_of(model, X, y)
    columns = [kernel.columns_used() for kernel in model.kernels_]
    for view, own in enumerate(columns):
        rows = found.present[:, view]
        alone = np.full(X.shape, np.nan)
        alone[:, own] = X[:, own]
        np.testing.assert_array_equal(
            model.classes_[found.says[rows, view]], model.predict(alone[rows])
        )
    assert found.probabilities is None
    assert np.isnan(found.sure).all()
    apart = [
        np.mean([a != b for i, a in enumerate(s) for j, b in enumerate(s) if i != j] or [0])
        for s in (row[p] for row, p in zip(found.says, found.present, strict=True))
    ]
    np.testing.assert_allclose(found.disagreement, apart)


def test_a_regressor_is_asked_view_by_view(problem):
    X, _, kernels = problem
    target = np.arange(len(X)) / 10
    model = TrustedVoteRegressor(kernels, random_state=0).fit(X, target)
    found = cases_of(model, X, target, ids=[f"s{k}" for k in range(len(X))])
    check_cases(found, model, X)
    assert np.isfinite(found.says[found.present]).all()
    assert np.isnan(found.says[~found.present]).all()
    assert found.ids[3] == "s3"


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
        found = cases_of(model, X, y)
        np.testing.assert_array_equal(model.classes_[found.predicted], model.predict(X))
        assert view_names(model) == ["a", "b", "c"]
        if not hasattr(model, "predict_proba"):
            assert found.probabilities is None
        else:
            np.testing.assert_allclose(found.probabilities, model.predict_proba(X))
        render(about(model, X, y))


def test_kernels_on_the_same_columns_are_one_view():
    X, y, views, _ = make_views(80, 2, random_state=0)
    frame = pd.DataFrame(X, index=[f"p{k}" for k in range(80)])
    frame.columns = [f"c{k}" for k in range(X.shape[1])]
    kernels = {}
    for name, columns in zip(["blood", "scan"], views.values(), strict=True):
        kernels |= {f"{name}: linear": Linear().on(columns), f"{name}: rbf": RBF(0.1).on(columns)}
    model = UniformMKLClassifier(kernels).fit(X, y)
    assert view_names(model) == ["blood", "scan"]
    found = cases_of(model, X, y)
    np.testing.assert_allclose(found.trust, 0.5)
    np.testing.assert_allclose(
        found.start + found.parts.sum(axis=1), np.abs(model.decision_function(X)), atol=1e-6
    )
    auto = AutoMKLClassifier(
        {"blood": list(frame.columns[:4]), "scan": list(frame.columns[4:])},
        cv=2,
        methods=["UNIFORM"],
        random_state=0,
    ).fit(frame, y)
    told = about(auto, frame, y)
    assert told.cases.ids[:2] == ["p0", "p1"]
    render(told)


def test_views_may_be_named_by_their_columns(problem):
    X, y, kernels = problem
    model = UniformMKLClassifier(kernels, C=10.0).fit(X, y)
    named = {"ab": range(8), "c": range(8, 12)}
    found, plain = cases_of(model, X, y, views=named), cases_of(model, X, y)
    np.testing.assert_allclose(found.parts[:, 0], plain.parts[:, :2].sum(axis=1))
    np.testing.assert_allclose(found.trust.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.present[:, 0], plain.present[:, :2].any(axis=1))
    whole = cases_of(model, X, y, views={"all": range(12)})
    np.testing.assert_allclose(whole.parts[:, 0], plain.parts.sum(axis=1))
    assert [view.name for view in about(model, X, y, views=named).views] == ["ab", "c"]
    with pytest.raises(ValueError, match="kernel 'a' reads columns of several views"):
        cases_of(model, X, y, views={"x": [0, 1], "y": range(2, 12)})


def test_answers_from_elsewhere_have_a_picture(problem):
    X, y, kernels = problem
    model = UniformMKLClassifier(kernels, C=10.0).fit(X, y)
    told = answers_by_view(model, X)
    held_out = replace(told, predicted=1 - told.predicted)
    found = cases_from(held_out, model, X, y, training=(X, y))
    np.testing.assert_array_equal(found.predicted, 1 - told.predicted)
    assert found.support is not None


def test_a_model_that_explains_nothing_is_refused(problem):
    X, y, _ = problem
    model = LogisticRegression().fit(np.nan_to_num(X), y)
    with pytest.raises(TypeError, match="LogisticRegression does not tell which view"):
        cases_of(model, np.nan_to_num(X), y)


def test_samples_and_names_must_match(problem):
    X, y, kernels = problem
    model = UniformMKLClassifier(kernels).fit(X, y)
    with pytest.raises(ValueError, match="ids must name 70 samples, got 2"):
        cases_of(model, X, y, ids=["a", "b"])
    with pytest.raises(ValueError, match="a value for each of 70 samples, got 3"):
        cases_of(model, X, y[:3])


def test_truth_may_be_unknown(problem):
    X, y, kernels = problem
    model = TrustedVoteClassifier(kernels, random_state=0).fit(X, np.where(y, "ill", "well"))
    labels = np.where(y, "ill", "well").astype(object)
    labels[:5] = None
    found = cases_of(model, X, labels)
    assert (~found.known[:5]).all()
    assert found.known[5:].all()
    assert not found.wrong[:5].any()
    assert not cases_of(model, X).known.any()


def test_support_samples_are_named_and_are_the_most_alike(problem):
    X, y, kernels = problem
    model = UniformMKLClassifier(kernels, C=10.0).fit(X[:40], y[:40])
    ids = [f"p{k}" for k in range(70)]
    found = cases_of(model, X[40:], y[40:], ids[40:], training=(X[:40], y[:40], ids[:40]))
    support = found.support
    assert support.ids == [f"p{row}" for row in model.support_]
    np.testing.assert_array_equal(support.truth, y[model.support_])
    K = model.kernel_(X[40:], X[model.support_])
    size = np.sqrt(np.outer(model.kernel_.diag(X[40:]), model.kernel_.diag(X[model.support_])))
    alike = K / size
    for own, near, how in zip(alike, support.near, support.alike, strict=True):
        np.testing.assert_allclose(np.sort(own)[::-1][:3], how, atol=1e-9)
        np.testing.assert_allclose(own[near], how, atol=1e-9)
    # Nobody is like itself: a training sample that is asked about has other neighbours.
    again = cases_of(model, X[:40], y[:40], ids[:40], training=(X[:40], y[:40], ids[:40]))
    assert all(
        name not in [again.support.ids[j] for j in near]
        for name, near in zip(again.ids, again.support.near, strict=True)
    )
    unnamed = cases_of(model, X[40:], y[40:], training=(X[:40], y[:40]))
    assert unnamed.support.ids[0] == f"training sample {model.support_[0]}"


def plain_likeness(K):
    return Likeness(lambda rows, columns: K[np.ix_(rows, columns)], np.diag(K))


@given(seed=st.integers(0, 2**16), n=st.integers(3, 40))
def test_the_picture_is_kernel_pca(seed, n):
    X = np.random.RandomState(seed).normal(size=(n, 3))
    K = rbf_kernel(X, gamma=0.3)
    place, explained = kernel_pca(plain_likeness(K), n)
    reference = KernelPCA(2, kernel="precomputed", eigen_solver="dense").fit(K)
    expected = reference.transform(K)
    np.testing.assert_allclose(np.abs(place), np.abs(expected), atol=1e-6)
    centred = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    assert explained == pytest.approx(reference.eigenvalues_.sum() / np.trace(centred))


def test_of_many_samples_some_span_the_picture():
    X = np.random.RandomState(0).normal(size=(1200, 2)) @ np.diag([3.0, 1.0])
    place, _ = kernel_pca(plain_likeness(X @ X.T), 1200)
    # Of a linear kernel it is the data itself, turned.
    centred = X - X[np.linspace(0, 1199, 500).astype(int)].mean(axis=0)
    np.testing.assert_allclose(
        np.linalg.norm(place, axis=1), np.linalg.norm(centred, axis=1), atol=1e-6
    )


def test_samples_that_are_all_alike_lie_on_one_point():
    place, explained = kernel_pca(plain_likeness(np.ones((6, 6))), 6)
    np.testing.assert_array_equal(place, 0.0)
    assert explained is None
    assert kernel_pca(plain_likeness(np.ones((1, 1))), 1)[1] is None


@given(seed=st.integers(0, 2**16), n=st.integers(1, 12))
def test_neighbours_are_the_most_alike_of_others(seed, n):
    K = rbf_kernel(np.random.RandomState(seed).normal(size=(n, 2)))
    near, how = nearest(plain_likeness(K), n, np.arange(n), np.arange(n), 3)
    for k in range(n):
        others = np.delete(K[k], k)
        np.testing.assert_allclose(how[k], np.sort(others)[::-1][:3])
        assert k not in near[k]


def test_votes_have_a_kernel_of_unit_diagonal(problem):
    X, y, kernels = problem
    model = TrustedVoteClassifier(kernels, random_state=0).fit(X, y)
    alike = likeness(model, X)
    rows = np.arange(len(X))
    K = alike.between(rows, rows)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(K), alike.diag, atol=1e-9)
    np.testing.assert_allclose(alike.diag, 1.0)
    assert np.linalg.eigvalsh(K).min() > -1e-9


def test_alignment_is_that_of_centred_matrices(problem):
    X, y, kernels = problem
    model = UniformMKLClassifier(kernels, C=10.0).fit(X, y)
    found = alignment_of(model, X, y)
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
    assert alignment_of(UniformMKLClassifier([RBF()]).fit(filled, y), filled) is None
    assert alignment_of(model, X).target is None


@given(seed=st.integers(0, 2**16), missing=st.booleans())
def test_duplicates_are_rows_that_are_on_both_sides(seed, missing):
    rng = np.random.RandomState(seed)
    learned, asked = (rng.randint(3, size=(n, 2)).astype(float) for n in (6, 9))
    if missing:
        learned[0, 0] = asked[0, 0] = np.nan
    known = {str(row) for row in learned + 0.0}
    assert duplicates(learned, asked) == sum(str(row) in known for row in asked + 0.0)


def test_facts(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"abc")
    assert sha256(path).startswith("ba7816bf8f01cfea")
    words = np.array([["a", 1], ["b", 2]], dtype=object)
    assert duplicates(words, words[:1]) == 1


def test_what_views_are_worth_is_told(problem):
    X, y, kernels = problem
    model = UniformMKLClassifier(kernels, C=10.0).fit(X, y)
    value = view_value(model, X, y, cv=3)
    told = about(model, X, y, value=value)
    row = value.views.row("b")
    assert told.views[1].alone.mean == row["alone"]
    assert told.views[1].withheld.low == row["loss_low"]
    assert told.views[1].missing == pytest.approx(np.isnan(X[:, 4]).mean())
    assert len(told.subsets) == 7
    assert max(told.subsets, key=lambda own: len(own.views)).views == ("a", "b", "c")
    scores = [subset.score.mean for subset in told.subsets]
    assert scores == sorted(scores, reverse=True)
    render(told)


def test_a_regression_has_no_probabilities_to_believe(problem):
    X, _, kernels = problem
    target = np.arange(len(X)) / 10
    page = render(about(UniformMKLRegressor(kernels).fit(X, target), X, target))
    assert "believe the probabilities" not in page
    assert "How large are its errors?" in page
