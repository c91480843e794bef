"""Squared loss at 20 costs with exact leave-one-out, and one LAPACK eigendecomposition."""

from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.kernel_ridge import KernelRidge

from benchmarks.common import Options, Report, cpu_ratio, main, race, ratio
from lokl.kernels import RBF
from lokl.solvers import SquaredPath, squared_path

SAMPLES, COLUMNS, CLASSES, MOST = 5000, 20, 10, 3.0
COSTS = np.logspace(-3, 3, 20)
OURS, WEIGHTED, ONE = "20 costs", "20 costs, with weights", "one cost"
DRIVERS = {"evd": "LAPACK syevd", "evr": "LAPACK syevr"}
# Samples that are left out, and costs at which they are.
LEFT_OUT, SOME_COSTS = 3, (0, 9, 19)


def problem(n_samples: int) -> tuple[Any, Any]:
    """Return a kernel matrix, and targets 1 and -1 of each class against the others."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(n_samples, COLUMNS))
    scores = X @ rng.normal(size=(COLUMNS, CLASSES)) + rng.normal(size=(n_samples, CLASSES))
    classes = np.arange(CLASSES) == scores.argmax(axis=1)[:, np.newaxis]
    return RBF(1.0 / COLUMNS)(X), np.where(classes, 1.0, -1.0)


def refit_error(path: SquaredPath, K: Any, Y: Any) -> float:
    """Return the largest difference of leave-one-out decisions from those of refits."""
    error = 0.0
    for j in np.random.RandomState(1).choice(len(K), LEFT_OUT, replace=False):
        rest = np.delete(np.arange(len(K)), j)
        for index in SOME_COSTS:
            refit = squared_path(K[np.ix_(rest, rest)], Y[rest], [COSTS[index]])
            decision = K[j, rest] @ refit.coef[0] + refit.intercept[0]
            error = max(error, float(np.abs(path.loo[index, j] - decision).max()))
    return error


def ridge_error(path: SquaredPath, K: Any, Y: Any) -> float:
    """Return the largest relative difference from kernel ridge regression on the centred matrix."""
    mean = K.mean(axis=0)
    centred = K - mean - mean[:, np.newaxis] + mean.mean()
    error = 0.0
    for index in SOME_COSTS:
        ridge = KernelRidge(alpha=1.0 / COSTS[index], kernel="precomputed")
        coef = ridge.fit(centred, Y - Y.mean(axis=0)).dual_coef_
        difference = np.abs(path.coef[index] - coef).max()
        error = max(error, float(difference / np.abs(coef).max()))
    return error


def run(options: Options, report: Report) -> None:
    K, Y = problem(options.rows or SAMPLES)
    weight = np.random.RandomState(2).uniform(0.5, 2.0, size=len(K))
    calls = {
        OURS: partial(squared_path, K, Y, COSTS),
        WEIGHTED: partial(squared_path, K, Y, COSTS, weight),
        ONE: partial(squared_path, K, Y, COSTS[9:10]),
    }
    for driver, name in DRIVERS.items():
        calls[name] = partial(eigh, K, driver=driver, check_finite=False)
    times, results = race(calls, options)
    faster = min(DRIVERS.values(), key=lambda name: times[name].median)
    report.table(
        f"{len(K):,} samples, {CLASSES} classes, {len(COSTS)} costs, leave-one-out decisions",
        [
            {
                "": name,
                "time": times[name],
                "relative to the faster eigendecomposition": ratio(times[name], times[faster]),
                "processor time": cpu_ratio(times[name], times[faster]),
            }
            for name in calls
        ],
    )
    path = results[OURS]
    report.quality("leave-one-out, difference from refits", refit_error(path, K, Y), "<=", 1e-4)
    report.quality("coefficients, difference from KernelRidge", ridge_error(path, K, Y), "<=", 1e-6)
    report.target("time, in eigendecompositions", ratio(times[OURS], times[faster]), "<=", MOST)
    report.target(
        "processor time, in eigendecompositions",
        cpu_ratio(times[OURS], times[faster]),
        "<=",
        MOST,
    )


if __name__ == "__main__":
    main(run)
