"""AutoMKL on many rows: accuracy and time on covtype, time on UCI sets, and time limits.

- covtype: AutoMKL on all training rows, compared with an exact SVM with an RBF kernel on 20,000 of
  them, whose cost and width are chosen by three-fold cross-validation on 4,000.
- sets: the UCI sets with 1,000 to 20,000 rows, the training part of the first published fold.
  `GridSearchCV(SVC)` over ten costs and ten widths runs in a process of its own, which is ended
  when it has used twice the processor time of AutoMKL.
- limits: AutoMKL with a time limit.

Processor time is that of all threads, which other programs hardly change.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.common import MissingDataError, Options, Ratio, Report, console, load, main, timed
from benchmarks.uci_folds import fit_auto, load_fold, row_counts, warm_up
from benchmarks.uci_peers import CACHE_MEGABYTES, COSTS, GAMMAS
from lokl import AutoMKLClassifier, UniformMKLClassifier
from lokl.kernels import RBF
from lokl.search import KernelSearchCV

COVTYPE, ROWS, TEST_ROWS, MOST_SECONDS = "covtype.libsvm.binary.scale", 100_000, 20_000, 120.0
SVM_ROWS, TUNING_ROWS = 20_000, 4_000
SVM_GRID = {
    "C": np.logspace(-1, 3, 5),
    "kernels": [[RBF(gamma)] for gamma in 2.0 ** np.arange(-3, 8, 2)],
}
# Rows of the smallest and the largest UCI set. A grid search ends at so many times our time.
FEWEST, MOST, PATIENCE = 1_000, 20_000, 2.0
FOLDS = {"five folds": 5, "two folds": 2}
LIMITS, LIMITED_ROWS, OVERRUN = (5.0, 10.0, 30.0), (2_000, 5_000, 20_000), 1.2
PARTS = ("covtype", "sets", "limits")


@dataclass
class LargeOptions(Options):
    parts: str = ",".join(PARTS)
    sets: str | None = None


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", help=f"parts to run, separated by commas ({','.join(PARTS)})")
    parser.add_argument(
        "--sets", help="UCI sets, separated by commas (all of 1,000 to 20,000 rows)"
    )


def covtype(rows: int) -> tuple[Any, Any, Any, Any]:
    """Return training and test samples of covtype."""
    X, y = load(COVTYPE, rows + TEST_ROWS)
    return X[:rows], X[rows:], y[:rows], y[rows:]


def read_loops(X: Any, y: Any, limit: float) -> None:
    """Read compiled loops from disk."""
    with warnings.catch_warnings():
        # That fewer rows are fitted.
        warnings.simplefilter("ignore", UserWarning)
        AutoMKLClassifier(time_limit=limit).fit(X, y)


def fit_svm(X: Any, y: Any) -> Any:
    """Fit an exact SVM to some of the rows, tuned on fewer."""
    part, tuning = slice(SVM_ROWS), slice(TUNING_ROWS)
    search = KernelSearchCV(UniformMKLClassifier(), SVM_GRID, cv=3, refit=False)
    search.fit(X[tuning], y[tuning])
    return UniformMKLClassifier(**search.best_params_).fit(X[part], y[part])


def run_covtype(options: LargeOptions, report: Report) -> None:
    X, X_test, y, y_test = covtype(options.rows or ROWS)
    read_loops(X, y, 10.0)
    rows, accuracy, processor = [], [], []
    for name, fit in (
        (f"AutoMKL, {len(y):,} rows", fit_auto),
        (f"exact SVM, {min(SVM_ROWS, len(y)):,} rows", fit_svm),
    ):
        seconds, cpu, model = timed(lambda fit=fit: fit(X, y))
        begun = time.perf_counter()
        accuracy.append(100 * float(model.score(X_test, y_test)))
        processor.append(cpu)
        rows.append(
            {
                "": name,
                "fit, s": seconds,
                "processor, s": cpu,
                "prediction, s": time.perf_counter() - begun,
                "accuracy, %": accuracy[-1],
            }
        )
    report.table(f"covtype, {X.shape[1]} columns, {len(y_test):,} test rows", rows)
    report.quality("accuracy of AutoMKL minus the exact SVM", accuracy[0] - accuracy[1], ">=", 0)
    report.target("processor time of AutoMKL, s", processor[0], "<=", MOST_SECONDS)


def grid_search(name: str, n_folds: int) -> dict[str, float]:
    """Return the processor time of a grid search with its final fit, and the test accuracy."""
    fold = load_fold(name, 0)
    model = make_pipeline(StandardScaler(), SVC(cache_size=CACHE_MEGABYTES))
    grid = {"svc__C": COSTS, "svc__gamma": GAMMAS}
    with warnings.catch_warnings():
        # Classes with fewer members than folds.
        warnings.simplefilter("ignore", UserWarning)
        _, cpu, search = timed(lambda: GridSearchCV(model, grid, cv=n_folds).fit(fold.X, fold.y))
    return {"cpu": cpu, "accuracy": 100 * float(search.score(fold.X_test, fold.y_test))}


def limited_search(name: str, n_folds: int, limit: float) -> dict[str, float] | None:
    """Return the result of a grid search, None if it uses more processor time than `limit`."""
    if not hasattr(os, "fork"):
        raise MissingDataError("limits on processor time need POSIX")
    code = (
        "import json, resource; from benchmarks.auto_large import grid_search; "
        "used = resource.getrusage(resource.RUSAGE_SELF); "
        f"limit = int({limit} + used.ru_utime + used.ru_stime) + 1; "
        "resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1)); "
        f"print(json.dumps(grid_search({name!r}, {n_folds})))"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return None
    done.check_returncode()
    found: dict[str, float] = json.loads(done.stdout)
    return found


def chosen_sets(options: LargeOptions) -> list[str]:
    rows = row_counts()
    sets = [name for name in rows if FEWEST <= rows[name] <= MOST]
    if options.sets is not None:
        sets = options.sets.split(",")
        if unknown := set(sets) - set(rows):
            raise MissingDataError(f"no such set: {', '.join(sorted(unknown))}")
    return sets


def run_sets(options: LargeOptions, report: Report) -> None:
    warm_up()
    rows: list[dict[str, Any]] = []
    slower: dict[str, list[str]] = {folds: [] for folds in FOLDS}
    for name in chosen_sets(options):
        fold = load_fold(name, 0)
        _, cpu, model = timed(lambda fold=fold: fit_auto(fold.X, fold.y))
        row = {
            "set": name,
            "rows": len(fold.y),
            "AutoMKL, s": cpu,
            "accuracy, %": 100 * float(model.score(fold.X_test, fold.y_test)),
        }
        for folds, n_folds in FOLDS.items():
            found = limited_search(name, n_folds, PATIENCE * cpu)
            share = 1.0 / PATIENCE if found is None else cpu / found["cpu"]
            row[f"of SVC, {folds}"] = f"< {share:.2f}" if found is None else str(Ratio(share))
            row[f"SVC, {folds}, %"] = "" if found is None else found["accuracy"]
            if share > 1.0:
                slower[folds].append(name)
        rows.append(row)
        console.print(f"[dim]{name}: AutoMKL {cpu:.1f} s[/]")
    report.table("processor time of AutoMKL, and as a part of GridSearchCV(SVC, 10 x 10)", rows)
    for folds, names in slower.items():
        report.target(f"sets slower than the grid search, {folds}", len(names), "<=", 0)


def run_limits(options: LargeOptions, report: Report) -> None:
    warm_up()
    X, _, y, _ = covtype(max(LIMITED_ROWS))
    read_loops(X, y, max(LIMITS))
    rows, overruns = [], []
    for count in LIMITED_ROWS:
        for limit in LIMITS:
            model = AutoMKLClassifier(time_limit=limit)
            with warnings.catch_warnings():
                # That fewer rows are fitted.
                warnings.simplefilter("ignore", UserWarning)
                seconds, cpu, _ = timed(lambda model=model, n=count: model.fit(X[:n], y[:n]))
            overruns.append(seconds / limit)
            rows.append(
                {
                    "rows": count,
                    "limit, s": limit,
                    "fit, s": seconds,
                    "processor, s": cpu,
                    "rows of the final fit": model.n_samples_fit_,
                    "score": model.best_score_,
                }
            )
    report.table("covtype with a time limit", rows)
    report.target("time of a fit, in units of the limit", max(overruns), "<=", OVERRUN)


def run(options: LargeOptions, report: Report) -> None:
    runs = {"covtype": run_covtype, "sets": run_sets, "limits": run_limits}
    parts: Sequence[str] = options.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        raise ValueError(f"unknown part {', '.join(sorted(unknown))}; known: {PARTS}")
    for part in parts:
        runs[part](options, report)


if __name__ == "__main__":
    main(run, LargeOptions(), more_options)
