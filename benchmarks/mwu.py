"""Multiplicative weights on a9a: one kernel and eleven kernels, compared with the exact solver."""

import json
import sys
import time
from typing import Any

import numpy as np

from benchmarks.common import Options, Report, Timing, fresh_process, load_a9a, main, signs
from lokl._environment import Peak

GAMMA, EPSILON = 1 / 16, 0.01
SIZES = (3000, 6000, 12_000, 24_000)
# Megabytes of working memory beyond the samples.
WORKING = 100


def solvers() -> dict[str, Any]:
    from lokl.solvers import MWU, Exact

    return {
        "MWU": MWU(EPSILON),
        "MWU, published step": MWU(EPSILON, "faithful"),
        "exact, squared hinge": Exact(),
        "exact, hinge": Exact(),
    }


def measure(name: str, count: int, rows: int | None) -> None:
    """Solve once in a fresh process, and print the measurements."""
    from lokl.kernels import RBF
    from lokl.solvers import hinge, squared_hinge

    X, _, y, _ = load_a9a(rows)
    X, target = X[:count], signs(y[:count])
    solver = solvers()[name]
    loss = hinge if name == "exact, hinge" else squared_hinge

    def solve(n: int) -> Any:
        gram = solver.inner_products(X[:n]).gated([RBF(GAMMA)])
        return solver.solve(gram, loss(target[:n], 1.0))

    # Compiled loops, thread pools and buffers of the libraries do not belong to the fit.
    solve(2500)
    with Peak(tidy=True) as peak:
        begun = time.perf_counter()
        dual = solve(len(X))
        elapsed = time.perf_counter() - begun
    record = {
        "seconds": elapsed,
        "increase": peak.increase,
        "objective": dual.objective,
        "gap": dual.gap / (dual.objective + dual.gap),
        "rounds": dual.n_iter,
        "support": float(np.mean(dual.coef != 0)),
    }
    sys.stdout.write(json.dumps(record))


def measure_kernels(rows: int | None) -> None:
    """Do the same for MWUMKL with eleven kernels."""
    from lokl import MWUMKLClassifier
    from lokl.kernels import Linear, Polynomial, rbf_ladder

    X, X_test, y, y_test = load_a9a(rows)
    simple = [Linear().normalized("mean_diag"), Polynomial(2).normalized("mean_diag")]
    model = MWUMKLClassifier([*simple, *rbf_ladder()], epsilon=EPSILON)
    model.fit(X[:2500], y[:2500])
    with Peak(tidy=True) as peak:
        begun = time.perf_counter()
        model.fit(X, y)
        elapsed = time.perf_counter() - begun
    upper = model.history_[-1] + model.duality_gap_
    record = {
        "seconds": elapsed,
        "increase": peak.increase,
        "objective": model.history_[-1],
        "gap": model.duality_gap_ / upper,
        "rounds": model.n_iter_,
        "support": model.support_fraction_,
        "accuracy": 100 * model.score(X_test, y_test),
        "weights": model.weights_.tolist(),
    }
    sys.stdout.write(json.dumps(record))


def one_kernel(options: Options, report: Report) -> None:
    rows, found = [], {}
    for name in solvers():
        code = f"from benchmarks.mwu import measure; measure({name!r}, 10**9, {options.rows})"
        times = max(options.repeats, 3) if "published" not in name else 1
        records = [fresh_process(code)[1] for _ in range(times)]
        found[name] = records[0]
        rows.append(
            {
                "": name,
                "time": Timing([record["seconds"] for record in records]),
                "dual value": records[0]["objective"],
                "relative gap": records[0]["gap"],
                "rounds or steps": records[0]["rounds"],
                "support %": 100 * records[0]["support"],
                "peak increase, MB": round(max(record["increase"] for record in records), 1),
            }
        )
    report.table("a9a, 24,420 rows, one RBF kernel, C 1", rows)
    exact = found["exact, squared hinge"]["objective"]
    for name in ("MWU", "MWU, published step"):
        record = found[name]
        report.quality(f"{name}: certified relative gap", record["gap"], "<=", EPSILON)
        value = record["objective"] / exact
        report.quality(f"{name}: dual value relative to the exact one", value, ">=", 1 - EPSILON)
        report.target(f"{name}: working memory, MB", record["increase"], "<=", WORKING)


def several_kernels(options: Options, report: Report) -> None:
    record = fresh_process(
        f"from benchmarks.mwu import measure_kernels; measure_kernels({options.rows})"
    )[1]
    report.table(
        "MWUMKL, a9a, 24,420 rows, eleven kernels",
        [
            {
                "time": Timing([record["seconds"]]),
                "dual value": record["objective"],
                "relative gap": record["gap"],
                "rounds": record["rounds"],
                "support %": 100 * record["support"],
                "accuracy %": record["accuracy"],
                "peak increase, MB": round(record["increase"], 1),
                "weights": " ".join(f"{w:.2f}" for w in record["weights"]),
            }
        ],
    )
    report.quality("MWUMKL: certified relative gap", record["gap"], "<=", EPSILON)


def growth(options: Options, report: Report) -> None:
    names = ("MWU", "exact, squared hinge", "exact, hinge")
    seconds: dict[str, list[float]] = {name: [] for name in names}
    rows = []
    for size in SIZES:
        times = {}
        for name in names:
            code = f"from benchmarks.mwu import measure; measure({name!r}, {size}, {options.rows})"
            runs = [fresh_process(code)[1]["seconds"] for _ in range(max(options.repeats, 3))]
            times[name] = Timing(runs)
            seconds[name].append(times[name].median)
        rows.append({"rows": size, **times})
    report.table("growth with the number of rows", rows)
    for name in names:
        slope = np.polyfit(np.log(SIZES), np.log(seconds[name]), 1)[0]
        report.note(f"{name}: time grows like n^{slope:.2f}")


def run(options: Options, report: Report) -> None:
    load_a9a(options.rows)  # Raises the error about missing data.
    one_kernel(options, report)
    several_kernels(options, report)
    growth(options, report)


if __name__ == "__main__":
    main(run)
