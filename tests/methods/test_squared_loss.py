"""Estimators with the squared loss: kernel ridge regression, with exact leave-one-out."""

import numpy as np
import pytest
from estimator_cases import FRESH, X, labels, score
from method_cases import RECORDS, estimators, make
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

import lokl
from lokl import UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF, Linear
from lokl.methods.trusted_vote import estimator
from lokl.solvers import Exact, Primal

KERNELS = [Linear(), RBF(0.5)]
VIEWS = {"first": RBF(0.5).on([0, 1]), "second": Linear().on([2, 3])}
with_it = estimators("squared loss")
without_it = [name for name in RECORDS if name not in with_it]
every_method = pytest.mark.parametrize("name", with_it)


def targets(name, n_outputs=1):
    if name.endswith("Classifier"):
        return labels(X, n_outputs + 1)
    return score(X) if n_outputs == 1 else np.column_stack([score(X), X[:, 1]])


def decide(model, X):
    return getattr(model, "decision_function", model.predict)(X)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_it_is_kernel_ridge_regression_on_a_centred_kernel(n_outputs):
    y = targets("Regressor", n_outputs)
    model = UniformMKLRegressor([RBF(0.5)], C=4.0, loss="squared").fit(X, y)
    # The intercept centres targets and features.
    K, new = rbf_kernel(X, gamma=0.5), rbf_kernel(FRESH, X, gamma=0.5)
    mean = K.mean(axis=0)
    centred = K - mean - mean[:, np.newaxis] + mean.mean()
    ridge = KernelRidge(alpha=0.25, kernel="precomputed").fit(centred, y - y.mean(axis=0))
    expected = ridge.predict(new - mean - new.mean(axis=1, keepdims=True) + mean.mean())
    np.testing.assert_allclose(model.predict(FRESH), expected + y.mean(axis=0), atol=1e-9)
    assert len(model.support_) == len(X)
    assert model.duality_gap_ < 1e-8


@every_method
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_every_method_learns_with_it(name, n_outputs):
    y = targets(name, n_outputs)
    model = make(name, KERNELS, loss="squared").fit(X, y)
    assert model.score(X, y) > 0.7
    assert model.loo_decision_.shape == decide(model, X).shape
    assert np.isfinite(model.loo_decision_).all()
    left_out = model.loo_decision_
    if name.endswith("Regressor"):
        error = np.mean((left_out - y) ** 2)
        assert error < np.var(y, axis=0).mean()
        if not name.startswith("TrustedVote"):
            assert np.mean((model.predict(X) - y) ** 2) < error
    else:
        assert 0.5 < (model._decode(left_out.reshape(len(X), -1)) == y).mean() <= 1.0


@every_method
def test_objectives_fall_and_gradients_are_right(name):
    """The convex methods certify their optimum with it as with other losses."""
    model = make(name, KERNELS, loss="squared").fit(X, targets(name))
    gap = getattr(model, "duality_gap_", np.nan)
    if not np.isnan(gap):
        assert gap <= 0.011 * abs(model.history_[-1]) + 1e-6


@pytest.mark.parametrize("kind", [UniformMKLClassifier, UniformMKLRegressor])
@pytest.mark.parametrize("solver", ["exact", "primal"])
def test_leave_one_out_decisions_are_those_of_refits(kind, solver):
    y, weight = targets(kind.__name__, 2), np.random.RandomState(0).choice([0.0, 0.5, 2], len(X))
    model = kind([Linear(), RBF(0.5)], C=3.0, loss="squared", solver=solver)
    found = model.fit(X, y, weight).loo_decision_
    for j in (*range(8), int(np.flatnonzero(weight == 0)[0])):
        without = np.where(np.arange(len(X)) == j, 0.0, weight)
        refitted = decide(model.fit(X, y, without), X[j : j + 1])[0]
        np.testing.assert_allclose(found[j], refitted, atol=1e-6)


def test_weights_are_repeated_rows():
    y, weight = targets("Regressor", 2), np.random.RandomState(1).choice([0, 1, 3], len(X))
    model = UniformMKLRegressor(KERNELS, C=3.0, loss="squared")
    weighted = model.fit(X, y, weight).predict(FRESH)
    rows = np.repeat(np.arange(len(X)), weight)
    np.testing.assert_allclose(model.fit(X[rows], y[rows]).predict(FRESH), weighted, atol=1e-8)


def test_class_weights_multiply_costs():
    y = labels(X, 3)
    model = UniformMKLClassifier(KERNELS, loss="squared", class_weight={0: 2.0, 1: 0.5})
    weighted = UniformMKLClassifier(KERNELS, loss="squared")
    weighted.fit(X, y, np.array([2.0, 0.5, 1.0])[y])
    np.testing.assert_allclose(
        model.fit(X, y).decision_function(FRESH), weighted.decision_function(FRESH), atol=1e-8
    )


