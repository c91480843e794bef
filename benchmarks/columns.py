"""Contributions of columns: time, compared with shap.KernelExplainer, and informative columns."""

import math
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import (
    Options,
    Report,
    Timing,
    main,
    peer_environment,
    peer_record,
)
from lokl import UniformMKLClassifier
from lokl.explain import column_importance
from lokl.explain.shapley import Sampling, column_quantiles, column_values
from lokl.kernels import RBF

SAMPLES, COLUMNS, SUPPORT = 1000, 500, 500
# Samples that the peer explains, rows of its background, and columns of the compared game.
PEER_SAMPLES, BACKGROUND, FEW = 1, 100, 8
INFORMATIVE, SETS = 5, 10
SHAP = "shap==0.51.0"


def brute_force(present: Any, absent: Any, load: Any) -> Any:
    """Return the Shapley values of a product game from all subsets of columns."""
    columns = range(present.shape[1])

    def value(own: tuple[int, ...]) -> float:
        chosen = np.isin(columns, own)
        return float(np.where(chosen, present, absent).prod(axis=1) @ load)

    found = np.zeros(present.shape[1])
    for c in columns:
        rest = [e for e in columns if e != c]
        for size in range(len(rest) + 1):
            weight = math.factorial(size) * math.factorial(len(rest) - size)
            for own in combinations(rest, size):
                found[c] += weight * (value((*own, c)) - value(own))
    return found / math.factorial(present.shape[1])


def measure(X: Any, Z: Any, coef: Any, kernel: Any, repeats: int) -> Timing:
    timing = Timing()
    unused = Sampling(1, np.random.RandomState(0), set())
    column_values(kernel, X[:2], Z, coef[:, np.newaxis], unused)
    for _ in range(max(repeats, 1)):
        begun, cpu = time.perf_counter(), time.process_time()
        column_values(kernel, X, Z, coef[:, np.newaxis], unused)
        timing.add(time.perf_counter() - begun, time.process_time() - cpu)
    return timing


def precision(seed: int) -> float:
    """Return the share of the most important columns that a target depends on."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(600, COLUMNS))
    signal = X[:, :INFORMATIVE] @ rng.choice([-1.0, 1.0], size=INFORMATIVE)
    y = signal + 0.5 * rng.normal(size=600) > 0
    model = UniformMKLClassifier(["rbf"], C=10).fit(X[:500], y[:500])
    table = column_importance(model, X[500:], n_bootstraps=1, random_state=0)
    return float(np.mean([int(name[1:]) < INFORMATIVE for name in table.rows[:INFORMATIVE]]))


def run(options: Options, report: Report) -> None:
    rng = np.random.RandomState(0)
    X, Z = rng.normal(size=(SAMPLES, COLUMNS)), rng.normal(size=(SUPPORT, COLUMNS))
    coef, kernel = rng.normal(size=SUPPORT), RBF(1.0 / COLUMNS)
    timing = measure(X, Z, coef, kernel, options.repeats)
    ours = float(np.median(timing.cpu)) / SAMPLES
    few, stored = X[0, :FEW], Z[:, :FEW]
    present = np.exp(-0.1 * (few - stored) ** 2)
    points = column_quantiles(stored)
    absent = np.exp(-0.1 * (points[:, np.newaxis] - stored) ** 2).mean(axis=0)
    exact = brute_force(present, absent, coef)
    unused = Sampling(1, rng, set())
    values = column_values(RBF(0.1), few[np.newaxis], stored, coef[:, np.newaxis], unused)[0, 0]
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data.npz")
        np.savez(
            data, X=X[:PEER_SAMPLES], Z=Z, coef=coef, gamma=1.0 / COLUMNS,
            background=Z[:BACKGROUND], present=present, absent=absent, load=coef,
        )  # fmt: skip
        python = peer_environment("shap", SHAP)
        theirs = peer_record(python, Path(__file__).with_name("columns_peer.py"), data)
    report.table(
        f"{SAMPLES} samples, {COLUMNS} columns, {SUPPORT} support vectors, one RBF kernel",
        [
            {"": "lokl, all samples", "seconds of processor": round(ours * SAMPLES, 2)},
            {"": "lokl, one sample", "seconds of processor": round(ours, 5)},
            {
                "": f"KernelExplainer, background of {BACKGROUND}, one sample",
                "seconds of processor": round(theirs["seconds"], 2),
            },
        ],
    )
    found = float(np.mean([precision(seed) for seed in range(SETS)]))
    report.target("seconds of processor for all samples", ours * SAMPLES, "<=", 5.0)
    report.target("times as fast as KernelExplainer", theirs["seconds"] / ours, ">=", 1000.0)
    report.quality(
        f"difference from all subsets of {FEW} columns", float(np.abs(values - exact).max()),
        "<=", 1e-8,
    )  # fmt: skip
    report.quality(
        "difference of KernelExplainer from all subsets",
        float(np.abs(np.array(theirs["values"]) - exact).max()), "<=", 1e-8,
    )  # fmt: skip
    report.quality(
        f"precision of the {INFORMATIVE} most important of {COLUMNS} columns",
        found,
        ">=",
        0.95,
    )


if __name__ == "__main__":
    main(run)
