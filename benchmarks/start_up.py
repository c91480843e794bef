"""Start-up: import time compared with scikit-learn, and compilation after an installation."""

import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Options, Report, Timing, fresh_process, main, race

IMPORTS = (
    "import lokl",
    "from lokl import UniformMKLClassifier",
    "import sklearn.svm",
)
COMPILE = "from benchmarks.start_up import first_fits; first_fits()"


def first_fits() -> None:
    """Use the library for the first time; print the seconds of compilation of each use."""
    from scipy import sparse

    from lokl import UniformMKLClassifier, UniformMKLRegressor
    from lokl._compiled import compilations
    from lokl.kernels import RBF, Linear, Polynomial, rbf_ladder

    rng = np.random.RandomState(0)
    X = rng.normal(size=(3000, 20))
    y = (X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=3000) > 0).astype(int)
    S = sparse.random(3000, 100, 0.1, format="csr", random_state=rng)
    mix = UniformMKLClassifier([Linear(), Polynomial(2), *rbf_ladder()])
    steps = {
        "classify 200 rows, float64": lambda: UniformMKLClassifier([RBF()]).fit(X[:200], y[:200]),
        "classify 3000 rows, float32": lambda: UniformMKLClassifier([RBF()]).fit(X, y),
        "regress 3000 rows": lambda: UniformMKLRegressor([RBF()]).fit(X, X[:, 0]),
        "mix of 11 kernels": lambda: mix.fit(X, y).predict(X),
        "contributions": lambda: mix.contributions(X),
        "classify 3000 sparse rows": lambda: UniformMKLClassifier([RBF()]).fit(S, y).predict(S),
    }
    record: dict[str, Any] = {}
    for name, step in steps.items():
        known, begun = len(compilations), time.perf_counter()
        step()
        seconds, new = time.perf_counter() - begun, compilations[known:]
        record[name] = {
            "seconds": seconds,
            "compiling": sum(done.seconds for done in new),
            "CPU": sum(done.cpu_seconds for done in new),
            "functions": len(new),
        }
    sys.stdout.write(json.dumps(record))


def imports(options: Options, report: Report) -> None:
    calls = {code: partial(fresh_process, code) for code in IMPORTS}
    times, _ = race(calls, options, least=7, slow=float("inf"))
    peer = times[IMPORTS[-1]].median
    report.table(
        "imports in a fresh process",
        (
            {"": code, "time": time, "minus sklearn.svm, s": time.median - peer}
            for code, time in times.items()
        ),
    )
    for code in IMPORTS[:-1]:
        over = times[code].median - peer
        report.target(f"{code}: seconds minus sklearn.svm", over, "<=", 0.3)


def compilation(options: Options, report: Report) -> None:
    first, second, added = [], [], 0
    for _ in range(min(max(options.repeats, 1), 3)):
        with tempfile.TemporaryDirectory() as folder:
            first.append(fresh_process(COMPILE, NUMBA_CACHE_DIR=folder))
            stored = set(Path(folder).rglob("*.nb?"))
            second.append(fresh_process(COMPILE, NUMBA_CACHE_DIR=folder))
            added = max(added, len(set(Path(folder).rglob("*.nb?")) - stored))
    report.table(
        "first use after an installation, then again in a new process",
        (
            {
                "": name,
                "first": Timing([record[name]["seconds"] for _, record in first]),
                "compiling": Timing([record[name]["compiling"] for _, record in first]),
                "functions": first[0][1][name]["functions"],
                "second": Timing([record[name]["seconds"] for _, record in second]),
            }
            for name in first[0][1]
        ),
    )
    total, cpu = (
        Timing([sum(step[what] for step in record.values()) for _, record in first])
        for what in ("compiling", "CPU")
    )
    again = max(sum(step["functions"] for step in record.values()) for _, record in second)
    report.table(
        "whole processes",
        [
            {"": "empty cache", "time": Timing([elapsed for elapsed, _ in first])},
            {"": "compilation only", "time": total},
            {"": "CPU time of compilation", "time": cpu},
            {"": "full cache", "time": Timing([elapsed for elapsed, _ in second])},
        ],
    )
    # Other processes on the machine change the wall time, but hardly the CPU time.
    report.target("CPU seconds of compilation", cpu.median, "<=", 12.0)
    report.quality("functions compiled by the second process", again, "==", 0)
    report.quality("files added to the cache by the second process", added, "==", 0)


def run(options: Options, report: Report) -> None:
    imports(options, report)
    compilation(options, report)


if __name__ == "__main__":
    main(run)
