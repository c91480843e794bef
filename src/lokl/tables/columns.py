"""What columns hold: numbers, words, or nothing that a model could learn from."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lokl._tables import need_pandas
from lokl.tables.errors import TableError
from lokl.tables.sources import Source

NUMERIC, CATEGORICAL = "numeric", "categorical"
KINDS = (NUMERIC, CATEGORICAL)
# A column of words is meant to be of numbers where so many of its cells are.
_MOSTLY = 0.8


def kind_of(source: Source, column: str, kinds: Mapping[str, str]) -> str:
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


def refuse_infinite(source: Source, column: str, values: Any) -> None:
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
