"""From decisions to probabilities: laws of the map itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.calibration import _SigmoidCalibration

from lokl.search import Calibration, expected_calibration_error


def decisions(seed, n_classes, n=60, shift=1.0):
    """Held-out decisions that know something, labels and weights."""
    rng = np.random.RandomState(seed)
    codes = rng.randint(n_classes, size=n)
    F = rng.normal(size=(n, n_classes))
    F[np.arange(n), codes] += shift
    return (F[:, 1] - F[:, 0] if n_classes == 2 else F), codes, rng.uniform(0.1, 3.0, size=n)


seeds = st.integers(0, 2**16)
classes = st.integers(2, 6)


@given(seed=seeds, n_classes=classes, shift=st.sampled_from([-2.0, 0.0, 1.0, 30.0]))
def test_probabilities_sum_to_one_and_rise_with_the_decision(seed, n_classes, shift):
    F, codes, weight = decisions(seed, n_classes, shift=shift)
    calibration = Calibration.learn(F, codes, n_classes, weight)
    assert calibration.slope >= 0
    chance = calibration.probabilities(F)
    assert chance.shape == (len(codes), n_classes)
    assert ((chance > 0) & (chance < 1)).all()
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(calibration.log_probabilities(F)), chance)
    more = F + 1.0 if n_classes == 2 else F + np.eye(n_classes)[1]
    assert (calibration.probabilities(more)[:, 1] >= chance[:, 1]).all()


@given(seed=seeds, n_classes=classes, scale=st.sampled_from([1e-200, 1e-3, 1e3, 1e200]))
def test_units_of_the_decision_do_not_matter(seed, n_classes, scale):
    F, codes, weight = decisions(seed, n_classes)
    one = Calibration.learn(F, codes, n_classes, weight).probabilities(F)
    other = Calibration.learn(scale * F, codes, n_classes, weight).probabilities(scale * F)
    np.testing.assert_allclose(other, one, atol=1e-9)


@given(seed=seeds, n_classes=classes)
def test_weights_are_repeated_samples(seed, n_classes):
    F, codes, _ = decisions(seed, n_classes, n=40)
    times = np.random.RandomState(seed).randint(0, 4, size=40)
    times[0] = 1
    weighted = Calibration.learn(F, codes, n_classes, times.astype(float))
    repeated = Calibration.learn(np.repeat(F, times, axis=0), np.repeat(codes, times), n_classes)
    np.testing.assert_allclose(weighted.probabilities(F), repeated.probabilities(F), atol=1e-9)


@given(seed=seeds)
def test_two_classes_are_platts_sigmoid_where_decisions_lean(seed):
    f, codes, weight = decisions(seed, 2, n=200)
    f = f - 3.0
    ours = Calibration.learn(f, codes, 2, weight)
    theirs = _SigmoidCalibration().fit(f, codes, weight)
    np.testing.assert_allclose(ours.probabilities(f)[:, 1], theirs.predict(f), atol=1e-3)


@given(seed=seeds, n_classes=st.integers(3, 6), lean=st.floats(-3, 3))
def test_no_other_slope_and_offsets_are_more_likely(seed, n_classes, lean):
    F, codes, weight = decisions(seed, n_classes)
    F[:, 0] += lean
    ours = Calibration.learn(F, codes, n_classes, weight)
    counts = np.bincount(codes, weights=weight, minlength=n_classes)
    doubt = (1 / (counts + 2))[codes, np.newaxis]
    targets = np.where(np.eye(n_classes)[codes] > 0, 1 - doubt, doubt / (n_classes - 1))
    moves = ours.offset.any()

    def loss(params):
        logarithms = log_softmax(params[0] * F + moves * params[1:], axis=1)
        return -weight @ (targets * logarithms).sum(axis=1)

    limits = [(0, None)] + [(None, None)] * n_classes
    best = minimize(loss, np.eye(n_classes + 1)[0], bounds=limits, method="L-BFGS-B")
    # The ridge moves the optimum a little.
    assert loss(np.append(ours.slope, ours.offset)) <= best.fun + 0.02


def test_offsets_come_only_where_they_pay():
    f, codes, _ = decisions(0, 2, n=400)
    assert not Calibration.learn(f, codes, 2).offset.any()
    assert Calibration.learn(f + 1.0, codes, 2).offset[1] < -0.3
    F, codes, _ = decisions(0, 4, n=400)
    plain = Calibration.learn(F, codes, 4)
    np.testing.assert_array_equal(plain.probabilities(F).argmax(axis=1), F.argmax(axis=1))
    assert Calibration.learn(F + np.array([0, 0, 0, 2.0]), codes, 4).offset.argmin() == 3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_separable_decisions_have_a_finite_slope(n_classes):
    codes = np.arange(30) % n_classes
    F = np.eye(n_classes)[codes]
    f = F[:, 1] if n_classes == 2 else F
    calibration = Calibration.learn(2 * f - 1, codes, n_classes)
    assert 0 < calibration.slope < 100
    chance = calibration.probabilities(2 * f - 1)
    count = 30 / n_classes
    np.testing.assert_allclose(chance.max(axis=1), (count + 1) / (count + 2), atol=1e-3)


def test_constant_decisions_give_the_shares_of_the_classes():
    codes = np.repeat([0, 1, 2], [60, 30, 10])
    chance = Calibration.learn(np.zeros((100, 3)), codes, 3).probabilities(np.zeros((1, 3)))
    np.testing.assert_allclose(chance[0], [0.6, 0.3, 0.1], atol=0.02)


def test_decisions_that_speak_for_the_wrong_class_are_not_turned_round():
    f, codes, _ = decisions(0, 2)
    calibration = Calibration.learn(-f, codes, 2)
    assert calibration.slope == 0.0
    assert np.ptp(calibration.probabilities(f), axis=0).max() == 0.0


def test_a_class_that_no_sample_has_gets_a_little():
    F, codes, _ = decisions(0, 3)
    seen = codes != 2
    chance = Calibration.learn(F[seen], codes[seen], 3).probabilities(F)
    assert (chance[:, 2] > 0).all()
    assert chance[:, 2].mean() < 0.05


def test_decisions_of_any_size_give_probabilities():
    f, codes, _ = decisions(0, 2)
    calibration = Calibration.learn(1e-5 * f, codes, 2)
    far = np.array([-1e305, 1e305])
    np.testing.assert_array_equal(calibration.probabilities(far), [[1, 0], [0, 1]])
    assert np.isfinite(calibration.log_probabilities(far)).all()


@pytest.mark.parametrize(
    ("decision", "n_classes", "message"),
    [
        (np.zeros((3, 2)), 3, r"\(3, 3\).*\(3, 2\)"),
        ([0.0, np.nan], 2, "sample 1 .*nan"),
        (np.zeros((0, 3)), 3, "weight"),
    ],
)
def test_what_cannot_be_learned_from_is_named(decision, n_classes, message):
    with pytest.raises(ValueError, match=message):
        Calibration.learn(np.asarray(decision), np.arange(len(decision)), n_classes)


@given(seed=seeds, n_classes=classes, n_bins=st.integers(1, 30))
def test_calibration_error_is_that_of_its_definition(seed, n_classes, n_bins):
    rng = np.random.RandomState(seed)
    proba = rng.dirichlet(np.ones(n_classes), size=50)
    y = rng.randint(n_classes, size=50)
    top, right = proba.max(axis=1), proba.argmax(axis=1) == y
    expected = 0.0
    for k in range(n_bins):
        own = (top >= k / n_bins) & ((top < (k + 1) / n_bins) | (k == n_bins - 1))
        if own.any():
            expected += own.mean() * abs(right[own].mean() - top[own].mean())
    ours = expected_calibration_error(y, proba, n_bins, classes=range(n_classes))
    assert ours == pytest.approx(expected)


def test_true_probabilities_are_calibrated_and_boasting_is_not():
    rng = np.random.RandomState(0)
    p = rng.uniform(size=20000)
    y = np.where(rng.uniform(size=20000) < p, "yes", "no")
    assert expected_calibration_error(y, p) < 0.02
    assert expected_calibration_error(y, (p > 0.5).astype(float)) > 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [[0.5, 0.2], [0.5, 0.5]]), r"row 0 of proba is \[0.5, 0.2\]"),
        (([0, 1], [-1.0, 2.0]), "row 0 of proba"),
        (([0, 1], [np.nan, 0.5]), "row 0 of proba"),
        (([0, 1], [0.5, 0.5, 0.5]), "2 labels"),
        (([0, 0], [0.5, 0.5]), r"2 columns for 1 classes \[0\].*classes=model.classes_"),
        (([0, 1], [0.5, 0.5], 0), "n_bins .*got 0"),
    ],
)
def test_bad_probabilities_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        expected_calibration_error(*arguments)
