"""Feature scaling: the error that the factors minimise, and data that do not change them."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.datasets import make_friedman1

import lokl
from lokl import RegionClassifier, RegionRegressor, UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF, per_view
from lokl.regions import scaling
from lokl.regions.fitting import RegionData
from lokl.regions.scaling import (
    KernelRegressionError,
    minimize_error,
    scale_columns,
    standard_factors,
)

X, TARGET = make_friedman1(1500, n_features=9, noise=0.5, random_state=0)
Y = np.where(np.median(TARGET) < TARGET, "high", "low")
FRESH, TRUTH = make_friedman1(600, n_features=9, noise=0.5, random_state=1)
ESTIMATOR = UniformMKLClassifier([RBF(0.5)], C=8.0)


def regions(estimator=ESTIMATOR, **more):
    settings_ = {"max_region_size": 400, "random_state": 0, "scale_features": "shared", **more}
    return RegionClassifier(estimator, **settings_)


def in_region(data, targets, weight=None, seed=0):
    return KernelRegressionError.in_region(RegionData(data, targets, weight), seed)


def plain_error(part, factors, rows):
    """Predict every sample from all others, one by one."""
    total, mean = 0.0, part.weight @ part.targets / part.weight.sum()
    dense = part.X.toarray() if sparse.issparse(part.X) else part.X
    for j in rows:
        others = np.arange(len(dense)) != j
        apart = ((dense[j] - dense[others]) * factors) ** 2
        k = part.weight[others] * np.exp(-apart.sum(axis=1))
        prior = scaling._PRIOR_WEIGHT
        predicted = (k @ part.targets[others] + prior * mean) / (k.sum() + prior)
        total += part.weight[j] * ((predicted - part.targets[j]) ** 2).sum()
    return total


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(2, 30),
    n_targets=st.integers(1, 3),
    as_given=st.sampled_from([np.asarray, sparse.csr_matrix]),
    weighted=st.booleans(),
)
def test_error_and_gradient_are_those_of_leave_one_out_predictions(
    seed, n, n_targets, as_given, weighted
):
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.7)
    weight = rng.integers(1, 4, size=n) if weighted else None
    part = in_region(as_given(data), rng.normal(size=(n, n_targets)), weight, seed)
    assert not set(part.training) & set(part.validation)
    factors = rng.normal(size=4)
    value, gradient = part.with_gradient(factors)
    expected = plain_error(part, factors, part.training)
    assert value == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert part.on_validation(factors) == pytest.approx(
        plain_error(part, factors, part.validation), rel=1e-3, abs=1e-4
    )
    numeric = approx_fprime(factors, lambda s: plain_error(part, s, part.training), 1e-6)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-2, atol=1e-2 * max(1.0, expected))


def test_uninformative_columns_get_small_factors():
    part = in_region(X, TARGET)
    factors = minimize_error([part], standard_factors(X), 1)
    # Of nine columns, the first five have a part in the target.
    assert factors[5:].max() < 0.5 * factors[:5].min()
    assert part.on_validation(factors) < 0.7 * part.on_validation(standard_factors(X) / 3)
    twice = minimize_error([part, part], standard_factors(X), 2)
    np.testing.assert_allclose(twice, factors, rtol=1e-2, atol=0.05)


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_matrix])
def test_standard_factors(as_given):
    data = X * 10.0 ** np.arange(-4, 5)
    data[:, 3], data[:, 4] = 7.0, 0.0
    factors = standard_factors(as_given(data))
    spread = np.std(data * factors, axis=0)
    np.testing.assert_allclose(np.delete(spread, [3, 4]), 1.0)
    np.testing.assert_array_equal(factors[[3, 4]], 1.0)
    if as_given is np.asarray:
        holes = data.copy()
        holes[::3, 0] = np.nan
        assert np.nanstd(holes * standard_factors(holes), axis=0)[0] == pytest.approx(1.0)


@pytest.mark.slow
def test_useless_columns_cost_regions_less():
    truth = np.where(np.median(TARGET) < TRUTH, "high", "low")
    plain = RegionClassifier(max_region_size=400, random_state=0).fit(X[:800], Y[:800])
    model = regions(None).fit(X[:800], Y[:800])
    assert model.score(FRESH, truth) > plain.score(FRESH, truth) + 0.01
    assert plain.feature_scale_ is None
    estimator = UniformMKLRegressor([RBF(0.2)], C=10.0)
    regressor = RegionRegressor(
        estimator, max_region_size=400, scale_features="shared", random_state=0
    )
    assert regressor.fit(X, TARGET).score(FRESH, TRUTH) > 0.85


def test_the_unit_of_a_column_does_not_matter():
    unit = 10.0 ** np.arange(-4, 5)
    one, other = regions().fit(X, Y), regions().fit(X * unit, Y)
    np.testing.assert_allclose(
        other.feature_scale_ * unit, one.feature_scale_, rtol=1e-2, atol=1e-2
    )
    again = other.decision_function(FRESH * unit)
    assert np.mean(np.abs(again - one.decision_function(FRESH)) < 0.05) > 0.97


@pytest.mark.parametrize("covers", [1, 2])
def test_regions_are_those_of_scaled_samples(covers):
    model = regions(covers=covers).fit(X, Y)
    factors = model.feature_scale_
    assert factors.shape == (9,)
    assert (factors >= 0).all()
    plain = regions(covers=covers, scale_features=None).fit(X * factors, Y)
    np.testing.assert_array_equal(model.region(FRESH), plain.region(FRESH * factors))
    np.testing.assert_array_equal(
        model.decision_function(FRESH), plain.decision_function(FRESH * factors)
    )
    np.testing.assert_array_equal(model.contributions(FRESH), plain.contributions(FRESH * factors))


@pytest.mark.parametrize("jobs", [1, 3])
def test_sparse_samples_threads_and_files(jobs, tmp_path):
    model = regions(n_jobs=1).fit(X, Y)
    decision = model.decision_function(FRESH)
    again = regions(n_jobs=jobs).fit(sparse.csr_matrix(X), Y)
    np.testing.assert_allclose(again.feature_scale_, model.feature_scale_, rtol=1e-2, atol=1e-2)
    again_decision = again.decision_function(sparse.csr_matrix(FRESH))
    np.testing.assert_allclose(again_decision, decision, atol=0.05)
    np.testing.assert_array_equal(regions(n_jobs=jobs).fit(X, Y).decision_function(FRESH), decision)
    lokl.save(model, tmp_path / "model.lokl")
    for loaded in (lokl.load(tmp_path / "model.lokl"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(loaded.decision_function(FRESH), decision)


def test_frames_views_weights_and_single_precision():
    names = list("abcdefghi")
    frame, fresh = pd.DataFrame(X, columns=names), pd.DataFrame(FRESH, columns=names)
    frame.loc[::9, ["a", "b", "c"]] = np.nan
    fresh.loc[::4, ["a", "b", "c"]] = np.nan
    estimator = UniformMKLClassifier(per_view(RBF(0.5), {"one": names[:3], "two": names[3:]}))
    weight = np.random.RandomState(0).randint(0, 3, size=len(X))
    model = regions(estimator).fit(frame, Y, weight)
    assert (model.weights(fresh)[::4, 0] == 0).all()
    kept = weight > 0
    again = regions(estimator).fit(frame[kept], Y[kept], weight[kept])
    np.testing.assert_allclose(again.feature_scale_, model.feature_scale_, rtol=1e-6)
    assert list(model.contributions(fresh, labels=True).index) == list(fresh.index)
    single = regions().fit(X.astype(np.float32), Y)
    assert scale_columns(FRESH.astype(np.float32), single.feature_scale_).dtype == np.float32
    np.testing.assert_allclose(
        single.feature_scale_, regions().fit(X, Y).feature_scale_, rtol=1e-2, atol=1e-2
    )


def test_few_samples_keep_their_columns():
    model = regions(max_region_size=40).fit(X[:60], Y[:60])
    np.testing.assert_array_equal(model.feature_scale_, 1.0)


def test_several_classes():
    colours = np.digitize(TARGET, np.quantile(TARGET, [0.3, 0.7]))
    model = regions().fit(X, colours)
    assert model.feature_scale_[5:].max() < 0.6 * model.feature_scale_[:5].min()
    assert model.score(X, colours) > 0.8


def test_other_values_are_named():
    with pytest.raises(ValueError, match=r"scale_features .*'shared'.*'each'"):
        regions(scale_features="each").fit(X, Y)
