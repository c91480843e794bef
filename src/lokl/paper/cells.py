"""Cells of the paper's experiments: one fit of one method on one split, and its record.

A table of the paper is a set of cells, which :func:`make_cells` lists.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from lokl._environment import Peak
from lokl._parameters import check_choice
from lokl.base.fit_cache import fit_cost_path
from lokl.datasets import load
from lokl.paper.methods import (
    DICTIONARIES,
    GAMMAS,
    METHOD_NAMES,
    READINGS,
    WITHOUT_GAMMA,
    build,
)
from lokl.paper.published import SETS
from lokl.study.run_folder import Record, Records, RunCell


@dataclass(frozen=True)
class Cell(RunCell):
    """Inputs of one fit; equal cells give equal results.

    Attributes
    ----------
    data : str
        Name of a data set.
    method, dictionary : str
        As tables show them.
    gamma : float or None
        Width of the Gaussian kernel; None if the kernels have no width to choose, and for nested
        selection.
    selection : {"paper", "nested"}
        How a table chooses the width. "paper": the best accuracy on the test parts, as in the
        paper. "nested": the best accuracy in a cross-validation within the training part.
    solver : str
    split : int
        Index of the random 75/25 split.
    C : float
    seed : int
        Seed of splits and models.
    rows : int or None
        Number of rows, drawn at random once for all splits; None uses all rows.
    reading : str
        Reading of the paper for which the fit is made; one of ``READINGS``.

    See Also
    --------
    lokl.paper.make_cells : All cells of a table.
    lokl.paper.run_cell : Runs it.

    Examples
    --------
    >>> from lokl.paper import make_cells
    >>> cells = make_cells("table2", sets=["Breast"], methods=["LMKL"], repeats=1, gammas=[1.0])
    >>> cells[0].data, cells[0].method, cells[0].gamma
    ('breast-cancer_scale', 'LMKL', 1.0)
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
    reading: str = "lokl"


class RecordFile(Records):
    """Records of the paper's cells; see `lokl.study.run_folder.Records`.

    Parameters
    ----------
    path : Path or str
        File of one record in each line; it is created if it does not exist.

    See Also
    --------
    lokl.paper.run : Adds records.
    lokl.paper.make_table : Summarises them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lokl.paper import RecordFile
    >>> with TemporaryDirectory() as folder:
    ...     n_records = len(RecordFile(Path(folder) / "records.jsonl"))
    >>> n_records
    0
    """

    cell_type = Cell
    value_types: ClassVar[Mapping[str, Any]] = dict.fromkeys(
        ("accuracy", "support", "fit_seconds"), float
    )

    def check(self, record: Any) -> None:
        """Raise a ValueError that names a missing or wrong value, or an unknown reading."""
        super().check(record)
        check_choice("reading", record["reading"], tuple(READINGS))


def run_cell(cell: Cell) -> Record:
    """Fit and score a cell in one thread.

    Parameters
    ----------
    cell : Cell
        Inputs of the fit.

    Returns
    -------
    record : dict
        Values of the cell and of the fit; ``error`` is the reason if the cell failed, else None.

    See Also
    --------
    lokl.paper.Cell : What it runs.
    lokl.paper.run : Runs many, and stores records.

    Examples
    --------
    >>> from lokl.paper import Cell, run_cell
    >>> record = run_cell(Cell("wine", "UNIFORM", "quadratic, Gaussian", 0.25))
    >>> record["method"], round(record["accuracy"], 2)
    ('UNIFORM', 0.8)
    """
    return cell.measured(_measure)


def _measure(cell: Cell) -> dict[str, Any]:
    """Return accuracy, support, times in seconds and memory in MB of one fit, by name."""
    X, X_test, y, y_test = _split(cell.data, cell.rows, cell.seed, cell.split)
    _warm_up(cell.method, cell.dictionary, cell.solver)
    gamma, select_seconds = cell.gamma, 0.0
    if cell.selection == "nested":
        select_seconds, _, gamma = _timed(lambda: _nested_gamma(cell, X, y))
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
    """Mean fraction of support points of a vote's experts, whose union is the model's support."""
    experts = getattr(model, "experts_", None)
    if experts is None:
        return None
    return float(np.mean([len(expert.support) for expert in experts]) / n_samples)


