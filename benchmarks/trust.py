"""Views that are wrong at some samples: the trusted vote against plain combinations.

Test rows are clean, or some of them are spoiled before columns are standardised, on columns scaled
to [0, 1]: *conflict* (a tenth of the rows get noise in some views, then two fifths get one view of
a sample of the next class), *swap* (two fifths get one view of another class), *noise* (half get
noise in some views), *missing* (two fifths lack a view). Training rows stay as they are.
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import lokl
from benchmarks.common import Options, Report, load_set, main
from lokl.kernels import RBF, per_view

SETS = ("msrc", "protein_fold", "prokaryotic", "mfeat", "webkb")
C, SPLITS = 10.0, 5
SPOILED = ("clean", "conflict", "swap", "noise", "missing")
DEVIATION = 0.5
# Nothing but calibrated probabilities.
PLAIN = {"novelty": False, "local_temperature": False, "doubt": 0.0, "learn_weights": False}


@dataclass
class TrustOptions(Options):
    sets: str = ",".join(SETS)
    splits: int = SPLITS


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", help=f"data sets, with commas between ({','.join(SETS)})")
    parser.add_argument("--splits", type=int, help=f"random splits of each ({SPLITS})")


@dataclass(frozen=True, eq=False)
class Part:
    """Test rows, the columns of each view, and a random generator for one kind of damage."""

    X: Any
    y: Any
    views: list[Any]
    rng: np.random.RandomState

    def some(self, share: float) -> Any:
        n = len(self.X)
        return self.rng.choice(n, round(share * n), replace=False)

    def conflict(self) -> Any:
        X = self.noisy(0.1)
        classes = np.unique(self.y)
        first = {c: int(np.argmax(self.y == c)) for c in classes}
        following = dict(zip(classes, np.roll(classes, -1), strict=True))
        for row in self.some(0.4):
            view = self.views[self.rng.randint(len(self.views))]
            X[row, view] = self.X[first[following[self.y[row]]], view]
        return X

    def swap(self) -> Any:
        X = self.X.copy()
        for row in self.some(0.4):
            view = self.views[self.rng.randint(len(self.views))]
            X[row, view] = self.X[self.rng.choice(np.flatnonzero(self.y != self.y[row])), view]
        return X

    def noisy(self, share: float) -> Any:
        X = self.X.copy()
        for row in self.some(share):
            count = self.rng.randint(len(self.views))
            for i in self.rng.choice(len(self.views), count, replace=False):
                X[row, self.views[i]] += self.rng.normal(0.0, DEVIATION, len(self.views[i]))
        return X

    def missing(self) -> Any:
        X = self.X.copy()
        for row in self.some(0.4):
            X[row, self.views[self.rng.randint(len(self.views))]] = np.nan
        return X

    def spoiled(self, how: str) -> Any:
        if how == "clean":
            return self.X
        if how == "noise":
            return self.noisy(0.5)
        return {"conflict": self.conflict, "swap": self.swap, "missing": self.missing}[how]()


@dataclass
class Scores:
    """Accuracies by method and kind of damage."""

    found: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, method: str, how: str, value: float) -> None:
        self.found.setdefault(method, {}).setdefault(how, []).append(100.0 * value)

    def row(self, method: str) -> dict[str, Any]:
        means = {how: f"{np.mean(self.found[method][how]):.1f}" for how in SPOILED}
        return {"": method, **means}


def rivals(kernels: dict[str, Any], X: Any, y: Any) -> dict[str, Callable[[Any], Any]]:
    """Fitted methods, as functions from rows to labels."""
    uniform = lokl.UniformMKLClassifier(kernels, C).fit(X, y)
    vote = lokl.TrustedVoteClassifier(kernels, C, random_state=0).fit(X, y)
    alone = {
        name: lokl.TrustedVoteClassifier({name: kernel}, C, random_state=0, **PLAIN).fit(X, y)
        for name, kernel in kernels.items()
    }
    held = {
        name: cross_val_score(lokl.UniformMKLClassifier({name: kernel}, C), X, y, cv=5).mean()
        for name, kernel in kernels.items()
    }
    best = max(held, key=lambda name: held[name])

    def mean_of_probabilities(Z: Any) -> Any:
        total = np.zeros((len(Z), len(vote.classes_)))
        for name, model in alone.items():
            there = ~np.isnan(Z[:, kernels[name].columns]).all(axis=1)
            total[there] += model.predict_proba(Z[there]) if there.any() else 0.0
        return vote.classes_[total.argmax(axis=1)]

    def best_view(Z: Any) -> Any:
        there = ~np.isnan(Z[:, kernels[best].columns]).all(axis=1)
        # Without its view, the view says what it says most often.
        labels = np.full(len(Z), vote.classes_[np.argmax(np.bincount(codes(y)))])
        labels[there] = alone[best].predict(Z[there])
        return labels

    return {
        "UNIFORM": uniform.predict,
        "best view by cross-validation": best_view,
        "mean of calibrated probabilities": mean_of_probabilities,
        "trusted vote": vote.predict,
    }


def codes(y: Any) -> Any:
    return np.unique(y, return_inverse=True)[1]


def compare(found: Any, count: int, scores: list[Scores]) -> None:
    """Judge all methods on some splits of one data set."""
    everything = np.arange(found.data.shape[1])
    views = [everything[columns] for columns in found.views.values()]
    kernels = per_view(RBF("scale"), found.views)
    for seed in range(count):
        X, X_test, y, y_test = train_test_split(
            found.data, found.target, test_size=0.2, random_state=seed, stratify=found.target
        )
        unit = MinMaxScaler().fit(X)
        scale = StandardScaler().fit(unit.transform(X))
        fitted = rivals(kernels, scale.transform(unit.transform(X)), y)
        for k, how in enumerate(SPOILED):
            part = Part(
                unit.transform(X_test), y_test, views, np.random.RandomState(1000 * k + seed)
            )
            Z = scale.transform(part.spoiled(how))
            for method, predict in fitted.items():
                for own in scores:
                    own.add(method, how, float(np.mean(predict(Z) == y_test)))


def run(options: TrustOptions, report: Report) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", message=".*lack a view.*")
    count = options.splits
    everything, rows = Scores(), []
    for name in options.sets.split(","):
        own = Scores()
        compare(load_set(name), count, [own, everything])
        rows += [{"set": name, **own.row(method)} for method in own.found]
    rows += [{"set": "mean", **everything.row(method)} for method in everything.found]
    report.table(f"accuracy %, {count} splits of 80/20, RBF on each view, C {C:g}", rows)
    means = {m: {h: np.mean(v) for h, v in by.items()} for m, by in everything.found.items()}
    for how in SPOILED:
        gain = means["trusted vote"][how] - means["UNIFORM"][how]
        report.target(f"{how}: trusted vote over UNIFORM", float(gain), ">=", 0.0)


if __name__ == "__main__":
    main(run, TrustOptions(), more_options)
