"""Fits and predictions on workers, some of which are lost."""

import gc
import os
import pickle
import subprocess
import sys
import time

import dask
import dask.array as da
import joblib
import numpy as np
import pytest
from dask.sizeof import sizeof
from distributed_cases import (
    FRESH,
    TARGET,
    Fragile,
    X,
    Y,
    check_same,
    classifier,
    fragile_block,
    make_fragile,
    regressor,
)
from distributed_cases import dask as chunked
from sklearn.linear_model import LogisticRegression

import lokl
from lokl import RegionClassifier, UniformMKLClassifier, distributed
from lokl.regions.dask import answers, fitting
from lokl.regions.dask.graph import pickled_size
from lokl.search import CalibratedMKLClassifier, KernelSearchCV

pytestmark = pytest.mark.slow

PROBABLE = CalibratedMKLClassifier(UniformMKLClassifier(["rbf"]))


@pytest.mark.parametrize("cluster", ["processes", "threads"])
def test_workers_give_the_model_of_samples_in_memory(cluster, request):
    client = request.getfixturevalue(cluster)
    model = classifier(covers=2, overlap=0.1)
    plain = model.fit(X, Y)
    for chunks in (60, (1, 0, 699)):
        fitted = distributed.fit(model, chunked(X, chunks), chunked(Y, 200), client=client)
        check_same(fitted, plain)


def test_the_current_client_is_taken(threads):
    model = RegionClassifier(max_region_size=300, random_state=0)
    seen = threads.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)
    with threads.as_current():
        fitted = distributed.fit(model, chunked(X, 200), Y)
        answer = distributed.score(fitted, chunked(X, 200), Y)
        assert float(answer) == fitted.score(X, Y)
    after = threads.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)
    assert after > seen
    check_same(fitted, model.fit(X, Y))


def test_nothing_is_left_on_the_workers(threads):
    distributed.fit(classifier(), chunked(X, 100), Y, client=threads)
    # A round trip, after which released keys have been removed.
    threads.submit(int, 1).result()
    left = threads.run_on_scheduler(
        lambda dask_scheduler: [
            str(key) for key in dask_scheduler.tasks if "batch" in str(key) or "join" in str(key)
        ]
    )
    assert left == []


def soon(condition):
    """Return whether a condition becomes true: messages of workers arrive late."""
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_a_large_model_is_handed_to_the_workers_once(processes, monkeypatch):
    model = classifier().fit(X, Y)
    data = chunked(FRESH, 10)
    processes.wait_for_workers(2, timeout=60)
    before = set(processes.who_has())
    small = distributed.predict(model, data, client=processes)
    monkeypatch.setattr(answers, "_LARGE_MODEL_BYTES", 0)
    large = distributed.predict(model, data, client=processes)
    # The model itself is not in the graph, but on a worker, as the only data there.
    assert len(pickle.dumps(dict(large.dask))) < len(pickle.dumps(dict(small.dask))) / 2
    assert soon(lambda: len(set(processes.who_has()) - before) == 1)
    for answer in (small, large):
        found = processes.compute(answer).result()
        np.testing.assert_array_equal(found, model.predict(FRESH))


@pytest.mark.parametrize(
    ("model", "y", "methods"),
    [
        (classifier(), Y, ("predict", "decision_function", "weights", "contributions")),
        (classifier(covers=2, overlap=0.2), Y, ("predict", "weights", "contributions")),
        (
            classifier(PROBABLE),
            Y + (X[:, 0] > 1),
            ("predict", "decision_function", "predict_proba"),
        ),
        (regressor(covers=2), np.column_stack([TARGET, -TARGET]), ("predict", "contributions")),
        (
            classifier(scale_features="shared", max_region_size=150),
            Y,
            ("predict", "decision_function"),
        ),
    ],
    ids=["plain", "covers and overlap", "probabilities", "targets", "feature scaling"],
)
def test_a_model_larger_than_a_worker_is_divided(model, y, methods, threads, monkeypatch):
    monkeypatch.setattr(answers, "_LARGEST_MEMORY_SHARE", 0.0)
    monkeypatch.setattr(answers, "_SHARD_BYTES", 9_000)
    model.fit(X, y)
    ranges, shards = answers.split_model(model._model)
    assert len(ranges) > 2
    assert all(pickled_size(shard) < pickled_size(model) / 2 for shard in shards)
    data = chunked(FRESH, (40, 0, 1, 49))
    some = data[data[:, 0] > 0]
    kept = FRESH[:, 0] > 0
    for method in methods:
        for collection, rows in ((data, FRESH), (some, FRESH[kept])):
            answer = getattr(distributed, method)(model, collection, client=threads)
            expected = getattr(model, method)(rows)
            # Only the lazy result keeps the shards on the workers.
            gc.collect()
            found = threads.compute(answer).result()
            assert answer.dtype == found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    score = distributed.score(model, chunked(X, (300, 0, 400)), chunked(y, 99), client=threads)
    assert threads.compute(score).result() == pytest.approx(model.score(X, y))


