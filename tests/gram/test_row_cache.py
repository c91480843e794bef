"""Stored rows against a model that remembers everything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from lokl.gram.memory import RowCache


@settings(max_examples=100)
@given(data=st.data(), n=st.integers(1, 9), capacity=st.integers(1, 12))
def test_rows_are_always_the_right_ones(data, n, capacity):
    cache = RowCache(n, 2, capacity, np.float32)
    assert cache.capacity == min(capacity, n)
    slab = cache.slab
    age, last_use = 0, {}
    asked = st.lists(st.integers(0, n - 1), max_size=cache.capacity, unique=True)
    for step, index in enumerate(data.draw(st.lists(st.none() | asked, max_size=12))):
        if index is None:
            cache.clear()
            last_use.clear()
            age = step
            assert (cache.slots(np.arange(n)) < 0).all()
            continue
        index = np.array(index, dtype=np.intp)
        held = cache.slots(index) >= 0
        slots, missing = cache.place(index)
        assert_array_equal(missing, ~held)
        assert len(set(slots)) == len(slots)
        cache.slab[slots[missing]] = np.array([[row, age] for row in index[missing]]).reshape(-1, 2)
        # Rows come from after the last clearing, whether they were just written or kept.
        assert_array_equal(cache.slab[slots], np.array([[j, age] for j in index]).reshape(-1, 2))
        last_use.update(dict.fromkeys(index.tolist(), step))
        kept = cache.slots(np.arange(n)) >= 0
        assert kept.sum() <= min(len(last_use), cache.capacity)
        assert kept[index].all()
        evicted = [use for row, use in last_use.items() if not kept[row]]
        used = [last_use[row] for row in np.flatnonzero(kept)]
        assert not evicted or max(evicted) <= min(used)
    assert cache.slab is slab


def test_a_large_cache_forgets_nothing():
    cache = RowCache(5, 5, 100, np.float64)
    cache.place(np.array([3, 1]))
    assert_array_equal(cache.place(np.arange(5))[1], [True, False, True, False, True])
    assert not cache.place(np.arange(5))[1].any()


def test_memory_is_opened_only_for_rows_that_come_back():
    cache = RowCache(100, 1, 100, np.float64)
    for first in range(0, 100, 5):
        slots, _ = cache.place(np.arange(first, first + 5))
        assert slots.max() < 10
    for _ in range(6):
        computed = [cache.place(np.arange(k, k + 5))[1].sum() for k in range(0, 100, 5)]
    assert sum(computed) == 0


def test_more_rows_than_slots_do_not_fit():
    with pytest.raises(ValueError, match="3 rows do not fit a slab of 2"):
        RowCache(5, 5, 2, np.float64).place(np.array([0, 1, 2]))
