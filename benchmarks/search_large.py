"""Search on all of a9a compared with GridSearchCV(SVC), extrapolated from some of its fits."""

import time
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from benchmarks.common import Options, Ratio, Report, load_a9a, main
from lokl import UniformMKLClassifier
from lokl._environment import Peak
from lokl.kernels import RBF
from lokl.search import KernelSearchCV

COSTS, WIDTHS = np.logspace(-2, 1, 7), np.logspace(-3, 0, 7)
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)
# Every third cost and width, including both ends, on the first fold.
PART = (0, 3, 6)
# One Gram matrix of 24,420 samples in single precision.
CACHE = 2400


def fit_seconds(X: Any, y: Any, C: float, gamma: float) -> float:
    """Return the time of one fit and of scoring its fold, as in a grid search."""
    train, test = next(FOLDS.split(X, y))
    begun = time.perf_counter()
    SVC(C=C, gamma=gamma).fit(X[train], y[train]).score(X[test], y[test])
    return time.perf_counter() - begun


def run(options: Options, report: Report) -> None:
    X, X_test, y, y_test = load_a9a(options.rows)
    grid = {"C": COSTS, "kernels": [[RBF(gamma)] for gamma in WIDTHS]}
    estimator = UniformMKLClassifier(cache_size=CACHE)
    # The first fit compiles.
    KernelSearchCV(estimator, {"C": [1.0], "kernels": [[RBF(0.1)]]}, cv=2).fit(X[:500], y[:500])
    seconds, peaks = {}, {}
    for name, settings in (("full grid", {}), ("adaptive", {"adaptive": True})):
        begun = time.perf_counter()
        with Peak() as peak:
            search = KernelSearchCV(estimator, grid, cv=FOLDS, refit=False, **settings).fit(X, y)
        seconds[name], peaks[name] = time.perf_counter() - begun, peak.increase
        report.note(f"{name}: best {search.best_params_}, mean score {search.best_score_:.4f}")
    best = UniformMKLClassifier(**search.best_params_).fit(X, y)
    begun = time.perf_counter()
    tried = [(COSTS[i], WIDTHS[k]) for i in PART for k in PART]
    single = Parallel(n_jobs=2)(delayed(fit_seconds)(X, y, *cell) for cell in tried)
    wall = time.perf_counter() - begun
    # Two processes are assumed to share the whole grid in the same way.
    whole = wall * len(COSTS) * len(WIDTHS) * FOLDS.get_n_splits() / len(tried)
    report.table(
        f"a9a, {len(y)} rows, {len(COSTS)} costs x {len(WIDTHS)} widths x 5 folds",
        [
            {
                "search": name,
                "seconds": seconds[name],
                "GridSearchCV(SVC), extrapolated": whole,
                "faster": Ratio(whole / seconds[name]),
                "peak memory, MB": peaks[name],
            }
            for name in seconds
        ],
    )
    report.note(
        f"{len(tried)} fits of SVC, every third cost and width on one fold, two at a time: "
        f"{wall:.0f} s; single fits {min(single):.0f} to {max(single):.0f} s"
    )
    report.note(f"test accuracy of the best candidate: {best.score(X_test, y_test):.4f}")
    report.target("full grid, speed-up", whole / seconds["full grid"], ">=", 20)
    if peaks["full grid"] is not None:
        report.quality("peak memory, MB", peaks["full grid"], "<=", 4096)


if __name__ == "__main__":
    main(run)
