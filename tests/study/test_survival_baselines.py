"""Baselines of survival models against general minimisers and product-limit estimates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import lokl
from lokl.study.survival import CoxRegression, KaplanMeier


def patients(rng, n=40, n_features=3):
    """Standardised columns and times with ties."""
    X = rng.normal(size=(n, n_features))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    time = np.ceil(10 * rng.exponential(size=n) * np.exp(-X[:, 0]))
    event = rng.rand(n) < 0.7
    event[0] = True
    return X, lokl.survival_target(event, time)


def objective(w, X, y, alpha):
    """Negative log partial likelihood as a sum over events, for each event, with the penalty."""
    risk, total = X @ w, 0.0
    for k in np.flatnonzero(y["event"]):
        total += np.log(np.exp(risk[y["time"] >= y["time"][k]]).sum()) - risk[k]
    return total / y["event"].sum() + 0.5 * alpha * w @ w


@given(seed=st.integers(0, 2**31 - 1), alpha=st.sampled_from([0.01, 0.1, 1.0]))
def test_cox_regression_is_the_minimum(seed, alpha):
    X, y = patients(np.random.RandomState(seed))
    found = CoxRegression(alpha).fit(X, y).coef_
    best = minimize(objective, np.zeros(3), (X, y, alpha))
    assert objective(found, X, y, alpha) <= best.fun + 1e-8


def test_more_columns_than_samples_are_solved_in_the_space_of_the_samples():
    X, y = patients(np.random.RandomState(0), n=12, n_features=30)
    found = CoxRegression(0.1).fit(X, y).coef_
    best = minimize(objective, np.zeros(30), (X, y, 0.1), tol=1e-10)
    np.testing.assert_allclose(found, best.x, atol=1e-4)


def test_without_an_effect_the_curve_is_the_estimate_for_all():
    """Breslow's estimate of the hazard becomes Nelson's and Aalen's."""
    X, y = patients(np.random.RandomState(0), n=200)
    cox, constant = CoxRegression(1e6).fit(X, y), KaplanMeier().fit(None, y)
    np.testing.assert_array_equal(cox.unique_times_, constant.unique_times_)
    curves, same = (model.predict_survival_function(X) for model in (cox, constant))
    assert curves.shape == same.shape == (200, len(cox.unique_times_))
    # exp(-d/n) and 1 - d/n differ in the second order of the share of events at a time.
    np.testing.assert_allclose(curves[:, :20], same[:, :20], atol=0.02)
    assert (constant.predict(X) == 0).all()
    assert constant.unique_times_[-1] == y["time"].max()


def test_cox_regression_ranks_samples():
    X, y = patients(np.random.RandomState(1), n=300)
    assert CoxRegression(0.01).fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.7


def test_cox_regression_agrees_with_scikit_survival():
    linear = pytest.importorskip("sksurv.linear_model")
    X, y = patients(np.random.RandomState(0), n=100)
    # Its penalty is not divided by the number of events.
    theirs = linear.CoxPHSurvivalAnalysis(alpha=0.1 * y["event"].sum(), ties="breslow").fit(X, y)
    np.testing.assert_allclose(CoxRegression(0.1).fit(X, y).coef_, theirs.coef_, atol=1e-5)
