"""Columns of a view: every way to name them selects the same ones."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.compose import make_column_selector

from lokl.kernels import RBF, Callable, Chi2, Cosine, Laplacian, Linear, per_view

FRAME = pd.DataFrame(
    np.random.default_rng(0).integers(1, 9, size=(7, 5)) / 4.0, columns=list("abcde")
).astype({"b": int, "d": int})
KERNELS = [Linear(), RBF("scale"), Laplacian(), Cosine(), Chi2(), Linear().normalized("mean_diag")]


def product(X, Z):
    return X @ Z.T


def shown(value):
    if isinstance(value, make_column_selector):
        return f"selector {value.pattern} {value.dtype_include}"
    return type(value).__name__ if hasattr(value, "shape") else str(value)


def bound_columns(columns, X=FRAME, frame=None):
    return Linear().on(columns).bind(X, None, frame).columns


@pytest.mark.parametrize(
    ("columns", "positions"),
    [
        ("c", [2]),
        (["e", "a"], [4, 0]),
        (("b",), [1]),
        (pd.Index(["a", "d"]), [0, 3]),
        (np.array(["c", "b"]), [2, 1]),
        (2, [2]),
        (np.int64(3), [3]),
        ([0, 4], [0, 4]),
        (range(1, 3), [1, 2]),
        (-1, [4]),
        ([-2, -5], [3, 0]),
        (slice(1, 4), [1, 2, 3]),
        (slice(None, None, 2), [0, 2, 4]),
        (slice(-2, None), [3, 4]),
        (slice("b", "d"), [1, 2, 3]),
        (slice(None, "b"), [0, 1]),
        (slice("d", None), [3, 4]),
        (slice("a", "e", 2), [0, 2, 4]),
        ([True, False, False, True, False], [0, 3]),
        (np.array([False, True, True, False, False]), [1, 2]),
        (pd.Series([False, False, False, False, True]), [4]),
        (make_column_selector(dtype_include=int), [1, 3]),
        (make_column_selector(pattern="[ae]"), [0, 4]),
        (["b", 3], [1, 3]),
    ],
    ids=shown,
)
def test_every_way_to_select_gives_positions(columns, positions):
    assert bound_columns(columns) == positions
    assert bound_columns(columns, FRAME.to_numpy(float), FRAME) == positions
    expected = Linear()(FRAME.to_numpy(float)[:, positions])
    assert_allclose(Linear().on(columns)(FRAME), expected)
    assert_allclose(Linear().on(columns).bind(FRAME)(FRAME.to_numpy(float)), expected)


@given(st.data())
def test_positions_and_masks_select_like_numpy(data):
    d = data.draw(st.integers(1, 6))
    X = np.arange(3.0 * d).reshape(3, d)
    columns = data.draw(
        st.one_of(
            st.lists(st.integers(-d, d - 1), min_size=1, max_size=8),
            st.lists(st.booleans(), min_size=d, max_size=d).filter(any),
            st.slices(d).filter(lambda s: len(range(d)[s]) > 0),
        )
    )
    chosen = np.array(columns) if isinstance(columns, list) else columns
    for given_as in (X, sparse.csr_matrix(X)):
        assert_array_equal(Linear().on(columns).bind(given_as)(given_as), Linear()(X[:, chosen]))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_view_is_the_kernel_on_those_columns(kernel):
    X = FRAME.to_numpy(float)
    expected = kernel.bind(X[:, [3, 1]])(X[:, [3, 1]])
    for view in (kernel.on(["d", "b"]).bind(FRAME), kernel.on([3, 1]).bind(X)):
        assert_allclose(view(FRAME), expected)
        assert_allclose(view(X), expected)
        assert_allclose(view(FRAME, X), expected)
        assert_allclose(view(sparse.csr_matrix(X)), expected)
        assert_allclose(view.diag(FRAME), expected.diagonal())


def test_inside_a_view_columns_are_counted_and_named_anew():
    for inner, frame in (([1], None), (["c"], FRAME), (make_column_selector("c"), FRAME)):
        view = RBF(1.0).on(inner).on(["e", "c"]).bind(FRAME, None, frame)
        assert_allclose(view(FRAME), RBF(1.0)(FRAME[["c"]]))


@pytest.mark.parametrize("X", [FRAME, FRAME.to_numpy(float)], ids=["frame", "array"])
@pytest.mark.parametrize("kernel", [*KERNELS, Callable(product)], ids=lambda k: k.label)
def test_frames_and_arrays_give_the_same_values(kernel, X):
    array = FRAME.to_numpy(float)
    assert_allclose(kernel.bind(X)(array), kernel.bind(array)(array))
    assert_allclose(kernel.bind(array).diag(array), kernel.bind(X)(array).diagonal())


def test_samples_without_a_view_have_no_effect_on_its_scale():
    X = FRAME.to_numpy(float)
    X[[1, 5], :2] = np.nan
    present = ~np.isnan(X[:, 0])
    for gamma in ("scale", "median"):
        learned = RBF(gamma).on([0, 1]).bind(X).kernel.gamma
        assert learned == RBF(gamma).bind(X[present, :2]).gamma


def test_labels_name_the_view():
    assert Linear().on("age").label == "linear on age"
    assert Linear().on(["a", "b"]).label == "linear on a, b"
    assert Linear().on(range(2)).bind(FRAME).label == "linear on 0, 1"
    assert Linear().on(list("abcde")).label == "linear on 5 columns"


@pytest.mark.parametrize(
    ("columns", "X", "message"),
    [
        (["a", "z"], FRAME, r"unknown column 'z'; the data has a, b, c, d, e"),
        (slice("a", "z"), FRAME, "unknown column 'z'"),
        ([0, 5], FRAME, "unknown column 5; the data has 5 columns"),
        (-6, FRAME, "unknown column -6; the data has 5 columns"),
        ([True, False], FRAME, "mask of length 2 does not fit 5 columns"),
        ([], FRAME, r"selects no column of 5"),
        ([False] * 5, FRAME, "selects no column of 5"),
        (slice(3, 3), FRAME, "selects no column of 5"),
        (make_column_selector(pattern="z"), FRAME, "selects no column of 5"),
        ("a", FRAME.to_numpy(), "'a' is a name, but the data has no column names"),
        (slice("a", "c"), FRAME.to_numpy(), "'a' is a name, but the data has no column names"),
        (make_column_selector(pattern="a"), FRAME.to_numpy(), "selector needs a data frame"),
        ([1.5], FRAME, "a name or a position, got 1.5"),
    ],
    ids=shown,
)
def test_errors_of_unknown_columns_name_them(columns, X, message):
    with pytest.raises(ValueError, match=message):
        Linear().on(columns).bind(X)


def test_per_view_names_groups_of_columns():
    views = per_view(RBF("scale"), {"left": ["a", "b"], "right": slice(2, 5)})
    assert list(views) == ["left", "right"]
    for view, columns in zip(views.values(), ([0, 1], [2, 3, 4]), strict=True):
        expected = RBF("scale").bind(FRAME.to_numpy()[:, columns])
        assert view.bind(FRAME).kernel.gamma == expected.gamma
