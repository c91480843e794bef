"""Peak memory of a block."""

import sys

import numpy as np
import pytest

from lokl._environment import Peak

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peaks can be reset only on Linux")


@pytest.mark.parametrize("tidy", [False, True])
def test_a_block_shows_its_own_peak(tidy):
    with Peak(tidy=True) as large:
        np.ones(30_000_000)
    with Peak(tidy=tidy) as small:
        np.ones(5_000_000)
    assert 0.9 * 229 < large.increase < 1.3 * 229
    assert 0.9 * 38 < small.increase < 1.3 * 38 + 5
