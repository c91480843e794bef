"""Several tables as one: each table is a view, and samples may lack some of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from lokl._arrays import Array, is_sparse
from lokl._frames import need_pandas
from lokl._warnings import warn_once

Views = Mapping[str, Sequence[Any]]


def join_views(
    tables: Mapping[str, Any], *, on: str | None = None, views: Views | None = None
) -> tuple[Any, dict[str, list[Any]]]:
    """Put tables of one view each side by side.

    Data frames are joined by their index: a sample that a table does not have lacks that view, and
    has NaN in all its columns. Rows are in the order in which the tables name them first; take the
    labels in that order, too: ``y.loc[X.index]``. Arrays have no ids and are of equal length, row
    by row.

    Parameters
    ----------
    tables : mapping of str to {data frame, array, sparse matrix}
        The table of each view, by the name of the view. Numbers only; a row that has a part of a
        view is an error, a row of NaN alone lacks the view.
    on : str, optional
        Column of every data frame that holds the ids, in the place of the index.
    views : mapping of str to columns, optional
        As returned for training samples, where `tables` are those of new samples: `X` then has the
        columns of training, with NaN for views that have no table at all.

    Returns
    -------
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
    views : dict of str to list
        Columns of each view, names of a data frame or positions of an array, as
        :func:`lokl.kernels.per_view` takes them. Columns that two tables share are told apart by
        the name of the view: ``"view:column"``.

    Examples
    --------
    >>> import pandas as pd
    >>> from lokl import join_views
    >>> blood = pd.DataFrame({"iron": [1.0, 2.0]}, index=["Ann", "Bob"])
    >>> pulse = pd.DataFrame({"rest": [60.0, 70.0]}, index=["Bob", "Eve"])
    >>> X, views = join_views({"blood": blood, "pulse": pulse})
    >>> X
         iron  rest
    Ann   1.0   NaN
    Bob   2.0  60.0
    Eve   NaN  70.0
    >>> views
    {'blood': ['iron'], 'pulse': ['rest']}
    """
    named = _named(tables, views)
    bare = [name for name, table in named.items() if not hasattr(table, "columns")]
    if not bare:
        read = {name: _read_frame(name, table, on) for name, table in named.items()}
        return _join_frames(read, views)
    if len(bare) < len(named):
        raise ValueError(
            f"table {bare[0]!r} is an array, whose rows have no ids, while others are data frames; "
            "give data frames with ids as index, or arrays only"
        )
    if on is not None:
        raise ValueError(f"on={on!r} names a column of data frames, but the tables are arrays")
    return _join_arrays(named, views)


def _named(tables: Any, views: Views | None) -> dict[str, Any]:
    """Return the tables, after a look at their names and shapes."""
    if not isinstance(tables, Mapping) or is_sparse(tables):
        raise ValueError(
            "join_views takes a mapping of names to tables, such as {'blood': table}, got a "
            f"{type(tables).__name__}"
        )
    if not tables:
        raise ValueError("join_views needs at least one table, got an empty mapping")
    named = {str(name): table for name, table in tables.items()}
    for name, table in named.items():
        shape = getattr(table, "shape", None)
        if shape is None or len(shape) != 2:
            shown = type(table).__name__ if shape is None else f"one of shape {tuple(shape)}"
            raise ValueError(
                f"table {name!r} must be a data frame, array or sparse matrix with rows and "
                f"columns, got {shown}"
            )
        if shape[1] == 0:
            raise ValueError(f"table {name!r} has no columns; leave the view out")
        if views is not None and name not in views:
            known = ", ".join(map(str, views))
            raise ValueError(f"table {name!r} is none of the views of training: {known}")
    return named


@dataclass(frozen=True, eq=False)
class _Table:
    """The table of one view, checked."""

    ids: list[Any]
    columns: list[str]
    values: Array  # (len(ids), len(columns)), in float
    counted: bool  # whether the ids are only the numbers of the rows
    id_name: Any  # what the ids are called, if anything

    def by_column(self, columns: Sequence[str]) -> Array:
        place = {column: j for j, column in enumerate(self.columns)}
        return self.values[:, [place[column] for column in columns]]


def _read_frame(name: str, table: Any, on: str | None) -> _Table:
    if not hasattr(table, "index") or not hasattr(table, "set_index"):
        raise ValueError(
            f"table {name!r} is a {type(table).__module__.split('.')[0]} data frame without an "
            "index; convert it to pandas, with ids as index"
        )
    if on is not None:
        if on not in table.columns:
            known = ", ".join(map(str, table.columns[:10]))
            raise ValueError(f"table {name!r} has no column {on!r}; it has {known}")
        table = table.set_index(on)
    ids, columns = table.index.tolist(), [str(column) for column in table.columns]
    _refuse_repeated(name, "id", ids, "keep one row of each sample, or average them")
    _refuse_repeated(name, "column", columns, "give columns distinct names")
    if table.index.nlevels > 1:
        raise ValueError(
            f"the index of table {name!r} has {table.index.nlevels} levels; an id is one value: "
            "join them, or name a column with on="
        )
    if table.index.hasnans:
        where = int(np.flatnonzero(table.index.isna())[0])
        raise ValueError(f"row {where} of table {name!r} has no id; remove the row or name it")
    counted = on is None and ids == list(range(len(ids)))
    values = np.empty(table.shape)
    for j, column in enumerate(columns):
        values[:, j] = _numbers(name, column, table.iloc[:, j], ids)
    _refuse_parts(name, values, ids, columns)
    return _Table(ids, columns, values, counted, table.index.name)


def _refuse_repeated(table: str, what: str, values: Sequence[Any], remedy: str) -> None:
    value, count = Counter(values).most_common(1)[0] if values else (None, 0)
    if count > 1:
        raise ValueError(f"table {table!r} has the {what} {value!r} {count} times; {remedy}")


def _numbers(table: str, column: str, series: Any, ids: Sequence[Any]) -> Array:
    """Values of a column as numbers; missing ones are NaN."""
    if series.dtype.kind in "biuf":
        return np.asarray(series.to_numpy(dtype=float, na_value=np.nan))
    missing = series.isna().to_numpy()
    for name, value, lost in zip(ids, series.tolist(), missing, strict=True):
        if not lost and not isinstance(value, Real):
            raise ValueError(
                f"column {column!r} of table {table!r} is no number at id {name!r}: {value!r}; "
                "encode it, for example with sklearn.preprocessing.OneHotEncoder, or leave it out"
            )
    return np.array(
        [np.nan if lost else v for v, lost in zip(series, missing, strict=True)], dtype=float
    )


def _refuse_parts(
    table: str, values: Array, ids: Sequence[Any], columns: Sequence[Any] | None
) -> None:
    """Raise where a value is infinite, or missing in a row that has others."""
    missing = np.isnan(values)
    partly = missing & ~missing.all(axis=1, keepdims=True)
    for bad, what, remedy in (
        (np.isinf(values), "infinite", "correct it, or make it NaN and impute it"),
        (
            partly,
            "missing, while others of the row are there",
            "impute it before joining, or make the whole row NaN: the sample then lacks the view",
        ),
    ):
        if bad.any():
            row, j = np.argwhere(bad)[0]
            column = j if columns is None else columns[j]
            raise ValueError(
                f"table {table!r}: the value of column {column!r} at id {ids[row]!r} is {what}; "
                f"{remedy}"
            )


def _join_frames(tables: dict[str, _Table], views: Views | None) -> tuple[Any, dict[str, Any]]:
    pandas = need_pandas("join_views")
    _check_ids(tables)
    if views is None:
        _warn_of_strangers(tables)
    columns = _distinct(tables) if views is None else {n: list(c) for n, c in views.items()}
    place = {name: row for row, name in enumerate(_all_ids(tables))}
    blocks = []
    for view, own in columns.items():
        block = np.full((len(place), len(own)), np.nan)
        if view in tables:
            table = tables[view]
            names = _as_in_training(view, table.columns, own)
            block[[place[name] for name in table.ids]] = table.by_column(names)
        blocks.append(block)
    names = [name for own in columns.values() for name in own]
    called = {table.id_name for table in tables.values()}
    index = pandas.Index(list(place), name=called.pop() if len(called) == 1 else None)
    return pandas.DataFrame(np.hstack(blocks), index=index, columns=names), columns


def _all_ids(tables: dict[str, _Table]) -> list[Any]:
    return list(dict.fromkeys(name for table in tables.values() for name in table.ids))


def _check_ids(tables: dict[str, _Table]) -> None:
    """Raise where the ids of tables cannot mean the same samples."""
    lengths = {name: len(table.ids) for name, table in tables.items()}
    if all(table.counted for table in tables.values()) and len(set(lengths.values())) > 1:
        raise ValueError(
            f"tables are of different length, {_listed(lengths)}, and their index only counts the "
            "rows; make the ids of the samples the index (table.set_index), or name their column "
            "with on="
        )
    kinds = {name: _kind(table.ids[0]) for name, table in tables.items() if table.ids}
    if len(set(kinds.values())) > 1:
        shown = {name: f"{tables[name].ids[0]!r} ({kind})" for name, kind in kinds.items()}
        raise ValueError(
            f"ids of the tables are of different types, {_listed(shown)}; no sample would be in "
            "two tables: convert them, for example with table.index.astype(str)"
        )


def _warn_of_strangers(tables: dict[str, _Table]) -> None:
    """Warn of tables that share no sample with any other: ids are then often spelt differently."""
    count = Counter(name for table in tables.values() for name in table.ids)
    first = {view: repr(table.ids[0]) for view, table in tables.items() if table.ids}
    strangers = [view for view in first if all(count[name] == 1 for name in tables[view].ids)]
    if len(tables) > 1 and strangers:
        warn_once(
            "tables without a common sample",
            f"no id of table {strangers[0]!r} is in another table, so that its samples lack all "
            f"other views; are the ids right? The first of each are {_listed(first)}",
        )


def _kind(value: Any) -> str:
    return "number" if isinstance(value, Integral | Real) else type(value).__name__


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name!r}: {value}" for name, value in values.items())


def _distinct(tables: dict[str, _Table]) -> dict[str, list[str]]:
    """Columns of every view, those that two tables share with the name of the view in front."""
    count = Counter(column for table in tables.values() for column in table.columns)
    columns = {
        view: [f"{view}:{c}" if count[c] > 1 else c for c in table.columns]
        for view, table in tables.items()
    }
    seen: dict[str, str] = {}
    for view, own in columns.items():
        for column in own:
            if column in seen:
                raise ValueError(
                    f"column {column!r} of table {view!r} has the name that a column of table "
                    f"{seen[column]!r} gets; rename one of them"
                )
            seen[column] = view
    return columns


def _as_in_training(view: str, given: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return the table's own names of the columns, in the order of training."""
    known = set(wanted)
    full = {f"{view}:{c}" if f"{view}:{c}" in known else c: c for c in given}
    for column in wanted:
        if column not in full:
            raise ValueError(
                f"table {view!r} lacks column {column!r} of training; give it, or leave out the "
                "whole table: its samples then lack the view"
            )
    for column, own in full.items():
        if column not in known:
            raise ValueError(
                f"table {view!r} has a column {own!r} that it had not in training; leave it out"
            )
    return [full[column] for column in wanted]


