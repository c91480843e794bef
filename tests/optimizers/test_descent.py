"""Line search and spectral projected gradient on functions whose minimum is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lokl.gates.base import project_simplex
from lokl.methods.samkl import choose, choose_together
from lokl.optimizers import Objective, ObjectiveValue, line_search, spectral_gradient


class Quadratic(Objective):
    """``(v - centre)' A (v - centre) / 2``: no machines are needed to know it."""

    def __init__(self, seed, d=4, first=None, nearest=None, gives_up=True):
        rng = np.random.RandomState(seed)
        A = rng.normal(size=(d, d))
        self.A = A @ A.T + np.eye(d)
        self.centre = rng.normal(size=(1, d))
        self.first = np.zeros((1, d)) if first is None else first
        self.nearest = nearest
        self.gives_up = gives_up

    def start(self):
        return self.first

    def project(self, params):
        return params if self.nearest is None else self.nearest(params)

    def slope(self, v):
        return (self.A @ (v - self.centre).ravel()).reshape(v.shape)

    def at(self, v, ceiling=np.inf):
        value = 0.5 * float((self.slope(v) * (v - self.centre)).sum())
        if self.gives_up and value > ceiling:
            return None
        return ObjectiveValue(v, value, 0.0, lambda: self.slope(v), None)


class Noisy(Objective):
    """Falls slowly, in machines that leave much open."""

    def start(self):
        return np.zeros(3)

    def at(self, v, ceiling=np.inf):
        return ObjectiveValue(v, float(1e-3 * v.sum()), 1.0, lambda: np.ones_like(v), None)


@given(seed=st.integers(0, 1000))
def test_line_search_falls_strictly_towards_the_minimum(seed):
    steps = list(line_search(Quadratic(seed), tol=1e-6))
    objectives = [step.objective for step in steps]
    assert (np.diff(objectives) < 0).all()
    assert objectives[-1] <= 0.05 * objectives[0] + 1e-6


def test_line_search_does_not_chase_noise():
    """A fall smaller than what the machines leave open is no fall."""
    assert len(list(line_search(Noisy()))) == 1


@given(seed=st.integers(0, 1000))
def test_line_search_needs_no_values_above_the_ceiling(seed):
    full = [step.objective for step in line_search(Quadratic(seed, gives_up=False))]
    assert [step.objective for step in line_search(Quadratic(seed))] == full


def test_line_search_stops_at_a_stationary_point():
    assert len(list(line_search(Quadratic(0, first=Quadratic(0).centre)))) == 1


@given(seed=st.integers(0, 1000))
def test_spectral_finds_the_minimum_on_the_simplex(seed):
    objective = Quadratic(seed, first=np.full((1, 4), 0.25), nearest=project_simplex)
    *_, last = spectral_gradient(objective, tol=1e-12)
    assert last.params.min() >= 0
    assert last.params.sum() == pytest.approx(1.0)
    slope = objective.slope(last.params)
    # Optimal on the simplex: no vertex is downhill.
    assert float((slope * last.params).sum()) <= slope.min() + 1e-5


@given(seed=st.integers(0, 1000), m=st.integers(1, 6))
def test_simplex_projection_is_the_nearest_point(seed, m):
    rng = np.random.RandomState(seed)
    rows = rng.normal(size=(3, m)) * 2
    nearest = project_simplex(rows)
    np.testing.assert_allclose(nearest.sum(axis=1), 1.0)
    assert (nearest >= 0).all()
    other = rng.dirichlet(np.ones(m), size=3)
    apart = np.linalg.norm(rows - nearest, axis=1)
    assert (apart <= np.linalg.norm(rows - other, axis=1) + 1e-12).all()
    np.testing.assert_allclose(project_simplex(nearest), nearest, atol=1e-12)


@given(seed=st.integers(0, 1000), m=st.integers(1, 5), bounds=st.tuples(*[st.integers(0, 5)] * 2))
def test_the_closed_choice_is_the_integer_program(seed, m, bounds):
    least, most = min(min(bounds), m), min(max(bounds), m)
    if most == 0:
        most = 1
    rng = np.random.RandomState(seed)
    gains = rng.normal(size=(4, m))
    present = rng.uniform(size=(4, m)) < 0.8
    for mask in (None, present):
        closed = choose(gains, least, most, mask)
        program = choose_together(gains, least, most, 0, mask)
        assert (closed * gains).sum() == pytest.approx((program * gains).sum())
        counts = closed.sum(axis=1)
        assert (counts <= most).all()


def test_kernels_are_used_as_often_as_required():
    gains = np.column_stack([np.ones(6), -np.ones(6)])
    assert choose(gains, 1, 2)[:, 1].sum() == 0
    together = choose_together(gains, 1, 2, 2)
    assert (together.sum(axis=0) >= 2).all()
    with pytest.raises(ValueError, match="lower least_uses"):
        choose_together(gains, 1, 1, 4)
