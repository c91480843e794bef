"""The same samples in other clothes give the same answer."""

import numpy as np
import pandas as pd
import pytest
from estimator_cases import (
    FRESH,
    MACHINES,
    X,
    labels,
    machine,
    mean_gram,
    outcome,
    score,
    three_kernels,
)
from scipy import sparse
from sklearn.compose import make_column_selector
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split

from lokl import UniformMKLClassifier
from lokl.kernels import RBF, Cosine, Laplacian, Linear, Polynomial, per_feature, precomputed

machines = pytest.mark.parametrize("name", MACHINES)
NAMES = ["north", "east", "south", "west"]
FRAME = pd.DataFrame(X, columns=NAMES)
FRESH_FRAME = pd.DataFrame(FRESH, columns=NAMES)


def thinned(X):
    """Two thirds of the values are zero, and one row altogether."""
    thin = np.where(np.random.RandomState(5).uniform(size=X.shape) < 0.33, X, 0.0)
    thin[0] = 0.0
    return thin


@machines
@pytest.mark.parametrize(
    "container",
    [
        sparse.csr_matrix,
        sparse.csr_array,
        sparse.csc_matrix,
        sparse.coo_array,
        np.asfortranarray,
        np.ndarray.tolist,
        pd.DataFrame,
    ],
    ids=lambda f: f.__name__,
)
def test_any_container_is_the_array(name, container):
    thin, fresh = thinned(X), thinned(FRESH)
    plain, y = machine(name)
    other, _ = machine(name)
    plain.fit(thin, y)
    other.fit(container(thin), y)
    np.testing.assert_allclose(outcome(other, container(fresh)), outcome(plain, fresh), atol=1e-7)
    np.testing.assert_allclose(
        other.contributions(container(fresh)), plain.contributions(fresh), atol=1e-7
    )
    np.testing.assert_array_equal(other.support_, plain.support_)


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Polynomial(3),
        RBF("scale"),
        RBF("median"),
        Cosine(),
        Laplacian(),
        Linear().on([1, 2]),
        RBF(1.0).on(slice(2)),
        Polynomial(2).normalized(),
        Linear().normalized("trace"),
        Linear() + RBF(1.0),
    ],
    ids=repr,
)
def test_sparse_is_dense_for_every_kernel(kernel):
    thin, fresh = thinned(X), thinned(FRESH)
    dense, compressed = (
        UniformMKLClassifier([kernel], 5.0, tol=1e-9).fit(container(thin), labels(X))
        for container in (np.asarray, sparse.csr_matrix)
    )
    np.testing.assert_allclose(
        outcome(compressed, sparse.csr_matrix(fresh)), outcome(dense, fresh), atol=1e-6
    )
    assert sparse.issparse(compressed.support_vectors_)


def test_csr_entries_may_repeat_and_come_in_any_order(read_only):
    thin = thinned(X)
    tidy = sparse.csr_matrix(thin)
    halves = sparse.hstack([0.25 * tidy, 0.75 * tidy]).tocsr()
    messy = sparse.csr_matrix((halves.data, halves.indices % 4, halves.indptr), shape=tidy.shape)
    assert not messy.has_canonical_format
    y = labels(X)
    one = UniformMKLClassifier(three_kernels(), tol=1e-9).fit(tidy, y)
    two = UniformMKLClassifier(three_kernels(), tol=1e-9).fit(read_only(messy), y)
    np.testing.assert_allclose(outcome(two, messy), outcome(one, tidy), atol=1e-7)


@machines
def test_single_precision_loses_only_its_digits(name):
    double, y = machine(name)
    single, _ = machine(name)
    double.fit(X, y)
    single.fit(X.astype(np.float32), y)
    assert single.support_vectors_.dtype == np.float32
    np.testing.assert_allclose(
        outcome(single, FRESH.astype(np.float32)), outcome(double, FRESH), atol=1e-3
    )


@machines
@pytest.mark.parametrize("dtype", [np.int64, np.int8, bool])
def test_whole_numbers_are_numbers(name, dtype):
    whole = np.round(2 * X).astype(dtype)
    plain, y = machine(name)
    other, _ = machine(name)
    plain.fit(whole.astype(float), y)
    other.fit(whole, y)
    np.testing.assert_array_equal(outcome(other, whole), outcome(plain, whole.astype(float)))


@pytest.mark.parametrize(
    "names",
    [
        ("no", "yes"),
        (False, True),
        (-1, 1),
        (3, 11),
        (0.0, 1.0),
        np.array(["no", "yes"], dtype=object),
        ("1", "10", "2"),
        (-7, 0, 4, 5),
    ],
    ids=str,
)
def test_labels_are_only_names(names):
    names = np.asarray(names)
    codes = labels(X, len(names))
    plain = UniformMKLClassifier(three_kernels()).fit(X, codes)
    for y in (names[codes], names[codes].tolist(), pd.Series(names[codes])):
        model = UniformMKLClassifier(three_kernels()).fit(X, y)
        np.testing.assert_array_equal(model.classes_, names)
        np.testing.assert_array_equal(model.predict(FRESH), names[plain.predict(FRESH)])
        np.testing.assert_array_equal(outcome(model, FRESH), outcome(plain, FRESH))
        assert model.score(X, y) == plain.score(X, codes)