def _join_arrays(tables: dict[str, Any], views: Views | None) -> tuple[Any, dict[str, Any]]:
    lengths = {name: table.shape[0] for name, table in tables.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"arrays are of different length, {_listed(lengths)}; rows of a number are the same "
            "sample. Give data frames with ids as index where tables lack samples"
        )
    n = next(iter(lengths.values()))
    widths = {name: table.shape[1] for name, table in tables.items()}
    if views is not None:
        for name, width in widths.items():
            if width != len(views[name]):
                raise ValueError(
                    f"table {name!r} has {width} columns, in training it had {len(views[name])}"
                )
        widths = {name: len(own) for name, own in views.items()}
    blocks = [_block(name, tables.get(name), n, width) for name, width in widths.items()]
    ends = np.cumsum(list(widths.values()))
    columns = {
        name: list(range(int(end) - widths[name], int(end)))
        for name, end in zip(widths, ends, strict=True)
    }
    if all(map(is_sparse, blocks)):
        return sparse.hstack(blocks, format="csr"), columns
    return np.hstack([b.toarray() if is_sparse(b) else b for b in blocks]), columns


def _block(name: str, table: Any, n_samples: int, width: int) -> Any:
    if table is None:
        return np.full((n_samples, width), np.nan)
    if is_sparse(table):
        return table
    try:
        values = np.asarray(table, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"table {name!r} holds values that are no numbers: {error}") from error
    _refuse_parts(name, values, range(n_samples), None)
    return values
