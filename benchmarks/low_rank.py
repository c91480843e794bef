"""Low-rank solvers: a9a and w8a compared with the exact SVM, and millions of generated rows."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks.common import Options, Report, load, main
from benchmarks.large import Data, measured, smooth_set
from lokl import LpMKLClassifier, UniformMKLClassifier
from lokl.kernels import RBF
from lokl.solvers import Primal

# Width and cost for the LIBSVM data sets.
SETS = {"a9a": (1 / 16, 1.0), "w8a": (1 / 16, 10.0)}
SMOOTH = "smooth"
RANKS = (1000, 3000)
# Accuracy that the larger rank may lose compared with the exact SVM, in points.
LOST = 0.3
# For the generated set: width, cost, rows of the exact SVM and of the test, share of the rows in
# the smaller run, and rows per chunk of the rivals.
SMOOTH_GAMMA, SMOOTH_C = 1 / 36, 1.0
EXACT_ROWS, TEST_ROWS, SMALLER, CHUNK = 20_000, 100_000, 1 / 8, 20_000


@dataclass
class LowRankOptions(Options):
    smooth_rows: int = 2_000_000
    smooth_rank: int = 1000
    megabytes: float = 9000.0
    ours_only: bool = False
    case: str = ""


def missed(model: Any) -> dict[str, Any]:
    """Return the share of the kernel that the features do not represent."""
    residual = getattr(model, "kernel_residual_", None)
    return {
        "kernel not represented, %": float("nan")
        if residual is None
        else 100 * float(residual.max())
    }


def machine(gamma: float, C: float, **settings: Any) -> Callable[[], Any]:
    return lambda: UniformMKLClassifier([RBF(gamma)], C=C, **settings)


def rivals(gamma: float, C: float, rows: int) -> dict[str, Callable[[], Any]]:
    def features(rank: int) -> Nystroem:
        return Nystroem(gamma=gamma, n_components=rank, random_state=0)

    # The same objective: alpha is the reciprocal of the cost of all rows.
    descent = SGDClassifier(alpha=1.0 / (C * rows), random_state=0)
    return {
        **{
            f"Nystroem({rank}) + LinearSVC": lambda rank=rank: make_pipeline(
                features(rank), LinearSVC(C=C, loss="hinge", max_iter=10_000, random_state=0)
            )
            for rank in RANKS
        },
        f"Nystroem({RANKS[0]}) + SGDClassifier": lambda: make_pipeline(
            features(RANKS[0]), SGDClassifier(**descent.get_params())
        ),
        "SGDClassifier, no kernel": lambda: SGDClassifier(**descent.get_params()),
    }


def compare(name: str, options: Any, report: Report) -> None:
    """Compare the exact SVM, our low-rank solvers and others on one LIBSVM data set."""
    gamma, C = SETS[name]
    X, y = load(name, options.rows)
    X, X_test, y, y_test = train_test_split(X, y, train_size=0.75, random_state=0)
    data = Data(X, y, X_test, y_test)
    rows = [measured("exact", machine(gamma, C), data, more=missed)]
    # Enough memory for all features; 512 MB are enough for 44,000 rows at rank 3000.
    memory = max(512, 5e-6 * RANKS[-1] * len(y))
    for rank in RANKS:
        solver = Primal(rank, cache_size=memory)
        rows.append(measured(f"rank {rank}", machine(gamma, C, solver=solver), data, more=missed))
    waves = Primal(RANKS[0], features="fourier", cache_size=memory)
    rows.append(measured(f"{RANKS[0]} waves", machine(gamma, C, solver=waves), data, more=missed))
    if not options.ours_only:
        rows += [
            measured(n, make, data, warm=False, more=missed)
            for n, make in rivals(gamma, C, len(y)).items()
        ]
    title = f"{name}, {len(y):,} x {X.shape[1]} training rows, gamma {gamma:g}, C {C:g}"
    report.table(title, rows)
    exact, *ours = rows[: 1 + len(RANKS)]
    lost = exact["test accuracy"] - max(row["test accuracy"] for row in ours)
    report.target(f"{name}: points lost by the larger rank", lost, "<=", LOST)
    smaller, larger = (row["kernel not represented, %"] for row in ours)
    report.quality(
        f"{name}: kernel not represented, larger rank relative to smaller",
        larger / smaller,
        "<=",
        0.9,
    )


class Chunks:
    """Nystroem features and SGD in chunks, since all features would not fit into memory."""

    def __init__(self, gamma: float, rank: int, passes: int = 5):
        self.features = Nystroem(gamma=gamma, n_components=rank, random_state=0)
        self.passes = passes

    def fit(self, X: Any, y: Any) -> "Chunks":
        self.features.fit(X[:CHUNK])
        self.model = SGDClassifier(alpha=1.0 / (SMOOTH_C * len(y)), random_state=0)
        for _ in range(self.passes):
            for begin in range(0, len(y), CHUNK):
                part = slice(begin, begin + CHUNK)
                self.model.partial_fit(self.features.transform(X[part]), y[part], classes=[0, 1])
        return self

    def score(self, X: Any, y: Any) -> float:
        parts = [
            self.model.predict(self.features.transform(X[begin : begin + CHUNK]))
            for begin in range(0, len(y), CHUNK)
        ]
        return float(np.mean(np.concatenate(parts) == y))


def grow(options: Any, report: Report) -> None:
    """Measure time and accuracy on the generated set, with and without stored features."""
    n, rank, gamma, C = options.smooth_rows, options.smooth_rank, SMOOTH_GAMMA, SMOOTH_C
    X, y = smooth_set(n + TEST_ROWS)
    data = Data(X[:n], y[:n], X[n:], y[n:])
    stored = Primal(rank, cache_size=options.megabytes)
    ours = {
        "hinge, stored features": machine(gamma, C, solver=stored),
        "squared hinge, stored": machine(gamma, C, solver=stored, loss="squared_hinge"),
        "squared hinge, in 512 MB": machine(gamma, C, solver=Primal(rank), loss="squared_hinge"),
    }
    rows, seconds = [], {}
    exact = data.first(EXACT_ROWS)
    rows.append(measured(f"exact, {len(exact.y):,} rows", machine(gamma, C), exact, more=missed))
    for name, make in ours.items():
        for part in (data.first(round(SMALLER * n)), data):
            row = measured(f"{name}, {len(part.y):,}", make, part, more=missed)
            seconds[name, len(part.y)] = row["fit, s"]
            rows.append(row)
    learned = lambda: LpMKLClassifier(  # noqa: E731
        [RBF(gamma / 4), RBF(gamma), RBF(4 * gamma)],
        C=C,
        solver=stored,
    )
    part = data.first(round(SMALLER * n))
    rows.append(measured(f"three kernels learned, {len(part.y):,}", learned, part, more=missed))
    if not options.ours_only:
        boosted = lambda: HistGradientBoostingClassifier(random_state=0)  # noqa: E731
        chunks = lambda: Chunks(gamma, rank)  # noqa: E731
        for name, make in (("Nystroem + SGD in chunks", chunks), ("HistGradientBoosting", boosted)):
            rows.append(measured(name, make, data, warm=False, more=missed))
    title = f"smooth set, {n:,} x {X.shape[1]} training rows, {TEST_ROWS:,} test rows, rank {rank}"
    report.table(title, rows)
    whole = rows[2]
    report.target("all rows: minutes", whole["fit, s"] / 60, "<=", 5)
    gain = whole["test accuracy"] - rows[0]["test accuracy"]
    report.quality("all rows: points above the exact SVM on few rows", gain, ">=", 0.0)
    # At an eighth of the rows, the features fit into 512 MB and are not recomputed.
    for name in list(ours)[:2]:
        fewer, all_rows = (s for (own, _), s in seconds.items() if own == name)
        exponent = np.log(all_rows / fewer) / np.log(1.0 / SMALLER)
        report.target(f"{name}: growth, exponent", exponent, "<=", 1.2)
    allowed = options.megabytes + 10 * X.nbytes / 2**20
    report.quality("all rows: peak memory, MB", whole["peak, MB"], "<=", allowed)


def run(options: Any, report: Report) -> None:
    for name in SETS:
        if options.case in ("", name):
            compare(name, options, report)
    if options.case in ("", SMOOTH):
        grow(options, report)


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--smooth-rows", type=int, help="rows of the generated set (2,000,000)")
    parser.add_argument("--smooth-rank", type=int, help="features on that set (1000)")
    parser.add_argument("--megabytes", type=float, help="memory for stored features there (9000)")
    parser.add_argument("--case", choices=[*SETS, SMOOTH], help="run only this data set")
    parser.add_argument("--ours-only", action="store_true", help="do not run other libraries")


if __name__ == "__main__":
    main(run, LowRankOptions(), more_options)
