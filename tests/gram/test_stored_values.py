"""Stored values of single kernels: the same Gram matrices and forms as computed ones."""

import numpy as np
import pytest

from lokl import SimpleMKLClassifier
from lokl.gram import InnerProducts, gated_gram
from lokl.kernels import RBF, Laplacian, Linear

N, VIEWS = 40, 18


def problem(gates="constant", tasks=1):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(N, 3 * VIEWS))
    made = [RBF(0.5), Linear().normalized("unit_diag"), Laplacian(0.2)]
    kernels = [made[k % 3].on(list(range(3 * k, 3 * k + 3))).bind(X) for k in range(VIEWS)]
    H = np.tile(rng.rand(VIEWS), (N, 1)) if gates == "constant" else rng.rand(N, VIEWS)
    H[:, 4] = 0.0
    return X, kernels, H, rng.normal(size=(N, tasks))


@pytest.mark.parametrize("gates", ["constant", "different"])
@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize(("megabytes", "tolerance"), [(512, 1e-12), (0.08, 1e-5)])
def test_stored_values_change_nothing(gates, tasks, megabytes, tolerance, monkeypatch):
    """Values that do not fit in float64 are stored in float32, with its rounding errors."""
    X, kernels, H, coef = problem(gates, tasks)
    inner = InnerProducts(X, cache_size=megabytes, dtype="float64")
    gram = inner.gated(kernels, np.ones_like(H)).regated(H)
    forms = gram.kernel_forms(coef)
    values = inner.memory.values_of(gram.plan)
    assert values is not None
    assert values.dtype == (np.float64 if megabytes > 1 else np.float32)
    whole = gram.whole.copy()
    monkeypatch.setattr(gated_gram, "_MANY_VIEWS", VIEWS + 1)
    plain = InnerProducts(X, dtype="float64").gated(kernels, H)
    scale = np.abs(plain.whole).max()
    np.testing.assert_allclose(whole, plain.whole, atol=tolerance * scale)
    expected = plain.kernel_forms(coef)
    np.testing.assert_allclose(forms, expected, atol=tolerance * np.abs(expected).max())


def test_values_that_do_not_fit_are_computed_again():
    X, kernels, H, coef = problem()
    inner = InnerProducts(X, cache_size=0.05, dtype="float64")
    gram = inner.gated(kernels, H)
    gram.kernel_forms(coef)
    assert inner.memory.values_of(gram.plan) is None


def test_simplemkl_of_many_kernels_has_the_certified_gap():
    """The gap is certified whatever the start; both kernels of the target have large weights."""
    rng = np.random.RandomState(1)
    X = rng.normal(size=(80, 200))
    y = X[:, 0] + X[:, 1] + X[:, 6] + X[:, 7] > 0
    kernels = [RBF(0.5).on([2 * k, 2 * k + 1]) for k in range(100)]
    model = SimpleMKLClassifier(kernels, C=10).fit(X, y)
    assert model.duality_gap_ <= 0.01 * model.history_[-1]
    assert set(np.argsort(-model.weights_)[:2]) == {0, 3}
    assert (np.diff(model.history_) <= 1e-8).all()
