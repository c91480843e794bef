"""Joining tables about the same samples: each table is a view, and samples may lack some."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from lokl._arrays import Array, is_sparse
from lokl._frames import as_pandas, need_pandas
from lokl._warnings import warn_once
from lokl.datasets.generators import column_slices
from lokl.datasets.readers import as_numbers
from lokl.tables.sources import TableError, TableSource, check_columns

Views = Mapping[str, Sequence[Any]]


def join_views(
    tables: Any,
    *,
    on: str | None = None,
    views: Views | None = None,
    layers: Mapping[str, str] | None = None,
) -> tuple[Any, dict[str, list[Any]]]:
    """Join tables of one view each.

    Data frames are joined by their index. A sample that is missing from a table has NaN in all
    columns of that view. Rows are in the order in which the ids first occur, so take the labels in
    that order: ``y.loc[X.index]``. Arrays have no ids; they have equal length and are joined row by
    row.

    Parameters
    ----------
    tables : mapping of str to {data frame, AnnData, array, sparse matrix}, or MuData
        The table of each view, by the name of the view; the modalities of MuData. Numbers only. A
        row in which some values of a view are missing is rejected; a row of NaN means that the
        sample lacks the view.
    on : str, optional
        Column of ids in every data frame; the index by default.
    views : mapping of str to columns, optional
        As returned for the training samples, if `tables` are new samples: `X` then has the columns
        of training, with NaN for views without a table.
    layers : mapping of str to str, optional
        Layer of each AnnData, by the name of its view; the matrix ``X`` by default.

    Returns
    -------
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        All tables side by side, NaN for missing views.
    views : dict of str to list
        Columns of each view, names of a data frame or positions of an array, for
        :func:`lokl.kernels.per_view`. Columns that occur in two tables get the name of their view
        as a prefix: ``"view:column"``.

    See Also
    --------
    lokl.kernels.per_view : One kernel for each view.
    lokl.tables.read_table : Joins files.
    lokl.explain.view_value : What each view is worth.

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
    tables = _check_tables(_without_containers(tables, layers or {}), views)
    arrays = [name for name, table in tables.items() if not hasattr(table, "columns")]
    if not arrays:
        return _join_frames({n: _checked_frame(n, t, on) for n, t in tables.items()}, views, on)
    if len(arrays) < len(tables):
        raise ValueError(
            f"table {arrays[0]!r} is an array, whose rows have no ids, but others are data frames; "
            "pass data frames with ids as index, or only arrays"
        )
    if on is not None:
        raise ValueError(f"on={on!r} names a column of data frames, but the tables are arrays")
    return _join_arrays(tables, views)


