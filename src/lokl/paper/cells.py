"""One fit of one method on one split: what goes in, and the record that comes out."""

import json
import time
import warnings
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from lokl.datasets import load
from lokl.paper.methods import GAMMAS, build

_FOLDS = 5


@dataclass(frozen=True)
class Cell:
    """Inputs of one fit; equal cells give equal results.

    Attributes
    ----------
    data : str
        Name of a data set.
    method, dictionary : str
        As tables name them.
    gamma : float or None
        Width of the Gaussian; None where there is none to choose, or where `selection` finds it.
    selection : {"paper", "nested"}
        A width of the grid, of which the best on the test parts is shown, as the paper did; or
        the best in a cross-validation inside the training part.
    solver : str
    split : int
        Number of the random 75/25 split.
    C : float
    seed : int
        Decides splits and models.
    rows : int or None
        Only so many rows, drawn once.
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

    @property
    def key(self) -> str:
        """Text that is equal for equal cells."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Cell":
        """Return the cell that a record belongs to."""
        return cls(**{name: record[name] for name in cls.__dataclass_fields__})


def run_cell(cell: Cell) -> dict[str, Any]:
    """Fit and score; a failure is a record, too."""
    record: dict[str, Any] = asdict(cell)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            record.update(_measure(cell))
        record["warnings"] = sorted({type(w.message).__name__ for w in caught})
        record["error"] = None
    except Exception as reason:
        record["error"] = f"{type(reason).__name__}: {reason}"
    return record


def _measure(cell: Cell) -> dict[str, Any]:
    X, y = _samples(cell.data, cell.rows, cell.seed)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.25, random_state=cell.seed + cell.split
    )
    gamma = _nested(cell, X, y) if cell.selection == "nested" else cell.gamma
    model = build(cell.method, cell.dictionary, gamma, cell.C, cell.solver, cell.seed)
    _warm_up(cell.method, cell.dictionary, cell.solver)
    begun = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    accuracy = float(np.mean(model.predict(X_test) == y_test))
    return {
        "accuracy": accuracy,
        "support": float(model.support_fraction_),
        "fit_seconds": fitted - begun,
        "predict_seconds": time.perf_counter() - fitted,
        "chosen_gamma": gamma,
    }


@lru_cache
def _warm_up(method: str, dictionary: str, solver: str) -> None:
    """Read or compile the loops that a method needs, once a process, outside of any time."""
    X = np.random.RandomState(0).normal(size=(40, 3))
    build(method, dictionary, 1.0, 1.0, solver, 0).fit(X, X[:, 0] > 0)


@lru_cache(maxsize=1)
def _samples(name: str, rows: int | None, seed: int) -> tuple[Any, Any]:
    """Samples and labels; a worker does many cells of one data set in a row."""
    bunch = load(name, download=False)
    X, y = bunch.data, bunch.target
    if rows is not None and rows < X.shape[0]:
        chosen = np.random.RandomState(seed).permutation(X.shape[0])[:rows]
        X, y = X[chosen], y[chosen]
    return X, y


def _nested(cell: Cell, X: Any, y: Any) -> float:
    """Width with the best accuracy on held-out fifths of the training part."""
    folds = list(StratifiedKFold(_FOLDS, shuffle=True, random_state=cell.seed).split(X, y))
    scores = []
    for gamma in GAMMAS:
        model = build(cell.method, cell.dictionary, gamma, cell.C, cell.solver, cell.seed)
        scores.append(np.mean([model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds]))
    return GAMMAS[int(np.argmax(scores))]
