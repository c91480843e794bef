"""A fit on a collection gives the model of the same samples in memory."""

from unittest.mock import patch

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed_cases import BLOBS, COLOURS, FRESH, TARGET, X, Y, check_same, classifier, regressor
from distributed_cases import dask as chunked
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import LDMKLClassifier, RegionClassifier, RegionRegressor, UniformMKLClassifier
from lokl.distributed import fit
from lokl.kernels import RBF, per_view
from lokl.regions import tree as region_tree
from lokl.regions.dask.fitting import batches_of
from lokl.search import CalibratedMKLClassifier

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def plain_scheduler():
    """Run tasks in one thread, without a cluster."""
    with dask.config.set(scheduler="synchronous"):
        yield


def chunk_lengths(n, cuts):
    """Return the lengths of chunks of n rows, given their ends; some may be empty."""
    ends = sorted(cut % (n + 1) for cut in cuts)
    return tuple(int(length) for length in np.diff([0, *ends, n]))


MODELS = {
    "one cover": classifier(),
    "three covers": classifier(covers=3),
    "overlap": classifier(overlap=0.2),
    "covers and overlap": classifier(covers=2, overlap=0.1, max_region_size=150),
    "not convex": classifier(LDMKLClassifier(["linear", "rbf"]), max_region_size=200),
    "pipeline": classifier(make_pipeline(StandardScaler(), UniformMKLClassifier(["rbf"]))),
    "one region": classifier(max_region_size=1000, covers=2),
    "probabilities": classifier(CalibratedMKLClassifier(UniformMKLClassifier(["rbf"]))),
}
PLAIN = {name: model.fit(X, Y) for name, model in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_models_equal_those_of_samples_in_memory(name):
    fitted = fit(MODELS[name], chunked(X, (300, 0, 1, 399)), chunked(Y, 200))
    check_same(fitted, PLAIN[name])


@given(
    places=st.lists(st.integers(0, 700), max_size=9),
    others=st.lists(st.integers(0, 700), max_size=4),
)
@settings(max_examples=8)
def test_chunks_do_not_matter(places, others):
    fitted = fit(
        MODELS["one cover"],
        chunked(X, chunk_lengths(700, places)),
        chunked(Y, chunk_lengths(700, others)),
    )
    check_same(fitted, PLAIN["one cover"])


@given(places=st.lists(st.integers(0, 700), max_size=9), seed=st.integers(0, 99))
@settings(max_examples=8)
def test_chunks_do_not_matter_if_the_tree_is_grown_from_a_sample(places, seed):
    model = classifier(random_state=seed, overlap=0.1 * (seed % 2), covers=1 + seed % 3)
    # Regions of the trunk are then too large, so that branches are grown.
    with patch.multiple(region_tree, _TRUNK_SAMPLE=120, _FEWEST_TO_SPLIT=40):
        plain = model.fit(X, Y)
        fitted = fit(model, chunked(X, chunk_lengths(700, places)), chunked(Y, 90))
    check_same(fitted, plain)


def test_more_rows_than_the_sample_has():
    rng = np.random.RandomState(0)
    many = rng.normal(size=(60_000, 2))
    y = many[:, 0] * many[:, 1] > 0
    model = classifier(UniformMKLClassifier([RBF(1.0)], tol=1e-2), max_region_size=2000)
    plain = model.fit(many, y)
    for chunks in (7000, (1, 59_999)):
        check_same(fit(model, chunked(many, chunks), chunked(y, 30_000)), plain)


def test_the_model_that_is_given_stays_as_it_is():
    model = classifier()
    before = dict(vars(model))
    assert fit(model, chunked(X, 100), Y) is not model
    assert vars(model) == before


@pytest.mark.parametrize("tune", ["shared", "each", None])
@pytest.mark.parametrize("kind", ["classes", "targets"])
def test_the_same_settings_are_chosen(tune, kind):
    kinds = {"classes": (RegionClassifier, Y), "targets": (RegionRegressor, 1000 * TARGET)}
    make, y = kinds[kind]
    model = make(max_region_size=250, tune=tune, random_state=1)
    plain = model.fit(X, y)
    fitted = fit(model, chunked(X, 130), chunked(y, 200))
    check_same(fitted, plain)
    assert str(fitted.best_params_) == str(plain.best_params_)
    assert (fitted.best_params_ != {}) == (tune == "shared")


def test_a_grid_is_searched_with_a_warning_at_its_edge():
    grid = {"C": [0.001, 0.01, 0.1], "kernels": [[RBF(1.0)]]}
    model = classifier(UniformMKLClassifier(), max_region_size=400, param_grid=grid)
    with pytest.warns(UserWarning, match=r"C.*largest") as caught:
        fitted = fit(model, chunked(X, 100), Y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert fitted.best_params_["C"] == 0.1


def test_targets_and_several_of_them():
    both = np.column_stack([TARGET, X[:, 0]])
    for y in (TARGET, both, TARGET[:, np.newaxis]):
        model = regressor(covers=2, overlap=0.1)
        check_same(fit(model, chunked(X, 150), chunked(y, 99)), model.fit(X, y))
    check_same(
        fit(RegionRegressor(tune=None, max_region_size=90, random_state=0), chunked(X, 60), TARGET),
        RegionRegressor(tune=None, max_region_size=90, random_state=0).fit(X, TARGET),
    )


@pytest.mark.parametrize("labels", [COLOURS, COLOURS.astype(object), COLOURS == "red"])
def test_labels_of_any_type(labels):
    model = classifier()
    plain = model.fit(BLOBS, labels)
    fitted = fit(model, chunked(BLOBS, 200), chunked(labels, 33))
    check_same(fitted, plain)
    np.testing.assert_array_equal(fitted.classes_, plain.classes_)
    assert fitted.classes_.dtype == plain.classes_.dtype
    np.testing.assert_array_equal(fitted.predict(FRESH), plain.predict(FRESH))


def test_weights_count_and_samples_of_weight_zero_are_ignored():
    weight = np.random.RandomState(0).randint(0, 3, size=len(X)).astype(float)
    weight[100:200] = 0.0
    kept = weight > 0
    for model, y in ((classifier(), Y), (regressor(), TARGET)):
        plain = model.fit(X, y, weight)
        fitted = fit(model, chunked(X, 100), chunked(y, 150), chunked(weight, 70))
        check_same(fitted, plain)
        check_same(fitted, model.fit(X[kept], y[kept], weight[kept]))
        assert fitted.region_sizes_[0].sum() == kept.sum()
    with patch.multiple(region_tree, _TRUNK_SAMPLE=120, _FEWEST_TO_SPLIT=40):
        plain = classifier().fit(X, Y, weight)
        check_same(fit(classifier(), chunked(X, 33), Y, weight), plain)


def test_samples_with_missing_views():
    wide = np.column_stack([X, X[:, ::-1]])
    wide[::4, :2] = np.nan
    wide[1::4, 2:] = np.nan
    estimator = UniformMKLClassifier(per_view(RBF(1.0), {"one": [0, 1], "two": [2, 3]}))
    model = classifier(estimator)
    plain = model.fit(wide, Y)
    fitted = fit(model, chunked(wide, 111), Y)
    check_same(fitted, plain, wide)
    np.testing.assert_array_equal(fitted.weights(wide), plain.weights(wide))
    frame = dd.from_pandas(pd.DataFrame(wide, columns=list("abcd")), npartitions=3)
    named = UniformMKLClassifier(per_view(RBF(1.0), {"one": ["a", "b"], "two": ["c", "d"]}))
    by_name = fit(classifier(named), frame, Y)
    incomplete = pd.DataFrame(X, columns=["a", "b"])
    assert (by_name.weights(incomplete)[:, 1] == 0).all()


def test_data_frames_of_unknown_lengths_with_empty_partitions():
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(label=np.array(["no", "yes"])[Y], w=1.0 + Y)
    estimator = UniformMKLClassifier({"first": RBF(1.0).on(["a"]), "both": RBF(1.0)})
    model = classifier(estimator, covers=2)
    plain = model.fit(frame[["a", "b"]], frame["label"], frame["w"])
    whole = dd.from_pandas(frame, npartitions=5)
    # The first partition, and possibly others, have no rows left.
    left = whole[(whole.index >= 150) & (whole.a > -10)]
    for collection, expected in ((whole, plain), (left, None)):
        fitted = fit(model, collection[["a", "b"]], collection["label"], collection["w"])
        if expected is None:
            kept = frame[frame.index >= 150]
            expected = clone(model).fit(kept[["a", "b"]], kept["label"], kept["w"])
        check_same(fitted, expected, frame[["a", "b"]])
        assert list(fitted.feature_names_in_) == ["a", "b"]
        assert list(fitted.classes_) == ["no", "yes"]
    # Together with arrays of other chunks.
    check_same(
        fit(model, whole[["a", "b"]], chunked(frame["label"].to_numpy(str), 33), frame["w"]),
        plain,
        frame[["a", "b"]],
    )


def test_arrays_of_unknown_chunks():
    data = chunked(np.column_stack([X, Y]), 100)
    some = data[data[:, 0] > 0]
    assert np.isnan(some.shape[0])
    model = classifier()
    kept = X[:, 0] > 0
    check_same(fit(model, some[:, :2], some[:, 2]), model.fit(X[kept], Y[kept].astype(float)))
    # Only the chunks of y have known sizes.
    check_same(fit(model, some[:, :2], chunked(Y[kept], 60)), model.fit(X[kept], Y[kept]))


def test_arrays_in_chunks_of_columns_and_other_precisions():
    model = classifier()
    for dtype in (np.float32, np.int64):
        data = (10 * X).astype(dtype)
        plain = model.fit(data, Y)
        check_same(fit(model, da.from_array(data, chunks=(200, 1)), Y), plain, 10 * FRESH)


def test_csr_blocks():
    rng = np.random.RandomState(0)
    data = sparse.random(700, 30, 0.2, format="csr", random_state=rng)
    y = np.asarray(data[:, :15].sum(axis=1) > data[:, 15:].sum(axis=1)).ravel()
    model = classifier(max_region_size=200)
    plain = model.fit(data, y)
    parts = [
        da.from_delayed(dask.delayed(data[a : a + 140]), (140, 30), meta=sparse.csr_matrix((0, 0)))
        for a in range(0, 700, 140)
    ]
    check_same(fit(model, da.concatenate(parts), y), plain, data)


def test_batches_are_neighbours_of_bounded_size():
    sizes = np.array([3.0, 1, 1, 9, 1, 1, 1, 1])
    found = batches_of(sizes, 1)
    assert [region for first, stop in found for region in range(first, stop)] == [*range(8)]
    assert all(stop > first for first, stop in found)
    for first, stop in found:
        assert stop == first + 1 or sizes[first:stop].sum() <= sizes.sum() / 4
    assert len(batches_of(np.full(100, 1e9), 2)) == 100