def disambiguate_columns(columns: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return new names of the columns of each view: names in two views get the view as prefix.

    Parameters
    ----------
    columns : mapping of str to sequence of str
        Names of the columns of each view.

    Returns
    -------
    renamed : dict of str to dict of str to str
        For each view, the new name of each column.
    """
    count = Counter(chain.from_iterable(columns.values()))
    renamed = {
        view: {name: f"{view}:{name}" if count[name] > 1 else name for name in names}
        for view, names in columns.items()
    }
    owner: dict[str, str] = {}
    for view, names in renamed.items():
        for name in names.values():
            if owner.setdefault(name, view) != view:
                raise TableError(
                    f"column {name!r} would be in view {view!r} and in view {owner[name]!r}; "
                    "rename one of them"
                )
    return renamed


def outer_join(frames: Sequence[Any]) -> Any:
    """Return data frames side by side; samples missing from a frame have missing values there.

    The index of each frame has the ids. Rows are in the order in which the ids first occur.
    """
    pandas = need_pandas("joining tables")
    names = {frame.index.name for frame in frames if len(frame)}
    ids = list(dict.fromkeys(chain.from_iterable(frame.index for frame in frames)))
    index = pandas.Index(ids, name=names.pop() if len(names) == 1 else None)
    return pandas.concat([frame.reindex(index) for frame in frames], axis=1)


def with_ids(sources: Sequence[TableSource], on: str | None) -> list[TableSource]:
    """Return tables whose index has the ids as text, without the column of ids.

    Without a column of ids, the ids are the row numbers, and all tables need the same length. A
    data set, or a container, may name its samples.
    """
    if on is None and all(_names_samples(source) for source in sources):
        sources = [with_id_index(source, None, "obs_names") for source in sources]
        ids = [source.frame.index for source in sources]
    elif on is None:
        _check_order(sources)
        lengths = {source.label: len(source.frame) for source in sources}
        _check_equal_lengths(lengths, "name the column of ids with --on")
        # Numbers of the rows, as a spreadsheet counts them.
        ids = [range(s.first_row, s.first_row + len(s.frame)) for s in sources]
    else:
        # Tables of containers have ids without a column of them.
        columns = [None if _names_samples(s) and on not in s.frame.columns else on for s in sources]
        sources = [with_id_index(s, name, "--on") for s, name in zip(sources, columns, strict=True)]
        ids = [source.frame.index for source in sources]
    return [
        replace(source, frame=source.frame.set_axis(list(map(str, names)), axis=0))
        for source, names in zip(sources, ids, strict=True)
    ]


def _names_samples(source: TableSource) -> bool:
    """Return whether the index of a table has ids instead of row numbers."""
    return source.frame.index.dtype.kind not in "iu"


def with_id_index(source: TableSource, on: str | None, option: str) -> TableSource:
    """Return a table whose index has complete and unique ids.

    Parameters
    ----------
    source : TableSource
    on : str or None
        Column of ids; None if the index has them already.
    option : str
        Name of the option in messages.
    """
    frame = source.frame if on is None else source.frame.set_index(source.require(on, option))
    missing = np.flatnonzero(frame.index.isna())
    if len(missing):
        cell = source.at(missing[0], column=on)
        raise TableError(f"{cell}: the id is missing; add it, or remove the row")
    repeated = np.flatnonzero(frame.index.duplicated())
    if len(repeated):
        ids = frame.index.tolist()
        name = ids[repeated[0]]
        cells = source.at(ids.index(name), repeated[0], column=on)
        raise TableError(f"{cells}: duplicate id {name!r}; keep one row of each sample")
    return replace(source, frame=frame)


def about_isolated_ids(sources: Sequence[TableSource]) -> str:
    """Return a sentence about the last table that shares no id with any other, or nothing.

    This suggests that ids are spelt in different ways. Empty tables do not count.
    """
    ids = {source.label: source.frame.index for source in sources if len(source.frame)}
    count = Counter(chain.from_iterable(ids.values()))
    isolated = [label for label, names in ids.items() if all(count[name] == 1 for name in names)]
    if len(sources) < 2 or not isolated:
        return ""
    first = _named_values({label: repr(names[:1].tolist()[0]) for label, names in ids.items()})
    return (
        f"no id of {isolated[-1]} is in another table, so that its samples lack all other views; "
        f"the first ids are {first}"
    )


def _check_order(sources: Sequence[TableSource]) -> None:
    """Raise if a column that looks like ids has other values, or another order, in some table."""
    first, *others = sources
    for column in first.frame.columns:
        own = [s.frame[column] for s in sources if column in s.frame.columns]
        if len(own) < len(sources) or any(values.dtype.kind == "f" for values in own):
            continue
        ids = [values.astype(str).tolist() for values in own]
        known = set(ids[0])
        if all(
            len(set(names)) == len(names)
            and 2 * len(known & set(names)) >= min(len(known), len(names))
            for names in ids
        ):
            for source, names in zip(others, ids[1:], strict=True):
                if names != ids[0]:
                    raise TableError(
                        f"column {column} differs between {first.label} and {source.label}, so "
                        f"that rows cannot be matched by their order; pass --on {column} to match "
                        "them by it"
                    )


def _check_equal_lengths(lengths: Mapping[str, int], remedy: str) -> None:
    if len(set(lengths.values())) > 1:
        raise TableError(
            f"tables have different numbers of rows ({_named_values(lengths)}), so that rows "
            f"cannot be matched by their order; {remedy}"
        )


def _named_values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in values.items())


def _without_containers(tables: Any, layers: Mapping[str, str]) -> Any:
    """Return tables by the name of the view, with data frames instead of AnnData."""
    if hasattr(tables, "mod") and hasattr(tables, "obs_names"):
        tables = dict(tables.mod)
    if not isinstance(tables, Mapping):
        return tables
    unknown = [name for name in layers if not hasattr(tables.get(name), "layers")]
    if unknown:
        raise ValueError(f"layers has {unknown[0]!r}, which is not the name of an AnnData table")
    found = {}
    for name, table in tables.items():
        if not hasattr(table, "to_df"):
            found[name] = table
            continue
        layer = layers.get(name)
        if layer is not None and layer not in table.layers:
            known = ", ".join(table.layers) or "no layers"
            raise ValueError(f"table {name!r} has no layer {layer!r}; it has {known}")
        found[name] = table.to_df(layer)
    return found


def _check_tables(tables: Any, views: Views | None) -> dict[str, Any]:
    """Return the tables by name, after checks of their names and shapes."""
    if not isinstance(tables, Mapping) or is_sparse(tables):
        raise ValueError(
            "tables must be a mapping of names to tables, such as {'blood': table}, got "
            f"{type(tables).__name__}"
        )
    if not tables:
        raise ValueError("join_views needs at least one table, got an empty mapping")
    named = {str(name): as_pandas(table) for name, table in tables.items()}
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


def _checked_frame(name: str, table: Any, on: str | None) -> TableSource:
    """Return the table of a view with floats, and with unique ids and column names.

    Parameters
    ----------
    name : str
        Name of the view.
    table : data frame
    on : str or None
        Column of ids; None for the index.
    """
    if on is None and table.index.nlevels > 1:
        raise ValueError(
            f"the index of table {name!r} has {table.index.nlevels} levels, but an id is one "
            "value; join them, or name a column with on="
        )
    source = TableSource(name, f"table {name!r}", table.rename(columns=str), first_row=0)
    check_columns(source)
    source = with_id_index(source, on, "on=")
    frame = source.frame
    ids, columns, values = frame.index.tolist(), frame.columns, np.empty(frame.shape)
    for j, column in enumerate(columns):
        values[:, j], words = as_numbers(frame[column], text=False)
        if len(words):
            raise ValueError(
                f"{source.label}, column {column!r}, id {ids[words[0]]!r}: "
                f"{frame[column].iloc[words[0]]!r} is not a number; encode the column, for example "
                "with sklearn.preprocessing.OneHotEncoder, or leave it out"
            )
    _check_complete(values, lambda i, j: f"{source.label}, column {columns[j]!r}, id {ids[i]!r}")
    return replace(source, frame=need_pandas("join_views").DataFrame(values, frame.index, columns))


def _check_complete(values: Array, cell: Callable[[int, int], str]) -> None:
    """Raise ValueError for infinite values, and for missing values in rows that have others.

    Parameters
    ----------
    values : array of shape (n_samples, n_columns)
    cell : callable
        Returns the name of a cell in messages, from its row and column.
    """
    missing = np.isnan(values)
    for invalid, what in (
        (np.isinf(values), "infinite; correct it, or set it to NaN and impute it"),
        (
            missing & ~missing.all(axis=1, keepdims=True),
            "missing, but other values of the row are not; impute it before joining, or set the "
            "whole row to NaN if the sample lacks the view",
        ),
    ):
        if invalid.any():
            raise ValueError(f"{cell(*np.argwhere(invalid)[0])}: the value is {what}")


def _join_frames(
    sources: dict[str, TableSource], views: Views | None, on: str | None
) -> tuple[Any, dict[str, list[str]]]:
    """Return data frames joined by their ids, and the columns of each view."""
    pandas = need_pandas("join_views")
    frames = {name: source.frame for name, source in sources.items()}
    _check_ids_comparable(frames, on)
    if views is None:
        isolated = about_isolated_ids(list(sources.values()))
        if isolated:
            warn_once("tables without a common sample", f"{isolated}; check them")
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
    return outer_join(blocks), {view: list(columns) for view, columns in views.items()}


def _check_ids_comparable(frames: Mapping[str, Any], on: str | None) -> None:
    """Raise ValueError if the ids of tables cannot mean the same samples."""
    if on is None and all(list(f.index) == list(range(len(f))) for f in frames.values()):
        lengths = {repr(name): len(frame) for name, frame in frames.items()}
        remedy = "make the ids the index (table.set_index), or name their column with on="
        _check_equal_lengths(lengths, remedy)
    first = {repr(n): frame.index[:1].tolist()[0] for n, frame in frames.items() if len(frame)}
    kinds = {
        name: "number" if isinstance(value, Real) else type(value).__name__
        for name, value in first.items()
    }
    if len(set(kinds.values())) > 1:
        shown = {name: f"{first[name]!r} ({kind})" for name, kind in kinds.items()}
        raise ValueError(
            f"ids of the tables have different types, {_named_values(shown)}, so that no sample "
            "is in two tables; convert them, for example with table.index.astype(str)"
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
    """Return arrays side by side, and the positions of the columns of each view."""
    lengths = {repr(name): table.shape[0] for name, table in tables.items()}
    _check_equal_lengths(lengths, "pass data frames with ids as index if tables lack samples")
    widths = {name: table.shape[1] for name, table in tables.items()}
    if views is not None:
        trained = {name: len(columns) for name, columns in views.items()}
        for name, width in widths.items():
            if width != trained[name]:
                raise ValueError(
                    f"table {name!r} has {width} columns, but had {trained[name]} in training"
                )
        widths = trained
    n_samples = next(iter(lengths.values()))
    blocks = [_block(name, tables.get(name), n_samples, width) for name, width in widths.items()]
    slices = column_slices(list(widths), list(widths.values()))
    columns = {name: list(range(part.start, part.stop)) for name, part in slices.items()}
    if all(map(is_sparse, blocks)):
        return sparse.hstack(blocks, format="csr"), columns
    return np.hstack([b.toarray() if is_sparse(b) else b for b in blocks]), columns


def _block(name: str, table: Any, n_samples: int, width: int) -> Any:
    """Return the values of a view, of shape (n_samples, width); NaN without a table."""
    if table is None:
        return np.full((n_samples, width), np.nan)
    if is_sparse(table):
        return table
    try:
        values = np.asarray(table, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"table {name!r} has values that are not numbers: {error}") from error
    _check_complete(values, lambda i, j: f"table {name!r}, column {j}, row {i}")
    return values
