"""Fits on published folds of the UCI tables.

Worker processes import this module, which therefore is not the one that runs as a command.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import MissingDataError, peer_environment, peer_record
from benchmarks.uci_peers import PEERS
from benchmarks.uci_tables import OURS
from lokl import AutoMKLClassifier
from lokl.datasets.loader import data_folder
from lokl.study import run_folder

XRFM = "xRFM"
XRFM_PACKAGES = ("torch==2.13.0", "xrfm")
# The true class counts with at least this probability in the log loss: the votes of a forest are
# often zero. xRFM never predicts less.
LEAST_PROBABILITY = 1e-3


@dataclass(frozen=True)
class FoldCell(run_folder.RunCell):
    """One method on one published fold of a set."""

    set: str
    fold: int
    method: str


class FoldRecords(run_folder.Records):
    cell_type = FoldCell
    # Seconds of processor and of the clock, for tuning, fit and prediction.
    value_types: ClassVar[dict[str, Any]] = {
        "accuracy": float,
        "log_loss": float | None,
        "cpu_seconds": float,
        "seconds": float,
        "rows": int,
        "train_rows": int,
    }


@dataclass
class Fold:
    """Training and test part of a published fold."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any

    @property
    def rows(self) -> int:
        return len(self.y) + len(self.y_test)


def folder() -> Path:
    """Return the folder of the tables."""
    path = (data_folder() or Path()) / "uci"
    if data_folder() is None or not path.is_dir():
        raise MissingDataError("the folder uci of tables is missing in LOKL_DATA")
    return path


@lru_cache(maxsize=4)
def load_fold(name: str, number: int) -> Fold:
    with np.load(folder() / f"{name}.npz") as stored:
        X, y = stored["X"].astype(np.float64), stored["y"]
        train, test = stored[f"train{number}"], stored[f"test{number}"]
    return Fold(X[train], y[train], X[test], y[test])


def row_counts() -> dict[str, int]:
    """Return the number of rows of each set, the smallest first."""
    rows = {}
    for path in folder().glob("*.npz"):
        with np.load(path) as stored:
            rows[path.stem] = len(stored["y"])
    return dict(sorted(rows.items(), key=lambda item: (item[1], item[0])))


def fit_auto(X: Any, y: Any) -> Any:
    return AutoMKLClassifier(random_state=0).fit(X, y)


@lru_cache(maxsize=1)
def warm_up() -> None:
    """Read compiled loops from disk, once in every process."""
    rng = np.random.RandomState(0)
    for classes in (2, 3):
        fit_auto(rng.normal(size=(60, 3)), np.arange(60) % classes)


def log_loss(model: Any, X: Any, y: Any) -> float | None:
    """Return the mean negative log probability of the true class, if there are probabilities."""
    if not hasattr(model, "predict_proba"):
        return None
    # Classes that are not in the training part get the least probability.
    p = (model.predict_proba(X) * (y[:, np.newaxis] == model.classes_)).sum(axis=1)
    return float(-np.log(np.clip(p, LEAST_PROBABILITY, 1.0)).mean())


def xrfm_environment() -> Path:
    return peer_environment(XRFM, *XRFM_PACKAGES)


def measure(cell: FoldCell) -> dict[str, Any]:
    """Return accuracy in percent, log loss and seconds of one method on one fold."""
    fold = load_fold(cell.set, cell.fold)
    sizes = {"rows": fold.rows, "train_rows": len(fold.y)}
    if cell.method == XRFM:
        worker = Path(__file__).with_name("uci_xrfm.py")
        python = xrfm_environment()
        arguments = (folder() / f"{cell.set}.npz", cell.fold, LEAST_PROBABILITY)
        return {**peer_record(python, worker, *arguments), **sizes}
    fit: Callable[[Any, Any], Any] = fit_auto if cell.method == OURS else PEERS[cell.method]
    with threadpool_limits(1):
        if cell.method == OURS:
            warm_up()
        begun, cpu_begun = time.perf_counter(), time.process_time()
        model = fit(fold.X, fold.y)
        right = model.predict(fold.X_test) == fold.y_test
        cpu_seconds, seconds = time.process_time() - cpu_begun, time.perf_counter() - begun
        return {
            "accuracy": 100.0 * float(np.mean(right)),
            "log_loss": log_loss(model, fold.X_test, fold.y_test),
            "cpu_seconds": round(cpu_seconds, 3),
            "seconds": round(seconds, 3),
            **sizes,
        }


def finish(cell: FoldCell) -> dict[str, Any]:
    return cell.measured(measure)
