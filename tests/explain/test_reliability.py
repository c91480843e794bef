"""Risk of the most confident predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lokl.explain import risk_coverage


@given(seed=st.integers(0, 2**16), n=st.integers(1, 60))
def test_risk_is_the_mean_loss_of_the_most_confident(seed, n):
    rng = np.random.RandomState(seed)
    loss, confidence = rng.rand(n), rng.permutation(n)
    curve = risk_coverage(loss, confidence)
    for coverage, risk in zip(*curve, strict=True):
        used = confidence >= n - round(coverage * n)
        assert risk == pytest.approx(loss[used].mean())
    assert curve.coverage[-1] == 1


def test_unknown_confidence_is_rejected():
    with pytest.raises(ValueError, match="confidence must be finite"):
        risk_coverage([0, 1], [0.5, np.nan])
    with pytest.raises(ValueError, match=r"\[2, 3\]"):
        risk_coverage([0, 1], [0.5, 0.2, 0.1])
