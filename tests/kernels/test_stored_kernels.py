"""Stored matrices stand for kernels, row indices for samples."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from lokl.gram import InnerProducts
from lokl.kernels import RBF, Callable, Linear, Precomputed, precomputed

rng = np.random.default_rng(0)
FEATURES = rng.normal(size=(40, 3))
TARGET = (FEATURES[:, 0] * FEATURES[:, 1] > 0).astype(int)
GRAM = RBF(0.5)(FEATURES)
(KERNEL,), INDEX = precomputed([GRAM])


@given(st.lists(st.integers(0, 39), min_size=1, max_size=9), st.integers(1, 5))
def test_row_numbers_read_the_matrix(rows, p):
    assert_array_equal(KERNEL(INDEX[rows], INDEX[:p]), GRAM[rows][:, :p])
    assert_array_equal(KERNEL(INDEX[rows]), GRAM[np.ix_(rows, rows)])
    assert_array_equal(KERNEL.diag(INDEX[rows]), GRAM[rows, rows])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint16], ids=str)
def test_row_numbers_may_have_any_type(dtype):
    assert_array_equal(KERNEL(INDEX.astype(dtype)), GRAM)


def test_any_array_like_is_stored():
    for gram in (np.eye(3), np.eye(3, dtype=np.float32), np.eye(3, dtype=int).tolist()):
        kernel = Precomputed(gram)
        (made,), index = precomputed([gram])
        assert_array_equal(kernel.bind(index)(index), np.eye(3))
        assert_array_equal(made(index), np.eye(3))
        assert_array_equal(index, [[0], [1], [2]])


def test_copies_share_the_matrix():
    composed = (KERNEL.normalized("trace") + KERNEL.on([0])).normalized()
    for copy in (
        clone(KERNEL),
        deepcopy(KERNEL),
        KERNEL.bind(INDEX),
        clone({"a": [KERNEL]}, safe=False)["a"][0],
        clone(composed).kernel.left.kernel,
        deepcopy(composed).kernel.right.kernel,
    ):
        assert copy.gram is GRAM


def test_splitting_the_index_column_is_splitting_the_samples():
    stored, direct = SVC(kernel=KERNEL), SVC(kernel=RBF(0.5))
    assert_array_equal(
        cross_val_predict(stored, INDEX, TARGET, cv=4),
        cross_val_predict(direct, FEATURES, TARGET, cv=4),
    )
    grid = {"C": [0.1, 1.0, 10.0]}
    by_index = GridSearchCV(stored, grid, cv=3).fit(INDEX, TARGET)
    by_features = GridSearchCV(direct, grid, cv=3).fit(FEATURES, TARGET)
    assert_allclose(
        by_index.cv_results_["mean_test_score"], by_features.cv_results_["mean_test_score"]
    )
    train, test = train_test_split(np.arange(40), random_state=0)
    model = make_pipeline(FunctionTransformer(), stored).fit(INDEX[train], TARGET[train])
    assert_allclose(
        model.decision_function(INDEX[test]),
        direct.fit(FEATURES[train], TARGET[train]).decision_function(FEATURES[test]),
    )


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        (np.ones((3, 2)), r"\(3, 2\)"),
        (np.array([[1.0, 0.5], [0.4, 1.0]]), "differ by 0.1"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "row 0, column 1 is nan"),
        (np.array([[np.inf, 0.0], [0.0, 1.0]]), "row 0, column 0 is inf"),
        (np.ones(3), "2D array"),
    ],
    ids=str,
)
def test_invalid_gram_matrices_are_rejected(gram, message):
    with pytest.raises(ValueError, match=message):
        precomputed([gram])
    with pytest.raises(ValueError, match=message):
        Precomputed(gram).bind(np.zeros((1, 1)))


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_errors_of_unbound_kernels_name_the_entry(value):
    gram = GRAM.copy()
    gram[7, 30] = gram[5, 5] = value
    kernel = Precomputed(gram)
    with pytest.raises(ValueError, match=rf"row 7, column 30 is {value}"):
        kernel(np.array([[2.0], [7.0]]), np.array([[1.0], [4.0], [30.0]]))
    with pytest.raises(ValueError, match=rf"row 5, column 5 is {value}"):
        kernel.diag(INDEX)
    assert_array_equal(kernel(INDEX[10:20]), GRAM[10:20, 10:20])


def test_large_values_are_finite():
    gram = np.full((3, 3), 1e308)
    assert_array_equal(Precomputed(gram)(np.arange(3.0)[:, np.newaxis]), gram)


def test_rounding_is_not_asymmetry():
    gram = GRAM.copy()
    gram[0, 1] *= 1 + 1e-9
    assert precomputed([gram])[0][0].gram is gram


def test_stored_matrices_are_of_the_same_samples():
    with pytest.raises(ValueError, match="have one size"):
        precomputed([np.eye(2), np.eye(3)])
    with pytest.raises(ValueError, match=r"no matrix.*precomputed\(\[gram\]\)"):
        precomputed([])
    with pytest.raises(ValueError, match=r"as a list: precomputed\(\[gram\]\)"):
        precomputed(np.eye(3))


@pytest.mark.parametrize("number", [-1, 40, 0.5, 1e300, np.nan, np.inf])
def test_a_row_number_out_of_range_is_named(number):
    message = rf"{number:g} is not in the stored 40 x 40".replace("+", ".")
    X = np.array([[0.0], [number]])
    for read in (KERNEL, KERNEL.diag, KERNEL.bind):
        with pytest.raises(ValueError, match=message):
            read(X)


def test_more_than_one_column_needs_a_view():
    X = np.hstack([FEATURES, INDEX])
    with pytest.raises(ValueError, match=r"one column.*\(40, 4\)"):
        KERNEL(X)
    assert_array_equal(KERNEL.on([-1])(X), GRAM)


def test_a_normalised_view_of_stored_rows_may_be_missing():
    X = np.hstack([INDEX, FEATURES])
    X[3, 0] = np.nan
    present = np.delete(np.arange(40), 3)
    for view in (KERNEL.normalized("trace").on([0]), KERNEL.on([0]).normalized("trace")):
        assert_allclose(view.bind(X)(X[present]), GRAM[np.ix_(present, present)] / 39)


def distance_is_no_number(X, Z):
    return np.full((X.shape[0], Z.shape[0]), np.nan)


def forgets_the_right_side(X, Z):
    return X @ X.T


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (distance_is_no_number, "returned NaN or infinity"),
        (forgets_the_right_side, r"returned shape \(40, 40\) for 40 and 2 samples"),
    ],
)
def test_functions_with_invalid_values_are_rejected(function, message):
    with pytest.raises(ValueError, match=message):
        Callable(function)(FEATURES, FEATURES[:2])


def test_a_function_gives_its_name_and_its_values():
    kernel = Callable(forgets_the_right_side)
    assert kernel.label == "forgets_the_right_side"
    assert Callable(lambda X, Z: X @ Z.T).label == "lambda"
    assert_allclose(kernel(FEATURES), Linear()(FEATURES))


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=str)
@pytest.mark.parametrize(
    "kernel",
    [
        KERNEL,
        KERNEL.normalized("trace"),
        KERNEL.normalized().on([0]),
        KERNEL + KERNEL,
        KERNEL.on([0]).normalized("mean_diag"),
    ],
    ids=repr,
)
@given(rank=st.integers(1, 2), others=st.booleans(), seed=st.integers(0, 2**16))
def test_gated_matrices_of_stored_kernels(kernel, dtype, rank, others, seed):
    draw = np.random.RandomState(seed)
    rows = draw.permutation(40)[:15]
    kernels = [kernel.bind(INDEX[rows])] + [Linear(), Callable(RBF(0.1))] * others
    gates = draw.uniform(size=(15, len(kernels), rank))
    gram = InnerProducts(INDEX[rows], dtype=dtype).gated(kernels, gates)
    expected = sum(
        (gates[:, i] @ gates[:, i].T) * kernel(INDEX[rows]) for i, kernel in enumerate(kernels)
    )
    close = {"rtol": 1e-5, "atol": 1e-6 * np.abs(expected).max()}
    assert_allclose(gram.whole, expected, **close)
    some, more = np.array([3, 0, 7]), np.array([2, 7])
    assert_allclose(gram.rows(some), expected[some], **close)
    assert_allclose(gram.regated(gates).cross(some, more), expected[np.ix_(some, more)], **close)
    coef = draw.normal(size=15)
    close["atol"] *= 15
    assert_allclose(gram.dot(coef), expected @ coef, **close)
