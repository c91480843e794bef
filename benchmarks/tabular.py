"""Single tables: AutoMKL compared with a tuned SVM, random forest and boosting.

Each data set is split several times into three quarters for training and one for testing. All
methods are tuned by 5-fold cross-validation on the training part: `GridSearchCV` over 10 costs and
10 widths of an SVC on standardised columns, over depth and features of a forest, over rate and
leaves of boosting. Seconds include tuning and the final fit. With ``--records`` every finished fit
is a line of a file, from which an interrupted run resumes.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.common import MissingDataError, Options, Report, console, load, main
from benchmarks.many_sets import SMALL
from benchmarks.records import Records
from lokl import AutoMKLClassifier

# Every data set once; if there are two files, the scaled one.
SETS = tuple(name for name in SMALL if f"{name}_scale" not in SMALL)
# Without basehock, whose 4,862 columns make the grid of the SVC slow.
LARGER = ("splice", "a1a", "svmguide1", "mnist49.t10k", "mushrooms", "phishing")
SPLITS, MOST_ROWS = 5, 12_000
# For data sets of this size, the grids take several minutes per split.
LARGE_SPLITS, MANY_ROWS, MANY_NUMBERS = 1, 5000, 10**6
OURS, RIVAL = "AutoMKL", "GridSearchCV(SVC)"


@dataclass
class TabularOptions(Options):
    sets: str = ",".join(dict.fromkeys((*SETS, *LARGER)))
    splits: int = SPLITS
    large_splits: int = LARGE_SPLITS
    records: Path | None = None


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", help="data sets, separated by commas (all)")
    parser.add_argument("--splits", type=int, help=f"random splits of each ({SPLITS})")
    parser.add_argument(
        "--large-splits",
        type=int,
        help=f"of sets with {MANY_ROWS} rows or a million numbers ({LARGE_SPLITS})",
    )
    parser.add_argument(
        "--records", type=Path, help="file of finished work, from which the run resumes"
    )


def contestants(seed: int) -> dict[str, Callable[[], Any]]:
    """Return unfitted models, all tuned on the same folds."""
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


def measure(X: Any, y: Any, split: int, contestant: Callable[[], Any]) -> dict[str, float]:
    """Return test accuracy and seconds of one method on one split."""
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.25, random_state=split, stratify=y
    )
    begun = time.perf_counter()
    fitted = contestant().fit(X_train, y_train)
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "accuracy": 100 * float(fitted.score(X_test, y_test))}


def finish(name: str, options: TabularOptions, records: Records) -> str:
    """Measure everything of a data set that is not recorded yet; return its shape."""
    X, y = load(name, min(options.rows or MOST_ROWS, MOST_ROWS))
    # The first call reads compiled loops from disk.
    few = np.random.RandomState(0).permutation(len(y))[:200]
    AutoMKLClassifier(random_state=0).fit(X[few], y[few])
    is_large = len(y) >= MANY_ROWS or X.size >= MANY_NUMBERS
    for split in range(options.large_splits if is_large else options.splits):
        for model, make in contestants(split).items():
            if not records.has(set=name, split=split, contestant=model):
                about = {"set": name, "split": split, "contestant": model}
                found = measure(X, y, split, make)
                records.add({**about, **found})
                console.print(
                    f"[dim]{name}, split {split + 1}, {model}: {found['accuracy']:.2f} %, "
                    f"{found['seconds']:.1f} s[/]"
                )
    return f"{X.shape[0]} x {X.shape[1]}"


def run(options: TabularOptions, report: Report) -> None:
    about = ("set", "split", "contestant")
    records = Records(options.records, about, {"rows": options.rows or MOST_ROWS})
    accuracy, times, ranks, versus = [], [], [], []
    for name in options.sets.split(","):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                shape = finish(name, options, records)
        except MissingDataError as reason:
            report.note(f"skipped: {reason}")
            continue
        own = [record for record in records.found if record["set"] == name]
        by_model = {
            model: [record for record in own if record["contestant"] == model]
            for model in contestants(0)
        }
        scores = {model: [r["accuracy"] for r in some] for model, some in by_model.items()}
        means = {model: float(np.mean(values)) for model, values in scores.items()}
        taken = {
            model: float(np.mean([r["seconds"] for r in some])) for model, some in by_model.items()
        }
        about = {"set": name, "shape": shape, "splits": len(scores[OURS])}
        spread = {m: f"{means[m]:.2f} ± {np.std(values):.2f}" for m, values in scores.items()}
        accuracy.append({**about, **spread})
        times.append(
            {
                **about,
                **{model: f"{value:.2f} s" for model, value in taken.items()},
                f"speed-up over {RIVAL}": taken[RIVAL] / taken[OURS],
            }
        )
        ranks.append(dict(zip(means, rankdata([-m for m in means.values()]), strict=True)))
        versus.append(means)
    if not versus:
        raise MissingDataError("none of the data sets is on this machine")
    report.table("test accuracy in percent, mean and deviation over splits", accuracy)
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
    report.target(
        "mean rank minus mean rank of the SVC", mean_rank[OURS] - mean_rank[RIVAL], "<=", 0.0
    )
    ratios = {row["set"]: row[f"speed-up over {RIVAL}"] for row in times}
    slowest = min(ratios, key=lambda name: ratios[name])
    ours, theirs = (sum(float(row[m].split()[0]) for row in times) for m in (OURS, RIVAL))
    report.target("speed-up over the SVC, all data sets together", theirs / ours, ">=", 5.0)
    report.note(f"lowest speed-up over the SVC: {ratios[slowest]:.1f} ({slowest})")


if __name__ == "__main__":
    main(run, TabularOptions(), more_options)
