"""Search on small data sets compared with GridSearchCV(SVC)."""

from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from benchmarks.common import MissingDataError, Options, Report, load, main, race, ratio
from benchmarks.many_sets import SMALL
from lokl import UniformMKLClassifier
from lokl.kernels import RBF
from lokl.search import KernelSearchCV

COSTS, WIDTHS = np.logspace(-2, 3, 10), np.logspace(-3, 1, 10)
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


def compare(name: str, options: Options) -> dict[str, Any]:
    """Return one row of the table."""
    X, y = load(name, options.rows)
    own = {"C": COSTS, "kernels": [[RBF(gamma)] for gamma in WIDTHS]}
    searches = {
        "lokl": KernelSearchCV(UniformMKLClassifier(), own, cv=FOLDS, n_jobs=2, refit=False),
        "SVC": GridSearchCV(SVC(), {"C": COSTS, "gamma": WIDTHS}, cv=FOLDS, n_jobs=2, refit=False),
    }
    times, found = race(
        {n: lambda search=search: search.fit(X, y) for n, search in searches.items()}, options
    )
    scores = [np.sort(search.cv_results_["mean_test_score"]) for search in found.values()]
    return {
        "set": name,
        "shape": f"{X.shape[0]} x {X.shape[1]}",
        "lokl": times["lokl"],
        "GridSearchCV(SVC)": times["SVC"],
        "speed-up": ratio(times["SVC"], times["lokl"]),
        "best, lokl": 100 * found["lokl"].best_score_,
        "best, SVC": 100 * found["SVC"].best_score_,
        "mean difference of cells": 100 * float(np.mean(np.abs(scores[0] - scores[1]))),
    }


def run(options: Options, report: Report) -> None:
    rows = []
    for name in SMALL:
        try:
            rows.append(compare(name, options))
        except MissingDataError as reason:
            report.note(f"skipped: {reason}")
    if not rows:
        raise MissingDataError("none of the sets is on this machine")
    report.table("10 costs x 10 widths x 5 folds, two jobs each", rows)
    worst = min(rows, key=lambda row: row["speed-up"])
    report.note(f"lowest speed-up: {worst['speed-up']} on {worst['set']}")
    for row in rows:
        # One sample of a small set is up to half a point.
        gap = abs(row["best, lokl"] - row["best, SVC"])
        report.quality(f"{row['set']}: difference of best score to SVC, points", gap, "<=", 0.5)
        report.target(f"{row['set']}: speed-up", row["speed-up"], ">=", 1.0)


if __name__ == "__main__":
    main(run)
