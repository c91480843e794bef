"""What every fitted machine promises: parts that add up, attributes that agree, equal answers."""

import logging

import numpy as np
import pytest
from estimator_cases import (
    FRESH,
    MACHINES,
    X,
    labels,
    machine,
    mean_gram,
    outcome,
    samples,
    score,
    three_kernels,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from lokl import UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF, Callable, Cosine, Laplacian, Linear, rbf_ladder

machines = pytest.mark.parametrize("name", MACHINES)

DICTIONARIES = {
    "three": three_kernels(),
    "ladder": rbf_ladder(-3, 3),
    "views": [Linear().on([0, 1]), RBF(0.5).on([2, 3]), RBF(0.5).on([1])],
    "normalised": [Linear().normalized("mean_diag"), RBF(0.5).normalized(), Cosine()],
    "overlaps": [Laplacian(), Laplacian("scale").on([0, 2]), RBF(1.0)],
    "not of inner products": [Callable(lambda A, B: (A @ B.T) ** 2), RBF(1.0)],
    "composed": [Linear() + RBF(1.0), Linear().on([0]) * RBF(1.0)],
}


@machines
@pytest.mark.parametrize("dictionary", DICTIONARIES)
def test_contributions_and_intercept_are_the_decision(name, dictionary):
    kernels = DICTIONARIES[dictionary]
    model, y = machine(name, kernels)
    model.fit(X, y)
    parts = model.contributions(FRESH)
    flat = outcome(model, FRESH).shape[1] == 1
    tasks = () if flat else (outcome(model, FRESH).shape[1],)
    assert parts.shape == (len(FRESH), *tasks, len(kernels))
    total = parts.sum(axis=-1).reshape(len(FRESH), -1) + model.intercept_
    np.testing.assert_allclose(total, outcome(model, FRESH), atol=1e-9)


@machines
def test_a_contribution_is_that_of_its_kernel_alone(name):
    model, y = machine(name)
    model.fit(X, y)
    parts = model.contributions(FRESH).reshape(len(FRESH), -1, 3)
    for i, kernel in enumerate(three_kernels().values()):
        alone = kernel(FRESH, model.support_vectors_) @ model.dual_coef_.T / 3
        np.testing.assert_allclose(parts[:, :, i], alone, atol=1e-9)


@machines
@pytest.mark.parametrize("m", [1, 2, 5])
def test_all_kernels_are_trusted_alike(name, m):
    model, y = machine(name, rbf_ladder(0, m - 1))
    trust = model.fit(X, y).weights(FRESH)
    np.testing.assert_allclose(trust, np.full((len(FRESH), m), 1 / m), rtol=1e-12)


@machines
@pytest.mark.parametrize("dictionary", DICTIONARIES)
def test_the_learned_kernel_on_the_support_is_the_decision(name, dictionary):
    model, y = machine(name, DICTIONARIES[dictionary])
    model.fit(X, y)
    block = model.kernel_(FRESH, model.support_vectors_)
    decision = block @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(decision, outcome(model, FRESH), atol=1e-9)
    np.testing.assert_allclose(model.kernel_.diag(FRESH), model.kernel_(FRESH).diagonal())
    assert np.linalg.eigvalsh(model.kernel_(X)).min() > -1e-8


@pytest.mark.parametrize("dictionary", ["three", "ladder", "views", "normalised"])
def test_svc_with_the_learned_kernel_is_the_model(dictionary):
    model, y = machine("two classes", DICTIONARIES[dictionary])
    model.fit(X, y)
    svc = SVC(kernel=model.kernel_, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(
        svc.decision_function(FRESH), model.decision_function(FRESH), atol=1e-4
    )


@machines
def test_support_attributes_agree(name):
    model, y = machine(name, C=0.7)
    model.fit(X, y)
    tasks = outcome(model, X).shape[1]
    assert (np.diff(model.support_) > 0).all()
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.dual_coef_.shape == (tasks, len(model.support_))
    assert model.intercept_.shape == (tasks,)
    assert (model.dual_coef_ != 0).any(axis=0).all()
    assert (np.abs(model.dual_coef_) <= 0.7).all()
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0.0, atol=1e-12)
    assert model.support_fraction_ == len(model.support_) / len(X)
    assert 0 < model.support_fraction_ < 1


@machines
def test_support_attributes_count_the_rows_that_were_given(name):
    weight = np.random.RandomState(0).randint(0, 3, size=len(X))
    model, y = machine(name)
    model.fit(X, y, weight)
    assert (weight[model.support_] > 0).all()
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.support_fraction_ == len(model.support_) / (weight > 0).sum()
    less, _ = machine(name)
    again = np.repeat(np.arange(len(X)), weight)
    less.fit(X[again], y[again])
    np.testing.assert_allclose(outcome(model, FRESH), outcome(less, FRESH), atol=1e-6)


def test_training_decisions_obey_the_margin():
    model, y = machine("two classes")
    model.fit(X, y)
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    alpha = np.zeros(len(X))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    assert (margin[alpha == 0] >= 1 - 1e-6).all()
    np.testing.assert_allclose(margin[(alpha > 0) & (alpha < 1)], 1.0, atol=1e-6)
    assert (margin[alpha == 1] <= 1 + 1e-6).all()


def test_training_predictions_obey_the_tube():
    model, t = machine("one target", epsilon=0.2)
    residual = t - model.fit(X, t).predict(X)
    u = np.zeros(len(X))
    u[model.support_] = model.dual_coef_[0]
    assert (np.abs(residual[u == 0]) <= 0.2 + 1e-6).all()
    free = (u != 0) & (np.abs(u) < 1)
    np.testing.assert_allclose(residual[free], 0.2 * np.sign(u[free]), atol=1e-6)
    assert (residual[u == 1] >= 0.2 - 1e-6).all()
    assert (residual[u == -1] <= -0.2 + 1e-6).all()


def test_history_is_the_dual_value_and_the_gap_certifies_it():
    model, y = machine("two classes")
    model.fit(X, y)
    u, K = model.dual_coef_[0], mean_gram(model.support_vectors_, model.support_vectors_)
    dual = np.abs(u).sum() - 0.5 * u @ K @ u
    np.testing.assert_allclose(model.history_, [dual], rtol=1e-9)
    slack = np.maximum(1 - np.where(y == 1, 1, -1) * model.decision_function(X), 0)
    primal = 0.5 * u @ K @ u + slack.sum()
    assert 0 <= model.duality_gap_ <= 1e-6
    np.testing.assert_allclose(primal - dual, model.duality_gap_, atol=1e-8)


@machines
def test_several_machines_sum_up(name):
    model, y = machine(name, tol=1e-3, cache_size=0.01)
    model.fit(X, y)
    assert model.history_.shape == (1,)
    best, _ = machine(name)
    best.fit(X, y)
    assert best.history_[0] - model.history_[0] <= model.duality_gap_ + 1e-9
    assert isinstance(model.n_iter_, int)
    assert model.n_iter_ >= 1


def test_the_gap_of_several_machines_is_the_sum_of_their_gaps():
    model, y = machine("three classes", tol=0.1, cache_size=0.01)
    model.fit(X, y)
    U, K = model.dual_coef_, mean_gram(model.support_vectors_, model.support_vectors_)
    norms = np.einsum("ti,ij,tj->t", U, K, U)
    np.testing.assert_allclose(model.history_, [np.abs(U).sum() - 0.5 * norms.sum()], rtol=1e-9)
    sign = np.where(y[:, np.newaxis] == model.classes_, 1, -1)
    slack = np.maximum(1 - sign * model.decision_function(X), 0)
    primal = 0.5 * norms.sum() + slack.sum()
    assert model.duality_gap_ > 1e-3
    np.testing.assert_allclose(primal - model.history_[0], model.duality_gap_, atol=1e-8)


@machines
def test_kernels_keep_their_names(name):
    model, y = machine(name)
    assert model.fit(X, y).kernel_names_ == ["line", "square", "bump"]
    model, _ = machine(name, ["linear", "rbf", "rbf", RBF(0.25)])
    assert model.fit(X, y).kernel_names_ == ["linear", "rbf #1", "rbf #2", "rbf(0.25)"]
    assert model.kernels_[1].gamma == pytest.approx(1 / (X.shape[1] * X.var()))
    assert model.kernels[1] == "rbf"


@machines
def test_the_same_fit_twice_is_the_same_to_the_last_bit(name):
    first, y = machine(name, tol=1e-3)
    second, _ = machine(name, tol=1e-3)
    np.testing.assert_array_equal(outcome(first.fit(X, y), FRESH), outcome(second.fit(X, y), FRESH))
    np.testing.assert_array_equal(outcome(first.fit(X, y), FRESH), outcome(second, FRESH))


@machines
def test_each_sample_is_decided_for_itself(name):
    model, y = machine(name)
    model.fit(X, y)
    alone = np.vstack([outcome(model, FRESH[j : j + 1]) for j in range(len(FRESH))])
    np.testing.assert_allclose(alone, outcome(model, FRESH), atol=1e-9)


@machines
@pytest.mark.parametrize("megabytes", [0.005, 0.01, 0.03])
def test_memory_does_not_change_the_answer(name, megabytes):
    little, y = machine(name, tol=1e-8, cache_size=megabytes)
    plenty, _ = machine(name)
    little.fit(X, y)
    plenty.fit(X, y)
    np.testing.assert_allclose(outcome(little, FRESH), outcome(plenty, FRESH), atol=1e-5)


@pytest.mark.parametrize("kernels", [["rbf"], ["linear"], three_kernels()], ids=str)
@pytest.mark.parametrize("share", [0.5, 0.97])
def test_memory_does_not_change_the_answer_on_many_samples(kernels, share):
    many = samples(2300)
    t = score(many)
    y = t > np.quantile(t, share)
    little, plenty = (
        UniformMKLClassifier(kernels, cache_size=c, tol=1e-4).fit(many, y) for c in (1, 512)
    )
    np.testing.assert_allclose(outcome(little, FRESH), outcome(plenty, FRESH), atol=5e-3)
    theirs = SVC(kernel=plenty.kernel_, tol=1e-5).fit(many, y)
    np.testing.assert_allclose(outcome(theirs, FRESH), outcome(plenty, FRESH), atol=5e-3)


def test_linear_kernels_need_no_rows():
    many = samples(2300)
    little, plenty = (
        UniformMKLClassifier(["linear"], cache_size=c).fit(many, labels(many)) for c in (0.001, 512)
    )
    np.testing.assert_allclose(outcome(little, FRESH), outcome(plenty, FRESH), atol=5e-3)


def test_many_samples_are_decided_in_blocks():
    model = UniformMKLClassifier(three_kernels()).fit(X, labels(X))
    many = samples(70_000)
    part = slice(66_000, 66_100)
    decision = model.decision_function(many)
    np.testing.assert_allclose(decision[part], model.decision_function(many[part]), atol=1e-9)


def test_verbose_logs_one_line_and_prints_nothing(caplog, capfd):
    model = UniformMKLClassifier(["rbf"], verbose=1)
    with caplog.at_level(logging.INFO, logger="lokl"):
        model.fit(X, labels(X))
    lines = [r for r in caplog.records if "UniformMKLClassifier" in r.getMessage()]
    assert len(lines) == 1
    assert lines[0].name == "lokl"
    assert f"{len(model.support_)} of {len(X)} samples support" in lines[0].getMessage()
    assert capfd.readouterr().out == ""


def test_quiet_by_default(caplog, capfd):
    with caplog.at_level(logging.INFO, logger="lokl"):
        UniformMKLRegressor(["rbf"]).fit(X, score(X)).predict(X)
    assert not [r for r in caplog.records if "compil" not in r.getMessage()]
    assert capfd.readouterr().out == ""


@machines
def test_too_few_steps_warn(name):
    model, y = machine(name, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model.fit(X, y)
    assert model.n_iter_ == 2
    assert model.duality_gap_ > 0


@machines
def test_parameters_and_data_are_left_alone(name, read_only):
    model, y = machine(name)
    before = repr(model.get_params())
    weight = read_only(np.ones(len(X)))
    model.fit(read_only(X.copy()), read_only(y.copy()), weight)
    outcome(model, read_only(FRESH.copy()))
    assert repr(model.get_params()) == before
