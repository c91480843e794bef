"""AutoMKL on censored times."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import lokl
from lokl import AutoMKLSurvival
from lokl.explain import explain
from lokl.metrics import concordance_index, concordance_values, integrated_brier_score
from lokl.search import expert_search

pd = pytest.importorskip("pandas")


def patients(n=150, seed=0):
    """A table of numbers, categories and gaps, and the outcomes; two columns matter."""
    rng = np.random.RandomState(seed)
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=["age", "dose", "noise"])
    table["stage"] = rng.choice(["I", "II", "III"], n)
    risk = 1.2 * table["age"] + (table["stage"] == "III") * 2.0
    ends = rng.exponential(size=(n, 2)) * [10, 20]
    event = ends[:, 0] * np.exp(-risk.to_numpy())
    table.loc[::9, "dose"] = np.nan
    return table, lokl.survival_target(event <= ends[:, 1], np.minimum(event, ends[:, 1]))


X, Y = patients()
NEW, LATER = patients(100, seed=1)
VIEWS = {"person": ["age", "noise"], "tumour": ["stage", "dose"]}


@pytest.fixture(scope="module")
def model():
    return AutoMKLSurvival().fit(X, Y)


def test_one_table(model):
    assert model.score(NEW, LATER) > 0.75
    assert model.best_method_ == "expert average"
    assert abs(model.best_score_ - model.score(NEW, LATER)) < 0.06
    assert list(model.leaderboard_.columns[:4]) == ["method", "kernels", "C", "score"]
    assert model.leaderboard_["score"].between(0.3, 1.0).all()
    # The score of the final model is the concordance of its exact leave-one-out decisions.
    expected = concordance_index(Y["event"], Y["time"], model.loo_decision_).cindex
    assert model.best_score_ == pytest.approx(expected, abs=1e-6)


def test_curves_and_contributions(model):
    curves = model.predict_survival_function(NEW, return_array=True)
    assert curves.shape == (100, len(model.unique_times_))
    times = np.quantile(LATER["time"], np.linspace(0.1, 0.8, 15))
    own = np.array([function(times) for function in model.predict_survival_function(NEW)])
    mean = np.tile(own.mean(axis=0), (100, 1))
    error, baseline = (integrated_brier_score(Y, LATER, c, times) for c in (own, mean))
    assert error < 0.85 * baseline
    parts = model.contributions(NEW)
    np.testing.assert_allclose(parts.sum(axis=1) + model.intercept_, model.predict(NEW))
    np.testing.assert_allclose(explain(model, NEW).predictions, model.predict(NEW))


def test_only_the_order_of_times_matters(model):
    other = Y.copy()
    other["time"] = np.sqrt(Y["time"]) * 365 + 1
    again = AutoMKLSurvival().fit(X, other)
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(
        again.predict_survival_function(NEW, True), model.predict_survival_function(NEW, True)
    )


def test_copies_files_and_forms_of_targets(model, tmp_path):
    predicted = model.predict_survival_function(NEW, return_array=True)
    lokl.save(model, tmp_path / "model.lokl")
    again = clone(model)
    with pytest.raises(NotFittedError):
        again.predict_survival_function(NEW)
    again.fit(X, pd.DataFrame({"died": Y["event"], "months": Y["time"]}))
    for other in (again, pickle.loads(pickle.dumps(model)), lokl.load(tmp_path / "model.lokl")):
        np.testing.assert_array_equal(other.predict_survival_function(NEW, True), predicted)


def test_a_weight_of_two_is_a_repeated_row():
    weight = np.random.RandomState(0).choice([0.0, 1.0, 2.0], len(X))
    rows = np.repeat(np.arange(len(X)), weight.astype(int))
    weighted = AutoMKLSurvival(cv=5).fit(X, Y, weight)
    positive = AutoMKLSurvival(cv=5).fit(X[weight > 0], Y[weight > 0], weight[weight > 0])
    np.testing.assert_array_equal(weighted.predict(NEW), positive.predict(NEW))
    assert AutoMKLSurvival().fit(X.iloc[rows], Y[rows]).score(NEW, LATER) > 0.7


def test_views_have_one_kernel_each_and_may_be_missing():
    table, new = X.copy(), NEW.copy()
    table.loc[::5, VIEWS["tumour"]] = np.nan
    new.loc[::3, VIEWS["person"]] = np.nan
    model = AutoMKLSurvival(VIEWS).fit(table, Y)
    assert len(model.kernel_names_) == 2
    assert model.score(new, LATER) > 0.65
    assert model.best_method_ == "trusted vote"
    assert (model.trust(new)[::3, 0] == 0).all()
    curves = model.predict_survival_function(new, return_array=True)
    assert (np.diff(curves, axis=1) <= 1e-12).all()


@pytest.mark.parametrize("methods", [["UniformMKL", "SimpleMKL"], [lokl.LpMKLSurvival()]])
def test_named_methods_are_compared_by_folds(methods):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AutoMKLSurvival(methods=methods, cv=3, random_state=0).fit(X, Y)
    assert model.score(NEW, LATER) > 0.7
    assert np.isfinite(model.predict_survival_function(NEW, return_array=True)).all()


def test_groups_stay_together():
    groups = np.repeat(np.arange(30), 5)
    model = AutoMKLSurvival(cv=3).fit(X, Y, groups=groups)
    assert model.score(NEW, LATER) > 0.7


def test_many_samples_have_censored_machines(monkeypatch):
    monkeypatch.setattr(expert_search, "EXACT_ROWS", 100)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the best model__C")
        model = AutoMKLSurvival().fit(X, Y)
    assert model.best_method_ == "UNIFORM"
    assert model.best_estimator_[-1].loss == "censored"
    assert model.score(NEW, LATER) > 0.7


def test_bad_input():
    censored = Y.copy()
    censored["event"] = False
    for y, message in ((censored, "censored"), (Y["time"], "two columns"), (None, "requires y")):
        with pytest.raises(ValueError, match=message):
            AutoMKLSurvival().fit(X, y)
    with pytest.raises(ValueError, match="survival"):
        AutoMKLSurvival(methods=[lokl.UniformMKLRegressor()]).fit(X, Y)
    with pytest.raises(ValueError, match="UniformMKL, LpMKL, SimpleMKL"):
        AutoMKLSurvival(methods=["LMKL"]).fit(X, Y)


def test_values_of_samples_estimate_the_error_of_concordance():
    rng = np.random.RandomState(0)
    y = Y.copy()
    y["time"] = np.ceil(y["time"])
    scores = np.round(X["age"].to_numpy() + rng.normal(size=len(X)), 1)
    values = concordance_values(y, scores)
    index = concordance_index(y["event"], y["time"], scores).cindex
    assert values.mean() == pytest.approx(index)
    kept = [np.delete(np.arange(len(y)), i) for i in range(len(y))]
    jackknife = [concordance_index(y["event"][k], y["time"][k], scores[k]).cindex for k in kept]
    expected = np.sqrt((len(y) - 1) * np.var(jackknife))
    assert values.std() / np.sqrt(len(y)) == pytest.approx(expected, rel=0.05)
    assert (concordance_values(y[:1], scores[:1]) == 0.5).all()
