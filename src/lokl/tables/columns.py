"""What columns hold: numbers, words, or nothing that a model could learn from.

Which column is predicted, and whether it holds classes or numbers.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lokl._frames import need_pandas
from lokl.tables.sources import TableError, TableSource

NUMERIC, CATEGORICAL = "numeric", "categorical"
KINDS = (NUMERIC, CATEGORICAL)
# A column of words is meant to be of numbers where so many of its cells are.
_MOSTLY = 0.8


def kind_of(source: TableSource, column: str, kinds: Mapping[str, str]) -> str:
    """Whether a column is of numbers or of words; a cell that spoils numbers is an error."""
    values, wanted = source.frame[column], kinds.get(column)
    if wanted is not None and wanted not in KINDS:
        raise TableError(f"column {column}: unknown kind {wanted!r}; known are {', '.join(KINDS)}")
    if wanted == CATEGORICAL or values.dtype.kind in "biuf":
        return wanted or NUMERIC
    present = values.dropna()
    numbers = _numeric(present).to_numpy()
    if wanted is None and (len(present) == 0 or np.isnan(numbers).mean() > 1 - _MOSTLY):
        return CATEGORICAL if len(present) else NUMERIC
    if np.isnan(numbers).any():
        place = int(np.flatnonzero(np.isnan(numbers))[0])
        row = source.frame.index.get_indexer(present.index[[place]])[0]
        raise TableError(
            f"{source.label}, row {source.row(row)}, column {column}: {present.iloc[place]!r} is "
            f"not a number; write an empty cell, or --na {present.iloc[place]}"
        )
    return NUMERIC


def _numeric(values: Any) -> Any:
    """Return a column as numbers, NaN where they are none."""
    return need_pandas("reading tables").to_numeric(values, errors="coerce").astype(float)


def as_kind(values: Any, kind: str) -> Any:
    """Return a column as floats, or as words with None for missing ones."""
    if kind == NUMERIC:
        return values.astype(float) if values.dtype.kind in "biuf" else _numeric(values)
    return values.astype(object).map(str, na_action="ignore").where(values.notna(), None)


def refuse_infinite(source: TableSource, column: str, values: Any) -> None:
    """Raise where a number is infinite."""
    bad = np.flatnonzero(np.isinf(values.to_numpy()))
    if len(bad):
        raise TableError(
            f"{source.label}, row {source.row(bad[0])}, column {column}: the value is infinite; "
            "correct it, or write an empty cell"
        )


def useless(values: Any, kind: str) -> str:
    """Why nothing can be learned from a column; an empty word where something can."""
    present = values.dropna()
    if len(present) == 0:
        return "empty"
    different = present.nunique()
    # A single word may still tell those who have it from those who have not.
    if different == 1 and (kind == NUMERIC or len(present) == len(values)):
        return "constant"
    if different < len(present) or different <= 2:
        return ""
    if kind == CATEGORICAL:
        return "ids: all values differ"
    return "ids: they count the rows" if bool((present.diff().iloc[1:] == 1).all()) else ""


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return some names, and how many there are beyond."""
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


TASKS = ("classes", "numbers")
# Whole numbers of so many different values at most are classes.
_MOST_CLASSES = 20


def find_column(
    given: str, sources: Sequence[TableSource], option: str
) -> tuple[TableSource | None, str]:
    """Return where a column is; ``FILE:COLUMN`` may name a file that is not among the sources.

    The first value is None where such a file is still to be read; the second is then as given.
    """
    owners = [source for source in sources if given in source.frame.columns]
    if len(owners) > 1:
        raise TableError(
            f"column {given} is in {owners[0].label} and in {owners[1].label}; give "
            f"{option} {owners[0].label}:{given}"
        )
    if owners:
        return owners[0], given
    file, sign, column = given.rpartition(":")
    for source in sources:
        if sign and file in (source.label, source.name, Path(source.label).name):
            return column_of(source, column, option)
    if sign and Path(file).expanduser().exists():
        return None, given
    if sign and ("." in file or "/" in file):
        raise TableError(f"{option} {given}: there is no file {file}")
    return column_of(sources[0], given, option)


def column_of(source: TableSource, column: str, option: str) -> tuple[TableSource, str]:
    """Return a file and its column, which must be there."""
    if column not in source.frame.columns:
        raise TableError(
            f"{source.label} has no column {column}; it has {listed(source.frame.columns)} (see "
            f"{option})"
        )
    return source, column


def task_of(name: str, values: Any, task: str | None) -> str:
    """Whether a target without missing values holds classes or numbers."""
    different = values.nunique()
    if different < 2:
        shown = repr(values.to_list()[0]) if len(values) else "nothing"
        raise TableError(
            f"target {name} has the same value, {shown}, in all {len(values)} rows; a model needs "
            "two different ones"
        )
    numeric = values.dtype.kind in "iuf"
    if task == "numbers" and not numeric:
        raise TableError(f"target {name} holds words, such as {values.iloc[0]!r}, not numbers")
    if task is not None:
        if task not in TASKS:
            raise TableError(f"unknown task {task!r}; known are {', '.join(TASKS)}")
        return task
    if not numeric:
        return "classes"
    whole = bool(np.all(values == np.floor(values)))
    return "classes" if whole and different <= _MOST_CLASSES else "numbers"


def described(name: str, values: Any, task: str) -> str:
    """One line about a target."""
    if task == "numbers":
        return f"{name}: numbers from {values.min():g} to {values.max():g}"
    counts = values.value_counts()
    return f"{name}: {listed([f'{label} {count}' for label, count in counts.items()], 8)}"


def as_labels(values: Any) -> Any:
    """Return classes without missing ones: whole numbers as such, everything else as words."""
    if values.dtype.kind == "f" and (values == values.round()).all():
        return values.astype(int)
    return values if values.dtype.kind in "iub" else values.map(str)


def one_against_all(values: Any, positive: str) -> Any:
    """Return a target of two classes: one, and "not" that one; a target of two stays as it is."""
    names = values.map(str)
    if positive not in set(names):
        known = listed(sorted(set(names)), 8)
        raise TableError(
            f"--positive {positive}: target {values.name} has no such class; it has {known}"
        )
    return values if values.nunique() == 2 else with_one_class(values, positive)


def with_one_class(values: Any, positive: str | None) -> Any:
    """Return classes of which all but one are "not" that one; all of them where none is named."""
    names = values.map(str)
    return values if positive is None else names.where(names == positive, f"not {positive}")
