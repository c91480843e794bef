"""The trusted vote on intervals of time, with the likelihood of censored samples."""

import numpy as np
import pytest
from scipy.special import softmax

import lokl
from lokl import TrustedVoteSurvival, UniformMKLSurvival
from lokl._survival import as_columns, kaplan_meier
from lokl.kernels import RBF
from lokl.methods.trusted_vote.evidence import (
    TimeBins,
    _CalibrationLoss,
    calibrate,
    given,
    mean_given,
    probability_of,
)
from lokl.metrics import integrated_brier_score

VIEWS = {
    "a": RBF(0.05).on(range(4)),
    "b": RBF(0.05).on(range(4, 8)),
    "c": RBF(0.05).on(range(8, 11)),
}


def patients(n, seed):
    """Two causes in the first two views, both together in the third; 40 % are censored."""
    rng = np.random.RandomState(seed)
    z = rng.normal(size=(n, 2))
    X = rng.normal(size=(n, 11))
    X[:, 0], X[:, 4] = z[:, 0] + 0.3 * X[:, 0], z[:, 1] + 0.3 * X[:, 4]
    X[:, 8] = z.sum(axis=1) + 0.5 * X[:, 8]
    ends = rng.exponential(size=(n, 2)) * [10, 20]
    event = ends[:, 0] * np.exp(-z.sum(axis=1))
    return X, lokl.survival_target(event <= ends[:, 1], np.minimum(event, ends[:, 1]))


X, Y = patients(200, 0)
NEW, LATER = patients(200, 1)


def vote(**settings):
    return TrustedVoteSurvival(VIEWS, **{"loss": "squared", "random_state": 0, **settings})


@pytest.fixture(scope="module", params=["censored", "squared"])
def model(request):
    return vote(loss=request.param).fit(X, Y)


def test_it_orders_samples_as_well_as_the_average(model):
    average = UniformMKLSurvival(VIEWS, loss=model.loss).fit(X, Y)
    assert model.score(NEW, LATER) > max(0.7, average.score(NEW, LATER) - 0.01)


def test_a_noisy_view_loses_trust(model):
    noisy = NEW.copy()
    noisy[:, 4:8] = np.random.RandomState(2).normal(size=(200, 4)) * 8.0
    trust = model.trust(noisy)
    assert ((trust >= 0) & (trust < 1)).all()
    assert trust[:, 1].mean() < 0.1
    assert trust[:, [0, 2]].mean() > 0.5
    assert model.score(noisy, LATER) > model.score(NEW, LATER) - 0.05


def test_a_missing_view_has_no_trust_and_no_contribution(model):
    lacking = NEW.copy()
    lacking[::2, :4] = np.nan
    assert (model.trust(lacking)[::2, 0] == 0).all()
    parts = model.contributions(lacking)
    assert (parts[::2, 0] == 0).all()
    np.testing.assert_allclose(parts.sum(axis=1) + model.intercept_, model.predict(lacking))
    strange = np.full_like(NEW[:3], 1e3)
    np.testing.assert_allclose(model.predict(strange), model.intercept_[0])


def test_curves_are_calibrated(model):
    curves = model.predict_survival_function(NEW, return_array=True)
    assert curves.shape == (200, len(model.unique_times_))
    assert (np.diff(curves, axis=1) <= 1e-12).all()
    assert (curves >= 0).all()
    assert (curves <= 1).all()
    many, later = patients(600, 3)
    times = np.quantile(later["time"], np.linspace(0.1, 0.8, 20))
    own = np.array([function(times) for function in model.predict_survival_function(many)])
    for part in np.array_split(np.argsort(model.predict(many)), 3):
        observed = kaplan_meier(later[part])(times)
        assert np.abs(own[part].mean(axis=0) - observed).mean() < 0.06
    mean = np.tile(own.mean(axis=0), (600, 1))
    error, baseline = (integrated_brier_score(Y, later, c, times) for c in (own, mean))
    assert error < 0.85 * baseline


@pytest.mark.parametrize(
    ("loss", "change"),
    [("squared", lambda time: np.sqrt(time) + 2.0), ("censored", lambda time: 365.25 * time)],
)
def test_the_unit_of_time_changes_nothing(loss, change):
    other = Y.copy()
    other["time"] = change(Y["time"])
    first, second = (vote(loss=loss, tol=1e-6).fit(X, y) for y in (Y, other))
    np.testing.assert_allclose(second.predict(NEW), first.predict(NEW), atol=1e-4)
    curves = [m.predict_survival_function(NEW, return_array=True) for m in (first, second)]
    np.testing.assert_allclose(*curves, atol=1e-4)


def test_order_and_repetition_of_rows_change_nothing():
    weight = np.random.RandomState(0).choice([0, 1, 2], len(X))
    rows = np.random.RandomState(1).permutation(np.repeat(np.arange(len(X)), weight))
    weighted, repeated = vote().fit(X, Y, weight), vote().fit(X[rows], Y[rows])
    np.testing.assert_allclose(repeated.predict(NEW), weighted.predict(NEW), atol=1e-6)
    assert weighted.loo_decision_.shape == (len(X),)


