"""SAMKL: switches, their bounds, and what it reduces to."""

import numpy as np
import pytest
from estimator_cases import FRESH, X, labels
from method_cases import make

from lokl import SAMKLClassifier
from lokl._arrays import Samples
from lokl.kernels import RBF, Linear, Polynomial

KERNELS = {"line": Linear(), "square": Polynomial(2), "bump": RBF(0.5)}


def test_all_kernels_on_is_l_p_norm_learning():
    """C-LMKL with one cluster is l_p-norm MKL as well."""
    y = labels(X)
    settings = {"learn_tol": 1e-5, "max_iter": 500}
    model = make("SAMKLClassifier", KERNELS, min_kernels=3, **settings).fit(X, y)
    other = make("CLMKLClassifier", KERNELS, n_clusters=1, **settings).fit(X, y)
    assert (model.choices_ == 1).all()
    np.testing.assert_allclose(model.weights_, other.weights_[0], atol=1e-3)
    np.testing.assert_allclose(
        model.decision_function(FRESH), other.decision_function(FRESH), atol=1e-2
    )


@pytest.mark.parametrize("latent", ["confidence", "label"])
@pytest.mark.parametrize("bounds", [(1, 1), (1, 2), (2, 3), (None, None)])
def test_switches_keep_their_bounds(latent, bounds):
    min_kernels, k_max = bounds
    model = make(
        "SAMKLClassifier",
        KERNELS,
        latent=latent,
        min_kernels=min_kernels,
        k_max=k_max,
        max_iter=100,
    )
    model.fit(X, labels(X))
    least, most = min_kernels or 2, k_max or 3
    used = (model.weights(FRESH) > 0).sum(axis=1)
    assert (used <= most).all()
    assert ((model.choices_.sum(axis=1) >= least) | (model.choices_.sum(axis=1) == 3)).all()
    assert set(np.unique(model.choices_)) <= {0.0, 1.0}


def test_the_objective_falls_with_labels():
    model = make("SAMKLClassifier", KERNELS, latent="label", min_kernels=1, max_iter=100)
    model.fit(X, labels(X))
    assert (np.diff(model.history_) <= 0).all()
    # Labels are memorised: the machine has an easy life in training.
    assert model.history_[-1] < 0.8 * model.history_[0]


def test_every_kernel_is_used_as_often_as_asked():
    free = make("SAMKLClassifier", KERNELS, min_kernels=1, k_max=1).fit(X, labels(X))
    bound = make("SAMKLClassifier", KERNELS, min_kernels=1, k_max=1, least_uses=20, latent="label")
    bound.fit(X, labels(X))
    assert free.choices_.shape == bound.choices_.shape
    changed = bound.choices_.sum(axis=0)
    assert (changed >= 20).all()


@pytest.mark.parametrize("latent", ["confidence", "label", "structural"])
@pytest.mark.parametrize("assign", ["score", "regression"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_reading_decides(latent, assign, n_classes):
    y = labels(X, n_classes)
    model = make("SAMKLClassifier", KERNELS, latent=latent, assign=assign).fit(X, y)
    parts = model.contributions(FRESH)
    decision = model.decision_function(FRESH)
    np.testing.assert_allclose(parts.sum(axis=-1) + model.intercept_, decision, atol=1e-8)
    assert model.weights_.shape == (3,)
    assert np.linalg.norm(model.weights_) == pytest.approx(1.0)


def test_a_confident_choice_is_the_best_of_both_signs():
    """Decision values are the largest in size that any allowed choice gives."""
    y = labels(X)
    model = make("SAMKLClassifier", KERNELS, min_kernels=1).fit(X, y)
    chosen = model.kernel_.gate.base
    scores = chosen.scores(Samples.of(FRESH))[:, :, 0]
    found = model.decision_function(FRESH)
    best = np.zeros(len(FRESH))
    for code in range(1, 8):
        h = np.array([code & 1, code >> 1 & 1, code >> 2 & 1])
        value = scores @ h + model.intercept_[0]
        best = np.maximum(best, np.abs(value))
    np.testing.assert_allclose(np.abs(found), best, rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_kernels": 0}, "min_kernels must be an integer >= 1, got 0"),
        ({"min_kernels": 3, "k_max": 2}, "got min_kernels=3, k_max=2"),
        ({"k_max": 9}, "k_max=9"),
        ({"latent": "truth"}, "got 'truth'"),
        ({"assign": "oracle"}, "got 'oracle'"),
        ({"least_uses": -1}, "least_uses must be an integer >= 0, got -1"),
        ({"least_uses": 1000, "k_max": 2}, "lower least_uses"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        SAMKLClassifier(KERNELS, **settings).fit(X, labels(X))
