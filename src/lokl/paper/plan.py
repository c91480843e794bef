"""Which cells a table of the paper needs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import product
from typing import Any

from lokl.paper.cells import Cell
from lokl.paper.methods import DICTIONARIES, GAMMAS, READINGS, WITHOUT_GAMMA, method_names
from lokl.paper.published import SETS


@dataclass(frozen=True)
class TableSpec:
    """What a table shows."""

    title: str
    quantity: str  # "accuracy" or "support", a field of records
    solver: str
    columns: tuple[str, ...]  # methods of the paper


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
# What a full run makes: a table and how widths are chosen for it.
FULL_RUN = (("table2", "paper"), ("table3", "paper"), ("table4", "paper"), ("table2", "nested"))
# No split of this seed took part in the search for the reading, so that they can confirm it.
SEED = 2016
# So that a look at every set and method takes minutes.
_QUICK_REPEATS, _QUICK_ROWS = 3, 1000


def nearest(what: str, name: str, known: Iterable[str]) -> str:
    """Return the known name, whatever its case, or raise with one that looks like it."""
    known = list(known)
    if name in known:
        return name
    folded = {other.lower(): other for other in known}
    if name.lower() in folded:
        return folded[name.lower()]
    close = get_close_matches(name, known) or get_close_matches(name.lower(), folded)
    hint = f"did you mean {folded.get(close[0], close[0])!r}?" if close else "choose one of"
    raise ValueError(f"unknown {what} {name!r}; {hint} ({', '.join(known)})")


def _names(what: str, values: Sequence[str], known: Iterable[str]) -> list[str]:
    """Take lists with commas apart; a known name that has a comma itself stays whole."""
    whole = {name.casefold() for name in known}
    lists = ([value] if value.casefold() in whole else value.split(",") for value in values)
    found = [name.strip() for names in lists for name in names if name.strip()]
    if not found:
        raise ValueError(f"{list(values)} names no {what}; choose among {', '.join(known)}")
    return found


def paper_names(sets: Sequence[str] | None) -> list[str]:
    """Return data sets by their names in the paper; they may be given by those of files, too."""
    files = {value.name: name for name, value in SETS.items()}
    names = _names("data set", list(SETS) if sets is None else sets, (*SETS, *files))
    return [files.get(name) or nearest("data set", name, SETS) for name in names]


def named_readings(word: str) -> tuple[str, ...]:
    """Return the readings that a word means: one of them, or "both"."""
    word = nearest("reading", word, (*READINGS, "both"))
    return tuple(READINGS) if word == "both" else (word,)


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
        Of the paper's unsaid settings, see ``READINGS``.
    sets, methods : sequences of str, optional
        Only these; a name may be a list with commas. A method of the paper means all that a
        reading shows for it.
    repeats : int, optional
        Number of splits; None is that of a full run.
    dictionaries : sequence of str, optional
        Sets of kernels; None is that of the reading.
    gammas : sequence of float, optional
        Widths to choose from, of the paper's grid of nine; None is all of them.
    selection : {"paper", "nested"}, default="paper"
        How a width is chosen, see `Cell`; "nested" always chooses among all nine.
    solver : str, optional
        Instead of the table's own.
    seed : int, default=2016
    quick : bool, default=False
        Three splits, three widths, at most 1,000 rows of a set.
    """
    spec = TABLES[nearest("table", table, TABLES)]
    solver = nearest("solver", spec.solver if solver is None else solver, SOLVERS)
    asked = _known_methods(spec.columns if methods is None else methods)
    chosen = [nearest("dictionary", name, DICTIONARIES) for name in dictionaries or ()]
    _check_gammas(gammas or ())
    widths = gammas or (GAMMAS[::4] if quick else GAMMAS)
    first = Cell("", "", "", None, nearest("selection", selection, _SELECTIONS), solver, seed=seed)
    first = replace(first, rows=_QUICK_ROWS if quick else None)
    cells = []
    for name, word in product(paper_names(sets), readings):
        reading = nearest("reading", word, READINGS)
        own = dict.fromkeys(READINGS[reading].methods(asked, solver))
        count = repeats or (_QUICK_REPEATS if quick else SETS[name].repeats)
        for method, kernels in product(own, chosen or [READINGS[reading].dictionary]):
            kind = replace(first, data=SETS[name].name, method=method, dictionary=kernels)
            cells += _repeated(replace(kind, reading=reading), widths, count)
    return cells


def _repeated(kind: Cell, widths: Iterable[float], count: int) -> list[Cell]:
    """Return a cell for every width and split; one for every split where no width is given."""
    own: Iterable[float | None] = widths
    if kind.dictionary in WITHOUT_GAMMA:
        kind = replace(kind, selection="paper")
        own = [None]
    elif kind.selection == "nested":
        own = [None]
    return [replace(kind, gamma=gamma, split=split) for gamma, split in product(own, range(count))]


def _known_methods(methods: Sequence[str]) -> list[str]:
    known = method_names()
    return [nearest("method", name, known) for name in _names("method", methods, known)]


def _check_gammas(gammas: Iterable[float]) -> None:
    for gamma in gammas:
        if gamma not in GAMMAS:
            grid = ", ".join(f"{known:g}" for known in GAMMAS)
            raise ValueError(f"gamma {gamma:g} is not of the paper's grid; choose among {grid}")


def recorded_cells(table: str, records: Iterable[dict[str, Any]], **settings: Any) -> list[Cell]:
    """Return the cells of a table that have a record, with any split and, by default, any width.

    Parameters
    ----------
    table : str
    records : iterable of dict
    **settings
        As for :func:`make_cells`, except `repeats`.
    """
    wanted = make_cells(table, repeats=1, **settings)
    gammas = settings.get("gammas")

    def kind(cell: Cell) -> Cell:
        return replace(cell, gamma=None, split=0)

    kinds = {kind(cell): place for place, cell in enumerate(wanted)}
    found = [cell for record in records if kind(cell := Cell.of(record)) in kinds]
    if gammas:
        found = [cell for cell in found if cell.gamma in gammas]
    return sorted(found, key=lambda cell: (kinds[kind(cell)], cell.gamma or 0.0, cell.split))
