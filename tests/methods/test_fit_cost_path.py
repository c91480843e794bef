"""Fits that share work give the models that separate fits give."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from method_cases import CLASSIFIERS, RECORDS, REGRESSORS, make, tolerances, two_regions
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from lokl import (
    CLMKLClassifier,
    LDMKLClassifier,
    LMKLClassifier,
    SimpleMKLClassifier,
    UniformMKLClassifier,
    UniformMKLRegressor,
)
from lokl.base.fit_cache import FitCache, WarmStartExchange, fit_cost_path
from lokl.kernels import RBF, Linear, Polynomial, rbf_ladder
from lokl.methods import single_kernel
from lokl.methods.single_kernel import regress

COSTS = (0.3, 1.0, 5.0, 20.0)
# Relative gaps that leave decisions to three digits.
SHARP = {"learn_tol": 1e-7}


def members(name, costs=COSTS, kernels=None, **settings):
    """Estimators that differ in their cost alone, learned sharply where the problem is convex."""
    kernels = [Linear(), RBF(0.5)] if kernels is None else kernels
    if RECORDS[name].name in ("SimpleMKL", "l_p-norm MKL", "C-LMKL", "PCK-LMKL"):
        settings = {**SHARP, "max_iter": 3000, **settings}
    return [make(name, clone_all(kernels), C=C, **settings) for C in costs]


def clone_all(kernels):
    """Copies, as a search makes them."""
    if isinstance(kernels, dict):
        return {name: clone(kernel) for name, kernel in kernels.items()}
    return [clone(kernel) for kernel in kernels]


def decisions(model, X):
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


def check_line(estimators, X, y, sample_weight=None, new=None, atol=None):
    """Members of a line are what separate fits give: decisions, attributes, warnings."""
    new = X if new is None else new
    line = fit_cost_path(estimators, X, y, sample_weight)
    for estimator in estimators:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            fitted = next(line)
        assert fitted is estimator
        with warnings.catch_warnings(record=True) as alone_told:
            warnings.simplefilter("always")
            alone = clone(estimator).fit(X, y, sample_weight)
        assert {w.category for w in told} == {w.category for w in alone_told}
        assert vars(fitted).keys() == vars(alone).keys()
        assert fitted.n_features_in_ == alone.n_features_in_
        name = type(estimator).__name__
        allowed = max(tolerances(name).memory, tolerances(name).rounding, 1e-3)
        scale = 1.0 + np.abs(decisions(alone, new)).max()
        np.testing.assert_allclose(
            decisions(fitted, new), decisions(alone, new), atol=scale * (atol or allowed)
        )
    with pytest.raises(StopIteration):
        next(line)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_members_are_what_separate_fits_give(name):
    X, y = two_regions(60, flip=0.1)
    check_line(members(name), X, y, new=two_regions(30, seed=1)[0])


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_as_well(name):
    X, _ = two_regions(50)
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    estimators = members(name)
    estimators[2].set_params(epsilon=0.02)
    check_line(estimators, X, y)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_several_classes_weights_and_sparse_samples(name):
    X, _ = two_regions(70)
    y = np.digitize(X[:, 0] + 0.3 * X[:, 2], [-1.0, 1.0])
    weight = np.random.RandomState(0).choice([0.0, 0.5, 1.0, 2.0], size=len(y))
    estimators = members(name, (2.0, 0.5))
    estimators[1].set_params(class_weight="balanced")
    check_line(estimators, sparse.csr_matrix(X), y, weight, new=X)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_missing_views(name):
    if name == "GMKLClassifier":
        kernels = {"first": RBF(0.5).on([0]), "second": RBF(1.0).on([1, 2])}
    else:
        kernels = {"first": Linear().on([0]), "second": RBF(0.5).on([1, 2])}
    X, y = two_regions(60, flip=0.1)
    X[:8, 0] = np.nan
    X[8:14, 1:] = np.nan
    check_line(members(name, (0.5, 4.0), kernels), X, y)


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    costs=st.lists(st.floats(-3, 5).map(lambda e: 2.0**e), min_size=2, max_size=4),
    name=st.sampled_from(
        ["UniformMKLClassifier", "LpMKLClassifier", "SimpleMKLClassifier", "CLMKLClassifier"]
    ),
)
def test_any_order_of_costs(name, costs, seed):
    X, y = two_regions(40, seed=seed, flip=0.2)
    check_line(members(name, costs), X, y, atol=1e-2)


def kernels_in_part(name):
    """Lists of kernels, of which each has something in common with the one before it."""
    first = RBF(0.1) if name.startswith("GMKL") else Linear()
    second = [RBF(0.5), RBF(2.0), RBF(2.0), Polynomial(2)]
    lists = [[first, own] for own in second] + [[RBF(1.0), second[-1]], [second[-1], RBF(1.0)]]
    return [*lists, [first], [first, second[0], second[1]]]


@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_kernels_may_differ_in_part(name):
    X, y = two_regions(60, flip=0.1)
    if name in REGRESSORS:
        y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    lists = kernels_in_part(name)
    estimators = [members(name, (1.0,), kernels)[0] for kernels in lists]
    # The same kernels at another cost, in between.
    estimators[2].set_params(C=4.0)
    check_line(estimators, X, y, new=two_regions(30, seed=1)[0])


@pytest.mark.parametrize("name", ["LDMKLClassifier", "SwMKLClassifier"])
def test_a_kernel_that_stays_is_regressed_once(name, monkeypatch):
    X, y = two_regions(60, flip=0.1)
    regressed = []

    def noted(machine, gram, kernel):
        regressed.append(kernel)
        return regress(machine, gram, kernel)

    monkeypatch.setattr(single_kernel, "regress", noted)
    lists = [{"stays": Linear(), "changes": RBF(gamma)} for gamma in (0.5, 1.0, 2.0)]
    for _ in fit_cost_path([make(name, kernels) for kernels in lists], X, y):
        pass
    assert sorted(regressed) == ["changes", "changes", "changes", "stays"]


@pytest.mark.parametrize("name", ["UniformMKLClassifier", "EasyMKLClassifier", "CLMKLClassifier"])
def test_squared_hinge(name):
    X, y = two_regions(60, flip=0.1)
    check_line(members(name, loss="squared_hinge"), X, y)


def test_working_sets_smaller_than_the_data():
    X, y = two_regions(2100, flip=0.1)
    estimators = [UniformMKLClassifier([RBF(0.5)], C=C, cache_size=9) for C in (0.5, 2.0)]
    check_line(estimators, X, y, new=X[:100], atol=5e-3)


def test_a_looser_tolerance_is_for_the_line_alone():
    X, y = two_regions(100, flip=0.1)
    estimators = [UniformMKLClassifier([RBF(0.5)], C=C) for C in COSTS]
    for model in fit_cost_path(estimators, X, y, tolerance=1e-2):
        exact = clone(model).fit(X, y)
        assert model.tol == 1e-3
        np.testing.assert_allclose(
            model.decision_function(X), exact.decision_function(X), atol=5e-2
        )


@pytest.mark.parametrize("tolerance", [0.0, -1.0, np.nan])
def test_a_tolerance_is_positive(tolerance):
    with pytest.raises(ValueError, match="tolerance must be"):
        fit_cost_path([], *two_regions(10), tolerance=tolerance)


def test_a_failing_member_raises_at_its_turn_and_leaves_the_others_alone():
    X, y = two_regions(50)
    good, bad, last = members("UniformMKLClassifier", (1.0, -1.0, 2.0))
    line = fit_cost_path([good, bad, last], X, y)
    assert next(line) is good
    with pytest.raises(ValueError, match="C must be"):
        next(line)
    assert not hasattr(bad, "classes_")
    assert not hasattr(bad, "n_features_in_")
    assert next(line) is last
    expected = clone(last).fit(X, y).decision_function(X)
    np.testing.assert_allclose(last.decision_function(X), expected, atol=1e-6)


def test_a_first_member_that_fails():
    X, y = two_regions(50)
    bad, good = members("LpMKLClassifier", (-1.0, 2.0))
    line = fit_cost_path([bad, good], X, y)
    with pytest.raises(ValueError, match="C must be"):
        next(line)
    assert next(line) is good
    check_line(members("LpMKLClassifier", (2.0,)), X, y)


def test_bad_data_is_an_error_of_every_member():
    X, y = two_regions(50)
    X[3, 1] = np.inf
    line = fit_cost_path(members("UniformMKLClassifier", (1.0, 2.0)), X, y)
    for _ in range(2):
        with pytest.raises(ValueError, match="infinity"):
            next(line)


def test_an_estimator_that_differs_in_more_begins_anew():
    X, y = two_regions(60, flip=0.1)
    estimators = [
        UniformMKLClassifier([RBF(0.5)], C=1.0),
        UniformMKLClassifier([RBF(0.5)], C=2.0),
        UniformMKLClassifier([RBF(2.0)], C=2.0),
        LMKLClassifier([RBF(2.0), Linear()], C=2.0, random_state=0),
        UniformMKLClassifier([RBF(2.0)], C=2.0, loss="squared_hinge"),
    ]
    check_line(estimators, X, y)


@pytest.mark.parametrize("kind", [CLMKLClassifier, LDMKLClassifier])
def test_random_numbers_are_drawn_as_by_separate_fits(kind):
    X, y = two_regions(60, flip=0.1)

    def fits(shared):
        rng = np.random.RandomState(7)
        extra = {"success": "cv"} if kind is LDMKLClassifier else SHARP
        estimators = [
            kind([Linear(), RBF(0.5)], C=C, random_state=rng, tol=1e-6, **extra) for C in (1.0, 3.0)
        ]
        fitted = fit_cost_path(estimators, X, y) if shared else (e.fit(X, y) for e in estimators)
        return [model.decision_function(X) for model in fitted], rng.uniform()

    (line, drawn), (alone, drawn_alone) = fits(True), fits(False)
    assert drawn == drawn_alone
    np.testing.assert_allclose(line, alone, atol=1e-3)


def test_warnings_are_those_of_separate_fits():
    X, y = two_regions(60)
    far = [UniformMKLClassifier(rbf_ladder(20, 22), C=C) for C in (1.0, 2.0)]
    line = fit_cost_path(far, X, y)
    for _ in far:
        with pytest.warns(UserWarning, match="are all so narrow"):
            next(line)
    rough = [
        SimpleMKLClassifier(["linear", "rbf"], C=C, max_iter=1, learn_tol=1e-9) for C in (1, 9)
    ]
    line = fit_cost_path(rough, X, y)
    for _ in rough:
        with pytest.warns(ConvergenceWarning, match="stopped after max_iter=1 rounds"):
            next(line)


def test_column_names_are_known_to_every_member():
    pandas = pytest.importorskip("pandas")
    X, y = two_regions(40)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    estimators = [UniformMKLClassifier([Linear().on(["a", "b"])], C=C) for C in (1.0, 2.0)]
    estimators[1].fit(frame.rename(columns=str.upper).set_axis(["a", "b", "d"], axis=1), y)
    for model in fit_cost_path(estimators, frame, y):
        assert list(model.feature_names_in_) == ["a", "b", "c"]


def test_several_targets_and_another_tube():
    X, _ = two_regions(40)
    targets = np.column_stack([X[:, 0], np.cos(X[:, 1])])
    estimators = [
        UniformMKLRegressor([RBF(0.5)], C=C, epsilon=e, tol=1e-6)
        for C, e in ((1.0, 0.1), (10.0, 0.1), (10.0, 0.01), (0.1, 0.3))
    ]
    check_line(estimators, X, targets)


def led_and_alone(name, n=300, **settings):
    """Models of one fold that follow those of another, and models of the same fold alone."""
    X, y = two_regions(n, seed=3, flip=0.1)
    kernels = [Linear(), *rbf_ladder(-3, 3)]
    folds = [np.arange(n) % 5 != fold for fold in (0, 1)]
    lead = WarmStartExchange(True, {})
    first, led, alone = (
        fit_cost_path(
            members(name, kernels=kernels, **settings), X[rows], y[rows], exchange=exchange
        )
        for rows, exchange in zip([*folds, folds[1]], [lead, lead.follower(), None], strict=True)
    )
    return X, [pair for _, *pair in zip(first, led, alone, strict=True)]


@pytest.mark.parametrize("name", ["SimpleMKLClassifier", "LpMKLClassifier", "SimpleMKLRegressor"])
def test_a_line_that_is_led_learns_the_same(name):
    X, pairs = led_and_alone(name)
    for model, expected in pairs:
        np.testing.assert_allclose(decisions(model, X), decisions(expected, X), atol=2e-3)


@pytest.mark.filterwarnings("ignore:.*of the weight of")
@pytest.mark.parametrize("name", ["SimpleMKLClassifier", "LpMKLClassifier"])
def test_a_line_that_is_led_needs_fewer_rounds(name):
    _, pairs = led_and_alone(name, 1500, learn_tol=0.01)
    led, alone = np.sum([[model.n_iter_ for model in pair] for pair in pairs], axis=0)
    assert led < alone


def test_who_follows_takes_what_the_leader_ended_with_at_the_same_step():
    """The leader may be steps ahead: the latest would depend on who is faster."""
    lead = WarmStartExchange()
    follower = lead.follower()
    first, other = FitCache(True, lead), FitCache(True, follower)
    for lead.step in ("small", "large"):
        first.store("weights", f"of the {lead.step} cost")
    other.store("weights", "own")
    for follower.step in ("small", "large"):
        assert other.warm_start("weights", from_exchange=True) == f"of the {follower.step} cost"
    # Where the leader has nothing to say, and where it says nothing of these samples.
    follower.step = "another"
    assert other.warm_start("weights", from_exchange=True) == "own"
    follower.step = "small"
    assert other.warm_start("weights") == "own"
