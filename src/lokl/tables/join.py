"""Joining tables about the same samples: each table is a view, and samples may lack some."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from lokl._arrays import Array, is_sparse
from lokl._frames import need_pandas
from lokl._warnings import warn_once
from lokl.tables.columns import shorten_list
from lokl.tables.sources import TableError, TableSource

Views = Mapping[str, Sequence[Any]]


def join_views(
    tables: Mapping[str, Any], *, on: str | None = None, views: Views | None = None
) -> tuple[Any, dict[str, list[Any]]]:
    """Join tables of one view each.

    Data frames are joined by their index. A sample that is missing from a table has NaN in all
    columns of that view. Rows are in the order in which the ids first occur, so take the labels in
    that order: ``y.loc[X.index]``. Arrays have no ids; they have equal length and are joined row by
    row.

    Parameters
    ----------
    tables : mapping of str to {data frame, array, sparse matrix}
        The table of each view, by the name of the view. Numbers only. A row in which some values of
        a view are missing is rejected; a row of NaN means that the sample lacks the view.
    on : str, optional
        Column of ids in every data frame; the index by default.
    views : mapping of str to columns, optional
        As returned for the training samples, if `tables` are new samples: `X` then has the columns
        of training, with NaN for views without a table.

    Returns
    -------
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
    views : dict of str to list
        Columns of each view, names of a data frame or positions of an array, for
        :func:`lokl.kernels.per_view`. Columns that occur in two tables get the name of their view
        as a prefix: ``"view:column"``.

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
    tables = _check_tables(tables, views)
    arrays = [name for name, table in tables.items() if not hasattr(table, "columns")]
    if not arrays:
        frames = {name: _checked_frame(name, table, on) for name, table in tables.items()}
        return _join_frames(frames, views, counted=on is None)
    if len(arrays) < len(tables):
        raise ValueError(
            f"table {arrays[0]!r} is an array, whose rows have no ids, but others are data frames; "
            "pass data frames with ids as index, or only arrays"
        )
    if on is not None:
        raise ValueError(f"on={on!r} names a column of data frames, but the tables are arrays")
    return _join_arrays(tables, views)


