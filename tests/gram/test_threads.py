"""Loops cut in pieces for threads."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from gram_cases import dense, threads
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_info

from lokl._threads import _process_threads, n_threads, run_chunked, single_threaded
from lokl.gram import GatedGram
from lokl.gram.layouts import TILE
from lokl.kernels import RBF, Linear


@given(size=st.integers(0, 300), grain=st.integers(1, 40), count=st.integers(1, 7))
def test_every_index_is_covered_once(size, grain, count):
    pieces = []
    with threads(count):
        run_chunked(lambda start, stop, to: to.append((start, stop)), size, grain, pieces)
    assert sorted(j for piece in pieces for j in range(*piece)) == list(range(size))
    assert all(start % grain == 0 and start < stop for start, stop in pieces)
    assert len(pieces) <= count
    # Work for two threads is not left to one.
    assert len(pieces) >= min(2, count, size // grain)


@given(size=st.integers(0, 300), grain=st.integers(1, 40), count=st.integers(1, 7))
def test_shares_cover_every_index_and_stay_in_their_threads(size, grain, count):
    marks, inner = np.zeros(size, dtype=int), []

    def mark(start, stop):
        marks[start:stop] += 1
        if start > 0:
            inner.append(n_threads())

    with threads(count):
        run_chunked(mark, size, grain, serial_tasks=True)
        assert n_threads() == count
    assert (marks == 1).all()
    # More would wait for threads of the pool that wait for them.
    assert set(inner) <= {1}


@given(callers=st.integers(2, 8), size=st.integers(0, 200), count=st.integers(1, 4))
def test_it_can_be_entered_from_several_threads_at_once(callers, size, count):
    marks = np.zeros((callers, size), dtype=int)

    def mark(start, stop, row):
        row[start:stop] += 1

    with threads(count), ThreadPoolExecutor(callers) as pool:
        list(pool.map(lambda row: run_chunked(mark, size, 3, row), marks))
    assert (marks == 1).all()


def test_an_error_in_any_piece_reaches_the_caller():
    def fail(start, stop, bad):
        if start <= bad < stop:
            raise ArithmeticError(bad)

    with threads(4):
        for bad in range(0, 40, 5):
            with pytest.raises(ArithmeticError, match=str(bad)):
                run_chunked(fail, 40, 1, bad)


def test_nobody_works_on_once_the_call_is_over():
    finished = []

    def fail_at_first(start, stop):
        if start == 0:
            raise KeyboardInterrupt
        time.sleep(0.02)
        finished.append(start)

    with threads(4):
        with pytest.raises(KeyboardInterrupt):
            run_chunked(fail_at_first, 40, 10)
        assert sorted(finished) == [10, 20, 30]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_threads_that_share_the_rows_of_a_product_give_the_product(count):
    # Just above the 2^24 entries from which threads share the rows.
    X = np.random.RandomState(0).normal(size=(4100, 3))
    coef = np.random.RandomState(1).normal(size=(4100, 4))
    with threads(count):
        product = GatedGram([RBF(0.5)], X, dtype="float64").dot(coef)
    assert_allclose(product, RBF(0.5)(X) @ coef, rtol=1e-9, atol=1e-9)


def test_gram_matrices_are_computed_in_several_threads_at_once():
    X = dense(2 * TILE + 5, np.random.default_rng(0))
    expected = (RBF(0.1)(X[:30], X) + Linear()(X[:30], X)) / 2

    def rows(_):
        return GatedGram([RBF(0.1), Linear()], X, dtype="float64").rows(np.arange(30))

    with threads(3), ThreadPoolExecutor(4) as pool:
        for result in pool.map(rows, range(8)):
            assert_allclose(result, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("settings", "count"),
    [({"LOKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "7"}, 1), ({"OMP_NUM_THREADS": "1"}, 1)],
)
def test_the_environment_limits_threads(settings, count, monkeypatch):
    monkeypatch.delenv("LOKL_NUM_THREADS", raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    _process_threads.cache_clear()
    try:
        assert n_threads() == count
    finally:
        _process_threads.cache_clear()


def test_a_block_can_ask_for_one_thread():
    def blas():
        return {library["num_threads"] for library in threadpool_info() if _is_blas(library)}

    before = blas()
    seen = []
    with threads(3), single_threaded(), single_threaded():
        assert n_threads() == 1
        assert blas() == {1}
        run_chunked(lambda start, stop: seen.append((start, stop)), 1000, 10)
    assert seen == [(0, 1000)]
    assert n_threads() == _process_threads()
    assert blas() == before


def _is_blas(library):
    return library["user_api"] == "blas"
