"""Products shared out among our threads, those of BLAS kept out of their way."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from threadpoolctl import ThreadpoolController

from lokl._threads import limit_blas_for, multiply

MANY = 10_000


def blas_threads():
    libraries = ThreadpoolController().info()
    return [lib["num_threads"] for lib in libraries if lib["user_api"] == "blas"]


@pytest.mark.parametrize("rows", [0, 1, 64, 1500, 1601])
@pytest.mark.parametrize("right_shape", [(7,), (7, 1), (7, 12)])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_a_shared_product_is_the_product(rows, right_shape, layout):
    rng = np.random.RandomState(0)
    left, right = rng.normal(size=(rows, 7)), rng.normal(size=right_shape)
    wanted = left @ right
    assert_allclose(multiply(layout(left), right), wanted, atol=1e-12)
    out = np.empty_like(wanted)
    assert multiply(layout(left), right, out) is out
    assert_allclose(out, wanted, atol=1e-12)


def test_blas_has_one_thread_inside_and_its_own_number_again_after():
    before = blas_threads()
    with limit_blas_for(MANY):
        assert set(blas_threads()) == {1}
        with limit_blas_for(MANY):
            pass
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_few_samples_leave_blas_alone():
    before = blas_threads()
    with limit_blas_for(100):
        assert blas_threads() == before


def test_an_error_gives_blas_its_threads_back():
    before = blas_threads()
    with pytest.raises(KeyError), limit_blas_for(MANY):
        raise KeyError("inside")
    assert blas_threads() == before


def test_threads_that_come_and_go_leave_blas_as_it_was():
    before = blas_threads()

    def work(seed):
        rng = np.random.RandomState(seed)
        left, right = rng.normal(size=(2000, 30)), rng.normal(size=(30, 5))
        for _ in range(20):
            with limit_blas_for(MANY):
                assert_allclose(multiply(left, right), left @ right, atol=1e-12)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))
    assert blas_threads() == before