def test_an_event_and_a_censored_sample_with_equal_features_stay_apart():
    twice = np.repeat(X, 2, axis=0)
    y = np.repeat(Y, 2)
    y["event"][::2] = True
    y["event"][1::2] = False
    model = vote(loss="censored").fit(twice, y)
    assert not np.allclose(model.predict(NEW), vote(loss="censored").fit(X, y[::2]).predict(NEW))
    assert np.isfinite(model.predict_survival_function(NEW, return_array=True)).all()


@pytest.mark.parametrize("loss", ["censored", "squared"])
def test_few_events_ties_and_no_censoring(loss):
    one = Y.copy()
    one["event"] = np.arange(len(Y)) == 3
    tied = Y.copy()
    tied["time"] = np.ceil(tied["time"] / 20)
    known = Y.copy()
    known["event"] = True
    for y in (one, tied, known):
        curves = vote(loss=loss).fit(X, y).predict_survival_function(NEW, return_array=True)
        assert np.isfinite(curves).all()
        assert (np.diff(curves, axis=1) <= 1e-12).all()


def bins(n_bins=20):
    return TimeBins.from_times(Y, np.ones(len(Y)), 0.0, n_bins)


def test_intervals_have_the_mass_of_kaplan_meier():
    outcomes = bins()
    assert outcomes.prior.sum() == pytest.approx(1.0)
    assert (np.diff(outcomes.centres) < 0).all()
    curve = kaplan_meier(Y)
    after = 1.0 - np.cumsum(outcomes.prior)[:-1]
    np.testing.assert_allclose(after, curve(outcomes.limits), atol=2e-3)
    truth = outcomes.truth(as_columns(Y))
    event = Y["event"]
    assert (truth[event] >= 0).all()
    assert (truth[~event] < 0).all()
    for i in np.flatnonzero(event):
        assert Y["time"][i] <= outcomes.limits[truth[i]]
        assert truth[i] == 0 or Y["time"][i] > outcomes.limits[truth[i] - 1]
    late = outcomes.truth(np.array([[0.0, 1e9], [0.0, 0.0]]))
    assert late.tolist() == [-1 - len(outcomes.limits), -1]


def test_tilted_intervals_have_proportional_hazards():
    outcomes = bins(60)
    survival = kaplan_meier(Y)(outcomes.limits)
    for theta in (-0.5, 1.0, 3.0):
        logits = outcomes.base + outcomes.scores(np.array([[theta]]), 1.0)
        curve = 1.0 - np.cumsum(softmax(logits, axis=1)[0])[:-1]
        inside = survival > 0.15
        assert np.abs(curve - survival ** (1 + theta))[inside].max() < 0.08


def test_probabilities_of_what_is_known_are_sums():
    rng = np.random.RandomState(0)
    truth = np.array([0, -1, -3, 4, -5, 2])
    p = softmax(rng.normal(size=(6, 5)), axis=1)
    values = rng.normal(size=(6, 3, 5))
    sets = [[0], [0, 1, 2, 3, 4], [2, 3, 4], [4], [4], [2]]
    for i, chosen in enumerate(sets):
        total = p[i, chosen].sum()
        assert probability_of(truth, p)[i] == pytest.approx(total)
        expected = values[i][:, chosen] @ p[i, chosen] / total
        np.testing.assert_allclose(mean_given(truth, p, values)[i], expected)
        np.testing.assert_allclose(given(truth, p)[i].sum(), 1.0)
    both = np.stack([p, p[::-1]], axis=1)
    np.testing.assert_allclose(probability_of(truth, both)[:, 0], probability_of(truth, p))


def test_the_gradient_of_the_calibration_is_right():
    rng = np.random.RandomState(0)
    outcomes, n = bins(6), 40
    truth = rng.choice([0, 2, -2, -4, 5], n)
    weight, z = rng.rand(n), rng.normal(size=n)
    scores = outcomes.scores(rng.normal(size=(n, 1)), 1.0)
    loss = _CalibrationLoss(scores, outcomes.base, outcomes.shifts, truth, weight / weight.sum(), z)
    x = np.array([0.2, 0.3, -0.4])
    _, gradient, curvature = loss(x)
    for k in range(3):
        step = 1e-6 * np.eye(3)[k]
        difference = (loss(x + step)[0] - loss(x - step)[0]) / 2e-6
        assert gradient[k] == pytest.approx(difference, abs=1e-7)
    assert np.linalg.eigvalsh(curvature).min() > 0


def test_calibration_finds_the_strength_of_the_risk():
    rng = np.random.RandomState(0)
    risk = rng.normal(size=2000)
    ends = rng.exponential(size=(2000, 2)) * [1.0, 2.0]
    event = ends[:, 0] / np.maximum(1 + 0.4 * risk, 0.05)
    y = lokl.survival_target(event <= ends[:, 1], np.minimum(event, ends[:, 1]))
    outcomes = TimeBins.from_times(y, np.ones(2000), 0.0, 20)
    decision, truth = risk[:, np.newaxis] * 7.0, outcomes.truth(as_columns(y))
    found = calibrate(outcomes, decision, truth, np.ones(2000))
    slope = np.exp(found.log_scale) / found.error_scale * 7.0
    assert slope == pytest.approx(0.4, abs=0.1)
