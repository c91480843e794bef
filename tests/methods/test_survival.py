"""Censored times: machines with one-sided bounds, and survival curves from held-out risks."""

import pickle
import warnings

import numpy as np
import pytest
from method_cases import SURVIVAL, make
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lokl
from lokl import KernelSearchCV
from lokl._methods import METHODS
from lokl._survival import deviance_residuals
from lokl.base.fit_cache import fit_cost_path
from lokl.base.survival import ProportionalHazards, folds_by_time
from lokl.explain import explain
from lokl.kernels import RBF, Linear, per_view
from lokl.methods.single_kernel import _residuals
from lokl.metrics import concordance_index, integrated_brier_score
from lokl.solvers.problem import censored

KERNELS = {"line": Linear(), "bump": RBF(0.3)}
every_estimator = pytest.mark.parametrize("name", SURVIVAL)
# The trusted vote has its own outcomes, intervals of time: see test_trusted_vote_survival.py.
every_model = pytest.mark.parametrize(
    "name", [m.survival for m in METHODS if m.survival and m.learns != "trust"]
)
# A vote has one tube for each expert.
every_machine = pytest.mark.parametrize(
    "name", [m.survival for m in METHODS if m.survival and not m.can("vote")]
)


def samples(n=120, seed=0, share=1.0):
    """Features, events and times; the first feature doubles the hazard, `share` of censoring."""
    rng = np.random.RandomState(seed)
    X, ends = rng.normal(size=(n, 4)), rng.exponential(size=(n, 2))
    event = 10 * ends[:, 0] * np.exp(-1.5 * X[:, 0])
    limit = np.where(share > 0, 20 * ends[:, 1] / max(share, 1e-9), np.inf)
    return X, lokl.survival_target(event <= limit, np.minimum(event, limit))


X, Y = samples()
FRESH, LATER = samples(80, seed=1)


def survival(name, **settings):
    if not name.startswith(("Uniform", "Expert", "Trusted", "LD")):
        # Weights to more digits than any path to them leaves.
        settings = {"learn_tol": 1e-6, **settings}
    return make(name, **{"kernels": KERNELS, "C": 2.0, **settings})


@every_model
def test_without_censoring_it_is_the_regression(name):
    X, y = samples(share=0.0)
    assert y["event"].all()
    model = survival(name).fit(X, y)
    regressor = survival(name.replace("Survival", "Regressor"))
    regressor.fit(X, -np.log(y["time"]))
    np.testing.assert_allclose(model.predict(FRESH), regressor.predict(FRESH), atol=1e-8)
    np.testing.assert_allclose(model.weights(FRESH), regressor.weights(FRESH), atol=1e-8)


@every_machine
@pytest.mark.parametrize("solver", ["exact", "primal", "mwu"])
def test_the_loss_of_censored_samples_is_one_sided(name, solver):
    model = survival(name, solver=solver, epsilon=0.2).fit(X, Y)
    error = model.predict(X) + np.log(Y["time"])
    loss = np.where(Y["event"], np.abs(error), error) - 0.2
    coef = np.zeros(len(X))
    coef[model.support_] = model.dual_coef_[0]
    assert (coef[~Y["event"]] <= 0).all()
    assert (coef[Y["event"]] > 0).any()
    assert (np.abs(coef) <= 2.0 + 1e-9).all()
    # Complementary slackness: inside the tube no coefficient, outside of it the bound.
    assert np.abs(coef[loss < -1e-3]).max(initial=0.0) < 1e-6
    np.testing.assert_allclose(np.abs(coef[loss > 1e-3]), 2.0, rtol=1e-6)
    np.testing.assert_array_equal(np.sign(coef[loss > 1e-3]), -np.sign(error[loss > 1e-3]))


def test_losses_of_the_problem_are_the_formula():
    rng = np.random.RandomState(0)
    target, decision, event = rng.normal(size=30), rng.normal(size=30), rng.rand(30) < 0.5
    cost = rng.rand(30) + 0.1
    error = decision - target
    expected = cost * np.maximum(np.where(event, np.abs(error), error) - 0.1, 0.0)
    problem = censored(target, cost, 0.1, event)
    np.testing.assert_allclose(problem.losses(decision), expected)


