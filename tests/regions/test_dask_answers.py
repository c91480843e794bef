"""Predictions on collections are lazy, and equal those of the model itself."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed_cases import BLOBS, COLOURS, FRESH, TARGET, X, Y, classifier, regressor
from distributed_cases import dask as chunked
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import LMKLClassifier, UniformMKLClassifier, distributed
from lokl.kernels import RBF
from lokl.search import CalibratedMKLClassifier

pytestmark = pytest.mark.slow

METHODS = ("predict", "decision_function", "weights", "contributions")
TWO = classifier().fit(X, Y)
THREE = classifier(CalibratedMKLClassifier(UniformMKLClassifier(["rbf"]))).fit(BLOBS, COLOURS)
PIPELINE = make_pipeline(StandardScaler(), UniformMKLClassifier(["rbf"])).fit(X, Y)
TWO_TARGETS = regressor().fit(X, np.column_stack([TARGET, -TARGET]))


@pytest.fixture(autouse=True)
def plain_scheduler():
    with dask.config.set(scheduler="synchronous"):
        yield


def call(model, method, data):
    return getattr(distributed, method)(model, data)


@pytest.mark.parametrize(
    ("model", "methods"),
    [
        (TWO, METHODS),
        (THREE, ("predict", "decision_function", "predict_proba")),
        (TWO_TARGETS, ("predict", "weights", "contributions")),
        (LMKLClassifier(["linear", "rbf"], random_state=0).fit(X, Y), METHODS),
        (PIPELINE, METHODS[:2]),
    ],
    ids=["two classes", "three classes", "targets", "localized", "pipeline"],
)
def test_predictions_are_those_of_the_model(model, methods):
    for method in methods:
        expected = getattr(model, method)(FRESH)
        columns = da.from_array(FRESH, chunks=(40, 1))
        np.testing.assert_allclose(call(model, method, columns)[:3] == expected[:3], True)
        answer = call(model, method, chunked(FRESH, (40, 0, 1, 49)))
        assert isinstance(answer, da.Array)
        assert answer.chunks[0] == (40, 0, 1, 49)
        assert answer.shape == expected.shape
        assert answer.dtype == expected.dtype
        found = answer.compute()
        assert found.dtype == expected.dtype
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        else:
            np.testing.assert_array_equal(found, expected)


def test_predictions_of_unknown_chunks_data_frames_and_csr_blocks():
    data = chunked(FRESH, 20)
    some = data[data[:, 0] > 0]
    kept = FRESH[:, 0] > 0
    np.testing.assert_array_equal(
        distributed.predict(TWO, some).compute(), TWO.predict(FRESH[kept])
    )
    frame = pd.DataFrame(FRESH, columns=["a", "b"], index=np.arange(90) + 1000)
    estimator = UniformMKLClassifier({"first": RBF(1.0).on(["a"]), "both": RBF(1.0)})
    model = classifier(estimator).fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    parts = dd.from_pandas(frame, npartitions=4)
    # Partitions without rows.
    parts = parts[(parts.index > 1040) & (parts.a < 100)]
    for method in METHODS:
        answer = call(model, method, parts)
        expected = getattr(model, method)(frame[frame.index > 1040])
        np.testing.assert_allclose(answer.compute(), expected, rtol=1e-9, atol=1e-12)
    whole = dd.from_pandas(frame, npartitions=4)
    assigned = whole.assign(label=distributed.predict(model, whole)).compute()
    np.testing.assert_array_equal(assigned["label"], model.predict(frame))
    data = sparse.random(60, 20, 0.2, format="csr", random_state=0)
    y = np.arange(60) % 2
    csr = UniformMKLClassifier(["rbf"]).fit(data, y)
    block = da.from_delayed(dask.delayed(data), data.shape, meta=sparse.csr_matrix((0, 0)))
    np.testing.assert_array_equal(distributed.predict(csr, block).compute(), csr.predict(data))


def test_predictions_are_lazy(tmp_path):
    def noted(block):
        (tmp_path / "read").touch()
        return block

    data = chunked(FRESH, 30).map_blocks(noted, meta=np.empty((0, 0)))
    answer = distributed.decision_function(TWO, data)
    score = distributed.score(TWO, data, chunked(np.zeros(90), 30))
    assert not (tmp_path / "read").exists()
    answer.compute()
    assert (tmp_path / "read").exists()
    assert score.shape == ()


def test_the_model_is_in_the_graph_once():
    data = chunked(FRESH, 1)
    answer = distributed.predict(TWO, data)
    held = [key for key, task in dict(answer.dask).items() if _holds(task)]
    assert len(held) == 1


def _holds(task):
    return getattr(task, "value", task) is TWO


@given(
    places=st.lists(st.integers(0, 700), max_size=5),
    others=st.lists(st.integers(0, 700), max_size=3),
    weighted=st.booleans(),
)
@settings(max_examples=15)
def test_scores_are_those_of_the_model(places, others, weighted):
    weight = np.random.RandomState(0).randint(0, 3, size=700).astype(float) if weighted else None
    targets = np.column_stack([TARGET + 1e6, X[:, 0]])
    for model, y in ((TWO, Y), (TWO_TARGETS, targets)):
        chunks, target_chunks = (np.diff([0, *sorted(p), 700]).tolist() for p in (places, others))
        score = distributed.score(
            model,
            chunked(X, tuple(chunks)),
            chunked(y, tuple(target_chunks)),
            None if weight is None else chunked(weight, 200),
        )
        assert float(score) == pytest.approx(model.score(X, y, weight), rel=1e-9)


def test_scores_of_data_frames_words_and_constant_targets():
    frame = pd.DataFrame(BLOBS, columns=["a", "b"]).assign(colour=COLOURS)
    model = classifier().fit(frame[["a", "b"]], COLOURS)
    parts = dd.from_pandas(frame, npartitions=3)
    parts = parts[(parts.index > 300) & (parts.a < 100)]
    score = distributed.score(model, parts[["a", "b"]], parts["colour"])
    kept = frame[frame.index > 300]
    assert score.compute() == model.score(kept[["a", "b"]], kept["colour"])
    # Chunks of unknown and of known sizes.
    mixed = distributed.score(model, parts[["a", "b"]], chunked(kept["colour"].to_numpy(str), 50))
    assert bool(mixed == score)
    constant = regressor().fit(X, TARGET)
    for y in (np.zeros(90), constant.predict(FRESH)):
        found = float(distributed.score(constant, chunked(FRESH, 20), y))
        assert found == pytest.approx(constant.score(FRESH, y))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda: distributed.predict(TWO, FRESH), "X .*dask array.*ndarray"),
        (lambda: distributed.predict(TWO, chunked(FRESH[:, 0], 9)), r"X .*\(90,\)"),
        (lambda: distributed.predict(TWO, chunked(X[:, :1], 100)), "2 features"),
        (
            lambda: distributed.predict_proba(TWO, chunked(X, 100)),
            "Region.*predict_proba",
        ),
        (lambda: distributed.weights(PIPELINE, chunked(X, 100)), "Pipeline .*weights"),
        (lambda: distributed.predict(classifier(), chunked(X, 100)), "not fitted"),
        (lambda: distributed.score(TWO, chunked(X, 100), Y[:600]), "X .*700.* y .*600"),
        (
            lambda: distributed.score(StandardScaler().fit(X), chunked(X, 100), Y),
            "StandardScaler",
        ),
    ],
)
def test_errors_name_value_and_remedy(function, words):
    with pytest.raises(ValueError, match=words):
        function()


def test_blocks_that_turn_out_to_differ_are_named():
    parts = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=4)
    model = classifier().fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    y = dd.from_pandas(pd.Series(Y[:-50]), npartitions=4)
    with pytest.raises(ValueError, match=r"X has 1.. rows.* y has 1.."):
        distributed.score(model, parts, y).compute()
