"""Columns of input tables: their kinds, the target and its classes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lokl._frames import need_pandas
from lokl.tables.sources import TableError, TableSource

NUMERIC, CATEGORICAL = "numeric", "categorical"
KINDS = (NUMERIC, CATEGORICAL)
CLASSIFICATION, REGRESSION = "classification", "regression"
TASKS = (CLASSIFICATION, REGRESSION)
# A column of text is meant to be numeric if more than this share of its cells are numbers.
_NUMERIC_SHARE = 0.8
# A target of integers with more distinct values is a regression target.
_MAX_CLASSES = 20


def read_column(source: TableSource, column: str, kind: str | None = None) -> tuple[str, Any]:
    """Return the kind of a column, inferred unless given, and its values of that kind.

    Returns
    -------
    kind : {"numeric", "categorical"}
    values : series
        Floats, or text with None for missing values.

    Raises
    ------
    TableError
        A cell of a numeric column is not a number, or is infinite.
    """
    values = source.frame[column]
    if kind is not None and kind not in KINDS:
        raise TableError(f"column {column}: unknown kind {kind!r}; use one of {', '.join(KINDS)}")
    kind = kind or _infer_kind(values)
    if kind == CATEGORICAL:
        return kind, values.astype(object).map(str, na_action="ignore").where(values.notna(), None)
    numbers = _as_numbers(values)
    words = np.flatnonzero(numbers.isna() & values.notna())
    if len(words):
        row, value = words[0], values.iloc[words[0]]
        raise TableError(
            f"{source.label}, row {source.row(row)}, column {column}: {value!r} is not a number; "
            f"leave the cell empty, or pass --na {value}"
        )
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise TableError(
            f"{source.label}, row {source.row(infinite[0])}, column {column}: the value is "
            "infinite; correct it, or leave the cell empty"
        )
    return kind, numbers


def _infer_kind(values: Any) -> str:
    present = values.dropna()
    if values.dtype.kind in "biuf" or len(present) == 0:
        return NUMERIC
    return NUMERIC if _as_numbers(present).notna().mean() > _NUMERIC_SHARE else CATEGORICAL


def _as_numbers(values: Any) -> Any:
    """Return a column as floats, NaN for cells that are not numbers."""
    return need_pandas("reading tables").to_numeric(values, errors="coerce").astype(float)


def why_uninformative(values: Any, kind: str) -> str:
    """Return the reason why nothing can be learned from a column, or an empty string."""
    present = values.dropna()
    if len(present) == 0:
        return "empty"
    n_values = present.nunique()
    # A single word still separates the samples that have it from those that lack it.
    if n_values == 1 and (kind == NUMERIC or len(present) == len(values)):
        return "constant"
    if n_values < len(present) or n_values <= 2:
        return ""
    if kind == CATEGORICAL:
        return "ids: all values differ"
    return "ids: they count the rows" if bool((present.diff().iloc[1:] == 1).all()) else ""


def shorten_list(names: Sequence[Any], most: int = 5) -> str:
    """Return the first names, and the number of the others."""
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def find_column(
    given: str, sources: Sequence[TableSource], option: str
) -> tuple[TableSource | None, str]:
    """Return the table of a column and its name.

    ``FILE:COLUMN`` may name a file that is not among the sources. The first value is then None, and
    the second is `given`.
    """
    owners = [source for source in sources if given in source.frame.columns]
    if len(owners) > 1:
        raise TableError(
            f"column {given} is in {owners[0].label} and in {owners[1].label}; pass "
            f"{option} {owners[0].label}:{given}"
        )
    if owners:
        return owners[0], given
    file, colon, column = given.rpartition(":")
    for source in sources:
        if colon and file in (source.label, source.name, Path(source.label).name):
            return require_column(source, column, option)
    if colon and Path(file).expanduser().exists():
        return None, given
    if colon and ("." in file or "/" in file):
        raise TableError(f"{option} {given}: there is no file {file}")
    return require_column(sources[0], given, option)


def require_column(source: TableSource, column: str, option: str) -> tuple[TableSource, str]:
    """Return a table and its column, or raise `TableError` if the column does not exist."""
    if column not in source.frame.columns:
        raise TableError(
            f"{source.label} has no column {column}; it has {shorten_list(source.frame.columns)} "
            f"(see {option})"
        )
    return source, column


def infer_task(name: str, values: Any, task: str | None) -> str:
    """Return the task of a target without missing values: as given, or inferred."""
    n_values = values.nunique()
    if n_values < 2:
        shown = repr(values.to_list()[0]) if len(values) else "none"
        raise TableError(
            f"target {name} has the same value, {shown}, in all {len(values)} rows; a model needs "
            "two different values"
        )
    if task is not None and task not in TASKS:
        raise TableError(f"unknown task {task!r}; use one of {', '.join(TASKS)}")
    numeric = values.dtype.kind in "iuf"
    if task == REGRESSION and not numeric:
        raise TableError(
            f"target {name}: {values.iloc[0]!r} is not a number, as --task {REGRESSION} requires"
        )
    if task is not None:
        return task
    if not numeric:
        return CLASSIFICATION
    integers = bool(np.all(values == np.floor(values)))
    return CLASSIFICATION if integers and n_values <= _MAX_CLASSES else REGRESSION


def describe_target(name: str, values: Any, task: str) -> str:
    """Return one line about a target."""
    if task == REGRESSION:
        return f"{name}: numbers from {values.min():g} to {values.max():g}"
    counts = values.value_counts()
    return f"{name}: {shorten_list([f'{label} {count}' for label, count in counts.items()], 8)}"


def as_classes(values: Any) -> Any:
    """Return classes without missing ones: integers as integers, everything else as text."""
    if values.dtype.kind == "f" and (values == values.round()).all():
        return values.astype(int)
    return values if values.dtype.kind in "iub" else values.map(str)


def one_versus_rest(values: Any, positive: str) -> Any:
    """Return a target of two classes: `positive` and "not" that one; two classes stay."""
    names = values.map(str)
    if positive not in set(names):
        known = shorten_list(sorted(set(names)), 8)
        raise TableError(
            f"--positive {positive}: target {values.name} has no such class; it has {known}"
        )
    return values if values.nunique() == 2 else merge_other_classes(values, positive)


def merge_other_classes(values: Any, positive: str | None) -> Any:
    """Return classes in which all but `positive` are "not" that one; unchanged if it is None."""
    names = values.map(str)
    return values if positive is None else names.where(names == positive, f"not {positive}")