@every_machine
def test_a_censored_sample_beyond_the_prediction_changes_nothing(name):
    model = survival(name, epsilon=0.2).fit(X, Y)
    # Censored before the predicted time.
    beyond = ~Y["event"] & (np.log(Y["time"]) < -model.predict(X) + 0.19)
    assert beyond.sum() > 5
    earlier = Y.copy()
    earlier["time"][beyond] /= 10.0
    for targets, kept in ((earlier, np.ones(len(X), bool)), (Y, ~beyond)):
        other = survival(name, epsilon=0.2).fit(X[kept], targets[kept])
        np.testing.assert_allclose(other.predict(FRESH), model.predict(FRESH), atol=1e-3)
    # Samples that are observed for longer without an event lower the risk.
    later = Y.copy()
    later["time"][~Y["event"]] *= 100.0
    assert survival(name).fit(X, later).predict(FRESH).mean() < model.predict(FRESH).mean()


@every_model
@pytest.mark.parametrize("log_time", [True, False])
def test_the_unit_of_time_changes_only_the_scale(name, log_time):
    days = Y.copy()
    days["time"] *= 365.25
    years, other = (survival(name, log_time=log_time).fit(X, y) for y in (Y, days))
    shift = np.log(365.25) if log_time else 0.0
    np.testing.assert_allclose(other.predict(FRESH), years.predict(FRESH) - shift, atol=1e-6)
    np.testing.assert_allclose(other.unique_times_, years.unique_times_ * 365.25)
    curves = [m.predict_survival_function(FRESH, return_array=True) for m in (years, other)]
    np.testing.assert_allclose(*curves, atol=1e-6)


@every_model
def test_weights_count_like_repeated_rows(name):
    weight = np.random.RandomState(0).choice([0, 1, 2], len(X))
    weighted = survival(name).fit(X, Y, weight)
    rows = np.repeat(np.arange(len(X)), weight)
    repeated = survival(name).fit(X[rows], Y[rows])
    np.testing.assert_allclose(weighted.predict(FRESH), repeated.predict(FRESH), atol=1e-4)
    np.testing.assert_array_equal(weighted.unique_times_, repeated.unique_times_)


@every_model
def test_risks_order_new_samples(name):
    model = survival(name).fit(X, Y)
    expected = concordance_index(LATER["event"], LATER["time"], model.predict(FRESH)).cindex
    assert model.score(FRESH, LATER) == expected > 0.7
    parts = model.contributions(FRESH)
    np.testing.assert_allclose(parts.sum(axis=1) + model.intercept_, model.predict(FRESH))


@every_model
def test_curves_fall_and_are_better_than_kaplan_meier(name):
    model = survival(name).fit(X, Y)
    curves = model.predict_survival_function(FRESH, return_array=True)
    assert curves.shape == (80, len(model.unique_times_))
    assert (np.diff(curves, axis=1) <= 0).all()
    assert (curves > 0).all()
    assert (curves <= 1).all()
    order = np.argsort(model.predict(FRESH))
    assert (np.diff(curves[order], axis=0) <= 1e-12).all()
    hazards = model.predict_cumulative_hazard_function(FRESH, return_array=True)
    np.testing.assert_allclose(curves, np.exp(-hazards))
    functions = model.predict_survival_function(FRESH)
    assert functions.shape == (80,)
    np.testing.assert_array_equal(functions[3].x, model.unique_times_)
    np.testing.assert_array_equal(functions[3](functions[3].x), curves[3])
    assert functions[3](0.0) == 1.0
    assert model.predict_cumulative_hazard_function(FRESH)[3](0.0) == 0.0
    with pytest.raises(ValueError, match="within"):
        functions[3](2 * model.unique_times_[-1])
    times = np.quantile(LATER["time"], np.linspace(0.1, 0.8, 20))
    own = np.array([function(times) for function in functions])
    constant = survival(name, kernels=[RBF(1e-12)]).fit(X, Y)
    flat = np.array([function(times) for function in constant.predict_survival_function(FRESH)])
    error, baseline = (integrated_brier_score(Y, LATER, c, times) for c in (own, flat))
    assert error < 0.85 * baseline


def test_hazards_maximise_the_partial_likelihood():
    rng = np.random.RandomState(0)
    risk, time = rng.normal(size=200), np.ceil(rng.exponential(size=200) * 20)
    event = rng.rand(200) < 0.7
    y, weight = np.column_stack([event, time]), rng.choice([1.0, 2.0], 200)
    fitted = ProportionalHazards.fit(risk + 3.0, y, weight)

    def likelihood(slope):
        value = 0.0
        for i in np.flatnonzero(event):
            at_risk = time >= time[i]
            value += weight[i] * slope * risk[i]
            value -= weight[i] * np.log((weight * np.exp(slope * risk))[at_risk].sum())
        return value

    best = likelihood(fitted.slope)
    # The tiny ridge penalty moves the maximum by less than this.
    assert best > likelihood(fitted.slope + 0.05)
    assert fitted.slope == 0.0 or best > likelihood(fitted.slope - 0.05)
    # Expected events equal observed events: a property of Breslow's estimate.
    index = np.searchsorted(fitted.times, time)
    expected = fitted.cumulative_hazard(risk + 3.0)[np.arange(200), index]
    assert weight @ expected == pytest.approx(weight @ event)


