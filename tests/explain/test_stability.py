"""Gates that would say the same again, and gates that would not."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import LMKLClassifier, LMKLRegressor, UniformMKLClassifier
from lokl.base.diagnostics import explained_by_classes
from lokl.datasets import make_views
from lokl.explain import weight_stability
from lokl.explain.stability import WeightStability
from lokl.kernels import RBF, Linear, per_view

X, Y, VIEWS, _ = make_views(240, random_state=0)
MODEL = LMKLClassifier(per_view(Linear(), VIEWS), C=10, random_state=0)


def accident():
    """Few samples, many columns, no ridge: the gate can be anything."""
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(60, 200)), np.arange(60) % 3
    X[:, ::10] += 0.5 * (y - 1)[:, np.newaxis]
    halves = per_view(RBF(), {"left": slice(0, 100), "right": slice(100, 200)})
    return LMKLClassifier(halves, C=10, gating="input", ridge=0.0, random_state=0), X, y


def test_a_gate_that_found_the_regions_is_believed():
    found = weight_stability(MODEL, X, Y, n_repeats=3, how="seed", cv=3, random_state=0)
    assert found.leader_change < 0.1
    assert found.score > found.uniform_score
    assert "stable" in found.verdict
    trust = MODEL.fit(X, Y).weights(X)
    assert found.explained == pytest.approx(explained_by_classes(trust, Y, np.ones(len(Y))))
    assert found.kernels.rows == tuple(VIEWS)
    np.testing.assert_allclose(found.kernels["weight"], trust.mean(axis=0))
    assert found.change == pytest.approx(found.changes.mean())


@pytest.mark.parametrize("how", ["bootstrap", "seed"])
def test_an_accident_is_called_one(how):
    model, X, y = accident()
    # What refits have to warn of is not repeated.
    found = weight_stability(model, X, y, n_repeats=3, how=how, cv=3, random_state=0)
    assert found.verdict.startswith("Do not interpret")
    assert found.leader_change > 0.2


def test_changes_are_those_of_the_refits():
    found = weight_stability(MODEL, X, Y, n_repeats=2, how="seed", cv=2, random_state=3)
    rng = np.random.RandomState(3)
    trust = MODEL.fit(X, Y).weights(X)
    for k in range(2):
        seed = int(rng.randint(2**31 - 1))
        other = LMKLClassifier(MODEL.kernels, C=10, random_state=seed).fit(X, Y).weights(X)
        assert found.changes[k] == pytest.approx(np.abs(other - trust).mean(), abs=1e-6)
        led = (other.argmax(axis=1) != trust.argmax(axis=1)).mean()
        assert found.leader_changes[k] == pytest.approx(led, abs=0.01)


def test_a_fitted_pipeline_is_asked_as_it_is_and_stays_so():
    pipeline = make_pipeline(StandardScaler(), MODEL).fit(X, Y)
    before = pipeline[-1].weights(pipeline[:-1].transform(X))
    found = weight_stability(pipeline, X, Y, n_repeats=2, cv=2, random_state=0)
    np.testing.assert_allclose(found.kernels["weight"], before.mean(axis=0))
    np.testing.assert_array_equal(pipeline[-1].weights(pipeline[:-1].transform(X)), before)


def test_equal_trust_never_changes_its_leader():
    found = weight_stability(UniformMKLClassifier(MODEL.kernels), X, Y, n_repeats=2, cv=2)
    assert found.change == found.leader_change == found.gain[0] == 0
    assert found.spread == pytest.approx(0)
    assert "nearly the same for all samples" in found.verdict


def test_regressors_have_no_classes():
    model = LMKLRegressor(MODEL.kernels, random_state=0)
    found = weight_stability(model, X[:80], X[:80, 0], n_repeats=2, cv=2, random_state=0)
    assert found.explained is None
    assert "class label" not in str(found)


def test_samples_may_lack_views():
    holes, y, views, _ = make_views(120, missing=0.2, random_state=0)
    model = LMKLClassifier(per_view(Linear(), views), C=10, random_state=0)
    found = weight_stability(model, holes, y, n_repeats=2, cv=2, random_state=0)
    assert 0 < found.change < 1


@pytest.mark.parametrize(
    ("spread", "leaders", "explained", "gain", "words"),
    [
        (0.01, 0.1, 0.2, (0.1, 0.05, 0.2), "nearly the same for all samples"),
        (0.3, 0.3, 0.2, (0.1, 0.05, 0.2), "30%"),
        (0.3, 0.1, 0.95, (-0.1, -0.2, 0.0), "class label explains 95%"),
        (0.3, 0.1, 0.95, (0.1, 0.05, 0.2), "stable and they help"),
        (0.3, 0.1, None, (0.1, -0.05, 0.2), "may not help"),
    ],
)
def test_verdicts(spread, leaders, explained, gain, words):
    found = WeightStability(
        None, np.array([0.01]), np.array([leaders]), spread, explained, 0.9, 0.8, gain
    )
    assert words in found.verdict


def test_the_page_begins_with_the_verdict_and_fits_the_terminal():
    found = weight_stability(MODEL, X, Y, n_repeats=1, cv=2, random_state=0)
    assert " ".join(str(found).splitlines()).startswith(found.verdict)
    assert max(map(len, str(found).splitlines())) <= 80
    assert list(found.to_frame().columns) == ["weight", "spread", "change"]


def test_errors_name_what_was_given():
    with pytest.raises(ValueError, match="how must be one of 'bootstrap', 'seed', got 'luck'"):
        weight_stability(MODEL, X, Y, how="luck")
    with pytest.raises(ValueError, match="n_repeats must be 1 or more, got 0"):
        weight_stability(MODEL, X, Y, n_repeats=0)
