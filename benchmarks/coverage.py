"""Prediction sets at 90 %: coverage and size on UCI and multi-view sets, compared with MAPIE.

The published folds of the UCI tables with 200 to 1,000 rows, and random splits of multi-view sets.
Classes are judged on the test samples of all folds together.
"""

import tempfile
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common import (
    Options,
    Report,
    load_set,
    main,
    peer_environment,
    peer_record,
)
from benchmarks.uci_folds import load_fold, row_counts
from lokl import TrustedVoteClassifier
from lokl.explain import PredictionSets
from lokl.kernels import RBF, per_view

MAPIE = "mapie==1.6.0"
LEAST_ROWS, MOST_ROWS, FOLDS, LEVEL = 200, 1000, 4, 0.9
VIEWS = {"protein fold": "protein_fold", "breast_tcga": "breast_tcga", "mfeat": "mfeat"}
# Rows of a multi-view training part, and test samples of a class that is judged.
VIEW_ROWS, JUDGED = 600, 30
# Levels from which the size at the coverage of the peer is interpolated.
LEVELS = (0.84, 0.86, 0.88, 0.9, 0.92, 0.94, 0.96, 0.98, 0.99)
# Our scores, and the conformity scores of MAPIE; it has no "aps" for two classes.
SCORES = {"probability": "lac", "adaptive": "aps"}


class Tally:
    """Test samples of many sets: whether the truth is inside, size and class, by way of asking."""

    def __init__(self) -> None:
        self.inside: dict[tuple[str, str], list[Any]] = defaultdict(list)
        self.size: dict[tuple[str, str], list[Any]] = defaultdict(list)
        self.classes: dict[tuple[str, str, Any], list[Any]] = defaultdict(list)

    def add(self, way: str, name: str, sets: Any, codes: Any) -> None:
        inside = sets[np.arange(len(codes)), codes]
        self.inside[way, name] += inside.tolist()
        self.size[way, name] += sets.sum(axis=1).tolist()
        for code in np.unique(codes):
            self.classes[way, name, int(code)] += inside[codes == code].tolist()

    def mean(self, way: str, names: list[str], of: str = "inside") -> float:
        """Return the mean over sets of a mean over samples."""
        return float(np.mean([np.mean(getattr(self, of)[way, name]) for name in names]))

    def names(self, way: str) -> list[str]:
        return [name for own, name in self.inside if own == way]

    def worst(self, way: str) -> tuple[float, int]:
        """Return the lowest coverage of a class with enough samples, and their number."""
        found = [
            float(np.mean(inside))
            for (own, _, _), inside in self.classes.items()
            if own == way and len(inside) >= JUDGED
        ]
        return min(found), len(found)


def uci(tally: Tally, python: Path) -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    chosen = [name for name, rows in row_counts().items() if LEAST_ROWS <= rows <= MOST_ROWS]
    parts: dict[str, tuple[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            for number in range(FOLDS):
                fold = load_fold(name, number)
                known = np.isin(fold.y_test, fold.y)
                X_test, classes = fold.X_test[known], np.unique(fold.y)
                codes = np.searchsorted(classes, fold.y_test[known])
                for score, theirs in SCORES.items():
                    sets = PredictionSets(model, 1.0 - LEVEL, score=score).fit(fold.X, fold.y)
                    for level in LEVELS:
                        found = sets.predict_set(X_test, alpha=1.0 - level)
                        tally.add(f"{score} {level:.2f}", name, found, codes)
                    if theirs == "aps" and len(classes) < 3:
                        continue
                    parts[f"{theirs} {name} {number}"] = name, codes
                    data = Path(folder, f"{theirs} {name} {number}.npz")
                    np.savez(data, X=fold.X, y=fold.y, X_test=X_test)
                by_class = PredictionSets(model, 1.0 - LEVEL, "class").fit(fold.X, fold.y)
                tally.add("by class", name, by_class.predict_set(X_test), codes)
        worker = Path(__file__).with_name("coverage_peer.py")
        record = peer_record(python, worker, folder, LEVEL)
    for part, (name, codes) in parts.items():
        tally.add(part[:3], name, np.array(record[part], dtype=bool), codes)


def multiview(tally: Tally, repeats: int) -> None:
    for name, stored in VIEWS.items():
        found = load_set(stored)
        vote = TrustedVoteClassifier(per_view(RBF("scale"), found.views), 10.0, random_state=0)
        _, codes = np.unique(found.target, return_inverse=True)
        for seed in range(repeats):
            # Random splits: the published ones of some sets lack a view in the test part.
            X, X_test, y, y_test = train_test_split(
                found.data, codes, train_size=min(VIEW_ROWS, 3 * len(codes) // 4),
                random_state=seed, stratify=codes,
            )  # fmt: skip
            scale = StandardScaler().fit(X)
            sets = PredictionSets(vote, 1.0 - LEVEL, score="probability").fit(scale.transform(X), y)
            tally.add("trusted vote", name, sets.predict_set(scale.transform(X_test)), y_test)


def size_at(tally: Tally, score: str, coverage: float, names: list[str]) -> float:
    """Return the mean size of our sets at the mean coverage of the peer's."""
    ways = [f"{score} {level:.2f}" for level in LEVELS]
    reached = np.maximum.accumulate([tally.mean(way, names) for way in ways])
    sizes = [tally.mean(way, names, "size") for way in ways]
    return float(np.interp(coverage, reached, sizes))


def run(options: Options, report: Report) -> None:
    warnings.simplefilter("ignore")
    tally = Tally()
    python = peer_environment("MAPIE", MAPIE)
    uci(tally, python)
    multiview(tally, min(options.repeats, 3))
    rows = []
    for way in (
        *(f"{score} {LEVEL:.2f}" for score in SCORES),
        *SCORES.values(),
        "by class",
    ):
        names = tally.names(way)
        rows.append(
            {
                "UCI, logistic regression": f"MAPIE, {way}" if way in SCORES.values() else way,
                "sets": len(names),
                "coverage %": round(100 * tally.mean(way, names), 1),
                "size": round(tally.mean(way, names, "size"), 3),
            }
        )
    report.table("Prediction sets at 90 %", rows)
    report.table(
        "Trusted vote, by probability, at 90 %",
        [
            {
                "": name,
                "coverage %": round(100 * tally.mean("trusted vote", [name]), 1),
                "size": round(tally.mean("trusted vote", [name], "size"), 3),
            }
            for name in VIEWS
        ],
    )
    for score, theirs in SCORES.items():
        names = tally.names(theirs)
        coverage = tally.mean(theirs, names)
        ours, other = (
            size_at(tally, score, coverage, names),
            tally.mean(theirs, names, "size"),
        )
        report.quality(
            f"size by {score} less that of MAPIE's {theirs} at its coverage, "
            f"{100 * coverage:.1f} % on {len(names)} sets",
            ours - other, "<=", 0.0,
        )  # fmt: skip
    # Adaptive sets are never empty, so that their coverage is at least the accuracy of the model.
    way = f"probability {LEVEL:.2f}"
    covered = 100 * tally.mean(way, tally.names(way))
    report.quality(f"mean coverage, {way}, %", covered, ">=", 88.0)
    report.quality(f"mean coverage, {way}, %", covered, "<=", 92.0)
    worst, count = tally.worst("by class")
    report.quality(f"lowest coverage of {count} classes, by class, %", 100 * worst, ">=", 80.0)


if __name__ == "__main__":
    main(run)