def disambiguate_columns(columns: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return new names of the columns of each view: names in two views get the view as prefix."""
    count = Counter(name for names in columns.values() for name in names)
    renamed = {
        view: {name: f"{view}:{name}" if count[name] > 1 else name for name in names}
        for view, names in columns.items()
    }
    owner: dict[str, str] = {}
    for view, names in renamed.items():
        for name in names.values():
            if name in owner:
                raise TableError(
                    f"column {name!r} would be in view {view!r} and in view {owner[name]!r}; "
                    "rename one of them"
                )
            owner[name] = view
    return renamed


def outer_join(frames: Sequence[Any], ids: Any = None) -> Any:
    """Return data frames side by side; samples missing from a frame have missing values there."""
    pandas = need_pandas("joining tables")
    if ids is None:
        ids = list(dict.fromkeys(name for frame in frames for name in frame.index))
    return pandas.concat([frame.reindex(ids) for frame in frames], axis=1)


def without_common_id(ids: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the tables that share no id with any other table, empty tables aside."""
    count = Counter(name for names in ids.values() for name in names)
    isolated = [
        table for table, names in ids.items() if len(names) and all(count[n] == 1 for n in names)
    ]
    return isolated if len(ids) > 1 else []


def with_ids(sources: Sequence[TableSource], on: str | None) -> list[TableSource]:
    """Return tables whose index has the ids as text, without the column of ids.

    Without a column of ids, the ids are the row numbers, and all tables need the same length.
    """
    if on is not None:
        return [_with_id_column(source, on) for source in sources]
    lengths = {source.label: len(source.frame) for source in sources}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{label} {length}" for label, length in lengths.items())
        raise TableError(
            f"files have different numbers of rows ({shown}), so that rows cannot be matched by "
            "their order; name the column of ids with --on"
        )
    return [
        replace(s, frame=s.frame.set_axis([str(s.row(k)) for k in range(len(s.frame))], axis=0))
        for s in sources
    ]


def _with_id_column(source: TableSource, on: str) -> TableSource:
    frame = source.frame
    if on not in frame.columns:
        raise TableError(f"{source.label} has no column {on}; it has {shorten_list(frame.columns)}")
    ids = frame[on]
    if ids.isna().any():
        row = int(ids.isna().to_numpy().argmax())
        raise TableError(
            f"{source.label}, row {source.row(row)}, column {on}: the id is missing; add it, or "
            "remove the row"
        )
    names = [str(name) for name in ids]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        first = names.index(name)
        second = names.index(name, first + 1)
        raise TableError(
            f"{source.label}, rows {source.row(first)} and {source.row(second)}, column {on}: "
            f"duplicate id {name!r}; keep one row of each sample"
        )
    return replace(source, frame=frame.drop(columns=on).set_axis(names, axis=0))


def check_ids_overlap(sources: Sequence[TableSource], on: str) -> None:
    """Raise `TableError` if a file has no sample of any other, which suggests other spellings."""
    by_label = {source.label: source.frame.index for source in sources}
    isolated = without_common_id(by_label)
    if isolated:
        # The last one, since the first file is the reference.
        label = isolated[-1]
        other = next(name for name in by_label if name != label)
        raise TableError(
            f"no {on} is in both {other} and {label} (their ids look like {by_label[other][0]!r} "
            f"and {by_label[label][0]!r}); see --on"
        )


def _check_tables(tables: Any, views: Views | None) -> dict[str, Any]:
    """Return the tables by name, after checks of their names and shapes."""
    if not isinstance(tables, Mapping) or is_sparse(tables):
        raise ValueError(
            "tables must be a mapping of names to tables, such as {'blood': table}, got "
            f"{type(tables).__name__}"
        )
    if not tables:
        raise ValueError("join_views needs at least one table, got an empty mapping")
    named = {str(name): table for name, table in tables.items()}
    for name, table in named.items():
        shape = getattr(table, "shape", None)
        if shape is None or len(shape) != 2:
            shown = type(table).__name__ if shape is None else f"shape {tuple(shape)}"
            raise ValueError(
                f"table {name!r} must be a data frame, array or sparse matrix with rows and "
                f"columns, got {shown}"
            )
        if shape[1] == 0:
            raise ValueError(f"table {name!r} has no columns; leave the view out")
        if views is not None and name not in views:
            known = ", ".join(map(str, views))
            raise ValueError(f"table {name!r} is not a view of training; these are {known}")
    return named


def _checked_frame(name: str, table: Any, on: str | None) -> Any:
    """Return the table of a view as a data frame of floats, with unique ids and column names."""
    if not hasattr(table, "index") or not hasattr(table, "set_index"):
        raise ValueError(
            f"table {name!r} is a {type(table).__module__.split('.')[0]} data frame without an "
            "index; convert it to pandas, with ids as index"
        )
    if on is not None:
        if on not in table.columns:
            raise ValueError(
                f"table {name!r} has no column {on!r}; it has {shorten_list(table.columns)}"
            )
        table = table.set_index(on)
    table = table.rename(columns=str)
    _check_unique(name, "id", table.index, "keep one row of each sample, or average them")
    _check_unique(name, "column", table.columns, "rename one of them")
    if table.index.nlevels > 1:
        raise ValueError(
            f"the index of table {name!r} has {table.index.nlevels} levels, but an id is one "
            "value; join them, or name a column with on="
        )
    if table.index.hasnans:
        row = int(np.flatnonzero(table.index.isna())[0])
        raise ValueError(f"row {row} of table {name!r} has no id; add it, or remove the row")
    values = np.empty(table.shape)
    for j, column in enumerate(table.columns):
        values[:, j] = _as_floats(name, column, table.iloc[:, j])
    _check_complete(name, values, table.index.tolist(), table.columns)
    return need_pandas("join_views").DataFrame(values, table.index, table.columns)


def _check_unique(table: str, what: str, values: Any, remedy: str) -> None:
    if not values.is_unique:
        value = values[values.duplicated()].tolist()[0]
        raise ValueError(f"table {table!r} has a duplicate {what} {value!r}; {remedy}")


def _as_floats(table: str, column: str, values: Any) -> Array:
    """Return a column as floats, NaN for missing values."""
    if values.dtype.kind not in "biuf":
        words = values[values.notna() & ~values.map(lambda value: isinstance(value, Real))]
        if len(words):
            raise ValueError(
                f"table {table!r}, column {column!r}, id {words.index.tolist()[0]!r}: "
                f"{words.iloc[0]!r} is "
                "not a number; encode the column, for example with "
                "sklearn.preprocessing.OneHotEncoder, or leave it out"
            )
        values = values.where(values.notna(), np.nan)
    return np.asarray(values.to_numpy(dtype=float, na_value=np.nan))


def _check_complete(table: str, values: Array, ids: Sequence[Any], columns: Sequence[Any]) -> None:
    """Raise ValueError for infinite values, and for missing values in rows that have others."""
    missing = np.isnan(values)
    partly = missing & ~missing.all(axis=1, keepdims=True)
    for invalid, what, remedy in (
        (np.isinf(values), "infinite", "correct it, or set it to NaN and impute it"),
        (
            partly,
            "missing, but other values of the row are not",
            "impute it before joining, or set the whole row to NaN if the sample lacks the view",
        ),
    ):
        if invalid.any():
            row, j = np.argwhere(invalid)[0]
            raise ValueError(
                f"table {table!r}, column {columns[j]!r}, id {ids[row]!r}: the value is {what}; "
                f"{remedy}"
            )


def _join_frames(
    frames: dict[str, Any], views: Views | None, counted: bool
) -> tuple[Any, dict[str, list[str]]]:
    pandas = need_pandas("join_views")
    _check_ids_comparable(frames, counted)
    if views is None:
        _warn_without_common_id(frames)
        renamed = disambiguate_columns({name: list(f.columns) for name, f in frames.items()})
        views = {view: list(names.values()) for view, names in renamed.items()}
        frames = {view: frame.rename(columns=renamed[view]) for view, frame in frames.items()}
    else:
        frames = {view: _as_in_training(view, f, views[view]) for view, f in frames.items()}
    # Views without a table have no rows, and keep the order of columns.
    blocks = [
        frames.get(view, pandas.DataFrame(columns=list(columns), dtype=float))
        for view, columns in views.items()
    ]
    names = {frame.index.name for frame in frames.values()}
    ids = dict.fromkeys(name for frame in frames.values() for name in frame.index)
    index = pandas.Index(list(ids), name=names.pop() if len(names) == 1 else None)
    return outer_join(blocks, index), {view: list(columns) for view, columns in views.items()}


def _check_ids_comparable(frames: Mapping[str, Any], counted: bool) -> None:
    """Raise ValueError if the ids of tables cannot mean the same samples."""
    lengths = {name: len(frame) for name, frame in frames.items()}
    counted = counted and all(list(f.index) == list(range(len(f))) for f in frames.values())
    if counted and len(set(lengths.values())) > 1:
        raise ValueError(
            f"tables have different lengths, {_named_values(lengths)}, and their index only counts "
            "the rows; make the ids of the samples the index (table.set_index), or name their "
            "column with on="
        )
    first = _first_ids(frames)
    kinds = {name: _kind(value) for name, value in first.items()}
    if len(set(kinds.values())) > 1:
        shown = {name: f"{first[name]!r} ({kind})" for name, kind in kinds.items()}
        raise ValueError(
            f"ids of the tables have different types, {_named_values(shown)}, so that no sample "
            "is in two tables; convert them, for example with table.index.astype(str)"
        )


def _first_ids(frames: Mapping[str, Any]) -> dict[str, Any]:
    return {name: frame.index[:1].tolist()[0] for name, frame in frames.items() if len(frame)}


def _kind(value: Any) -> str:
    return "number" if isinstance(value, Real) else type(value).__name__


def _named_values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name!r}: {value}" for name, value in values.items())