def test_models_need_no_dask_to_be_kept_and_used(processes, tmp_path):
    fitted = distributed.fit(classifier(), chunked(X, 200), Y, client=processes)
    expected = fitted.decision_function(FRESH)
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(fitted))
    np.save(tmp_path / "fresh.npy", FRESH)
    np.save(tmp_path / "expected.npy", expected)
    lokl.save(fitted, tmp_path / "model.lokl")
    code = (
        "import sys\n"
        "for name in ('dask', 'distributed'): sys.modules[name] = None\n"
        "import pickle, numpy as np, lokl\n"
        "fresh, expected = np.load('fresh.npy'), np.load('expected.npy')\n"
        "for model in (pickle.load(open('model.pickle', 'rb')), lokl.load('model.lokl')):\n"
        "    assert (model.decision_function(fresh) == expected).all()\n"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )


def test_warnings_of_workers_reach_the_caller(processes):
    estimator = UniformMKLClassifier(["rbf"], C=1e-3)
    with pytest.warns(UserWarning, match=r"saturated.*last of \d+") as caught:
        distributed.fit(classifier(estimator), chunked(X, 200), Y, client=processes)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_errors_of_workers_reach_the_caller(processes):
    bad = X.copy()
    bad[345, 1] = np.inf
    with pytest.raises(ValueError, match=r"rows 200 to 399 of X: .*infinity"):
        distributed.fit(classifier(), chunked(bad, 200), Y, client=processes)
    with pytest.raises(ValueError, match=r"C .*-1\.0"):
        distributed.fit(
            classifier(UniformMKLClassifier(C=-1.0)), chunked(X, 200), Y, client=processes
        )


def test_searches_run_on_workers_through_joblib(processes):
    with processes.as_current(), joblib.parallel_config(backend="dask", n_jobs=2):
        for model in (UniformMKLClassifier("rbf"), LogisticRegression()):
            search = KernelSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(X[:100], Y[:100])
            plain = KernelSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(X[:100], Y[:100])
            np.testing.assert_allclose(
                search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
            )


def test_blocks_stay_small_however_many_rows_there_are():
    """Rows are generated block by block, and no task receives more than a batch."""
    made = da.random.default_rng(0).normal(size=(100_000, 4), chunks=(10_000, 4))
    y = (made[:, 0] > 0).astype(int)
    largest = []

    join = fitting.join_batch

    def noted(*arguments):
        batch = join(*arguments)
        largest.append(sizeof(batch))
        return batch

    model = classifier(UniformMKLClassifier(["rbf"], tol=1e-2), max_region_size=1000)
    with (
        pytest.MonkeyPatch.context() as patch,
        dask.config.set(scheduler="synchronous"),
    ):
        patch.setattr("lokl.regions.dask.fitting.join_batch", noted)
        patch.setattr("lokl.regions.dask.fitting._BATCH_BYTES", 2**18)
        fitted = distributed.fit(model, made, y)
    whole = 100_000 * 4 * 8
    assert sum(largest) > whole
    # Positions of rows and labels are also counted.
    assert max(largest) < 2 * 2**18
    assert fitted.region_sizes_[0].sum() == 100_000


# Dask logs lost workers, and closes their connections late.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("when", ["while rows are brought together", "while regions learn"])
def test_a_worker_that_dies_changes_nothing(when, tmp_path, processes):
    marker = tmp_path / "died"
    estimator, data = UniformMKLClassifier(["rbf"]), chunked(X, 100)
    plain = classifier(estimator).fit(X, Y)
    # Wait for the replacement of a worker that was lost before.
    processes.wait_for_workers(2)
    if when == "while regions learn":
        estimator = Fragile(["rbf"])
        processes.run(make_fragile, str(marker))
    else:
        data = data.map_blocks(fragile_block, str(marker), meta=np.empty((0, 0)))
    before = set(processes.scheduler_info()["workers"])
    fitted = distributed.fit(classifier(estimator), data, chunked(Y, 100), client=processes)
    assert marker.exists()
    assert set(processes.scheduler_info()["workers"]) != before
    check_same(fitted, plain)
