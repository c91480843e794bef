"""What learning returns, and that data is looked at once on its way there."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import lokl
from lokl._arrays import Samples
from lokl._methods import METHODS
from lokl.base.model import GatedMachine, Model
from lokl.gram import InnerProducts
from lokl.kernels import RBF
from lokl.kernels import samples as presence
from lokl.methods.single_kernel import ExpertVote
from lokl.methods.trusted_vote.model import TrustedVote

NAMES = [name for method in METHODS for name in method.classes]
# Gates on forty samples learn what they like.
pytestmark = pytest.mark.filterwarnings("ignore:the class label explains")
every_estimator = pytest.mark.parametrize("name", NAMES)


def data(name, n=40, missing=False):
    X = np.random.RandomState(0).normal(size=(n, 4))
    y = X[:, 0] + X[:, 2]
    if name.endswith("Survival"):
        y = lokl.survival_target(np.arange(n) % 4 > 0, np.exp(-y))
    elif name.endswith("Classifier"):
        y = (y > 0).astype(int)
    if missing:
        X[::7, :2] = np.nan
    return X, y


def two_views():
    return {"first": RBF(0.5).on([0, 1]), "second": RBF(0.5).on([2, 3])}


@every_estimator
def test_a_method_sets_nothing_while_it_learns(name, monkeypatch):
    kind = getattr(lokl, name)
    learn, seen = kind._learn, []

    def watched(self, training):
        before = dict(vars(self))
        model = learn(self, training)
        assert vars(self).keys() == before.keys()
        assert all(vars(self)[key] is value for key, value in before.items())
        seen.append(model)
        return model

    monkeypatch.setattr(kind, "_learn", watched)
    X, y = data(name)
    estimator = kind(two_views(), random_state=0).fit(X, y)
    model = seen[0]  # a look at a suspicious gate learns some more
    assert isinstance(model, Model)
    for attribute, value in model.attributes().items():
        # Lists and arrays may be made anew on every call; their content is the same.
        assert repr(getattr(estimator, attribute)) == repr(value)


@every_estimator
def test_the_model_is_all_that_prediction_needs(name):
    X, y = data(name, missing=True)
    estimator = getattr(lokl, name)(two_views(), random_state=0).fit(X, y)
    model, samples = estimator._model, estimator._validate_for_predict(X)
    decision = model.decide(samples)
    shown = getattr(estimator, "decision_function", estimator.predict)(X)
    np.testing.assert_array_equal(decision[:, 0], shown)
    trust = model.weights(samples)
    shares = trust / trust.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(shares, estimator.weights(X))
    np.testing.assert_array_equal(model.contributions(samples)[:, :, 0], estimator.contributions(X))
    # Samples in pieces are decided as all of them are.
    pieces = [model.decide(samples.take(rows)) for rows in np.array_split(np.arange(len(X)), 3)]
    np.testing.assert_allclose(np.concatenate(pieces), decision, atol=1e-10)


@every_estimator
def test_a_fit_gives_its_memory_back_at_once(name, monkeypatch):
    """Not only when the garbage collector finds a circle of references: rows are large."""
    made, init = [], InnerProducts.__init__

    def watched(self, *arguments, **settings):
        init(self, *arguments, **settings)
        made.append(weakref.ref(self))

    monkeypatch.setattr(InnerProducts, "__init__", watched)
    X, y = data(name)
    gc.collect()
    gc.disable()
    try:
        fitted = getattr(lokl, name)(two_views(), random_state=0).fit(X, y)
        assert made
        assert not [one for one in made if one() is not None]
    finally:
        gc.enable()
    assert np.isfinite(fitted.weights(X)).all()


@every_estimator
@pytest.mark.parametrize("ask", ["predict", "weights", "contributions"])
def test_missing_values_are_looked_for_once(name, ask, monkeypatch):
    X, y = data(name, missing=True)
    estimator = getattr(lokl, name)(two_views(), random_state=0).fit(X, y)
    looked, look = [], presence.split_missing
    monkeypatch.setattr(presence, "split_missing", lambda *a: looked.append(a) or look(*a))
    getattr(estimator, ask)(X)
    assert len(looked) == 1


@pytest.mark.parametrize("name", ["LDMKLClassifier", "LDMKLRegressor"])
def test_an_expert_and_its_regressor_share_the_layout_of_new_samples(name):
    X, y = data(name, n=120, missing=True)
    model = getattr(lokl, name)(two_views()).fit(X, y)._model
    assert isinstance(model, ExpertVote)
    for expert, regressor in zip(model.experts, model.success.regressors, strict=True):
        assert expert.expansion.shares_layout_with(regressor)


def test_kinds_of_models_follow_the_list_of_methods():
    for method in METHODS:
        X, y = data(method.classifier)
        model = getattr(lokl, method.classifier)(two_views(), random_state=0).fit(X, y)._model
        assert isinstance(model, (ExpertVote, TrustedVote) if method.can("vote") else GatedMachine)


@given(seed=st.integers(0, 1000), n=st.integers(1, 9), as_csr=st.booleans())
def test_parts_of_samples_are_samples(seed, n, as_csr):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    present = rng.uniform(size=(n, 2)) < 0.7
    if not as_csr:
        X[~present[:, 0], :2] = np.nan
    samples = Samples.of(sparse.csr_matrix(X) if as_csr else X, present)
    rows = rng.randint(n, size=rng.randint(1, n + 1))
    part = samples.take(rows)
    assert part.n_samples == len(rows)
    np.testing.assert_array_equal(part.present, present[rows])
    dense = part.filled.toarray() if as_csr else part.filled
    np.testing.assert_array_equal(dense, np.nan_to_num(X)[rows])
    assert samples.take(np.arange(n)) is samples
    for kernel in range(2):
        seen = samples.seen_by(kernel)
        np.testing.assert_array_equal(
            samples.rows_seen_by(kernel), np.flatnonzero(present[:, kernel])
        )
        assert seen.n_samples == present[:, kernel].sum()
        assert seen.present is None
