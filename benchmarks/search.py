"""Search over costs and widths, full and adaptive, compared with scikit-learn."""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import loguniform
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
)
from sklearn.svm import SVC

from benchmarks.common import MissingDataError, Options, Report, load, load_a9a, main, race, ratio
from lokl import UniformMKLClassifier
from lokl.kernels import RBF
from lokl.search import KernelSearchCV, expected_calibration_error

COSTS = np.logspace(-2, 3, 10)
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)
TRIED_AT_RANDOM = 20
EVERY, ADAPTIVE, GRID_SVC = "lokl, full grid", "lokl, adaptive", "GridSearchCV(SVC)"


@dataclass
class Case:
    """A data set, its widths and the targets."""

    name: str
    rows: int
    widths: Any
    every: float
    adaptive: float

    def data(self, rows: int | None) -> tuple[Any, Any, Any, Any]:
        count = min(self.rows, rows or self.rows)
        if self.name == "a9a":
            X, X_test, y, y_test = load_a9a(None)
            return X[:count], X_test, y[:count], y_test
        X, y = load("covtype.libsvm.binary.scale", count + 8000)
        return X[:count], X[count:], y[:count], y[count:]


CASES = (
    Case("a9a", 2000, np.logspace(-3, 1, 10), 15, 25),
    Case("a9a", 5000, np.logspace(-3, 1, 10), 15, 25),
    Case("covtype", 5000, np.logspace(-1.5, 2.5, 10), 10, 30),
)


def contestants(case: Case, X: Any, y: Any, jobs: int = 2) -> dict[str, Any]:
    """Return searches over the same grid and folds, each with `jobs` processes or threads."""
    own = {"C": COSTS, "kernels": [[RBF(gamma)] for gamma in case.widths]}
    grid = {"C": COSTS, "gamma": case.widths}
    drawn = {"C": loguniform(COSTS[0], COSTS[-1]), "gamma": loguniform(*case.widths[[0, -1]])}
    ours, svc = UniformMKLClassifier(), SVC()
    common: dict[str, Any] = {"cv": FOLDS, "n_jobs": jobs}
    searches = {
        EVERY: KernelSearchCV(ours, own, **common),
        ADAPTIVE: KernelSearchCV(ours, own, adaptive=True, **common),
        GRID_SVC: GridSearchCV(svc, grid, **common),
        "GridSearchCV(lokl)": GridSearchCV(ours, own, **common),
        f"RandomizedSearchCV(SVC), {TRIED_AT_RANDOM}": RandomizedSearchCV(
            svc, drawn, n_iter=TRIED_AT_RANDOM, random_state=0, **common
        ),
        "HalvingGridSearchCV(SVC)": HalvingGridSearchCV(svc, grid, random_state=0, **common),
    }
    return {name: lambda search=search: search.fit(X, y) for name, search in searches.items()}


def compare(case: Case, options: Options, report: Report) -> None:
    X, X_test, y, y_test = case.data(options.rows)
    times, found = race(contestants(case, X, y), options)
    reference = cells(found[GRID_SVC], case)
    rows = []
    for name, search in found.items():
        every = cells(search, case) if name in (EVERY, ADAPTIVE, "GridSearchCV(lokl)") else None
        apart = None if every is None else 100 * float(np.nanmax(np.abs(every - reference)))
        rows.append(
            {
                "search": name,
                "time": times[name],
                "speed-up over GridSearchCV(SVC)": ratio(times[GRID_SVC], times[name]),
                "best mean score": 100 * search.best_score_,
                "test accuracy": 100 * accuracy_score(y_test, search.predict(X_test)),
                "largest difference of a cell": "" if apart is None else f"{apart:.2f}",
                "cells": int(np.isfinite(search.cv_results_["mean_test_score"]).sum()),
            }
        )
    title = f"{case.name}, {len(y)} rows, {len(COSTS)} costs x {len(case.widths)} widths x 5 folds"
    report.table(title, rows)
    by_name = {row["search"]: row for row in rows}
    probabilities = found[EVERY].predict_proba(X_test)
    error = expected_calibration_error(y_test, probabilities, classes=found[EVERY].classes_)
    report.note(f"expected calibration error of predict_proba on the test part: {error:.4f}")
    what = f"{case.name} {len(y)}"
    apart = 100 * float(np.nanmax(np.abs(cells(found[EVERY], case) - reference)))
    report.quality(f"{what}: largest difference of a cell to SVC, points", apart, "<=", 0.2)
    for name in (EVERY, ADAPTIVE):
        gap = abs(by_name[name]["test accuracy"] - by_name[GRID_SVC]["test accuracy"])
        report.quality(
            f"{what}, {name}: difference of test accuracy to SVC, points", gap, "<=", 0.2
        )
    report.target(
        f"{what}: speed-up, full grid",
        by_name[EVERY]["speed-up over GridSearchCV(SVC)"],
        ">=",
        case.every,
    )
    report.target(
        f"{what}: speed-up, adaptive",
        by_name[ADAPTIVE]["speed-up over GridSearchCV(SVC)"],
        ">=",
        case.adaptive,
    )


def cells(search: Any, case: Case) -> Any:
    """Return mean held-out accuracy by cost and width; NaN for skipped cells."""
    scores = np.full((len(COSTS), len(case.widths)), np.nan)
    results = search.cv_results_
    for params, score in zip(results["params"], results["mean_test_score"], strict=True):
        width = params["gamma"] if "gamma" in params else params["kernels"][0].gamma
        scores[np.searchsorted(COSTS, params["C"]), np.searchsorted(case.widths, width)] = score
    return scores


@dataclass
class SearchOptions(Options):
    case: str = ""


def run(options: Any, report: Report) -> None:
    done = []
    for case in CASES:
        if options.case not in ("", f"{case.name}-{case.rows}"):
            continue
        try:
            compare(case, options, report)
            done.append(case)
        except MissingDataError as reason:
            report.note(f"skipped: {reason}")
    if not done:
        raise MissingDataError("neither a9a nor covtype is on this machine")


def more_options(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(f"{case.name}-{case.rows}" for case in CASES)
    parser.add_argument("--case", help=f"run only one of {names}")


if __name__ == "__main__":
    main(run, SearchOptions(), more_options)
