"""Drawings of two-dimensional models: what is drawn is what the models say."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.contour import QuadContourSet

from lokl import LDMKLClassifier, UniformMKLClassifier
from lokl.datasets import make_two_regions
from lokl.explain import plot_regions
from lokl.kernels import RBF, Polynomial

KERNELS = {"quadratic": Polynomial(2), "Gaussian": RBF(0.5)}


@pytest.fixture(scope="module")
def samples():
    return make_two_regions(n_samples=120, random_state=0)


def contours(panel):
    return [drawn for drawn in panel.collections if isinstance(drawn, QuadContourSet)]


def test_one_machine_has_one_pair_of_margins(samples):
    X, y = samples
    model = UniformMKLClassifier(KERNELS, C=10.0).fit(X, y)
    (panel,) = plot_regions({"UNIFORM": model}, X, y).axes
    assert [list(drawn.levels) for drawn in contours(panel)] == [[0.0], [-1.0, 1.0]]
    assert panel.get_title().startswith(f"UNIFORM: {len(model.support_)} support vectors")


def test_experts_have_margins_of_their_own_where_they_are_trusted(samples):
    X, y = samples
    settings = {"temperature": 0.1, "success_kernel": RBF(0.5), "random_state": 0}
    model = LDMKLClassifier(KERNELS, 10.0, **settings).fit(X, y)
    (panel,) = plot_regions({"LD-MKL": model}, X, y).axes
    decision, *margins = contours(panel)
    assert list(decision.levels) == [0.0]
    colours = [0.7 * np.array(to_rgb(f"C{k}")) for k in range(2)]
    for drawn in margins:
        assert list(drawn.levels) == [-1.0, 1.0]
        k = [np.allclose(drawn.get_edgecolor()[0][:3], colour) for colour in colours].index(True)
        points = np.vstack([path.vertices for path in drawn.get_paths() if len(path.vertices)])
        trust = model.weights(points)
        # Lines end inside the last trusted cell of the grid.
        assert trust[:, k].min() > 0.4
        said = model.experts_[k].decide(points, 2 * trust[:, k])[:, 0]
        np.testing.assert_allclose(np.abs(said), 1.0, atol=0.05)


def test_samples_must_lie_in_the_plane(samples):
    X, y = samples
    model = UniformMKLClassifier(KERNELS).fit(X, y)
    with pytest.raises(ValueError, match=r"two columns, got shape \(120, 3\)"):
        plot_regions({"UNIFORM": model}, np.column_stack([X, X[:, 0]]), y)
