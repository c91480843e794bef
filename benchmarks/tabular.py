"""Plain tables: AutoMKL against a tuned support vector machine, random forest and boosting.

Each set is divided several times into three quarters to learn from and one to test. All contestants
are tuned by 5-fold cross-validation inside the part to learn from: `GridSearchCV` over 10 costs
and 10 widths of an SVC on standardised columns, over depth and features of a forest, over rate and
leaves of boosting. Seconds are of tuning and the final fit together.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.common import MissingDataError, Options, Report, load, main
from benchmarks.many_sets import SMALL
from lokl import AutoMKLClassifier

# Every set once: those that are scaled by hand beforehand say nothing about unscaled columns.
SETS = tuple(name for name in SMALL if f"{name}_scale" not in SMALL)
LARGER = ("splice", "svmguide1", "mushrooms", "phishing")
SPLITS, MOST_ROWS = 5, 12_000
OURS, RIVAL = "AutoMKL", "GridSearchCV(SVC)"


@dataclass
class TabularOptions(Options):
    sets: str = ",".join(dict.fromkeys((*SETS, *LARGER)))
    splits: int = SPLITS


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", help="data sets, with commas between (all of them)")
    parser.add_argument("--splits", type=int, help=f"random splits of each ({SPLITS})")


def contestants(seed: int) -> dict[str, Callable[[], Any]]:
    """Unfitted models, all tuned on the same folds."""
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)

    def tuned(model: Any, grid: dict[str, Any]) -> Any:
        return GridSearchCV(model, grid, cv=folds, n_jobs=2)

    return {
        OURS: lambda: AutoMKLClassifier(cv=folds, random_state=seed),
        RIVAL: lambda: tuned(
            make_pipeline(StandardScaler(), SVC()),
            {"svc__C": np.logspace(-2, 3, 10), "svc__gamma": np.logspace(-4, 1, 10)},
        ),
        "random forest": lambda: tuned(
            RandomForestClassifier(300, random_state=seed),
            {"max_features": ["sqrt", 0.3, 0.6], "min_samples_leaf": [1, 3, 10]},
        ),
        "boosting": lambda: tuned(
            HistGradientBoostingClassifier(random_state=seed),
            {"learning_rate": [0.03, 0.1, 0.3], "max_leaf_nodes": [7, 31]},
        ),
    }


def measure(name: str, options: TabularOptions) -> tuple[Any, dict[str, list[float]], Any]:
    """Test accuracy and seconds of every contestant, for each split."""
    X, y = load(name, min(options.rows or MOST_ROWS, MOST_ROWS))
    scores: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    # The first call reads compiled loops from disk, once for all sets.
    few = np.random.RandomState(0).permutation(len(y))[:200]
    AutoMKLClassifier(random_state=0).fit(X[few], y[few])
    for seed in range(options.splits):
        parts = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
        X_train, X_test, y_train, y_test = parts
        for model, make in contestants(seed).items():
            begun = time.perf_counter()
            fitted = make().fit(X_train, y_train)
            seconds.setdefault(model, []).append(time.perf_counter() - begun)
            scores.setdefault(model, []).append(100 * float(fitted.score(X_test, y_test)))
    return X.shape, scores, seconds


def run(options: TabularOptions, report: Report) -> None:
    accuracy, times, ranks, versus = [], [], [], []
    for name in options.sets.split(","):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                shape, scores, seconds = measure(name, options)
        except MissingDataError as reason:
            report.note(f"left out: {reason}")
            continue
        means = {model: float(np.mean(values)) for model, values in scores.items()}
        taken = {model: float(np.mean(values)) for model, values in seconds.items()}
        about = {"set": name, "shape": f"{shape[0]} x {shape[1]}"}
        spread = {m: f"{means[m]:.2f} ± {np.std(values):.2f}" for m, values in scores.items()}
        accuracy.append({**about, **spread})
        times.append(
            {
                **about,
                **{model: f"{value:.2f} s" for model, value in taken.items()},
                f"times as fast as {RIVAL}": taken[RIVAL] / taken[OURS],
            }
        )
        ranks.append(dict(zip(means, rankdata([-m for m in means.values()]), strict=True)))
        versus.append(means)
    if not versus:
        raise MissingDataError("none of the sets is on this machine")
    report.table(f"test accuracy in percent, mean of {options.splits} splits", accuracy)
    report.table("seconds of tuning and fit", times)
    summarise(report, ranks, versus, times)


def summarise(report: Report, ranks: list[Any], versus: list[Any], times: list[Any]) -> None:
    mean_rank = {model: float(np.mean([row[model] for row in ranks])) for model in ranks[0]}
    rows = []
    for model in mean_rank:
        gaps = np.array([means[OURS] - means[model] for means in versus])
        rows.append(
            {
                "contestant": model,
                "mean rank": mean_rank[model],
                f"{OURS} better": int((gaps > 0.05).sum()),
                "equal": int((np.abs(gaps) <= 0.05).sum()),
                f"{OURS} worse": int((gaps < -0.05).sum()),
                "mean gain, points": float(gaps.mean()),
            }
        )
    report.table(f"all {len(versus)} sets", rows)
    report.target("mean rank above that of the SVC", mean_rank[OURS] - mean_rank[RIVAL], "<=", 0.0)
    fastest = min(times, key=lambda row: row[f"times as fast as {RIVAL}"])
    least = fastest[f"times as fast as {RIVAL}"]
    report.target(f"least times as fast as the SVC ({fastest['set']})", least, ">=", 5.0)


if __name__ == "__main__":
    main(run, TabularOptions(), more_options)
