"""Censored times in regions."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lokl
from lokl import RegionRegressor, RegionSurvival, UniformMKLSurvival
from lokl._survival import steps_at
from lokl.explain import explain
from lokl.kernels import RBF, Linear, per_view
from lokl.metrics import concordance_index

KERNELS = {"line": Linear(), "bump": RBF(0.3)}
ESTIMATOR = UniformMKLSurvival(KERNELS, C=2.0)
NAMES = [
    "UniformMKLSurvival",
    "LpMKLSurvival",
    "SimpleMKLSurvival",
    "ExpertAverageSurvival",
    "LDMKLSurvival",
]


def samples(n=240, seed=0, censor=True):
    rng = np.random.RandomState(seed)
    X, ends = rng.normal(size=(n, 4)), rng.exponential(size=(n, 2))
    event = 10 * ends[:, 0] * np.exp(-1.5 * X[:, 0])
    limit = 20 * ends[:, 1] if censor else np.full(n, np.inf)
    return X, lokl.survival_target(event <= limit, np.minimum(event, limit))


X, Y = samples()
FRESH, LATER = samples(80, seed=1)


def regions(estimator=ESTIMATOR, **settings):
    return RegionSurvival(estimator, **{"max_region_size": 70, "random_state": 0, **settings})


def curves(model, new=FRESH):
    return model.predict_survival_function(new, return_array=True)


@pytest.mark.parametrize("name", NAMES)
def test_one_region_is_the_estimator_itself(name):
    estimator = getattr(lokl, name)(KERNELS, random_state=0)
    plain = clone(estimator).fit(X, Y)
    model = RegionSurvival(estimator, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(FRESH), plain.predict(FRESH))
    np.testing.assert_array_equal(model.weights(FRESH), plain.weights(FRESH))
    np.testing.assert_array_equal(model.contributions(FRESH), plain.contributions(FRESH))
    np.testing.assert_array_equal(model.unique_times_, plain.unique_times_)
    np.testing.assert_array_equal(curves(model), curves(plain))
    assert model.score(FRESH, LATER) == plain.score(FRESH, LATER)


@pytest.mark.parametrize("extra", [{}, {"covers": 2}, {"overlap": 0.2}])
def test_without_censoring_it_is_the_regression(extra):
    X, y = samples(censor=False)
    model = regions(**extra).fit(X, y)
    regressor = lokl.UniformMKLRegressor(KERNELS, C=2.0)
    regressor = RegionRegressor(regressor, max_region_size=70, random_state=0, **extra)
    regressor.fit(X, -np.log(y["time"]))
    assert len(model.estimators_[0]) > 2
    np.testing.assert_allclose(model.predict(FRESH), regressor.predict(FRESH), atol=1e-8)


def test_a_region_is_the_estimator_fitted_on_its_samples():
    model = regions().fit(X, Y)
    trained, region = model.region(X), model.region(FRESH)
    np.testing.assert_array_equal(model.unique_times_, np.unique(Y["time"]))
    hazards = model.predict_cumulative_hazard_function(FRESH, return_array=True)
    for index in np.unique(region):
        rows, new = trained == index, FRESH[region == index]
        plain = clone(ESTIMATOR).fit(X[rows], Y[rows])
        np.testing.assert_allclose(model.predict(new), plain.predict(new), atol=1e-9)
        own = plain.predict_cumulative_hazard_function(new, return_array=True)
        expected = steps_at(plain.unique_times_, own, model.unique_times_, 0.0)
        np.testing.assert_allclose(hazards[region == index], expected, atol=1e-9)


def test_hazards_of_several_regions_are_means():
    model = regions(covers=2, overlap=0.2).fit(X, Y)
    expected = np.zeros((80, len(model.unique_times_)))
    for tree, fitted in zip(model.trees_, model.estimators_, strict=True):
        for (rows, weight), part in zip(tree.divide(FRESH), fitted, strict=True):
            own = part.predict_cumulative_hazard_function(FRESH[rows], return_array=True)
            own = steps_at(part.unique_times_, own, model.unique_times_, 0.0)
            weight = np.ones(len(rows)) if weight is None else weight
            expected[rows] += 0.5 * weight[:, np.newaxis] * own
    found = model.predict_cumulative_hazard_function(FRESH, return_array=True)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_risks_and_curves_of_new_samples():
    model = regions().fit(X, Y)
    expected = concordance_index(LATER["event"], LATER["time"], model.predict(FRESH)).cindex
    assert model.score(FRESH, LATER) == expected > 0.7
    values = curves(model)
    assert (np.diff(values, axis=1) <= 0).all()
    assert ((values > 0) & (values <= 1)).all()
    function = model.predict_survival_function(FRESH)[3]
    np.testing.assert_array_equal(function(model.unique_times_), values[3])
    explanation = explain(model, FRESH)
    np.testing.assert_allclose(explanation.predictions, model.predict(FRESH))
    assert explanation.survival.shape == (80, len(explanation.times))


@pytest.mark.parametrize("extra", [{}, {"covers": 2}, {"scale_features": "shared"}])
def test_the_unit_of_time_changes_only_the_scale(extra):
    days = Y.copy()
    days["time"] *= 365.25
    # The default estimator, whose cost and tolerances are in units of the targets.
    years, other = (
        RegionSurvival(max_region_size=130, random_state=0, **extra).fit(X, y) for y in (Y, days)
    )
    assert years.best_params_.keys() == {"C", "kernels"}
    assert years.score(FRESH, LATER) > 0.7
    shifted = years.predict(FRESH) - np.log(365.25)
    np.testing.assert_allclose(other.predict(FRESH), shifted, atol=1e-6)
    np.testing.assert_allclose(curves(other), curves(years), atol=1e-6)


@pytest.mark.parametrize("estimator", [ESTIMATOR, make_pipeline(StandardScaler(), ESTIMATOR)])
def test_clones_copies_and_files_predict_the_same(estimator, tmp_path):
    model = regions(estimator, covers=2).fit(X, Y)
    again = clone(model)
    with pytest.raises(NotFittedError):
        again.predict_survival_function(FRESH)
    lokl.save(model, tmp_path / "model.lokl")
    again.fit(X, Y)
    for other in (again, pickle.loads(pickle.dumps(model)), lokl.load(tmp_path / "model.lokl")):
        np.testing.assert_array_equal(other.predict(FRESH), model.predict(FRESH))
        np.testing.assert_array_equal(curves(other), curves(model))


def test_regions_without_an_event_predict_their_latest_time(tmp_path):
    apart = np.vstack([X, X + 100.0])
    y = np.concatenate([Y, Y])
    y["event"][240:] = False
    model = regions(max_region_size=240).fit(apart, y)
    (fitted,) = model.estimators_
    assert sum(part is None for part in fitted) == 1
    lokl.save(model, tmp_path / "model.lokl")
    for found in (model, lokl.load(tmp_path / "model.lokl")):
        np.testing.assert_allclose(found.predict(FRESH + 100.0), -np.log(Y["time"].max()))
        np.testing.assert_array_equal(curves(found, FRESH + 100.0), 1.0)
    single = regions(max_region_size=2).fit(X[:30], Y[:30])
    assert np.isfinite(single.predict(FRESH)).all()
    assert np.isfinite(curves(single)).all()


def test_weights_count_and_samples_of_weight_zero_are_ignored():
    weight = np.random.RandomState(0).randint(0, 3, size=len(X)).astype(float)
    model, kept = regions().fit(X, Y, weight), weight > 0
    again = regions().fit(X[kept], Y[kept], weight[kept])
    np.testing.assert_array_equal(curves(model), curves(again))
    plain = regions().fit(X[kept], Y[kept])
    assert (model.predict(FRESH) != plain.predict(FRESH)).any()
    # Cross-validation within regions has weights as well.
    grid, weight = {"C": [0.01, 0.1, 1.0, 10.0, 100.0]}, weight + 1.0
    tuned = regions(max_region_size=130, param_grid=grid, overlap=0.4).fit(X, Y, weight)
    assert tuned.best_params_["C"] in grid["C"]


def test_samples_may_lack_views():
    Z, new = X.copy(), FRESH.copy()
    Z[::4, 2:] = np.nan
    new[::3, 2:] = np.nan
    kernels = per_view(RBF(0.3), {"a": [0, 1], "b": [2, 3]})
    model = regions(UniformMKLSurvival(kernels)).fit(Z, Y)
    assert model.score(new, LATER) > 0.65
    assert (model.weights(new)[::3, 1] == 0).all()
    assert np.isfinite(curves(model, new)).all()


@pytest.mark.filterwarnings("ignore:the best")
@pytest.mark.parametrize("tune", ["shared", "each"])
def test_settings_are_chosen_by_concordance(tune):
    grid = {"C": [1e-3, 1.0], "kernels": [[RBF(1e-6)], [RBF(0.3)], [RBF(30.0)]]}
    model = regions(UniformMKLSurvival(), max_region_size=130, tune=tune, param_grid=grid)
    model.fit(X, Y)
    chosen = [part.kernels[0].gamma for part in model.estimators_[0]]
    assert 30.0 not in chosen
    assert model.score(FRESH, LATER) > 0.7


def test_searches_over_regions_equal_those_of_scikit_learn():
    grid, cv = {"estimator__C": [0.1, 1.0, 10.0]}, KFold(3)
    ours = lokl.KernelSearchCV(regions(), grid, cv=cv, n_jobs=1).fit(X, Y)
    theirs = GridSearchCV(regions(), grid, cv=cv).fit(X, Y)
    scores = (search.cv_results_["mean_test_score"] for search in (ours, theirs))
    np.testing.assert_allclose(*scores, atol=2e-3)


def zero_time():
    y = Y.copy()
    y["time"][7] = 0.0
    return y


def test_errors_name_value_and_remedy():
    relative = UniformMKLSurvival(KERNELS, loss="squared")
    for wrong in (
        relative,
        UniformMKLSurvival(KERNELS, log_time=False),
        lokl.TrustedVoteSurvival(KERNELS),
        lokl.AutoMKLSurvival(),
        lokl.UniformMKLRegressor(KERNELS),
        make_pipeline(StandardScaler(), relative),
    ):
        with pytest.raises(ValueError, match=r'loss="censored".*log_time=True'):
            regions(wrong).fit(X, Y)
    with pytest.raises(ValueError, match=r'param_grid .*squared.*loss="censored"'):
        regions(param_grid={"loss": ["censored", "squared"]}).fit(X, Y)
    with pytest.raises(ValueError, match=r"0\.0 in row 7"):
        regions().fit(X, zero_time())
    with pytest.raises(ValueError, match="two columns"):
        regions().fit(X, Y["time"])
    with pytest.raises(ValueError, match=r"all 240 samples .* are censored"):
        regions().fit(X, lokl.survival_target(np.zeros(240), Y["time"]))
