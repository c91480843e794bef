"""Peak memory of fits on a9a (24,420 x 123) in fresh processes: one kernel, and SwMKL of three."""

import json
import sys
import time
from typing import Any

import numpy as np

from benchmarks.common import (
    Options,
    Report,
    Timing,
    agreement,
    difference,
    dual_objective,
    fresh_process,
    infeasibility,
    load_a9a,
    main,
    signs,
)
from lokl._environment import Peak

GAMMA, MEGABYTE = 1 / 16, 2**20
SIZES = (64, 512, 2048)
# Allowance for panels, the working set and buffers of the libraries.
ALLOWANCE = 300


def measure(size: float, rows: int | None) -> None:
    """Fit once in a fresh process, and print the measurements."""
    from lokl import UniformMKLClassifier
    from lokl.kernels import RBF

    X, X_test, y, _ = load_a9a(rows)
    # Compiled loops, thread pools and buffers of the libraries do not belong to the fit.
    UniformMKLClassifier([RBF(GAMMA)], cache_size=16).fit(X[:2500], y[:2500])
    model = UniformMKLClassifier([RBF(GAMMA)], cache_size=size)
    with Peak(tidy=True) as peak:
        begun = time.perf_counter()
        model.fit(X, y)
        elapsed = time.perf_counter() - begun
    record = {
        "seconds": elapsed,
        "increase": peak.increase,
        "data": X.nbytes / MEGABYTE,
        "objective": dual_objective(model, X, signs(y), GAMMA),
        "infeasible": infeasibility(model, model.C),
        "labels": model.predict(X_test).tolist(),
    }
    sys.stdout.write(json.dumps(record))


def measure_combined(size: float, rows: int | None) -> None:
    """Do the same for SwMKL, which never stores its kernel for all pairs of samples."""
    from lokl import SwMKLClassifier
    from lokl.kernels import RBF, Linear, Polynomial

    X, X_test, y, y_test = load_a9a(rows)
    kernels = [Linear().normalized("mean_diag"), Polynomial(2).normalized("mean_diag"), RBF(GAMMA)]
    SwMKLClassifier(kernels, cache_size=16).fit(X[:2500], y[:2500])
    model = SwMKLClassifier(kernels, cache_size=size)
    with Peak(tidy=True) as peak:
        begun = time.perf_counter()
        model.fit(X, y)
        elapsed = time.perf_counter() - begun
    record = {
        "seconds": elapsed,
        "increase": peak.increase,
        "data": X.nbytes / MEGABYTE,
        "accuracy": 100 * model.score(X_test, y_test),
        "whole": X.shape[0] ** 2 * 8 / MEGABYTE,
    }
    sys.stdout.write(json.dumps(record))


def run_combined(options: Options, report: Report) -> None:
    rows = []
    for size in SIZES[:2]:
        code = f"from benchmarks.memory import measure_combined as m; m({size}, {options.rows})"
        record = fresh_process(code)[1]
        limit = round(record["data"] + size + ALLOWANCE, 1)
        rows.append(
            {
                "cache_size": f"{size} MB",
                "time": Timing([record["seconds"]]),
                "peak increase, MB": round(record["increase"], 1),
                "limit, MB": limit,
                "full Gram matrix, MB": round(record["whole"]),
                "accuracy %": record["accuracy"],
            }
        )
        what = f"SwMKL, cache_size {size}: peak increase, MB"
        report.quality(what, record["increase"], "<=", limit)
    report.table("SwMKL of linear, quadratic and RBF kernels", rows)


def run(options: Options, report: Report) -> None:
    load_a9a(options.rows)  # Raises the error about missing data.
    run_combined(options, report)
    runs: dict[int, list[dict[str, Any]]] = {size: [] for size in SIZES}
    for _ in range(max(options.repeats, 3)):
        for size, records in runs.items():
            code = f"from benchmarks.memory import measure; measure({size}, {options.rows})"
            records.append(fresh_process(code)[1])
    first = runs[SIZES[0]][0]
    report.table(
        f"fit in a process with samples ({first['data']:.0f} MB) and compiled loops in memory; "
        "peak: maximum of all runs",
        (
            {
                "cache_size": f"{size} MB",
                "time": Timing([record["seconds"] for record in records]),
                "peak increase, MB": round(max(record["increase"] for record in records), 1),
                "limit, MB": round(first["data"] + size + ALLOWANCE, 1),
                "objective": records[0]["objective"],
                "agrees": agreement(np.array(records[0]["labels"]), np.array(first["labels"])),
            }
            for size, records in runs.items()
        ),
    )
    everyone = [record for records in runs.values() for record in records]
    objectives = [record["objective"] for record in everyone]
    labels = [np.array(record["labels"]) for record in everyone]
    gap = difference(min(objectives), max(objectives))
    report.quality("objective, largest relative difference", gap, "<=", 1e-4)
    worst = max(record["infeasible"] for record in everyone)
    report.quality("feasible, worst", worst, "<=", 1e-6)
    same = min(agreement(a, b) for a in labels for b in labels)
    report.quality("equal predictions, worst pair", same, ">=", 0.999)
    for size, records in runs.items():
        worst = max(record["increase"] for record in records)
        limit = round(first["data"] + size + ALLOWANCE, 1)
        report.quality(f"cache_size {size}: peak increase, MB", worst, "<=", limit)


if __name__ == "__main__":
    main(run)
