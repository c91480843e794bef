"""Families of kernels: held-out decisions, equally good families, parts of many samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import LeaveOneOut

from lokl import AutoMKLClassifier
from lokl._deadline import Deadline
from lokl.kernels import RBF, Polynomial
from lokl.search import families
from lokl.search.columns import ColumnScaler
from lokl.search.cross_validation import spread_rows
from lokl.search.families import (
    COSTS,
    Block,
    FamilyData,
    FamilySearch,
    KernelFamily,
    TargetCoding,
    best_expert,
    class_shares,
    content_order,
    equally_good,
    families_of,
    given_families,
    of_one_loss,
)
from lokl.search.results import Candidate, errors_behind
from lokl.search.tasks import FoldResult

BLOCK = Block(None, None, "auto")


def family_data(X, y, weight=None, folds=None, classes=True):
    coding = TargetCoding.of(y, np.unique(y) if classes else None)
    weight = np.ones(len(y)) if weight is None else weight
    return FamilyData({BLOCK: X}, coding, weight, folds)


def score_of(loss, form="rbf", svm_loss="squared"):
    """A candidate with a loss of each sample."""
    params = {"family": KernelFamily(BLOCK, form, (0.0,), None), "loss": svm_loss}
    result = FoldResult(0, 0, -float(np.mean(loss)), None, 0.0, 0.0, row_scores=-np.array(loss))
    return Candidate(0, params, [result])


def samples(n=40, n_classes=3, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    return X, np.arange(n) % n_classes


@pytest.mark.parametrize("n_classes", [2, 3])
def test_leave_one_out_is_a_fold_for_each_sample(n_classes):
    X, y = samples(24, n_classes)
    weight = np.random.RandomState(1).uniform(0.5, 2.0, len(y))
    K, costs = RBF(0.3)(X), [0.1, 1.0, 30.0]
    exact = family_data(X, y, weight).held_out(K, costs)
    refits = family_data(X, y, weight, list(LeaveOneOut().split(X))).held_out(K, costs)
    np.testing.assert_allclose(exact, refits, atol=1e-8)


def test_classes_without_training_samples_in_a_fold_are_not_predicted():
    X, y = samples(12)
    folds = [(np.flatnonzero(y != 0), np.flatnonzero(y == 0))]
    decision = family_data(X, y, None, folds).held_out(RBF(0.3)(X), [1.0])
    assert (decision[0, y == 0].argmax(axis=1) != 0).all()


def test_losses_are_brier_scores_and_squared_errors():
    y = np.array([0, 1, 1])
    coding = TargetCoding.of(y, np.unique(y))
    np.testing.assert_array_equal(coding.targets[:, 0], [-1.0, 1.0, 1.0])
    decision = np.array([[-1.0], [0.0], [1.0]])
    np.testing.assert_allclose(class_shares(decision).sum(axis=1), 1.0)
    np.testing.assert_allclose(coding.losses(decision), [0.0, 0.5, 0.0], atol=1e-5)
    numbers = TargetCoding.of(np.array([1.0, 2.0]), None)
    np.testing.assert_allclose(numbers.losses(np.array([[0.0], [2.5]])), [1.0, 0.25])


@given(seed=st.integers(0, 2**16), n_errors=st.floats(0.0, 4.0))
def test_equally_good_families_contain_the_best_and_grow_with_the_margin(seed, n_errors):
    rng, weight = np.random.RandomState(seed), np.ones(30)
    losses = rng.uniform(size=(6, 30)) + 0.2 * np.arange(6)[:, np.newaxis]
    scores = [score_of(loss) for loss in losses]
    near = equally_good(scores, weight, n_errors)
    assert near[0] is max(scores, key=Candidate.mean)
    assert [-score.mean() for score in near] == sorted(-score.mean() for score in near)
    assert set(map(id, near)) <= set(map(id, equally_good(scores, weight, n_errors + 1.0)))
    assert len(equally_good(scores, weight, 1e6)) == len(scores)


def test_an_expert_is_laplacian_unless_another_kernel_is_clearly_better():
    rng, weight = np.random.RandomState(0), np.ones(50)
    losses = rng.uniform(size=50)
    best = score_of(losses)
    near = score_of(losses + rng.normal(0.01, 0.1, 50), "laplacian")
    far = score_of(losses + 0.2, "laplacian")
    assert best_expert([best, near], weight, 4.0) is near
    assert best_expert([best, far], weight, 4.0) is best
    assert best_expert([best, near], weight, 0.0) is max([best, near], key=Candidate.mean)


def test_the_common_cost_has_the_least_mean_loss():
    scores = np.random.RandomState(0).uniform(size=(3, len(COSTS)))
    members = [score_of(np.ones(2)) for _ in scores]
    families = [member.params["family"] for member in members]
    search = FamilySearch(None, families, Deadline(None))
    search.scores_by_cost.update(zip(families, scores, strict=True))
    assert search.common_cost(members) == COSTS[scores.sum(axis=0).argmax()]


def test_a_repeated_sample_counts_like_a_weight_of_two():
    losses = np.random.RandomState(0).uniform(size=(2, 10))
    weight = np.array([2.0, *np.ones(9)])
    twice = np.repeat(np.arange(10), weight.astype(int))
    weighted = errors_behind(*losses, weight)
    assert weighted == pytest.approx(errors_behind(*losses[:, twice]))
    assert weighted == pytest.approx(errors_behind(*losses[:, twice], np.ones(11)))


@given(seed=st.integers(0, 2**16))
def test_an_order_by_content_does_not_depend_on_rows_or_columns(seed):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(30, 4))
    rows, columns = rng.permutation(30), rng.permutation(4)
    moved = X[rows][:, columns]
    np.testing.assert_array_equal(rows[content_order(moved)], content_order(X))
    np.testing.assert_array_equal(content_order(sparse.csr_array(X)), content_order(X))


@given(seed=st.integers(0, 2**16), count=st.integers(4, 40))
def test_spread_rows_have_all_classes_in_proportion(seed, count):
    rng = np.random.RandomState(seed)
    y = rng.choice(4, size=60, p=[0.6, 0.2, 0.15, 0.05])
    rows = spread_rows(np.arange(60), y, count)
    assert len(np.unique(rows)) == len(rows)
    for label, total in zip(*np.unique(y, return_counts=True), strict=True):
        kept = int((y[rows] == label).sum())
        assert min(total, 2) <= kept <= max(2, total * count / len(y))


def scales(n, seed=0):
    """Return weights and distances on both sides of a balance, and where it tips; 0 is rare."""
    X = np.random.RandomState(seed).randint(1, 6, size=(n, 4)).astype(float)
    return X, np.sign(X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]).astype(int)


@pytest.mark.parametrize("width_rows", [600, 200])
def test_a_class_between_two_others_is_separated_by_the_squared_hinge(width_rows, monkeypatch):
    monkeypatch.setattr(families, "WIDTH_ROWS", width_rows)
    model = AutoMKLClassifier().fit(*scales(400))
    assert model.best_estimator_[-1].loss == "squared_hinge"
    assert model.best_score_ > 0.96
    X, y = scales(400, seed=1)
    assert model.score(X, y) > 0.96
    assert (model.classes_[model.predict_proba(X).argmax(axis=1)] == y).mean() > 0.96


def test_noisy_classes_keep_the_squared_loss():
    X, y = scales(150)
    noisy = np.random.RandomState(0).permutation(y)
    assert AutoMKLClassifier().fit(X, noisy).best_estimator_[-1].loss == "squared"


def test_the_squared_hinge_must_be_better_than_all_squared_losses():
    rng, weight = np.random.RandomState(0), np.ones(50)
    losses = rng.uniform(size=50)
    squared = [score_of(losses), score_of(losses + 0.1)]
    slightly = score_of(losses - rng.normal(0.01, 0.1, 50), svm_loss="squared_hinge")
    much = score_of(losses - 0.2, svm_loss="squared_hinge")
    assert of_one_loss([*squared, slightly], weight) == squared
    assert of_one_loss([*squared, slightly, much], weight) == [slightly, much]


def test_many_samples_are_compared_on_all_near_the_best_of_some(monkeypatch):
    monkeypatch.setattr(families, "WIDTH_ROWS", 60)
    X, y = load_wine(return_X_y=True)
    data = family_data(ColumnScaler(unit=False).fit_transform(X), y)
    _, scores = FamilySearch(data, families_of(BLOCK, 13, False), Deadline(None)).run()
    assert all(len(score.held_out.row_scores) == len(y) for score in scores)
    assert max(score.mean() for score in scores) > -0.1


def test_samples_without_the_view_get_the_mean_target():
    X, y = samples(30)
    X[:10] = np.nan
    data = family_data(X, y)
    given = given_families(BLOCK, {"k": RBF(0.3)})
    _, (score, *_) = FamilySearch(data, given, Deadline(None)).run()
    mean = data.coding.targets.mean(axis=0)
    expected = np.repeat(mean[np.newaxis], 10, axis=0)
    np.testing.assert_allclose(score.held_out.decision[:10], expected)
    assert np.isfinite(score.mean())


def test_a_kernel_without_finite_values_has_no_score():
    X, y = samples(20)
    data = family_data(1e60 * X, y)
    overflows = given_families(BLOCK, {"k": Polynomial(9)})
    assert FamilySearch(data, overflows, Deadline(None)).run() == (data, [])


def test_columns_of_few_values_become_indicators():
    X, _ = load_iris(return_X_y=True)
    X = np.column_stack([X[:148], np.arange(148) % 4])
    scaler = ColumnScaler([None, np.array([4])], unit=False, scaling=["ranks", "categories"])
    scaled = scaler.fit_transform(X)
    whole, last = scaler.view_slices()
    assert (whole, last) == (slice(0, 5), slice(5, 9))
    indicators = scaled[:, last]
    assert len(np.unique(indicators, axis=0)) == 4
    np.testing.assert_allclose(indicators.mean(axis=0), 0.0, atol=1e-12)
    # A new value is none of the known ones.
    X[0, 4] = 17.0
    assert len(np.unique(scaler.transform(X)[:1, last])) == 1
