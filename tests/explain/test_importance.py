"""Shuffled views: whole, and only among those who have them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.inspection import permutation_importance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import UniformMKLClassifier, UniformMKLRegressor
from lokl.datasets import make_views
from lokl.explain import view_importance
from lokl.explain.view_scores import _exchanged
from lokl.kernels import RBF, per_view

X, Y, VIEWS, _ = make_views(160, random_state=0)
KERNELS = per_view(RBF(), VIEWS)
MODEL = UniformMKLClassifier(KERNELS, C=10).fit(X[:80], Y[:80])
FRESH, TRUE = X[80:], Y[80:]


def test_columns_are_what_scikit_learn_says():
    found = view_importance(MODEL, FRESH, TRUE, of="columns", n_repeats=3, random_state=0)
    plain = permutation_importance(MODEL, FRESH, TRUE, n_repeats=3, random_state=0)
    np.testing.assert_allclose(found["loss"], plain.importances_mean)
    np.testing.assert_allclose(found["spread"], plain.importances_std)
    assert found.rows[:2] == ("x0", "x1")
    assert found.kind == "column"


def test_a_view_moves_as_a_whole():
    found = view_importance(MODEL, FRESH, TRUE, n_repeats=4, random_state=1)
    assert found.rows == tuple(VIEWS)
    # By hand, with the draws of scikit-learn: one seed, the same for all columns.
    seed = np.random.RandomState(1).randint(np.iinfo(np.int32).max + 1)
    rng, places, losses = np.random.RandomState(seed), np.arange(len(TRUE)), []
    for _ in range(4):
        rng.shuffle(places)
        moved = FRESH.copy()
        moved[:, VIEWS["view 2"]] = FRESH[places][:, VIEWS["view 2"]]
        losses.append(MODEL.score(FRESH, TRUE) - MODEL.score(moved, TRUE))
    np.testing.assert_allclose(found.row("view 2")["loss"], np.mean(losses))


@given(seed=st.integers(0, 2**16), kind=st.sampled_from(["array", "sparse", "frame"]))
def test_those_who_have_a_view_exchange_it(seed, kind):
    rng = np.random.RandomState(seed)
    data = rng.normal(size=(20, 5))
    lacking = rng.rand(20) < 0.3
    columns = np.array([3, 1])
    if kind != "sparse":
        data[np.ix_(lacking, columns)] = np.nan
    order = rng.permutation(20)
    made = {"array": np.array, "sparse": sparse.csr_matrix, "frame": pd.DataFrame}[kind](data)
    moved = _exchanged(made, columns, order)
    moved = moved.toarray() if kind == "sparse" else np.asarray(moved)
    np.testing.assert_array_equal(moved[:, [0, 2, 4]], data[:, [0, 2, 4]])
    np.testing.assert_array_equal(np.isnan(moved), np.isnan(data))
    rows = [tuple(row) for row in data[:, columns] if not np.isnan(row).any()]
    assert sorted(rows) == sorted(tuple(r) for r in moved[:, columns] if not np.isnan(r).any())
    if kind == "sparse" or not lacking.any():
        np.testing.assert_array_equal(moved[:, columns], data[order][:, columns])


def test_samples_may_lack_views_and_pipelines_are_asked_behind_their_transformers():
    holes, y, views, _ = make_views(160, missing=0.3, random_state=0)
    frame = pd.DataFrame(holes, columns=[f"c{j}" for j in range(holes.shape[1])])
    named = {view: frame.columns[own].tolist() for view, own in views.items()}
    scaler = StandardScaler().set_output(transform="pandas")
    model = make_pipeline(scaler, UniformMKLClassifier(per_view(RBF(), named), C=10))
    model.fit(frame[:80], y[:80])
    for of, rows in (("views", tuple(views)), ("columns", tuple(frame.columns))):
        found = view_importance(model, frame[80:], y[80:], of=of, n_repeats=2, random_state=0)
        assert found.rows == rows
        assert found["loss"].max() > 0


def test_scores_and_sparse_samples():
    dense = view_importance(
        MODEL, FRESH, TRUE, scoring="roc_auc", n_repeats=2, random_state=0, views=VIEWS
    )
    thin = view_importance(
        MODEL, sparse.csr_matrix(FRESH), TRUE, scoring="roc_auc", n_repeats=2, random_state=0
    )
    np.testing.assert_allclose(thin["loss"], dense["loss"], atol=1e-6)
    target = X[:, 0]
    model = UniformMKLRegressor(KERNELS, C=10).fit(X[:80], target[:80])
    found = view_importance(model, FRESH, target[80:], n_repeats=2, random_state=0)
    assert found["loss"].argmax() == 0


def test_a_wrong_word_is_named():
    with pytest.raises(ValueError, match="of must be one of 'views', 'columns', got 'rows'"):
        view_importance(MODEL, FRESH, TRUE, of="rows")
