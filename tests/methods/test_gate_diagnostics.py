"""Gates that learn the class label: the measure, the warning, and what LMKL does against it."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from method_cases import CLASSIFIERS, REGRESSORS, make
from scipy import sparse

import lokl
from lokl.base.diagnostics import explained_by_classes, training_weights
from lokl.base.estimator import KernelEstimator
from lokl.kernels import RBF, per_view

VIEWS = {"left": slice(0, 100), "right": slice(100, 200)}
MESSAGE = r"class label explains 9\d% .*LMKLClassifier.* 0\.\d+.* 0\.\d+.*stability.*ridge"


def few_samples(n=60, columns=200):
    """Two classes that differ a little in every tenth column."""
    rng = np.random.RandomState(0)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, columns))
    X[:, ::10] += 0.5 * (2 * y - 1)[:, np.newaxis]
    return X, y


def model(**settings):
    return make("LMKLClassifier", per_view(RBF("scale"), VIEWS), C=10.0, tol=1e-3, **settings)


MISLED = {"gating": "input", "ridge": 100.0}


@given(seed=st.integers(0, 2**16), n_classes=st.integers(2, 4))
def test_the_share_lies_between_none_and_all(seed, n_classes):
    rng = np.random.RandomState(seed)
    codes, weight = rng.randint(n_classes, size=30), rng.randint(3, size=30).astype(float)
    weight[0] = 1.0
    trust = rng.dirichlet(np.ones(3), size=30)
    share = explained_by_classes(trust, codes, weight)
    assert -1e-12 <= share <= 1 + 1e-12
    again = np.repeat(np.arange(30), weight.astype(int))
    repeated = explained_by_classes(trust[again], codes[again], np.ones(len(again)))
    np.testing.assert_allclose(share, repeated, atol=1e-9)
    assert explained_by_classes(np.full((30, 3), 1 / 3), codes, weight) == 0.0
    by_class = np.eye(n_classes)[codes]
    expected = float(len(np.unique(codes[weight > 0])) > 1)
    assert explained_by_classes(by_class, codes, weight) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["array", "sparse", "words", "weighted"])
def test_a_gate_that_learned_the_labels_is_told_once(kind):
    X, y = few_samples()
    weight = None
    if kind == "sparse":
        X = sparse.csr_matrix(X)
    elif kind == "words":
        y = np.where(y == 1, "ill", "well")
    elif kind == "weighted":
        weight = np.where(np.arange(60) < 55, 1.0, 0.0)
    learner = model(**MISLED)
    with pytest.warns(UserWarning, match=MESSAGE) as warned:
        learner.fit(X, y, weight)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert learner.weights(X).std(axis=0).max() > 0.1


@pytest.mark.parametrize("ridge", [0.0, 10.0])
def test_a_gate_that_has_more_numbers_than_samples_is_looked_into(ridge):
    """It may fit the samples without following the label, and tell another story for each seed."""
    X, _ = few_samples()
    y = np.arange(len(X)) % 3
    text = r"gate of LMKLClassifier .* 201 .* 60 samples.* 0\.\d+.*start values.*weight_stability"
    with pytest.warns(UserWarning, match=text):
        learner = model(gating="input", ridge=ridge).fit(X, y)
    assert explained_by_classes(learner.weights(X), y, np.ones(60)) < 0.5
    # Weights count like repeated rows: there are then enough of them.
    model(gating="input", ridge=ridge).fit(X, y, np.full(60, 4.0))


def test_the_look_at_a_gate_neither_calls_back_nor_logs(caplog):
    X, y = few_samples()
    rounds = []
    with caplog.at_level("INFO", logger="lokl"), pytest.warns(UserWarning, match=MESSAGE):
        learner = model(callback=rounds.append, verbose=1, **MISLED).fit(X, y)
    assert len(rounds) == learner.n_iter_
    assert len([own for own in caplog.messages if "round" in own]) == learner.n_iter_


def test_classes_too_small_for_folds_are_left_out():
    X, y = few_samples()
    y = y.copy()
    y[0] = 2
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="The least populated class")
        warnings.filterwarnings("ignore", message="the class label explains")
        assert list(model(**MISLED).fit(X, y).classes_) == [0, 1, 2]


def learned(monkeypatch, name, X, y, weight=None, **settings):
    """A fitted estimator, what it learned from, and the model with its training gates."""
    seen = []
    monkeypatch.setattr("lokl.base.estimator.diagnose", lambda *all: seen.append(all) or ())
    learner = make(name, tol=1e-3, **settings).fit(X, y, weight)
    return learner, *seen[0][1:]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("LMKLClassifier", {}),
        ("SwMKLClassifier", {}),
        ("LDMKLClassifier", {}),
        ("SAMKLClassifier", {}),
        ("SAMKLClassifier", {"latent": "label"}),
        ("SAMKLClassifier", {"assign": "regression"}),
    ],
    ids=str,
)
def test_learning_knows_the_weights_of_the_training_samples(name, settings, monkeypatch):
    X, y = few_samples(40, 5)
    weight = np.where(np.arange(40) < 30, 1.0, 0.0)
    learner, training, found = learned(monkeypatch, name, X, y, weight, **settings)
    known = training_weights(found, training, np.arange(0, 30, 2))
    np.testing.assert_allclose(known, learner.weights(X[:30:2]), atol=1e-6)


@pytest.mark.parametrize("name", [n for n in CLASSIFIERS if getattr(lokl, n)._weights_use_labels])
def test_a_fit_asks_no_gate_again_and_keeps_no_gates(name, monkeypatch):
    X, y = few_samples(40, 5)
    learner = make(name, tol=1e-3)
    monkeypatch.setattr(KernelEstimator, "weights", None, raising=True)
    assert learner.fit(X, y)._model.training_gates is None
    _, training, found = learned(monkeypatch, name, X, y)
    gates = found.training_gates
    assert found.weights_of(gates).shape == (training.n_samples, len(gates[0]))


@pytest.mark.parametrize("name", CLASSIFIERS + REGRESSORS)
def test_defaults_learn_no_labels_from_few_samples(name):
    """Warnings are errors here."""
    X, y = few_samples()
    make(name, per_view(RBF("scale"), VIEWS), C=10.0, tol=1e-3).fit(X, y)


def test_a_gate_that_predicts_better_may_follow_the_labels():
    """Class and best view go together: trust repeats the label, and rightly so."""
    rng = np.random.RandomState(0)
    y = np.arange(200) % 2
    X = np.column_stack([rng.normal(size=(200, 2)), 6.0 * y + rng.normal(size=200)])
    kernels = {"first": RBF(1.0).on([0]), "second": RBF(1.0).on([1])}
    learner = make("LMKLClassifier", kernels, tol=1e-3).fit(X, y)
    assert explained_by_classes(learner.weights(X), y, np.ones(200)) > 0.9


def test_where_columns_outnumber_samples_the_gate_looks_at_few_numbers_and_is_stable():
    X, y = few_samples()
    gates = [model(random_state=seed).fit(X, y).weights(X) for seed in range(3)]
    assert np.std(gates, axis=0).max() < 0.01
    many = np.vstack([few_samples(60)[0], X + 0.1, X - 0.1, X + 0.2])
    learner = model(max_iter=-1).fit(many, np.tile(y, 4))
    assert learner.kernel_.params.shape == (201, 2)
    assert model().fit(X, y).kernel_.params.shape[0] <= 11
    # Weights count like repeated rows, here too.
    assert model().fit(X, y, np.full(60, 4.0)).kernel_.params.shape == (201, 2)
    # Who says what the gate shall look at is heard.
    few = model(gate=model()._gate_and_columns()[0].on([0, 1])).fit(X, y)
    assert few.kernel_.params.shape == (3, 2)


@pytest.mark.parametrize("ridge", [-1.0, "much", None])
def test_a_wrong_ridge_is_named(ridge):
    X, y = few_samples()
    with pytest.raises(ValueError, match="ridge must be finite and not negative, got"):
        model(ridge=ridge).fit(X, y)
