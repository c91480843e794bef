"""Data and models that the tests of all methods share."""

from dataclasses import dataclass

import numpy as np

import lokl
from lokl._methods import METHODS
from lokl.kernels import RBF, Linear

CLASSIFIERS = [method.classifier for method in METHODS]
REGRESSORS = [method.regressor for method in METHODS if method.regressor]
# Without censored samples these are the regressors, which have all laws: see test_survival.py.
SURVIVAL = [method.survival for method in METHODS if method.survival]
RECORDS = {name: m for m in METHODS for name in (m.classifier, m.regressor) if name}


def estimators(*can, without=(), kind=""):
    """Names of the estimators with some abilities and without others."""
    return [
        name
        for name, method in RECORDS.items()
        if name.endswith(kind)
        and all(method.can(ability) for ability in can)
        and not any(method.can(ability) for ability in without)
    ]


@dataclass(frozen=True)
class Tolerances:
    """How far decisions may move when only the arithmetic or the memory changes.

    Machines are solved to 1e-6 in these tests; on few samples they are then polished to rounding.

    Attributes
    ----------
    rounding : float
        Other sums of the same numbers: sparse samples, stored matrices.
    memory : float
        Blocks instead of one working set: machines stop elsewhere within their tolerance.
    agreement : float
        Share of predictions that copies of one kernel leave as they are.
    """

    rounding: float = 1e-8
    memory: float = 1e-4
    agreement: float = 0.95


_USUAL = Tolerances()
_TOLERANCES = {
    # Not convex: where rounding turns a comparison of two trials, the search ends elsewhere.
    "LMKL": Tolerances(rounding=1e-3, memory=1e-3),
    "GS-MKL": Tolerances(rounding=1e-4, memory=1e-3),
    # Not convex, and a switch of one sample moves its decision by a kernel's part.
    "SAMKL": Tolerances(rounding=1e-3, memory=1e-2, agreement=0.85),
    # The search ends at a relative gap of 1e-3, on a path that follows rough machines.
    "SPG-GMKL": Tolerances(rounding=1e-4, memory=2e-2),
    # A relative gap of 1 % is left, and a tie between samples sends the rounds another way.
    "MWUMKL": Tolerances(rounding=0.3),
    # Success is regressed to a tube, whose edge decides between two constants.
    "SwMKL": Tolerances(rounding=1e-6, memory=1e-3),
    "LD-MKL": Tolerances(rounding=1e-6, memory=1e-3),
    # Calibration on 90 held-out decisions moves the border, as it does with one kernel alone: three
    # of 40 new samples lie that close to it.
    "trusted vote": Tolerances(agreement=0.9),
}


def tolerances(name):
    """Tolerances of an estimator, by the record of its method."""
    return _TOLERANCES.get(RECORDS[name].name, _USUAL)


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
