"""One fit of one method on one split: what goes in, and the record that comes out."""

import json
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from lokl._environment import Peak
from lokl._threads import single_threaded
from lokl.base.cost_path import fit_cost_path
from lokl.datasets import load
from lokl.paper.methods import FIRST_READING, GAMMAS, READINGS, build


@dataclass(frozen=True)
class Cell:
    """Inputs of one fit; equal cells give equal results.

    Attributes
    ----------
    data : str
        Name of a data set.
    method, dictionary : str
        As tables show them.
    gamma : float or None
        Width of the Gaussian kernel; None where the kernels have no width to choose, and for
        nested selection.
    selection : {"paper", "nested"}
        How tables choose a width. "paper": the one with the best accuracy on the test parts, as
        in the paper. "nested": the best in a cross-validation within the training part.
    solver : str
    split : int
        Number of the random 75/25 split.
    C : float
    seed : int
        Seed of splits and models.
    rows : int or None
        Use only so many rows, drawn at random once for all splits.
    reading : str
        Of the paper, for which the fit is made; one of ``READINGS``.
    """

    data: str
    method: str
    dictionary: str
    gamma: float | None
    selection: str = "paper"
    solver: str = "exact"
    split: int = 0
    C: float = 1.0
    seed: int = 0
    rows: int | None = None
    reading: str = FIRST_READING

    @property
    def key(self) -> str:
        """Text that is equal for equal cells."""
        return json.dumps(vars(self), sort_keys=True)

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Cell":
        """Return the cell that a record belongs to."""
        return cls(**{name: record[name] for name in cls.__dataclass_fields__})


_TEXT, _NUMBER, _NOTHING = (str,), (int, float), (type(None),)
# Types of JSON that a value may have. What every record has:
_NEEDED = {
    **dict.fromkeys(("data", "method", "dictionary", "selection", "solver", "reading"), _TEXT),
    **dict.fromkeys(("split", "C", "seed"), _NUMBER),
    **dict.fromkeys(("gamma", "rows"), _NUMBER + _NOTHING),
    "error": _TEXT + _NOTHING,
}
# What tables show of a cell that did not fail:
_DONE = {**_NEEDED, **dict.fromkeys(("accuracy", "support", "fit_seconds"), _NUMBER)}


def with_reading(record: Any) -> Any:
    """Return a record that names its reading; old ones do not, as there was one only."""
    return {"reading": FIRST_READING, **record} if isinstance(record, dict) else record


def check_record(record: Any) -> None:
    """Raise a ValueError that says what a record lacks, or which value no table can show."""
    if not isinstance(record, dict):
        raise ValueError(f"a record is a JSON object, not {record!r:.40}")
    needed = _DONE if record.get("error") is None else _NEEDED
    if not needed.keys() <= record.keys():
        lacking = [name for name in needed if name not in record]
        raise ValueError(f"it lacks {', '.join(lacking)}")
    for name, types in needed.items():
        value = record[name]
        # By type, not by isinstance: true is no number.
        if type(value) not in types or (type(value) is float and not math.isfinite(value)):
            raise ValueError(f"its {name} is {value!r:.40}")
    if record["reading"] not in READINGS:
        known = ", ".join(READINGS)
        raise ValueError(f"its reading is {record['reading']!r:.40}, which is none of {known}")


def run_cell(cell: Cell) -> dict[str, Any]:
    """Fit and score in one thread; the record of a cell that fails has the error."""
    try:
        with single_threaded(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            measured = _measure(cell)
    except Exception as reason:
        return failed(cell, f"{type(reason).__name__}: {reason}")
    names = sorted({type(w.message).__name__ for w in caught})
    return {**asdict(cell), **measured, "warnings": names, "error": None}


def failed(cell: Cell, why: str) -> dict[str, Any]:
    """Return the record of a cell that failed."""
    return {**asdict(cell), "error": why}


def _measure(cell: Cell) -> dict[str, Any]:
    X, X_test, y, y_test = _split(cell.data, cell.rows, cell.seed, cell.split)
    _warm_up(cell.method, cell.dictionary, cell.solver)
    gamma, select_seconds = cell.gamma, 0.0
    if cell.selection == "nested":
        select_seconds, _, gamma = _timed(lambda: _nested(cell, X, y))
    model = build(cell.method, cell.dictionary, gamma, cell.C, cell.solver, cell.seed)
    fit_seconds, fit_memory, _ = _timed(lambda: model.fit(X, y))
    predict_seconds, predict_memory, labels = _timed(lambda: model.predict(X_test))
    return {
        "accuracy": float(np.mean(labels == y_test)),
        "support": float(model.support_fraction_),
        "expert_support": _expert_support(model, len(y)),
        "select_seconds": select_seconds,
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
        "fit_memory": fit_memory,
        "predict_memory": predict_memory,
        "chosen_gamma": gamma,
    }


def _expert_support(model: Any, n_samples: int) -> float | None:
    """Mean share of support points of a vote's experts, whose union is the model's support."""
    experts = getattr(model, "experts_", None)
    if experts is None:
        return None
    return float(np.mean([len(expert.support) for expert in experts]) / n_samples)


def _timed(work: Callable[[], Any]) -> tuple[float, float | None, Any]:
    """Return processor seconds and peak memory in MB of a call, and its result.

    A fit has one thread: on an idle machine these are the seconds of a clock, and on a busy one
    they are still those of the fit.
    """
    with Peak() as peak:
        begun = time.process_time()
        result = work()
        seconds = time.process_time() - begun
    memory = None if peak.increase is None else round(peak.increase, 1)
    return round(seconds, 6), memory, result


@lru_cache
def _warm_up(method: str, dictionary: str, solver: str) -> None:
    """Load or compile the loops of a method once in each process, before time is measured."""
    X = np.random.RandomState(0).normal(size=(40, 3))
    build(method, dictionary, 1.0, 1.0, solver, 0).fit(X, X[:, 0] > 0)


@lru_cache(maxsize=1)
def _split(name: str, rows: int | None, seed: int, split: int) -> Any:
    """Return training and test part; kept, as a worker does the cells of a split in a row."""
    X, y = _samples(name, rows, seed)
    return train_test_split(X, y, test_size=0.25, random_state=seed + split)


@lru_cache(maxsize=1)
def _samples(name: str, rows: int | None, seed: int) -> tuple[Any, Any]:
    """All samples and labels of a set."""
    bunch = load(name, download=False)
    X, y = bunch.data, bunch.target
    if rows is not None and rows < X.shape[0]:
        chosen = np.random.RandomState(seed).permutation(X.shape[0])[:rows]
        X, y = X[chosen], y[chosen]
    return X, y


def _nested(cell: Cell, X: Any, y: Any) -> float:
    """Width with the best accuracy on held-out fifths of the training part."""
    folds = StratifiedKFold(5, shuffle=True, random_state=cell.seed)
    scores = np.zeros(len(GAMMAS))
    for kept, left in folds.split(X, y):
        widths = [
            build(cell.method, cell.dictionary, gamma, cell.C, cell.solver, cell.seed)
            for gamma in GAMMAS
        ]
        fits = fit_cost_path(widths, X[kept], y[kept])
        scores += [model.score(X[left], y[left]) for model in fits]
    return GAMMAS[int(np.argmax(scores))]