def _timed(work: Callable[[], Any]) -> tuple[float, float | None, Any]:
    """Return processor seconds and peak memory in MB of a call, and its result.

    A fit has one thread. Processor time is wall time on an idle machine, and does not depend on
    other processes on a busy one.
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
    """Return training and test part; cached, as a worker runs the cells of a split in a row."""
    X, y = _samples(name, rows, seed)
    return train_test_split(X, y, test_size=0.25, random_state=seed + split)


@lru_cache(maxsize=1)
def _samples(name: str, rows: int | None, seed: int) -> tuple[Any, Any]:
    """Return samples and labels of a set."""
    bunch = load(name, download=False)
    X, y = bunch.data, bunch.target
    if rows is not None and rows < X.shape[0]:
        chosen = np.random.RandomState(seed).permutation(X.shape[0])[:rows]
        X, y = X[chosen], y[chosen]
    return X, y


def _nested_gamma(cell: Cell, X: Any, y: Any) -> float:
    """Return the width with the best accuracy in a cross-validation of the training part."""
    folds = StratifiedKFold(5, shuffle=True, random_state=cell.seed)
    scores = np.zeros(len(GAMMAS))
    for train, test in folds.split(X, y):
        models = [
            build(cell.method, cell.dictionary, gamma, cell.C, cell.solver, cell.seed)
            for gamma in GAMMAS
        ]
        fits = fit_cost_path(models, X[train], y[train])
        scores += [model.score(X[test], y[test]) for model in fits]
    return GAMMAS[int(np.argmax(scores))]


@dataclass(frozen=True)
class TableSpec:
    """Definition of a table of the paper.

    Attributes
    ----------
    title : str
    quantity : {"accuracy", "support"}
        Field of records that the table shows.
    solver : str
    columns : tuple of str
        Methods, as the paper names them.
    """

    title: str
    quantity: str
    solver: str
    columns: tuple[str, ...]


_LOCALIZED = ("LMKL", "SwMKL", "LD-MKL", "C-LMKL")
TABLES = {
    "table2": TableSpec("Accuracy %, exact solver", "accuracy", "exact", _LOCALIZED),
    "table3": TableSpec("Accuracy %, multiplicative weights", "accuracy", "mwu", _LOCALIZED),
    "table4": TableSpec(
        "Support points, % of the training samples",
        "support",
        "exact",
        (*_LOCALIZED, "MWUMKL", "UNIFORM", "GMKL"),
    ),
}
SOLVERS = ("exact", "libsvm", "mwu")
_SELECTIONS = ("paper", "nested")
# A full run: tables, and how the width is chosen for each.
FULL_RUN = (("table2", "paper"), ("table3", "paper"), ("table4", "paper"), ("table2", "nested"))
# The search for the reading used no split of this seed, so these splits can confirm it.
SEED = 2016
# A quick run of every set and method takes minutes.
_QUICK_REPEATS, _QUICK_ROWS = 3, 1000


def nearest(what: str, name: str, known: Iterable[str]) -> str:
    """Return the known name, ignoring case, or raise a ValueError that suggests one.

    Parameters
    ----------
    what : str
        Kind of the name, for the error.
    name : str
    known : iterable of str
    """
    folded = {other.lower(): other for other in known}
    if name.lower() in folded:
        return folded[name.lower()]
    close = get_close_matches(name.lower(), folded)
    hint = f"did you mean {folded[close[0]]!r}?" if close else "choose one of"
    raise ValueError(f"unknown {what} {name!r}; {hint} ({', '.join(folded.values())})")


def _chosen_names(what: str, values: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the known names in lists with commas; a name that contains a comma stays whole.

    Parameters
    ----------
    what : str
        Kind of the names, for errors.
    values, known : sequences of str
    """
    whole = {name.casefold() for name in known}
    lists = ([value] if value.casefold() in whole else value.split(",") for value in values)
    names = [name.strip() for parts in lists for name in parts if name.strip()]
    if not names:
        raise ValueError(f"{list(values)} names no {what}; choose among {', '.join(known)}")
    return [nearest(what, name, known) for name in names]


def paper_names(sets: Sequence[str] | None) -> list[str]:
    """Return the paper's names of data sets, which may be given by their file names."""
    files = {value.name: name for name, value in SETS.items()}
    names = _chosen_names("data set", list(SETS) if sets is None else sets, (*SETS, *files))
    return [files.get(name, name) for name in names]


def named_readings(name: str) -> tuple[str, ...]:
    """Return the readings with a name: one of them, or "both"."""
    name = nearest("reading", name, (*READINGS, "both"))
    return tuple(READINGS) if name == "both" else (name,)


