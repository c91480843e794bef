"""The clinical kernel: values by hand, invariances, missing values and errors."""

import numpy as np
import pandas as pd
import pytest

import lokl
from lokl.kernels import Clinical

RNG = np.random.RandomState(0)
X = np.column_stack(
    [RNG.normal(50, 20, 40), RNG.randint(3, size=40), RNG.choice([1.0, 2.0, 10.0], size=40)]
)


def by_hand(x, z, values):
    stage = [1.0, 2.0, 10.0]
    age = 1.0 - abs(x[0] - z[0]) / np.ptp(values[:, 0])
    return (
        max(age, 0.0) + (x[1] == z[1]) + 1.0 - abs(stage.index(x[2]) - stage.index(z[2])) / 2
    ) / 3


def test_values():
    kernel = Clinical(categorical=[1], ordered=[2]).bind(X)
    expected = [[by_hand(x, z, X) for z in X[:7]] for x in X]
    # Sums of three numbers.
    np.testing.assert_allclose(kernel(X, X[:7]), expected, atol=1e-14)
    far = np.array([[1e6, 1.0, 1.0]])
    assert kernel(X, far).max() <= 2 / 3


def test_units_and_codes_do_not_matter():
    kernel = Clinical(categorical=[1], ordered=[2])
    other = np.column_stack([1000.0 * X[:, 0] - 7.0, 5.0 - X[:, 1], X[:, 2] ** 3])
    np.testing.assert_allclose(kernel.bind(other)(other), kernel.bind(X)(X), atol=1e-12)


def test_missing_values_resemble_nothing_and_the_kernel_stays_positive():
    missing = X.copy()
    missing[RNG.rand(*X.shape) < 0.3] = np.nan
    kernel = Clinical(categorical=[1], ordered=[2]).bind(missing)
    K = kernel(missing)
    np.testing.assert_allclose(np.diag(K), kernel.diag(missing))
    # Rounding errors of eigenvalues.
    assert np.linalg.eigvalsh(K).min() > -1e-10
    nothing = np.full((1, 3), np.nan)
    assert (kernel(nothing, missing) == 0).all()


def test_columns_by_name_in_an_estimator():
    frame = pd.DataFrame(X, columns=["age", "sex", "stage"])
    y = (X[:, 1] == 1) ^ (X[:, 2] > 1)
    by_name = lokl.UniformMKLClassifier([Clinical(["sex"], ["stage"])], C=10).fit(frame, y)
    by_place = lokl.UniformMKLClassifier([Clinical([1], [2])], C=10).fit(X, y)
    np.testing.assert_allclose(by_name.decision_function(frame), by_place.decision_function(X))


def test_errors_name_the_column_and_the_remedy():
    with pytest.raises(ValueError, match="column 1"):
        Clinical([1], [1]).bind(X)
    with pytest.raises(ValueError, match="bind"):
        Clinical()(X)