def test_hazards_equal_those_of_scikit_survival():
    models = pytest.importorskip("sksurv.linear_model")
    risk = np.log(Y["time"]) * -0.1 + X[:, 0]
    fitted = ProportionalHazards.fit(
        risk, np.column_stack([Y["event"], Y["time"]]), np.ones(len(X))
    )
    theirs = models.CoxPHSurvivalAnalysis().fit(risk[:, np.newaxis], Y)
    assert fitted.slope == pytest.approx(theirs.coef_[0], rel=0.02)
    functions = theirs.predict_cumulative_hazard_function(risk[:5, np.newaxis])
    other = np.array([function(fitted.times) for function in functions])
    np.testing.assert_allclose(fitted.cumulative_hazard(risk[:5]), other, rtol=0.1, atol=1e-3)


def test_a_perfect_or_reversed_risk_has_finite_hazards():
    time = np.arange(1.0, 31.0)
    y = np.column_stack([np.ones(30), time])
    perfect = ProportionalHazards.fit(-time, y, np.ones(30))
    assert np.isfinite(perfect.cumulative_hazard(-time)).all()
    reverse = ProportionalHazards.fit(time, y, np.ones(30))
    assert reverse.slope == 0.0
    np.testing.assert_allclose(reverse.baseline, np.cumsum(1.0 / np.arange(30, 0, -1)))


def test_folds_have_equal_shares_of_events():
    y = np.column_stack([Y["event"], Y["time"]])
    folds = folds_by_time(y)
    assert sorted(np.concatenate([left for _, left in folds])) == list(range(len(X)))
    shares = [y[left, 0].sum() for _, left in folds]
    assert max(shares) - min(shares) <= 1
    assert len(folds_by_time(y[:3])) == 3
    assert folds_by_time(y[:1]) == []


@every_estimator
def test_clones_copies_and_files_predict_the_same(name, tmp_path):
    model = survival(name).fit(X, Y)
    predicted = model.predict_survival_function(FRESH, return_array=True)
    again = clone(model)
    with pytest.raises(NotFittedError):
        again.predict_survival_function(FRESH)
    again.fit(X, Y)
    assert again.get_params().keys() == model.get_params().keys()
    lokl.save(model, tmp_path / "model.lokl")
    for other in (again, pickle.loads(pickle.dumps(model)), lokl.load(tmp_path / "model.lokl")):
        found = other.predict_survival_function(FRESH, return_array=True)
        np.testing.assert_array_equal(found, predicted)