def make_cells(
    table: str,
    *,
    readings: Sequence[str] = ("paper",),
    sets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    repeats: int | None = None,
    dictionaries: Sequence[str] | None = None,
    gammas: Sequence[float] | None = None,
    selection: str = "paper",
    solver: str | None = None,
    seed: int = SEED,
    quick: bool = False,
) -> list[Cell]:
    """Return all cells of a table.

    Parameters
    ----------
    table : str
        One of ``TABLES``.
    readings : sequence of str, default=("paper",)
        Assumptions about settings that the paper does not state, see ``READINGS``.
    sets, methods : sequences of str, optional
        Only these; a name may be a list with commas. A method of the paper stands for all methods
        that a reading shows for it.
    repeats : int, optional
        Number of splits; by default the number of a full run.
    dictionaries : sequence of str, optional
        Sets of kernels; by default the one of the reading.
    gammas : sequence of float, optional
        Widths to choose from, of the paper's grid of nine; by default all of them.
    selection : {"paper", "nested"}, default="paper"
        How the width is chosen, see `Cell`; "nested" always chooses among all nine.
    solver : str, optional
        By default the solver of the table.
    seed : int, default=2016
        Seed of splits and models.
    quick : bool, default=False
        Three splits, three widths, at most 1,000 rows of a set.

    Returns
    -------
    cells : list of Cell
        Set by set and reading by reading, with all widths and splits of a method together.

    See Also
    --------
    lokl.paper.recorded_cells : Cells that have a record.
    lokl.paper.run : Runs cells.

    Examples
    --------
    >>> from lokl.paper import make_cells
    >>> cells = make_cells("table2", sets=["Breast"], methods=["LMKL"], repeats=1, gammas=[1.0])
    >>> len(cells), len(make_cells("table2", quick=True))
    (1, 252)
    """
    spec = TABLES[nearest("table", table, TABLES)]
    solver = nearest("solver", spec.solver if solver is None else solver, SOLVERS)
    given = spec.columns if methods is None else methods
    columns = _chosen_names("method", given, METHOD_NAMES)
    chosen = [nearest("dictionary", name, DICTIONARIES) for name in dictionaries or ()]
    for gamma in gammas or ():
        nearest("gamma", f"{gamma:g}", [f"{width:g}" for width in GAMMAS])
    widths = gammas or (GAMMAS[::4] if quick else GAMMAS)
    selection = nearest("selection", selection, _SELECTIONS)
    common: dict[str, Any] = {"selection": selection, "solver": solver, "seed": seed}
    common["rows"] = _QUICK_ROWS if quick else None
    cells = []
    for name, word in product(paper_names(sets), readings):
        reading = nearest("reading", word, READINGS)
        shown = dict.fromkeys(READINGS[reading].methods(columns, solver))
        count = repeats or (_QUICK_REPEATS if quick else SETS[name].repeats)
        for method, dictionary in product(shown, chosen or [READINGS[reading].dictionary]):
            cell = Cell(SETS[name].name, method, dictionary, None, reading=reading, **common)
            fixed = dictionary in WITHOUT_GAMMA
            if fixed:
                cell = replace(cell, selection="paper")
            # Nested selection chooses the width in each split.
            to_try = [None] if fixed or selection == "nested" else widths
            splits = product(to_try, range(count))
            cells += [replace(cell, gamma=gamma, split=split) for gamma, split in splits]
    return cells


def recorded_cells(table: str, records: Iterable[Record], **settings: Any) -> list[Cell]:
    """Return the cells of a table that have a record, with any split and, by default, all widths.

    Parameters
    ----------
    table : str
        One of ``TABLES``.
    records : iterable of dict
        Records of fits.
    **settings
        As for :func:`make_cells`, except `repeats`.

    Returns
    -------
    cells : list of Cell
        In the order of :func:`make_cells`.

    See Also
    --------
    lokl.paper.make_cells : All cells of a table.

    Examples
    --------
    >>> from lokl.paper import recorded_cells
    >>> recorded_cells("table2", records=[])
    []
    """
    settings["gammas"] = settings.get("gammas") or GAMMAS
    wanted = make_cells(table, repeats=1, **settings)
    order = {cell: index for index, cell in enumerate(wanted)}
    found = [cell for record in records if replace(cell := Cell.of(record), split=0) in order]
    return sorted(found, key=lambda cell: (order[replace(cell, split=0)], cell.split))
