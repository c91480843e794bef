"""The average of SVMs on single kernels."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from lokl import (
    ExpertAverageClassifier,
    ExpertAverageRegressor,
    UniformMKLClassifier,
    UniformMKLRegressor,
)
from lokl.kernels import RBF, Linear

X, y = load_wine(return_X_y=True)
X = scale(X)
KERNELS = {"first": RBF(0.05).on(slice(0, 6)), "second": Linear().on(slice(6, 13))}
FACTORS = {"first": 10.0, "second": 0.1}


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_decisions_are_the_mean_of_single_machines(loss):
    model = ExpertAverageClassifier(KERNELS, C=2.0, cost_factors=FACTORS, loss=loss).fit(X, y)
    alone = [
        UniformMKLClassifier({name: kernel}, C=2.0 * FACTORS[name], loss=loss).fit(X, y)
        for name, kernel in KERNELS.items()
    ]
    mean = np.mean([machine.decision_function(X) for machine in alone], axis=0)
    np.testing.assert_allclose(model.decision_function(X), mean, atol=1e-6)
    if loss == "squared":
        left_out = np.mean([machine.loo_decision_ for machine in alone], axis=0)
        np.testing.assert_allclose(model.loo_decision_, left_out, atol=1e-6)


def test_factors_are_given_by_name_or_in_order():
    by_name = ExpertAverageRegressor(KERNELS, cost_factors=FACTORS, loss="squared").fit(X, y)
    in_order = ExpertAverageRegressor(KERNELS, cost_factors=[10.0, 0.1], loss="squared").fit(X, y)
    np.testing.assert_array_equal(by_name.predict(X), in_order.predict(X))
    alone = UniformMKLRegressor({"first": KERNELS["first"]}, C=10.0, loss="squared").fit(X, y)
    np.testing.assert_allclose(2 * by_name.contributions(X)[:, 0], alone.predict(X), atol=1e-6)


def test_a_sample_without_a_view_is_decided_by_the_others():
    partial = X.copy()
    partial[:20, :6] = np.nan
    model = ExpertAverageClassifier(KERNELS, loss="squared").fit(partial, y)
    np.testing.assert_array_equal(model.weights(partial)[[0, -1]], [[0.0, 1.0], [0.5, 0.5]])
    second = UniformMKLClassifier({"second": KERNELS["second"]}, loss="squared").fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(partial[:20]), second.decision_function(X[:20]), atol=1e-6
    )


@pytest.mark.parametrize(
    "factors", [[1.0], {"first": 1.0}, {"first": 1.0, "third": 2.0}, [1.0, -1.0], "ab", 3.0]
)
def test_factors_that_do_not_fit_the_kernels_are_rejected(factors):
    with pytest.raises(ValueError, match="cost_factors"):
        ExpertAverageClassifier(KERNELS, cost_factors=factors).fit(X, y)
