"""Rows of several files that are about the same samples."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lokl._frames import need_pandas
from lokl.tables.columns import listed
from lokl.tables.sources import TableError, TableSource


def with_ids(sources: Sequence[TableSource], on: str | None) -> list[TableSource]:
    """Return the tables with the ids of their rows as index, as text; the column is gone."""
    if on is not None:
        return [_by_column(source, on) for source in sources]
    lengths = {source.label: len(source.frame) for source in sources}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{label} {length}" for label, length in lengths.items())
        raise TableError(
            f"files have different numbers of rows ({shown}), so that rows cannot be matched by "
            "their order; name the column of ids with --on"
        )
    return [_counted(source) for source in sources]


def _by_column(source: TableSource, on: str) -> TableSource:
    frame = source.frame
    if on not in frame.columns:
        raise TableError(f"{source.label} has no column {on}; it has {listed(frame.columns)}")
    ids = frame[on]
    if ids.isna().any():
        row = int(ids.isna().to_numpy().argmax())
        raise TableError(
            f"{source.label}, row {source.row(row)}, column {on}: no id; name the sample or remove "
            "the row"
        )
    names = [str(name) for name in ids]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        first = names.index(name)
        second = names.index(name, first + 1)
        raise TableError(
            f"{source.label}, rows {source.row(first)} and {source.row(second)}, column {on}: "
            f"{name!r} is there {count} times; keep one row of each sample"
        )
    return replace(source, frame=frame.drop(columns=on).set_axis(names, axis=0))


def _counted(source: TableSource) -> TableSource:
    names = [str(source.row(place)) for place in range(len(source.frame))]
    return replace(source, frame=source.frame.set_axis(names, axis=0))


def refuse_strangers(sources: Sequence[TableSource], on: str | None) -> None:
    """Raise where a file shares no sample with any other: ids are then spelt differently."""
    count = Counter(name for source in sources for name in source.frame.index)
    # The last first: the first file is the one that others are compared with.
    for source in reversed(sources):
        others = [other for other in sources if other is not source]
        if others and all(count[name] == 1 for name in source.frame.index):
            raise TableError(
                f"no {on or 'row'} is in both {others[0].label} and {source.label} (their ids look "
                f"like {others[0].frame.index[0]!r} and {source.frame.index[0]!r}); see --on"
            )


def outer_join(tables: Mapping[str, Any], ids: Sequence[str] | None = None) -> Any:
    """Put tables side by side; who is not in a table has missing values there."""
    pandas = need_pandas("reading tables")
    if ids is None:
        ids = list(dict.fromkeys(name for table in tables.values() for name in table.index))
    return pandas.concat([table.reindex(ids) for table in tables.values()], axis=1)


def told_apart(columns: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """New names of the columns of each view: those that two views share get the name of theirs."""
    count = Counter(name for own in columns.values() for name in own)
    return {
        view: {name: f"{view}:{name}" if count[name] > 1 else name for name in own}
        for view, own in columns.items()
    }
