"""Any estimator, kernel, gate and solver on any data: a sane answer or a clear error.

300 cases, and 5,000 in the slow test; LOKL_FUZZ_CASES sets another number for the latter.
"""

import os

import pytest
from fuzz_cases import ESTIMATORS, cases, check
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from method_cases import CLASSIFIERS, make, two_regions
from numpy.testing import assert_allclose
from scipy import sparse

from lokl.kernels import RBF, Cosine, Linear, Polynomial

CASES = int(os.environ.get("LOKL_FUZZ_CASES", "5000"))


@pytest.fixture(scope="module")
def compiled():
    """Loops are compiled before the first case, whose time is limited."""
    X, y = two_regions(30)
    for name in CLASSIFIERS:
        for samples in (X, sparse.csr_matrix(X)):
            make(name, tol=1e-3).fit(samples, y).contributions(samples)
    make("UniformMKLClassifier", solver="mwu").fit(X, y)
    make("UniformMKLClassifier", ["rbf", "laplacian"]).fit(X, y).contributions(X)


@pytest.mark.fuzz
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("n_cases", [300, pytest.param(CASES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_sane_answer_or_a_clear_error(name, n_cases):
    @settings(
        max_examples=-(-n_cases // len(ESTIMATORS)),
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    @given(case=cases((name,)))
    def law(case):
        event(check(case))

    law()


@pytest.mark.parametrize("name", ESTIMATORS)
@settings(max_examples=5, phases=[Phase.explicit, Phase.generate])
@given(power=st.integers(-200, 200))
def test_units_of_the_data_do_not_matter_to_kernels_without_units(name, power):
    X, y = two_regions(40)
    kernels = {
        "rbf": RBF("scale"),
        "median": RBF("median"),
        "angle": Cosine(),
        "line": Linear().normalized("mean_diag"),
        "square": Polynomial(2, coef0=0.0).normalized("unit_diag"),
    }
    # A power of two changes no digit, so that all arithmetic is the same.
    unit = 2.0**power
    one = make(name, kernels).fit(X, y)
    other = make(name, kernels).fit(X * unit, y)
    decide = "decision_function" if hasattr(one, "decision_function") else "predict"
    expected = getattr(one, decide)(X)
    assert_allclose(getattr(other, decide)(X * unit), expected, rtol=1e-6, atol=1e-6)
    assert_allclose(other.weights(X * unit), one.weights(X), rtol=1e-6, atol=1e-6)
