"""Parts of the trusted vote: minimiser, calibration, neighbourhood, evidence, weights."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.special import softmax

from lokl._arrays import weighted_quantile
from lokl.kernels import Linear
from lokl.methods.trusted_vote.evidence import (
    ClassOutcomes,
    TargetBins,
    _CalibrationLoss,
    _VoteLoss,
    bounded_evidence,
    calibrate,
    draw_donors,
    pairwise_disagreement,
)
from lokl.methods.trusted_vote.model import (
    KernelSimilarity,
    LocalReliability,
    Neighbours,
    TrustedExpert,
)
from lokl.optimizers.newton import minimize_in_box

seeds = given(seed=st.integers(0, 2**16))


@seeds
def test_the_least_of_a_quadratic_in_a_box(seed):
    rng = np.random.RandomState(seed)
    root, b = rng.normal(size=(4, 4)), rng.normal(size=4)
    A = root @ root.T + 0.1 * np.eye(4)

    def function(x):
        return 0.5 * x @ A @ x - b @ x, A @ x - b, A

    lower, upper = np.full(4, -0.3), np.full(4, 0.4)
    found = minimize_in_box(function, np.zeros(4), lower, upper)
    theirs = minimize(
        lambda x: function(x)[:2], np.zeros(4), jac=True, bounds=[(-0.3, 0.4)] * 4, tol=1e-14
    )
    assert function(found)[0] <= theirs.fun + 1e-10


def sums(seed, n=60, c=3):
    rng = np.random.RandomState(seed)
    scores, truth = rng.normal(size=(n, c)), rng.randint(c, size=n)
    share = rng.uniform(size=n)
    return rng, scores, truth, share / share.sum()


@seeds
def test_gradients_of_calibration_and_of_the_vote(seed):
    rng, scores, truth, share = sums(seed)
    base, shifts, local = rng.normal(size=3), np.eye(3), rng.normal(size=60)
    likelihood = _CalibrationLoss(scores, base, shifts, truth, share, local)
    loss = _VoteLoss(rng.normal(size=(60, 4, 3)), truth, share, np.log([0.2, 0.5, 0.3]), np.ones(4))
    for function, size in ((likelihood, 5), (loss, 4)):
        x = rng.uniform(0, 1, size=size)
        numeric = approx_fprime(x, lambda v, f=function: f(v)[0], 1e-7)
        np.testing.assert_allclose(function(x)[1], numeric, atol=1e-5)
        assert np.linalg.eigvalsh(function(x)[2])[0] > -1e-12
    numeric = approx_fprime(np.ones(4), lambda v: loss(v)[1], 1e-7)
    np.testing.assert_allclose(loss(np.ones(4))[2], numeric, atol=1e-5)


def test_calibration_finds_the_temperature_that_made_the_classes():
    rng = np.random.RandomState(0)
    decision = rng.normal(size=(5000, 1))
    p = softmax(np.hstack([-decision, decision]) * np.exp(0.7) + np.array([0.2, -0.2]), axis=-1)
    truth = (rng.uniform(size=5000) < p[:, 1]).astype(int)
    classes = ClassOutcomes.from_training(2.0 * truth[:, np.newaxis] - 1, np.ones(5000))
    found = calibrate(classes, decision, truth, np.ones(5000))
    assert found.log_scale == pytest.approx(0.7, abs=0.1)
    assert found.shift[0] - found.shift[1] == pytest.approx(0.4, abs=0.12)
    assert found.slope == 0.0
    local = rng.choice([-1.0, 1.0], size=5000)
    sure = softmax(
        np.hstack([-decision, decision]) * np.exp(0.7 + 0.5 * local)[:, np.newaxis], axis=-1
    )
    truth = (rng.uniform(size=5000) < sure[:, 1]).astype(int)
    again = calibrate(classes, decision, truth, np.ones(5000), local)
    assert again.slope == pytest.approx(0.5, abs=0.1)


def test_calibration_without_samples_leaves_decisions_unchanged():
    classes = ClassOutcomes.from_training(np.array([[-1.0], [1.0]]), np.ones(2))
    found = calibrate(classes, np.zeros((0, 1)), np.empty(0, int), np.empty(0))
    assert (found.log_scale, found.slope, found.error_scale) == (0.0, 0.0, 1.0)


@seeds
def test_neighbours_are_the_closest(seed):
    K, diag = np.random.RandomState(seed).uniform(size=(5, 9)), np.ones(9)
    bump = KernelSimilarity(2.0, False)
    found = bump.neighbours(K, diag[:5], diag, 4)
    np.testing.assert_array_equal(found.index, np.argsort(-K, axis=1)[:, :4])
    np.testing.assert_allclose(found.similarity, -np.sort(-K, axis=1)[:, :4])
    assert bump.neighbours(K, diag[:5], diag, 20).index.shape == (5, 9)
    assert bump.neighbours(K, diag[:5], diag, 0).mean_similarity.tolist() == [0.0] * 5
    K[:, 0] = -np.inf
    assert not (bump.neighbours(K, diag[:5], diag, 8).index == 0).any()


def test_similarity_of_kernels_with_and_without_a_constant_diagonal():
    K = np.array([[2.0, 0.4], [0.4, 2.0]])
    bump = KernelSimilarity.from_training(np.full(2, 2.0), np.arange(2), K)
    near = bump.neighbours(K, np.full(2, 2.0), np.full(2, 2.0), 2)
    np.testing.assert_allclose(near.similarity, [[1.0, 0.2], [1.0, 0.2]])
    np.testing.assert_array_equal(near.index, [[0, 1], [1, 0]])
    # A sample of another norm is far away, whatever its direction.
    far = bump.neighbours(np.array([[20.0]]), np.array([200.0]), np.array([2.0]), 1)
    assert far.similarity == 0.0
    X = np.array([[0.0], [1.0], [3.0]])
    line = KernelSimilarity.from_training((X**2)[:, 0], np.arange(3), X @ X.T)
    assert line == KernelSimilarity(4.0, True)
    near = line.neighbours(X @ X.T, (X**2)[:, 0], (X**2)[:, 0], 3)
    # The closest in feature space, not those with the largest kernel values.
    np.testing.assert_array_equal(near.index, [[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    distance = np.take_along_axis((X - X.T) ** 2, near.index, axis=1)
    np.testing.assert_allclose(near.similarity, np.exp(-distance / 4.0))
    assert (
        KernelSimilarity.from_training(np.zeros(3), np.arange(3), np.zeros((3, 3))).distance_scale
        == 1.0
    )


def test_the_lowest_twentieth_of_the_training_samples_is_unfamiliar():
    closeness = np.linspace(0.1, 1.0, 100)[:, np.newaxis]
    known = Neighbours(np.zeros((100, 1), int), closeness)
    nearest = known.mean_similarity
    familiar = weighted_quantile(nearest, np.ones(100), 0.05)
    assert familiar == closeness[4, 0]

    def familiarity(threshold):
        none = np.empty((0, 1))
        expert = TrustedExpert("line", Linear(), none, none, none, none, np.zeros(1), object())
        return replace(expert, familiar=threshold).familiarity_of(known)

    assert (familiarity(familiar) < 1).sum() == 4
    # A weight of 2 is the row written twice.
    twice = weighted_quantile(np.repeat(nearest, 2), np.ones(200), 0.05)
    assert twice == weighted_quantile(nearest, np.full(100, 2.0), 0.05)
    assert (familiarity(0.0) == 1).all()


def test_reliability_is_high_near_samples_predicted_well():
    chance = np.repeat([0.9, 0.2], 30)
    index = np.vstack([np.tile(np.arange(20), (30, 1)), np.tile(np.arange(30, 50), (30, 1))])
    known = Neighbours(index, np.ones(index.shape))
    success = LocalReliability.from_training(chance, np.ones(60), known)
    z = success(known)
    np.testing.assert_allclose(z, np.repeat([1.0, -1.0], 30))
    flat = LocalReliability.from_training(np.full(60, 0.5), np.ones(60), known)
    assert (flat(known) == 0).all()
    strangers = Neighbours(index, np.zeros(index.shape))
    np.testing.assert_allclose(success(strangers), 0.0, atol=1e-12)


@given(seed=st.integers(0, 2**16), noise_rate=st.floats(0.01, 0.9))
def test_evidence_is_bounded_and_trust_a_probability(seed, noise_rate):
    rng = np.random.RandomState(seed)
    probabilities = softmax(5 * rng.normal(size=(8, 3, 4)), axis=-1)
    familiarity, prior = rng.uniform(size=(8, 3)), softmax(rng.normal(size=4))
    familiarity[:, 0] = 0.0
    bounded, trust = bounded_evidence(probabilities, familiarity, prior, noise_rate)
    assert (bounded >= np.log(noise_rate) - 1e-12).all()
    assert ((trust >= 0) & (trust < 1)).all()
    assert (trust[:, 0] == 0).all()
    np.testing.assert_allclose(bounded[:, 0], 0.0, atol=1e-15)
    disagreement = pairwise_disagreement(probabilities, familiarity)
    assert ((disagreement >= 0) & (disagreement <= 1 + 1e-12)).all()


def test_disagreement_is_of_pairs():
    sure = np.eye(2)[[[0, 0, 0], [0, 0, 1], [0, 1, 1]]]
    np.testing.assert_allclose(pairwise_disagreement(sure, np.ones((3, 3))), [0.0, 2 / 3, 2 / 3])
    # An expert disagrees with no other about samples that are unfamiliar to it.
    familiar = np.array([[1.0, 1.0, 0.0]] * 3)
    np.testing.assert_allclose(pairwise_disagreement(sure, familiar), [0.0, 0.0, 1.0])
    assert (pairwise_disagreement(sure[:, :1], np.ones((3, 1))) == 0).all()


@seeds
def test_contributions_to_bins_add_up_to_the_mean(seed):
    rng = np.random.RandomState(seed)
    cells = TargetBins.from_training(rng.normal(size=50), np.ones(50), 0, 40)
    terms, shares = rng.normal(size=(6, 3, 40)), np.full((6, 3), 1 / 3)
    terms[:, 0] = 0.0
    shares[:, 0] = 0.0
    parts = cells.contributions(terms, shares)
    decision = cells.decide(np.log(cells.prior) + terms.sum(axis=1))
    np.testing.assert_allclose(parts.sum(axis=1) + cells.intercept, decision, atol=1e-12)
    assert (parts[:, 0] == 0).all()
    assert cells.prior.sum() == pytest.approx(1.0)


@given(seed=st.integers(0, 2**16), m=st.integers(1, 4))
def test_copies_have_one_view_of_another_class(seed, m):
    rng = np.random.RandomState(seed)
    n = 30
    present = rng.uniform(size=(n, m)) < 0.8
    present[np.arange(n), rng.randint(m, size=n)] = True
    truth = rng.randint(3, size=n)
    weight = np.where(np.arange(n) < 5, 0.0, 1.0)
    donors = draw_donors(present, truth, weight, np.arange(m), rng)
    moved = donors != np.arange(n)[:, np.newaxis]
    assert (moved.sum(axis=1) <= 1).all()
    rows, views = np.nonzero(moved)
    assert (truth[donors[rows, views]] != truth[rows]).all()
    assert (weight[donors[rows, views]] > 0).all()
    assert present[donors[rows, views], views].all()
    assert present[rows, views].all()
    assert not moved[present.sum(axis=1) == 1].any()
