"""The trusted vote: calibrated, bounded, and withdrawn where a view is alone or sees strangers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.svm import SVR

from lokl import (
    TrustedVoteClassifier,
    TrustedVoteRegressor,
    UniformMKLClassifier,
    UniformMKLRegressor,
)
from lokl.kernels import RBF, Cosine, Linear, precomputed
from lokl.search import expected_calibration_error

WIDTH = 3
OFF = {
    "novelty": False,
    "local_temperature": False,
    "joint_model": False,
    "learn_weights": False,
    "n_corrupted_copies": 0,
    "noise_rate": 0.0,
}


def classes(n=300, n_views=4, n_classes=3, seed=0, noise=0.6):
    """Views that all tell the class, each with its own noise."""
    centres = 1.5 * np.random.RandomState(99).normal(size=(n_views, n_classes, WIDTH))
    rng = np.random.RandomState(seed)
    y = rng.randint(n_classes, size=n)
    views = [centres[i, y] + noise * rng.normal(size=(n, WIDTH)) for i in range(n_views)]
    return np.hstack(views), y


def columns(view):
    return list(range(WIDTH * view, WIDTH * (view + 1)))


def kernels(n_views=4, kernel=None):
    kernel = RBF(0.3) if kernel is None else kernel
    return {f"view {i}": kernel.on(columns(i)) for i in range(n_views)}


def vote(n_views=4, **given):
    return TrustedVoteClassifier(kernels(n_views), C=10, **{"random_state": 0, **given})


def swapped(X, y, seed=0):
    """One view of every sample is that of a sample of another class; return which."""
    rng = np.random.RandomState(seed)
    wrong, which = X.copy(), rng.randint(X.shape[1] // WIDTH, size=len(X))
    for row, view in enumerate(which):
        donor = rng.choice(np.flatnonzero(y != y[row]))
        wrong[row, columns(view)] = X[donor, columns(view)]
    return wrong, which


TRAIN = classes()
FRESH = classes(seed=1)
MODEL = vote().fit(*TRAIN)


def test_trust_is_a_probability_and_withdrawn_from_missing_views():
    X = FRESH[0].copy()
    X[::3, columns(2)] = np.nan
    trust = MODEL.trust(X)
    assert trust.shape == (300, 4)
    assert ((trust >= 0) & (trust < 1)).all()
    assert (trust[::3, 2] == 0).all()
    assert (trust[1::3] > 0).all()
    assert (MODEL.weights(X)[::3, 2] == 0).all()
    np.testing.assert_allclose(MODEL.weights(X), trust / trust.sum(axis=1, keepdims=True))


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_probabilities_are_calibrated(n_classes):
    X, y = classes(400, 3, n_classes, noise=1.6)
    fresh, truth = classes(4000, 3, n_classes, seed=1, noise=1.6)
    model = vote(3).fit(X, y)
    p = model.predict_proba(fresh)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(fresh)), p)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(fresh))
    assert expected_calibration_error(truth, p) < 0.05
    assert 0.5 < np.mean(p.argmax(axis=1) == truth) < 0.97


def test_a_view_of_another_class_is_found_out():
    X, y = FRESH
    wrong, which = swapped(X, y)
    trust = MODEL.trust(wrong)
    rows = np.arange(len(X))
    others = np.delete(np.arange(4)[np.newaxis].repeat(len(X), axis=0).ravel(), 4 * rows + which)
    best = trust[rows[:, np.newaxis], others.reshape(len(X), 3)].min(axis=1)
    assert (trust[rows, which] < best).mean() > 0.9
    assert MODEL.score(wrong, y) > 0.95
    assert MODEL.disagreement(wrong).mean() > MODEL.disagreement(X).mean() + 0.2


@pytest.mark.slow
@settings(max_examples=8)
@given(
    seed=st.integers(0, 1000),
    n_views=st.integers(3, 5),
    n_classes=st.integers(2, 5),
    with_joint=st.booleans(),
)
def test_laws_of_trust(seed, n_views, n_classes, with_joint):
    """Whatever the data: bounds, missing views, strangers, and a view against all others."""
    X, y = classes(60 * n_classes, n_views, n_classes, seed=seed, noise=0.4)
    fresh, truth = classes(200, n_views, n_classes, seed=seed + 1, noise=0.4)
    model = vote(n_views, joint_model=with_joint).fit(X, y)
    view = seed % n_views
    gone, far = fresh.copy(), fresh.copy()
    gone[:, columns(view)] = np.nan
    far[:, columns(view)] += 1e3
    wrong, which = swapped(fresh, truth, seed)
    for rows in (fresh, gone, far, wrong):
        trust = model.trust(rows)
        assert ((trust >= 0) & (trust < 1)).all()
        np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
    assert (model.trust(gone)[:, view] == 0).all()
    assert (model.trust(far)[:, view] == 0).all()
    # What is never seen says as much as what is not there.
    np.testing.assert_allclose(model.trust(far), model.trust(gone), atol=1e-9)
    rows, others = np.arange(len(wrong)), np.arange(n_views) != which[:, np.newaxis]
    agree = (model.trust(fresh) > 0.5).all(axis=1)
    trust = model.trust(wrong)
    least = np.where(others, trust, np.inf).min(axis=1)
    assert (trust[rows, which] < least)[agree].mean() > 0.9
    assert trust[rows, which].mean() < model.trust(fresh)[rows, which].mean() - 0.1


def test_noise_far_from_all_data_is_not_trusted_and_decides_nothing():
    X, _ = FRESH
    far, without = X.copy(), X.copy()
    far[:, columns(1)] += 50.0
    without[:, columns(1)] = np.nan
    assert (MODEL.trust(far)[:, 1] < 1e-10).all()
    np.testing.assert_allclose(MODEL.contributions(far)[:, :, 1], 0.0, atol=1e-8)
    assert (MODEL.predict(far) == MODEL.predict(without)).mean() > 0.99


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.3), RBF(0.3).normalized("trace")], ids=repr)
def test_any_kernel_can_tell_strangers(kernel):
    X, y = TRAIN
    model = TrustedVoteClassifier(kernels(4, kernel), C=10, random_state=0).fit(X, y)
    far = FRESH[0].copy()
    far[:, columns(0)] += 100.0
    assert (model.trust(far)[:, 0] < 1e-3).all()
    assert model.trust(FRESH[0])[:, 0].mean() > 0.5
    assert model.score(*FRESH) > 0.95


def test_nobody_can_rule_a_class_out_alone():
    """The evidence of a view is at least the log of the noise_rate."""
    X = swapped(*FRESH)[0]
    for noise_rate in (0.25, 0.5):
        model = vote(noise_rate=noise_rate, joint_model=False).fit(*TRAIN)
        centred = model.intercept_ - model.intercept_.mean()
        again = np.einsum("ni,y->nyi", model.familiarity(X), centred) / len(model.weights_)
        evidence = model.contributions(X) - (model.prior_weight_ - 1) * again
        assert (evidence / model.weights_ >= np.log(noise_rate) - 1e-9).all()


def unequal(n, shares, seed):
    """Two clear views of classes that are not equally frequent."""
    X, y = classes(8 * n, 2, len(shares), seed=seed, noise=0.3)
    kept = [np.flatnonzero(y == label)[: int(share * n)] for label, share in enumerate(shares)]
    rows = np.concatenate(kept)
    return X[rows], y[rows]


@pytest.mark.parametrize("shares", [(0.8, 0.1, 0.1), (0.1, 0.2, 0.3, 0.4)])
def test_of_two_views_in_conflict_neither_the_rare_class_wins_nor_doubt_is_lost(shares):
    """What is said of samples with one wrong view of two is as likely as it claims.

    With a prior that counts once the errors are 0.18 and 0.08: too little for frequent classes.
    """
    model = vote(2).fit(*unequal(300, shares, seed=0))
    X, y = unequal(1000, shares, seed=1)
    wrong, _ = swapped(X, y)
    assert expected_calibration_error(y, model.predict_proba(wrong)) < 0.05
    assert expected_calibration_error(y, model.predict_proba(X)) < 0.02
    # Frequent classes are likelier to be right, and a stranger to both views has the prior's odds.
    assert model.prior_weight_ > 1.2
    strange = model.predict_proba(np.full((1, 2 * WIDTH), 1e3))
    np.testing.assert_allclose(strange[0], np.array(shares), rtol=1e-9)


def test_without_its_parts_it_is_the_mean_of_log_probabilities():
    """All extras off, two classes: calibrated log odds of the views add up."""
    X, y = classes(120, 2, 2, noise=1.5)
    model = vote(2, **OFF).fit(X, y)
    prior = np.log(np.mean(y == 1) / np.mean(y == 0))
    np.testing.assert_allclose(model.intercept_, [prior])
    singles = [
        TrustedVoteClassifier({name: kernel}, C=10, random_state=0, **OFF).fit(X, y)
        for name, kernel in kernels(2).items()
    ]
    for i, single in enumerate(singles):
        parts, alone = model.contributions(X)[:, i], single.decision_function(X) - prior
        # Folds are drawn in another order, so calibrations differ a little.
        assert np.corrcoef(parts, alone)[0, 1] > 0.999
    np.testing.assert_array_equal(model.weights_, [1.0, 1.0])
    assert model.joint_weight_ == 0.0
    assert model.prior_weight_ == 1.0


@pytest.mark.parametrize("part", [*OFF])
def test_every_part_can_be_switched_off(part):
    model = vote(**{part: OFF[part]}).fit(*TRAIN)
    assert model.score(*FRESH) > 0.97
    trust = model.trust(FRESH[0])
    assert ((trust >= 0) & (trust <= 1)).all()
    wrong, _ = swapped(*FRESH)
    assert np.abs(model.decision_function(wrong) - MODEL.decision_function(wrong)).max() > 1e-6


@pytest.mark.parametrize("n_corrupted_copies", [1, 3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_kernel_or_copies_of_it_predict_like_the_machine(n_corrupted_copies, n_classes):
    X, y = classes(150, 1, n_classes)
    fresh, _ = classes(500, 1, n_classes, seed=1)
    plain = UniformMKLClassifier([RBF(0.3)], C=10).fit(X, y)
    model = TrustedVoteClassifier([RBF(0.3)] * n_corrupted_copies, C=10, random_state=0).fit(X, y)
    assert (model.predict(fresh) == plain.predict(fresh)).mean() > 0.95


def test_the_order_of_views_is_a_matter_of_names():
    turned = dict(reversed(kernels().items()))
    model = TrustedVoteClassifier(turned, C=10, random_state=0).fit(*TRAIN)
    X = swapped(*FRESH)[0]
    np.testing.assert_allclose(model.trust(X)[:, ::-1], MODEL.trust(X), atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), MODEL.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(model.weights_[::-1], MODEL.weights_, atol=1e-6)


def test_a_seed_changes_little():
    X = swapped(*FRESH)[0]
    other = vote(random_state=7).fit(*TRAIN)
    assert np.abs(other.trust(X) - MODEL.trust(X)).mean() < 0.05


@settings(max_examples=5)
@given(seed=st.integers(0, 1000))
def test_weights_are_repeated_rows_in_any_order(seed):
    rng = np.random.RandomState(seed)
    X, y = classes(40, 2, 3, seed=seed)
    weight = rng.randint(0, 4, size=40)
    weight[:6] = 1
    rows = rng.permutation(np.repeat(np.arange(40), weight))
    one = vote(2).fit(X, y, sample_weight=weight)
    two = vote(2).fit(X[rows], y[rows])
    fresh = FRESH[0][:50, : 2 * WIDTH]
    np.testing.assert_allclose(one.predict_proba(fresh), two.predict_proba(fresh), atol=1e-6)
    np.testing.assert_allclose(one.trust(fresh), two.trust(fresh), atol=1e-6)
    assert one.support_fraction_ == two.support_fraction_


def test_support_is_of_the_rows_as_given():
    X, _ = TRAIN
    np.testing.assert_array_equal(MODEL.support_vectors_, X[MODEL.support_])
    assert (np.diff(MODEL.support_) > 0).all()
    assert MODEL.dual_coef_.shape == (4, 3, len(MODEL.support_))
    expert = MODEL.experts_[1]
    K = expert.kernel(X, X[MODEL.support_])
    decision = K @ MODEL.dual_coef_[1].T + expert.intercept
    np.testing.assert_allclose(
        decision, expert.outputs(MODEL._validate_for_predict(X))[0], atol=1e-6
    )


def test_many_classes_of_which_some_are_tiny():
    """Classes with fewer samples than folds are absent from some of them."""
    X, y = classes(200, 3, 12, noise=0.3)
    rare = np.flatnonzero(y == 11)
    keep = np.setdiff1d(np.arange(200), rare[2:])
    model = vote(3).fit(X[keep], y[keep])
    assert model.score(X[keep], y[keep]) > 0.9
    p = model.predict_proba(X)
    assert p.shape == (200, 12)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


@pytest.mark.slow
def test_a_hundred_classes_of_which_some_have_one_sample():
    rng = np.random.RandomState(0)
    centres = rng.uniform(-6, 6, size=(100, 2 * WIDTH))
    y = np.concatenate([np.repeat(np.arange(90), 3), np.arange(90, 100)])
    X = centres[y] + 0.2 * rng.normal(size=(len(y), 2 * WIDTH))
    model = vote(2).fit(X, y)
    fresh = np.repeat(np.arange(90), 2)
    Z = centres[fresh] + 0.2 * rng.normal(size=(len(fresh), 2 * WIDTH))
    p = model.predict_proba(Z)
    assert p.shape == (180, 100)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p > 0).all()
    assert model.score(Z, fresh) > 0.9
    trust = model.trust(Z)
    assert ((trust >= 0) & (trust < 1)).all()


@pytest.mark.parametrize("kernel", [RBF(0.3), Linear(), Cosine()], ids=repr)
def test_sparse_rows_are_the_same_rows(kernel):
    X, y = classes(150, 3)
    fresh = FRESH[0][:50, : 3 * WIDTH].copy()
    # Two columns of each view stay: where directions repeat, rounding chooses among neighbours.
    for rows in (X, fresh):
        rows[:, ::WIDTH] = np.maximum(rows[:, ::WIDTH], 0.0)
    make = TrustedVoteClassifier(kernels(3, kernel), C=10, random_state=0)
    dense = make.fit(X, y)
    expected = dense.predict_proba(fresh), dense.trust(fresh)
    thin = make.fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(thin.predict_proba(sparse.csr_array(fresh)), expected[0], atol=1e-6)
    np.testing.assert_allclose(thin.trust(sparse.csr_array(fresh)), expected[1], atol=1e-6)


def test_stored_kernels():
    X, y = TRAIN
    both = np.vstack([X, FRESH[0]])
    stored, index = precomputed([kernel(both) for kernel in kernels().values()])
    model = TrustedVoteClassifier(stored, C=10, random_state=0).fit(index[: len(X)], y)
    np.testing.assert_allclose(
        model.predict_proba(index[len(X) :]), MODEL.predict_proba(FRESH[0]), atol=1e-6
    )


def test_a_view_that_no_training_sample_has_is_never_trusted():
    X, y = TRAIN
    holes = X.copy()
    holes[:, columns(3)] = np.nan
    model = vote().fit(holes, y)
    assert (model.trust(FRESH[0])[:, 3] == 0).all()
    assert model.score(*FRESH) > 0.97


def test_many_samples_go_through_in_blocks(monkeypatch):
    monkeypatch.setattr("lokl.methods.trusted_vote.model._BLOCK", 1000)
    X, _ = FRESH
    blocks = MODEL.decision_function(X)
    monkeypatch.undo()
    np.testing.assert_allclose(blocks, MODEL.decision_function(X), atol=1e-8)
    assert MODEL.predict_proba(X[:1]).shape == (1, 3)


@pytest.mark.parametrize("value", [-0.1, 1.0, "much"])
def test_a_wrong_doubt_is_named(value):
    with pytest.raises(ValueError, match=r"noise_rate must be .* got"):
        vote(noise_rate=value).fit(*TRAIN)


def factors(n=300, seed=0, n_targets=1):
    """Views of a few hidden factors, on which targets depend."""
    made = np.random.RandomState(5)
    mixes, lines = made.normal(size=(4, 2, WIDTH)), made.normal(size=(2, n_targets))
    rng = np.random.RandomState(seed)
    hidden = rng.normal(size=(n, 2))
    X = np.hstack([hidden @ mix + 0.4 * rng.normal(size=(n, WIDTH)) for mix in mixes])
    y = np.sin(hidden @ lines) + 0.1 * rng.normal(size=(n, n_targets))
    return X, y[:, 0] if n_targets == 1 else y


def regression(**given):
    return TrustedVoteRegressor(kernels(4, RBF(0.1)), C=10, **{"random_state": 0, **given})


def test_regression_is_as_good_as_the_average_and_better_where_a_view_is_wrong():
    X, y = factors()
    fresh, truth = factors(600, seed=1)
    model = regression().fit(X, y)
    uniform = UniformMKLRegressor(kernels(4, RBF(0.1)), C=10).fit(X, y)
    assert model.score(fresh, truth) > uniform.score(fresh, truth) - 0.02
    wrong = fresh.copy()
    rng = np.random.RandomState(0)
    for row in range(len(wrong)):
        view = columns(rng.randint(4))
        wrong[row, view] = fresh[rng.randint(len(fresh)), view]
    assert model.score(wrong, truth) > uniform.score(wrong, truth) + 0.02
    far = fresh.copy()
    far[:, columns(0)] += 30.0
    assert (model.trust(far)[:, 0] < 1e-3).all()
    assert model.score(far, truth) > uniform.score(far, truth)


def test_parts_of_a_regression_add_up_and_point_the_way():
    X, y = factors(n_targets=2)
    model = regression().fit(X, y)
    parts = model.contributions(X)
    assert parts.shape == (300, 2, 4)
    np.testing.assert_allclose(parts.sum(-1) + model.intercept_, model.predict(X), atol=1e-8)
    for target in range(2):
        for view in range(4):
            assert np.corrcoef(parts[:, target, view], y[:, target])[0, 1] > 0.3
    assert model.trust(X).shape == (300, 4)
    assert ((model.disagreement(X) >= 0) & (model.disagreement(X) <= 1)).all()


def test_one_kernel_predicts_numbers_like_the_machine():
    X, y = factors()
    fresh, truth = factors(600, seed=1)
    X, fresh = X[:, :WIDTH], fresh[:, :WIDTH]
    plain = SVR(C=10, gamma=0.1).fit(X, y)
    model = TrustedVoteRegressor([RBF(0.1)], C=10, random_state=0).fit(X, y)
    assert model.score(fresh, truth) > plain.score(fresh, truth) - 0.03
    assert np.corrcoef(model.predict(fresh), plain.predict(fresh))[0, 1] > 0.97


@pytest.mark.parametrize("y", [[3.0, 3.0, 3.0, 3.0], [1e-9, 2e-9, 3e-9, 4e-9], [1e9, 2e9, 0, 1]])
def test_targets_of_any_size(y):
    X = np.arange(4.0)[:, np.newaxis]
    model = TrustedVoteRegressor([RBF(1.0)], random_state=0, epsilon=0.0).fit(X, y)
    found = model.predict(X)
    span = max(np.ptp(y), 1e-5 * max(y))
    assert (found >= min(y) - 0.11 * span).all()
    assert (found <= max(y) + 0.11 * span).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_each_kernel_has_an_opinion_of_its_own(n_classes):
    X, y = classes(n_classes=n_classes)
    model = vote().fit(X, y)
    new, truth = classes(100, n_classes=n_classes, seed=1)
    said = model.predict_proba_alone(new)
    assert said.shape == (100, 4, n_classes)
    np.testing.assert_allclose(said.sum(axis=2), 1.0)
    assert ((model.classes_[said.argmax(axis=2)] == truth[:, np.newaxis]).mean(axis=0) > 0.7).all()
    # Whoever cannot see a sample, or knows none like it, says how frequent the classes are.
    new[0, columns(2)], new[1, columns(2)] = np.nan, 1e3
    frequent = np.bincount(y) / len(y)
    np.testing.assert_allclose(
        model.predict_proba_alone(new)[:2, 2], [frequent, frequent], atol=1e-6
    )
