"""Errors of fits on collections name the value, its position and the remedy."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed_cases import TARGET, X, Y, classifier, regressor
from distributed_cases import dask as chunked

from lokl import RegionClassifier, RegionSurvival, UniformMKLClassifier, UniformMKLRegressor
from lokl.distributed import fit


@pytest.fixture(autouse=True)
def plain_scheduler():
    with dask.config.set(scheduler="synchronous"):
        yield


BAD = X.copy()
BAD[345, 1] = np.nan


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        (UniformMKLClassifier(), (chunked(X, 99), Y), "UniformMKLClassifier.*RegionClassifier"),
        (UniformMKLRegressor(), (chunked(X, 99), Y), "UniformMKLRegressor.*RegionRegressor"),
        (RegionSurvival(), (chunked(X, 99), Y), "RegionSurvival .*in memory"),
        (RegionClassifier, (chunked(X, 99), Y), "class RegionClassifier"),
        (classifier(covers=0), (chunked(X, 99), Y), "covers .* 0"),
        (classifier(UniformMKLRegressor()), (chunked(X, 99), Y), "decision_function"),
        (
            classifier(),
            (X, Y),
            r"X .*dask.*ndarray.*from_array",
        ),
        (classifier(), (chunked(Y, 99), Y), r"X .*\(700,\)"),
        (classifier(), (chunked(X, 99), None), "RegionClassifier .*y.* None"),
        (classifier(), (chunked(X, 99), Y[:-1]), "X .*700.* y .*699"),
        (classifier(), (chunked(X, 99), Y, Y[:9]), "X .*700.* sample_weight .*9"),
        (classifier(), (chunked(X, 99), Y, 0 * Y), "sample weights .*zero"),
        (classifier(), (chunked(X, 99), Y, Y - 0.5), r"rows \d+ to \d+ .*-0.5"),
        (classifier(), (chunked(BAD, 100), Y), r"rows 300 to 399 of X: .*NaN \(row 45, column 1\)"),
        (classifier(), (chunked(X, 99), 0 * Y), "class.*: 0"),
        (classifier(), (chunked(X, 99), TARGET), "Unknown label type: continuous"),
        (classifier(), (chunked(X, 99), np.column_stack([Y, Y])), "y should be a 1d array"),
        (classifier(), (da.zeros((0, 2)), da.zeros(0)), "X .*rows"),
        (
            regressor(),
            (chunked(X, 99), np.where(Y, np.nan, 1)),
            r"rows \d+ to \d+ of X: .*y contains NaN",
        ),
        (classifier(), (chunked(X, 99), dask.delayed(Y)), "y .*Delayed"),
        (classifier(), (chunked(X, 99), np.zeros((700, 1, 1))), r"y .*\(700, 1, 1\)"),
    ],
)
def test_errors_name_value_and_remedy(model, given, words):
    with pytest.raises(ValueError, match=words):
        fit(model, *given)


def test_other_clients_are_refused():
    with pytest.raises(ValueError, match=r"client .*tcp://far:8786.*distributed.Client\(address"):
        fit(classifier(), chunked(X, 99), Y, client="tcp://far:8786")


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_labels_in_one_column_are_labels():
    fitted = fit(classifier(), chunked(X, 99), chunked(Y[:, np.newaxis], 50))
    np.testing.assert_array_equal(fitted.predict(X), classifier().fit(X, Y).predict(X))


def test_blocks_of_other_lengths_than_announced_are_named():
    wrong = chunked(X, 100).map_blocks(lambda block: block[:-1], meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match=r"rows \d+ to \d+ of X: .*99 .*100"):
        fit(classifier(), wrong, Y)


def test_labels_of_several_types_are_named():
    parts = [
        da.from_delayed(dask.delayed(values), (350,), meta=np.empty(0))
        for values in (Y[:350], np.array(["no", "yes"])[Y[350:]])
    ]
    with pytest.raises(ValueError, match=r"labels .*y\.astype"):
        fit(classifier(), chunked(X, 350), da.concatenate(parts))


def test_blocks_of_other_columns_are_named():
    def renamed(part):
        return part.rename(columns={"b": "c"}) if part.index[0] > 0 else part

    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=2)
    other = dd.from_delayed(
        [dask.delayed(renamed)(part) for part in frame.to_delayed()],
        meta=frame._meta,
        verify_meta=False,
    )
    with pytest.raises(ValueError, match=r"X .*\['a', 'b'\].*\['a', 'c'\]"):
        fit(classifier(), other, Y)


def test_text_in_a_data_frame_is_an_error():
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(c="word")
    with pytest.raises(ValueError, match=r"rows \d+ to .*'word'"):
        fit(classifier(), dd.from_pandas(frame, npartitions=2), Y)


def test_dask_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dask.array", None)
    with pytest.raises(ImportError, match=r"pip install 'lokl\[dask\]'"):
        fit(classifier(), X, Y)
