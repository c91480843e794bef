"""Data and models that the tests of all methods share."""

import numpy as np

import lokl
from lokl.kernels import RBF, Linear

CLASSIFIERS = [name for name in lokl.__all__ if name.endswith("Classifier")]
REGRESSORS = [name for name in lokl.__all__ if name.endswith("Regressor")]
LEARNING = [name for name in CLASSIFIERS if not name.startswith("Uniform")]
# One weight a kernel, the same for all samples.
GLOBAL = ("Uniform", "LpMKL", "SimpleMKL", "GMKL", "EasyMKL", "MWUMKL")


def make(name, kernels=None, **settings):
    """An unfitted model by name, tight enough for laws."""
    settings = {"random_state": 0, "tol": 1e-6, **settings}
    return getattr(lokl, name)(kernels, **settings)


def two_regions(n=240, seed=0, flip=0.0):
    """Two views of one number each, and where samples live: each view speaks in its own region.

    Columns: the first view, the second view, the region (minus one or one).
    """
    rng = np.random.RandomState(seed)
    y = rng.choice([-1.0, 1.0], size=n)
    region = rng.choice([-1.0, 1.0], size=n)
    told = y[:, np.newaxis] * np.array([1.5, 1.5]) + rng.normal(scale=0.5, size=(n, 2))
    noise = rng.normal(scale=1.5, size=(n, 2))
    first = np.where(region < 0, told[:, 0], noise[:, 0])
    second = np.where(region > 0, told[:, 1], noise[:, 1])
    y = np.where(rng.uniform(size=n) < flip, -y, y)
    return np.column_stack([first, second, 2.0 * region + 0.3 * rng.normal(size=n)]), y


def views():
    """One kernel for each view of :func:`two_regions`, and none for the region."""
    return {"first": Linear().on([0]), "second": Linear().on([1])}


def bumps():
    return {"first": RBF(0.5).on([0]), "second": RBF(0.5).on([1])}