@pytest.mark.parametrize(
    ("named", "numbered"),
    [
        (["north", "south"], [0, 2]),
        ("west", [3]),
        (slice("east", "south"), [1, 2]),
        ([True, False, True, False], [0, 2]),
        (make_column_selector("th$"), [0, 2]),
        ([-1], [3]),
    ],
    ids=["names", "name", "slice", "mask", "selector", "position"],
)
def test_views_by_name_are_views_by_number(named, numbered):
    y = labels(X)
    options = {"tol": 1e-9, "C": 3.0}
    frame = UniformMKLClassifier([RBF("scale").on(named), Linear()], **options).fit(FRAME, y)
    array = UniformMKLClassifier([RBF("scale").on(numbered), Linear()], **options).fit(X, y)
    np.testing.assert_allclose(outcome(frame, FRESH_FRAME), outcome(array, FRESH), atol=1e-9)
    np.testing.assert_array_equal(frame.feature_names_in_, NAMES)
    by_hand = UniformMKLClassifier([RBF("scale")], **options).fit(X[:, numbered], y)
    alone = UniformMKLClassifier([RBF("scale").on(named)], **options).fit(FRAME, y)
    np.testing.assert_allclose(
        outcome(alone, FRESH_FRAME), outcome(by_hand, FRESH[:, numbered]), atol=1e-7
    )


def test_views_by_name_survive_rows_without_weight():
    y = labels(X)
    weight = np.where(np.arange(len(X)) % 3 == 0, 0.0, 1.0)
    kernels = [RBF("scale").on(make_column_selector("th$")), Linear().on("west")]
    frame = UniformMKLClassifier(kernels, tol=1e-9).fit(FRAME, y, weight)
    kept = FRAME[weight > 0]
    less = UniformMKLClassifier(kernels, tol=1e-9).fit(kept, y[weight > 0])
    np.testing.assert_allclose(outcome(frame, FRESH_FRAME), outcome(less, FRESH_FRAME), atol=1e-9)


def test_selectors_see_only_the_rows_that_count():
    weight = np.where(np.arange(len(X)) % 3 == 0, 0.0, 1.0)
    flat = FRAME.assign(west=1.0 - weight)
    varied = UniformMKLClassifier([RBF(1.0).on(lambda frame: frame.columns[frame.nunique() > 1])])
    varied.fit(flat, labels(X), weight)
    assert varied.kernels_[0].columns == [0, 1, 2]


def test_one_kernel_a_feature_is_named_after_it():
    model = UniformMKLClassifier(per_feature(RBF(1.0), FRAME)).fit(FRAME, labels(X))
    assert model.kernel_names_ == NAMES
    parts = model.contributions(FRESH_FRAME)
    np.testing.assert_allclose(
        parts.sum(axis=1) + model.intercept_, model.decision_function(FRESH_FRAME), atol=1e-9
    )
    moved = FRESH_FRAME.assign(east=0.0)
    changed = np.abs(model.contributions(moved) - parts).max(axis=0) > 1e-6
    assert changed.tolist() == [False, True, False, False]


def test_frames_of_any_numbers_are_arrays():
    mixed = FRAME.astype({"north": "float32"}).assign(west=(FRAME["west"] > 0))
    frame = UniformMKLClassifier(three_kernels()).fit(mixed, labels(X))
    array = UniformMKLClassifier(three_kernels()).fit(mixed.to_numpy(float), labels(X))
    np.testing.assert_allclose(
        outcome(frame, mixed), outcome(array, mixed.to_numpy(float)), atol=1e-9
    )


@machines
def test_stored_matrices_are_the_kernels_they_came_from(name):
    everyone = np.vstack([X, FRESH])
    kernels, index = precomputed([k(everyone) for k in three_kernels().values()])
    stored, y = machine(name, kernels)
    computed, _ = machine(name)
    stored.fit(index[: len(X)], y)
    computed.fit(X, y)
    np.testing.assert_allclose(
        outcome(stored, index[len(X) :]), outcome(computed, FRESH), atol=1e-6
    )
    np.testing.assert_allclose(
        stored.contributions(index[len(X) :]), computed.contributions(FRESH), atol=1e-6
    )


@machines
def test_stored_matrices_pass_through_every_splitter(name):
    kernels, index = precomputed([mean_gram(X, X)])
    stored, y = machine(name, kernels)
    computed, _ = machine(name)
    theirs, ours = (cross_val_score(*case, y, cv=4) for case in ((computed, X), (stored, index)))
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    grid = {"C": [0.1, 10.0]}
    searches = [
        GridSearchCV(model, grid, cv=3).fit(data, y)
        for model, data in ((stored, index), (computed, X))
    ]
    assert searches[0].best_params_ == searches[1].best_params_
    train, test, y_train, _ = train_test_split(index, y, random_state=0)
    assert len(stored.fit(train, y_train).predict(test)) == len(test)


def test_kernels_of_features_and_stored_ones_live_together():
    mixed = np.column_stack([X, np.arange(len(X))])
    stored = precomputed([RBF(0.5)(X)])[0][0]
    model = UniformMKLClassifier([Linear().on(slice(4)), stored.on([4])], tol=1e-9)
    plain = UniformMKLClassifier([Linear(), RBF(0.5)], tol=1e-9).fit(X, labels(X))
    model.fit(mixed, labels(X))
    np.testing.assert_allclose(outcome(model, mixed), outcome(plain, X), atol=1e-6)


def test_targets_of_any_number_type():
    t = np.round(3 * score(X))
    plain, _ = machine("one target")
    expected = plain.fit(X, t).predict(FRESH)
    for target in (t.astype(int), t.astype(np.float32), t.tolist(), pd.Series(t), t.astype(object)):
        model, _ = machine("one target")
        np.testing.assert_allclose(model.fit(X, target).predict(FRESH), expected, atol=1e-9)


def test_one_column_of_targets_comes_back_as_a_column():
    model, t = machine("one target")
    flat = model.fit(X, t).predict(FRESH)
    column = model.fit(X, t[:, np.newaxis]).predict(FRESH)
    np.testing.assert_array_equal(column, flat[:, np.newaxis])
