"""Tables of new samples, for a model that has learned from others."""

from collections.abc import Sequence
from typing import Any

from lokl._frames import need_pandas
from lokl.tables.columns import (
    NUMERIC,
    as_kind,
    as_labels,
    kind_of,
    listed,
    refuse_infinite,
    with_one_class,
)
from lokl.tables.join import outer_join, with_ids
from lokl.tables.preparation import Schema
from lokl.tables.sources import TableError, TableSource
from lokl.tables.table import Table, find_columns, read_files


def read_new(
    sources: Sequence[str],
    schema: Schema,
    *,
    on: str | None = None,
    na: Sequence[str] = (),
    delimiter: str = "",
    target: str | None = None,
) -> Table:
    """Read files of new samples; columns are found by the names that they had in training.

    Parameters
    ----------
    sources : sequence of str
        Files as for :func:`read_table`; views may be absent.
    schema : Schema
        What the model takes.
    on : str, optional
        Column of ids; that of training where it is not given and all files have it.
    na, delimiter
        As for :func:`read_table`.
    target : str, optional
        Column of what is known of the samples, or ``FILE:COLUMN``; that of training where it is not
        given and a file has it.

    Returns
    -------
    table : Table
        Its target is None where nothing is known, and has gaps where some samples are not. Columns
        that the model does not know are left out, with a note.
    """
    ids = [name for name in (on, schema.on) if name is not None]
    how = {"na": na, "delimiter": delimiter, "text_columns": ids}
    read = read_files(sources, how)
    if on is None and schema.on is not None:
        everywhere = all(schema.on in source.frame.columns for source in read)
        on = schema.on if everywhere or len(read) > 1 else None
    there = any(schema.target in source.frame.columns for source in read)
    wanted = target or (schema.target if there else None)
    files, places = find_columns({"--target": wanted}, read, how)
    files = with_ids(files, on)
    tables: dict[str, Any] = {}
    strangers: list[str] = []
    for source in files[: len(read)]:
        tables[source.name], others = _known(source, schema)
        strangers += others
    frame = outer_join(tables)
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise TableError(f"column {repeated[0]} is in two files; leave it out of one of them")
    if frame.shape[1] == 0:
        columns = listed(list(schema.kinds))
        raise TableError(f"{read[0].label} has none of the columns that the model knows: {columns}")
    notes = [f"{source.label}: {len(source.frame)} x {source.frame.shape[1]}" for source in read]
    known = [files[i].frame[column] for i, column in places.values()]
    ignored = [name for name in strangers if name not in [schema.target, *(v.name for v in known)]]
    if ignored:
        notes.append(f"not known to the model, ignored: {listed(ignored)}")
    truth = _truth(known[0], schema).reindex(frame.index) if known else None
    return Table(frame, schema.views, schema.kinds, truth, on=on, notes=tuple(notes))


def _truth(values: Any, schema: Schema) -> Any:
    """Return what is known of samples as the model calls it."""
    present = values.dropna().infer_objects()
    if schema.task == "numbers":
        return present
    return with_one_class(as_labels(present), schema.positive)


def _known(source: TableSource, schema: Schema) -> tuple[Any, list[str]]:
    """Return the columns that the model knows, by its names for them, and names of the others."""
    kept, others = {}, []
    kinds = schema.kinds
    for column in source.frame.columns:
        # Columns that two tables of training shared have the name of their view in front.
        name = next((n for n in (f"{source.name}:{column}", column) if n in kinds), None)
        if name is None:
            others.append(column)
            continue
        kind_of(source, column, {column: kinds[name]})
        values = as_kind(source.frame[column], kinds[name])
        if kinds[name] == NUMERIC:
            refuse_infinite(source, column, values)
        kept[name] = values
    frame = need_pandas("reading tables").DataFrame(kept, index=source.frame.index)
    return frame, others