@every_estimator
@pytest.mark.parametrize("table", [False, True])
def test_a_search_finds_what_scikit_learn_finds(name, table):
    pandas = pytest.importorskip("pandas")
    y = pandas.DataFrame({"event": Y["event"], "time": Y["time"]}) if table else Y
    grid, cv = {"C": [0.1, 1.0, 10.0]}, KFold(3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the best C")
        ours = KernelSearchCV(survival(name), grid, cv=cv, n_jobs=1).fit(X, y)
    theirs = GridSearchCV(survival(name), grid, cv=cv).fit(X, y)
    scores = (s.cv_results_["mean_test_score"] for s in (ours, theirs))
    np.testing.assert_allclose(*scores, atol=2e-3)
    assert ours.best_score_ > 0.7
    assert cross_val_score(survival(name), X, y, cv=cv).shape == (3,)


@every_estimator
@pytest.mark.parametrize("loss", ["censored", "squared"])
def test_a_search_with_weights_finds_what_scikit_learn_finds(name, loss):
    # The weights are for the fit; concordance has none.
    weight = np.random.RandomState(0).choice([1.0, 2.0], len(X))
    grid = {"C": [0.1, 1.0], "kernels": [[RBF(0.01)], [RBF(0.1)], [RBF(10.0)]]}
    # An int is the number of folds, stratified by event.
    folds = list(StratifiedKFold(3).split(X, Y["event"]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the best")
        ours = KernelSearchCV(survival(name, loss=loss), grid, cv=3, n_jobs=1)
        ours.fit(X, Y, sample_weight=weight)
        warnings.filterwarnings("ignore", ".* does not support sample_weight")
        theirs = GridSearchCV(survival(name, loss=loss), grid, cv=folds)
        theirs.fit(X, Y, sample_weight=weight)
    scores = (s.cv_results_["mean_test_score"] for s in (ours, theirs))
    np.testing.assert_allclose(*scores, atol=2e-3)
    assert ours.best_score_ > 0.7
    again = clone(ours.best_estimator_).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(ours.predict(FRESH), again.predict(FRESH), atol=1e-6)
    assert ours.score(FRESH, LATER) == ours.best_estimator_.score(FRESH, LATER)


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_search_is_explained_like_its_best_estimator(in_pipeline, tmp_path):
    kernels = per_view(RBF(0.3), {"a": [0, 1], "b": [2, 3]})
    search = KernelSearchCV(survival("UniformMKLSurvival", kernels=kernels), {"C": [0.1, 1.0, 5.0]})
    search = make_pipeline(StandardScaler(), search) if in_pipeline else search
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the best")
        search.fit(X, Y)
    Z = search[0].transform(FRESH) if in_pipeline else FRESH
    best = search[-1].best_estimator_ if in_pipeline else search.best_estimator_
    lokl.save(search, tmp_path / "search.lokl")
    expected = explain(best, Z)
    for model in (search, lokl.load(tmp_path / "search.lokl")):
        found = explain(model, FRESH)
        for name in ("times", "survival", "alone_survival", "contributions", "predictions"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_folds_of_a_search_have_equal_shares_of_events(in_pipeline):
    order = np.argsort(Y["event"])
    model, grid = survival("UniformMKLSurvival"), {"C": [0.1, 1.0]}
    if in_pipeline:
        model, grid = make_pipeline(StandardScaler(), model), {"uniformmklsurvival__C": [0.1, 1.0]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the best")
        for cv in (5, StratifiedKFold(5)):
            results = KernelSearchCV(model, grid, cv=cv).fit(X[order], Y[order]).cv_results_
            # Unstratified folds of samples in this order lack events, and have no concordance.
            assert np.isfinite(results["mean_test_score"]).all()
            assert min(results["mean_test_score"]) > 0.7


@every_model
def test_cost_paths_fit_the_same_models(name):
    path = fit_cost_path([survival(name, C=C) for C in (0.1, 1.0)], X, Y)
    for C, model in zip((0.1, 1.0), path, strict=True):
        alone = survival(name, C=C).fit(X, Y)
        np.testing.assert_allclose(model.predict(FRESH), alone.predict(FRESH), atol=5e-3)


@every_estimator
def test_samples_may_lack_views(name):
    Z, new = X.copy(), FRESH.copy()
    Z[::4, 2:] = np.nan
    new[::3, 2:] = np.nan
    kernels = per_view(RBF(0.3), {"a": [0, 1], "b": [2, 3]})
    model = survival(name, kernels=kernels).fit(Z, Y)
    assert model.score(new, LATER) > 0.65
    assert (model.weights(new)[::3, 1] == 0).all()
    explanation = explain(model, new)
    np.testing.assert_allclose(explanation.predictions, model.predict(new))
    assert np.isfinite(model.predict_survival_function(new, return_array=True)).all()


def test_targets_in_any_form():
    pandas = pytest.importorskip("pandas")
    expected = survival("UniformMKLSurvival").fit(X, Y).predict(FRESH)
    columns = np.column_stack([Y["event"], Y["time"]])
    frame = pandas.DataFrame({"died": Y["event"], "days": Y["time"]})
    for y in (columns, columns.tolist(), frame):
        model = survival("UniformMKLSurvival").fit(X, y)
        np.testing.assert_array_equal(model.predict(FRESH), expected)
        assert model.score(X, y) == model.score(X, Y)


def changed(field, row, value):
    y = Y.copy()
    y[field][row] = value
    return y


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (changed("event", slice(None), False), "all 120 samples .* are censored"),
        (changed("time", 7, 0.0), r"log_time.* 0\.0 in row 7"),
        (changed("time", 7, -1.0), r"-1\.0 in row 7"),
        (changed("time", 7, np.nan), "nan in row 7"),
        (changed("time", 7, np.inf), "inf in row 7"),
        (Y["time"], "two columns"),
        (Y[:50], "120.*50"),
        (None, "two columns"),
        (np.column_stack([Y["time"], Y["event"]]), "first column"),
    ],
)
def test_bad_targets_name_value_and_remedy(y, message):
    with pytest.raises(ValueError, match=message):
        lokl.UniformMKLSurvival(KERNELS).fit(X, y)


@every_estimator
@pytest.mark.parametrize("loss", ["censored", "squared"])
def test_one_event_is_enough(name, loss):
    one = changed("event", slice(None), False)
    one["event"][3] = True
    model = survival(name, loss=loss).fit(X, one)
    assert np.isfinite(model.predict(FRESH)).all()
    assert np.isfinite(model.predict_survival_function(FRESH, return_array=True)).all()


def test_events_without_weight_do_not_count():
    with pytest.raises(ValueError, match="censored"):
        lokl.UniformMKLSurvival(KERNELS).fit(X, Y, np.where(Y["event"], 0.0, 1.0))


def test_zero_ties_and_one_event_are_handled():
    model = lokl.UniformMKLSurvival(KERNELS, log_time=False).fit(X, changed("time", 7, 0.0))
    assert np.isfinite(model.predict_survival_function(FRESH, return_array=True)).all()
    tied = Y.copy()
    tied["time"] = np.ceil(tied["time"] / 5)
    assert lokl.UniformMKLSurvival(KERNELS).fit(X, tied).score(FRESH, LATER) > 0.7
    one = changed("event", slice(1, None), False)
    one["event"][0] = True
    curves = lokl.UniformMKLSurvival(KERNELS).fit(X, one).predict_survival_function(FRESH, True)
    assert np.isfinite(curves).all()
    same = lokl.UniformMKLSurvival(KERNELS).fit(X, changed("time", slice(None), 2.0))
    np.testing.assert_allclose(same.predict(FRESH), -np.log(2.0), atol=0.11)


@pytest.mark.parametrize("solver", ["libsvm", "squared"])
def test_solvers_without_one_sided_bounds_are_refused(solver):
    with pytest.raises(ValueError, match="loss='censored'"):
        lokl.UniformMKLSurvival(KERNELS, solver=solver).fit(X, Y)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_residuals_have_mean_zero_and_the_sign_of_unexpected_events(share):
    _, y = samples(share=share)
    weight = np.random.RandomState(0).choice([1.0, 2.0], len(y))
    hazard = np.zeros(len(y))
    for i in range(len(y)):
        for time in np.unique(y["time"][y["event"] & (y["time"] <= y["time"][i])]):
            deaths = weight[y["event"] & (y["time"] == time)].sum()
            hazard[i] += deaths / weight[y["time"] >= time].sum()
    martingale = y["event"] - hazard
    assert weight @ martingale == pytest.approx(0.0, abs=1e-9)
    residuals = deviance_residuals(y, weight)
    np.testing.assert_array_equal(np.sign(residuals), np.sign(martingale))
    log = np.where(y["event"], np.log(hazard, where=y["event"], out=np.zeros(len(y))), 0.0)
    np.testing.assert_allclose(residuals**2, -2 * (martingale + log), atol=1e-9)


@every_model
def test_the_squared_loss_is_a_regression_of_residuals(name):
    model = survival(name, loss="squared").fit(X, Y)
    residuals = deviance_residuals(Y, np.ones(len(X)))
    regressor = survival(name.replace("Survival", "Regressor"), loss="squared").fit(X, residuals)
    np.testing.assert_allclose(model.predict(FRESH), regressor.predict(FRESH), atol=1e-8)
    np.testing.assert_allclose(model.loo_decision_, regressor.loo_decision_, atol=1e-8)
    # Only the order of the times matters.
    other = Y.copy()
    other["time"] = np.sqrt(other["time"]) + 3.0
    again = survival(name, loss="squared").fit(X, other)
    np.testing.assert_allclose(again.predict(FRESH), model.predict(FRESH))
    assert model.score(FRESH, LATER) > 0.7
    curves = model.predict_survival_function(FRESH, return_array=True)
    np.testing.assert_allclose(again.predict_survival_function(FRESH, True), curves)
    with_zero = survival(name, loss="squared").fit(X, changed("time", 7, 0.0))
    assert np.isfinite(with_zero.predict(FRESH)).all()


def test_costs_of_experts_are_searched_on_stored_kernels():
    search = KernelSearchCV(
        survival("ExpertAverageSurvival", loss="squared"), {"C": [0.01, 0.1, 1]}
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the best C")
        assert search.fit(X, Y).best_score_ > 0.7


def test_success_of_a_censored_sample_is_one_sided():
    target, event = np.zeros(4), np.array([True, True, False, False])
    problems = [censored(target, 1.0, 0.1, event)]
    decision = np.array([[-2.0], [3.0], [-2.0], [3.0]])
    assert _residuals(problems, decision).ravel().tolist() == [2.0, 3.0, 0.0, 3.0]