@pytest.mark.parametrize("psd", ["cosine", "clip", "shift"])
def test_success_weighted_kernels_leave_out_on_their_final_matrix(psd):
    y = labels(X)
    model = lokl.SwMKLClassifier(KERNELS, loss="squared", psd=psd, C=2.0).fit(X, y)
    assert np.abs(model.loo_decision_ - model.decision_function(X)).max() > 1e-3
    assert np.corrcoef(model.loo_decision_, model.decision_function(X))[0, 1] > 0.7


@pytest.mark.parametrize("gating", ["none", "kernel", "weight"])
def test_a_vote_of_one_expert_leaves_out_like_its_svm(gating):
    y, settings = labels(X), {"C": 3.0, "loss": "squared"}
    expert = lokl.LDMKLClassifier([RBF(0.5)], gating=gating, **settings).fit(X, y)
    alone = UniformMKLClassifier([RBF(0.5)], **settings).fit(X, y)
    np.testing.assert_allclose(expert.loo_decision_, np.tanh(alone.loo_decision_), atol=1e-8)
    literal = lokl.LDMKLClassifier([RBF(0.5)], gating="literal", **settings).fit(X, y)
    assert not hasattr(literal, "loo_decision_")


def vote(name="TrustedVoteClassifier", **given):
    return getattr(lokl, name)(VIEWS, loss="squared", C=3.0, **given)


@pytest.mark.parametrize("name", ["TrustedVoteClassifier", "TrustedVoteRegressor"])
def test_the_vote_needs_no_seed_and_no_order(name):
    y = targets(name, 2)
    model = vote(name, random_state=0).fit(X, y)
    again = vote(name, random_state=5).fit(X, y)
    np.testing.assert_array_equal(decide(model, FRESH), decide(again, FRESH))
    order = np.random.RandomState(0).permutation(len(X))
    moved = vote(name).fit(X[order], y[order])
    np.testing.assert_allclose(decide(moved, FRESH), decide(model, FRESH), atol=1e-6)
    np.testing.assert_allclose(moved.loo_decision_, model.loo_decision_[order], atol=1e-6)


@pytest.mark.parametrize("missing", [False, True])
def test_the_joint_model_of_the_vote_is_left_out_exactly(missing, monkeypatch):
    y, weight = labels(X, 3), np.random.RandomState(3).choice([0.5, 1.0, 2.0], len(X))
    holes = X.copy()
    if missing:
        holes[::5, :2] = np.nan
    seen = []
    collect = estimator.ExpertOutputs.collect
    monkeypatch.setattr(
        estimator.ExpertOutputs,
        "collect",
        lambda *given: seen.append((given[0], collect(*given))) or seen[-1][1],
    )
    vote(class_weight={0: 2.0, 1: 1.0, 2: 1.0}).fit(holes, y, weight)
    samples, outputs = seen[0]
    joint = outputs.contribution.sum(axis=1) + outputs.intercept
    uniform = UniformMKLClassifier(VIEWS, C=3.0, loss="squared", class_weight={0: 2.0})
    left_out = uniform.fit(holes, y, weight).loo_decision_
    # The vote sorts its samples.
    rows = [int(np.flatnonzero(X[:, 3] == row[3])[0]) for row in samples.given]
    np.testing.assert_allclose(joint, left_out[rows], atol=1e-7)


def test_the_vote_falls_back_on_folds_for_features():
    model = vote(solver=Primal(rank=5)).fit(X, labels(X))
    assert model.score(X, labels(X)) > 0.7


@pytest.mark.parametrize("name", without_it)
def test_methods_without_it_name_those_with_it(name):
    with pytest.raises(ValueError, match="squared"):
        make(name, KERNELS, loss="squared").fit(X, targets(name))
    with pytest.raises(ValueError, match="squared"):
        make(name, KERNELS, solver="squared").fit(X, targets(name))


@pytest.mark.parametrize("solver", ["libsvm", "mwu"])
@pytest.mark.parametrize("kind", [UniformMKLClassifier, UniformMKLRegressor])
def test_solvers_without_it_are_named(kind, solver):
    with pytest.raises(ValueError, match=solver.upper().replace("LIBSVM", "LibSVM")):
        kind(KERNELS, loss="squared", solver=solver).fit(X, targets(kind.__name__))


def test_other_losses_have_no_leave_one_out_decisions():
    model = UniformMKLClassifier(KERNELS, loss="squared").fit(X, labels(X))
    assert hasattr(model, "loo_decision_")
    assert not hasattr(model.set_params(loss="hinge").fit(X, labels(X)), "loo_decision_")
    # Neither do fits whose matrix exceeds the memory.
    model.set_params(loss="squared", kernels=[RBF(0.5)], cache_size=0.02)
    assert not hasattr(
        model.fit(np.vstack([X, FRESH]), labels(np.vstack([X, FRESH]))), "loo_decision_"
    )


def test_all_classes_are_solved_together():
    class Counting(Exact):
        calls = []  # noqa: RUF012

        def solve_together(self, gram, problems, starts=None):
            self.calls.append(len(problems))
            return super().solve_together(gram, problems, starts)

    UniformMKLClassifier(KERNELS, loss="squared", solver=Counting()).fit(X, labels(X, 3))
    assert Counting.calls == [3]