def _warn_without_common_id(frames: Mapping[str, Any]) -> None:
    isolated = without_common_id({name: frame.index for name, frame in frames.items()})
    if isolated:
        first = {name: repr(value) for name, value in _first_ids(frames).items()}
        warn_once(
            "tables without a common sample",
            f"no id of table {isolated[0]!r} is in another table, so that its samples lack all "
            f"other views; check the ids. The first ones are {_named_values(first)}",
        )


def _as_in_training(view: str, frame: Any, columns: Sequence[str]) -> Any:
    """Return the table of a view with the names and the order of columns in training."""
    known = set(columns)
    renamed = {c: f"{view}:{c}" if f"{view}:{c}" in known else c for c in frame.columns}
    for column in columns:
        if column not in renamed.values():
            raise ValueError(
                f"table {view!r} lacks column {column!r} of training; add it, or leave out the "
                "whole table, so that its samples lack the view"
            )
    for column, name in renamed.items():
        if name not in known:
            raise ValueError(
                f"table {view!r} has a column {column!r} that was not in training; leave it out"
            )
    return frame.rename(columns=renamed)[list(columns)]


def _join_arrays(tables: dict[str, Any], views: Views | None) -> tuple[Any, dict[str, list[int]]]:
    lengths = {name: table.shape[0] for name, table in tables.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"arrays have different lengths, {_named_values(lengths)}, but are joined row by row; "
            "pass data frames with ids as index if tables lack samples"
        )
    n_samples = next(iter(lengths.values()))
    widths = {name: table.shape[1] for name, table in tables.items()}
    if views is not None:
        for name, width in widths.items():
            if width != len(views[name]):
                raise ValueError(
                    f"table {name!r} has {width} columns, but had {len(views[name])} in training"
                )
        widths = {name: len(columns) for name, columns in views.items()}
    blocks = [_block(name, tables.get(name), n_samples, width) for name, width in widths.items()]
    ends = np.cumsum(list(widths.values())).tolist()
    columns = {
        name: list(range(end - width, end))
        for (name, width), end in zip(widths.items(), ends, strict=True)
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
        raise ValueError(f"table {name!r} has values that are not numbers: {error}") from error
    _check_complete(name, values, range(n_samples), range(width))
    return values
