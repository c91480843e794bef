"""Which column is predicted, and whether it holds classes or numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lokl.tables.columns import listed
from lokl.tables.errors import TableError
from lokl.tables.sources import Source

TASKS = ("classes", "numbers")
# Whole numbers of so many different values at most are classes.
_MOST_CLASSES = 20


def find_column(given: str, sources: Sequence[Source], option: str) -> tuple[Source | None, str]:
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


def column_of(source: Source, column: str, option: str) -> tuple[Source, str]:
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
