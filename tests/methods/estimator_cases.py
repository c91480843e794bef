"""Data and models that the tests of the estimators share."""

import numpy as np
from sklearn.preprocessing import StandardScaler

from lokl import UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF, Linear, Polynomial

# Exact answers: laws then hold to rounding, whatever the path of the solver.
TIGHT = 1e-9
# LibSVM keeps kernel values in float32 and may never end on a tighter tolerance.
THEIRS = 1e-6


def samples(n=90, d=4, seed=0):
    """Scaled features; the last two are noise."""
    return StandardScaler().fit_transform(np.random.RandomState(seed).normal(size=(n, d)))


def score(X, seed=0):
    noise = np.random.RandomState(seed + 1).normal(size=len(X))
    return X[:, 0] + 0.5 * X[:, 1] ** 2 - 0.5 + 0.4 * noise


def labels(X, n_classes=2, seed=0):
    """Classes 0, 1, ... of unequal size that overlap a little."""
    t = score(X, seed)
    return np.digitize(t, np.quantile(t, np.linspace(0, 1, n_classes + 1)[1:-1] ** 1.3))


def three_kernels():
    return {"line": Linear(), "square": Polynomial(2), "bump": RBF(0.5)}


def mean_gram(X, Z):
    return sum(kernel(X, Z) for kernel in three_kernels().values()) / 3


X = samples()
FRESH = samples(40, seed=9)

# Every law in test_machine.py holds for these: (estimator, targets).
MACHINES = {
    "two classes": (UniformMKLClassifier, labels(X)),
    "three classes": (UniformMKLClassifier, labels(X, 3)),
    "one target": (UniformMKLRegressor, score(X)),
    "two targets": (UniformMKLRegressor, np.column_stack([score(X), X[:, 1]])),
}


def machine(name, kernels=None, **settings):
    """An unfitted model and its targets."""
    estimator, y = MACHINES[name]
    kernels = three_kernels() if kernels is None else kernels
    return estimator(kernels, **{"tol": TIGHT, **settings}), y


def outcome(model, X):
    """Decision values or predictions, always (n_samples, n_tasks)."""
    decide = getattr(model, "decision_function", model.predict)
    return np.asarray(decide(X)).reshape(np.shape(X)[0], -1)
