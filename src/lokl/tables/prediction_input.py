"""Tables of new samples for a fitted model."""

from collections.abc import Sequence
from typing import Any

from lokl._frames import need_pandas
from lokl.tables.columns import (
    REGRESSION,
    as_classes,
    merge_other_classes,
    read_column,
    shorten_list,
)
from lokl.tables.join import outer_join, with_ids
from lokl.tables.preparation import ModelSchema
from lokl.tables.sources import TableError, TableSource
from lokl.tables.table import Table, find_columns, read_files


def read_new(
    sources: Sequence[str],
    schema: ModelSchema,
    *,
    on: str | None = None,
    na: Sequence[str] | None = (),
    delimiter: str = "",
    target: str | None = None,
) -> Table:
    """Read files of new samples; columns are matched by their names in training.

    Parameters
    ----------
    sources : sequence of str
        Files as for :func:`read_table`; views may be absent.
    schema : ModelSchema
        Input of the model.
    on : str, optional
        Column of ids; by default the one of training, if all files have it.
    na, delimiter
        As for :func:`read_table`.
    target : str, optional
        Column of the known target, or ``FILE:COLUMN``; by default the one of training, if a file
        has it.

    Returns
    -------
    table : Table
        The target is None if it is unknown, and missing for samples without one. Columns that the
        model does not use are left out, with a note.
    """
    id_columns = [name for name in (on, schema.on) if name is not None]
    options = {"na": na, "delimiter": delimiter, "text_columns": id_columns}
    read = read_files(sources, options)
    if on is None and schema.on is not None:
        everywhere = all(schema.on in source.frame.columns for source in read)
        on = schema.on if everywhere or len(read) > 1 else None
    has_target = any(schema.target in source.frame.columns for source in read)
    wanted = target or (schema.target if has_target else None)
    files, positions = find_columns({"--target": wanted}, read, options)
    files = with_ids(files, on)
    truth = [files[i].frame[column] for i, column in positions.values()]
    selected = [_select(source, schema) for source in files[: len(read)]]
    frame = outer_join([features for features, _ in selected])
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise TableError(f"column {repeated[0]} is in two files; leave it out of one of them")
    if frame.shape[1] == 0:
        columns = shorten_list(list(schema.kinds))
        raise TableError(f"{read[0].label} has none of the columns of the model: {columns}")
    notes = [f"{source.label}: {len(source.frame)} x {source.frame.shape[1]}" for source in read]
    used = [schema.target, *(values.name for values in truth)]
    ignored = [name for _, others in selected for name in others if name not in used]
    if ignored:
        notes.append(f"not used by the model, ignored: {shorten_list(ignored)}")
    values = _known_target(truth[0], schema).reindex(frame.index) if truth else None
    return Table(frame, schema.views, schema.kinds, values, on=on, notes=tuple(notes))


def _known_target(values: Any, schema: ModelSchema) -> Any:
    """Return known target values with the classes of the model."""
    present = values.dropna().infer_objects()
    if schema.task == REGRESSION:
        return present
    return merge_other_classes(as_classes(present), schema.positive)


def _select(source: TableSource, schema: ModelSchema) -> tuple[Any, list[str]]:
    """Return the columns of the model, by their names in the model, and names of the others."""
    kept, others = {}, []
    for column in source.frame.columns:
        # Columns that occurred in two tables of training have the name of their view as prefix.
        candidates = (f"{source.name}:{column}", column)
        name = next((name for name in candidates if name in schema.kinds), None)
        if name is None:
            others.append(column)
        else:
            _, kept[name] = read_column(source, column, schema.kinds[name])
    frame = need_pandas("reading tables").DataFrame(kept, index=source.frame.index)
    return frame, others
