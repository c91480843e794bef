"""Files of samples as one table: what is known of each sample, by view, and what is predicted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, NamedTuple

from lokl._frames import need_pandas
from lokl.tables.columns import (
    CATEGORICAL,
    NUMERIC,
    as_kind,
    as_labels,
    column_of,
    described,
    find_column,
    kind_of,
    listed,
    one_against_all,
    refuse_infinite,
    task_of,
    useless,
)
from lokl.tables.join import outer_join, refuse_strangers, told_apart, with_ids
from lokl.tables.preparation import MOST_WORDS
from lokl.tables.sources import TableError, TableSource, read_source


class Extent(NamedTuple):
    """How large a table is."""

    rows: int
    columns: int
    empty: float  # share of its cells

    @classmethod
    def of(cls, frame: Any, values: Any) -> "Extent":
        """Measure a data frame; which of its cells are empty is seen once they are values."""
        rows, columns = frame.shape
        return cls(rows, columns, float(values.isna().to_numpy().mean()))


@dataclass(frozen=True, eq=False)
class Table:
    """Samples in rows.

    Attributes
    ----------
    frame : data frame
        Numbers and words, missing ones as NaN or None; the index holds the ids.
    views : dict of str to list of str
        Columns of each view.
    kinds : dict of str to {"numeric", "categorical"}
        Of each column.
    target : series or None
        What is predicted.
    task : {"classes", "numbers"} or None
    positive : str or None
        Class that is told from all others, where one was named.
    groups : series or None
        Samples of one group stay together when data is divided.
    on : str or None
        Name of the column of ids; None where ids are the numbers of the rows.
    notes : tuple of str
        What was read, guessed and left out, one line each.
    files : dict of str to Extent
        Size of each file that is a view, by the name it was given.
    """

    frame: Any
    views: dict[str, list[str]]
    kinds: dict[str, str]
    target: Any = None
    task: str | None = None
    groups: Any = None
    on: str | None = None
    notes: tuple[str, ...] = ()
    positive: str | None = None
    files: dict[str, Extent] = field(default_factory=dict)

    @cached_property
    def ids(self) -> list[str]:
        """Names of the samples."""
        return list(self.frame.index)

    def lacking(self) -> dict[str, int]:
        """How many samples lack each view, where any does."""
        counts = {v: int(self.frame[own].isna().all(axis=1).sum()) for v, own in self.views.items()}
        return {view: count for view, count in counts.items() if count}


def read_table(
    sources: Sequence[str],
    *,
    on: str | None = None,
    target: str | None = None,
    groups: str | None = None,
    views: Mapping[str, str] | None = None,
    kinds: Mapping[str, str] | None = None,
    task: str | None = None,
    positive: str | None = None,
    na: Sequence[str] = (),
    delimiter: str = "",
) -> Table:
    """Read files as one table for learning.

    Parameters
    ----------
    sources : sequence of str
        Paths of CSV, TSV, Parquet, LIBSVM text or ``.npz`` files, or the name of a data set. Each
        file is a view; a sample that a file lacks lacks that view.
    on : str, optional
        Column of ids, in every file. Without it, rows are matched by their order.
    target : str, optional
        Column to predict, or ``FILE:COLUMN``, where the file may be one that is no view. LIBSVM
        text, ``.npz`` files and data sets bring their own.
    groups : str, optional
        Column of groups, or ``FILE:COLUMN``.
    views : mapping of str to str, optional
        Views of one file: name and pattern of columns, such as ``{"blood": "b_*,iron"}``.
    kinds : mapping of str to {"numeric", "categorical"}, optional
        Kinds of columns, where the guess is wrong.
    task : {"classes", "numbers"}, optional
        What the target holds. Words and few whole numbers are classes unless told otherwise.
    positive : str, optional
        Class of the target that is told from all others, which become one class.
    na : sequence of str, optional
        Words for missing values, beside the empty cell, NA and NaN.
    delimiter : str, optional
        Between the cells of text files, where their ending does not tell.

    Returns
    -------
    table : Table

    Raises
    ------
    TableError
        With one line that names the file, the row and the column, and says what would help.
    """
    how = {"na": na, "delimiter": delimiter, "text_columns": [on] if on else []}
    read = read_files(sources, how)
    asked = {"--target": target or _own_target(read), "--groups": groups}
    files, taken = _joined(*find_columns(asked, read, how), on)
    _check_patterns(views or {}, read, list(files[0].frame.columns))
    table = replace(_features(files[: len(read)], views or {}, kinds or {}), on=on)
    if "--groups" in taken:
        table = replace(table, groups=taken["--groups"].reindex(table.frame.index))
    if "--target" not in taken:
        return table
    return with_positive(_labelled(table, taken["--target"], task), positive)


def _joined(
    files: Sequence[TableSource], places: Mapping[str, tuple[int, str]], on: str | None
) -> tuple[list[TableSource], dict[str, Any]]:
    """Return files with ids and without the columns that are asked for, and these columns."""
    files = with_ids(files, on)
    if on is not None:
        refuse_strangers(files, on)
    taken = {option: files[i].frame[column] for option, (i, column) in places.items()}
    return _without(files, places), taken


def _without(
    read: Sequence[TableSource], places: Mapping[str, tuple[int, str]]
) -> list[TableSource]:
    """Return the tables without the columns that are asked for: nobody learns from those."""
    tables = []
    for i, source in enumerate(read):
        used = [column for place, column in places.values() if place == i]
        tables.append(replace(source, frame=source.frame.drop(columns=used)))
    return tables


def _own_target(read: Sequence[TableSource]) -> str | None:
    """Target that a file brings, where no other is asked for."""
    own = [source.target for source in read if source.target is not None]
    return own[0] if len(read) == 1 and own else None


def find_columns(
    asked: Mapping[str, str | None], read: list[TableSource], how: Mapping[str, Any]
) -> tuple[list[TableSource], dict[str, tuple[int, str]]]:
    """Return all files that are needed, and file and column of everything that is asked for."""
    files, places = list(read), {}
    for option, given in asked.items():
        if given is None:
            continue
        owner, column = find_column(given, files, option)
        if owner is None:
            file, _, column = given.rpartition(":")
            owner, column = column_of(read_source(file, **how), column, option)
            files.append(owner)
        places[option] = files.index(owner), column
    return files, places


def read_files(sources: Sequence[str], how: Mapping[str, Any]) -> list[TableSource]:
    """Read all files; their names, which are those of views, must differ."""
    if not sources:
        raise TableError("no files are given")
    read = [read_source(source, **how) for source in sources]
    names: dict[str, str] = {}
    for source in read:
        if source.name in names:
            raise TableError(
                f"{names[source.name]} and {source.label} would both be the view {source.name}; "
                "rename one of them"
            )
        names[source.name] = source.label
    return read


def _features(
    tables: Sequence[TableSource], patterns: Mapping[str, str], kinds: Mapping[str, str]
) -> Table:
    """Return the columns to learn from, by view."""
    notes = [f"{table.label}: {len(table.frame)} x {table.frame.shape[1]}" for table in tables]
    columns, found, frames = {}, {}, {}
    names = told_apart({table.name: list(table.frame.columns) for table in tables})
    for table in tables:
        new = names[table.name]
        kept: dict[str, Any] = {}
        dropped: dict[str, list[str]] = {}
        for column in table.frame.columns:
            kind = kind_of(table, column, kinds)
            values = as_kind(table.frame[column], kind)
            if kind == NUMERIC:
                refuse_infinite(table, column, values)
            why = "" if column in kinds else useless(values, kind)
            if why:
                dropped.setdefault(why, []).append(column)
            else:
                kept[new[column]] = values
                found[new[column]] = kind
        notes += [f"{table.label}: left out {listed(c)} ({why})" for why, c in dropped.items()]
        if not kept:
            raise TableError(f"{table.label} has no column to learn from; see --target and --on")
        frames[table.name] = need_pandas("reading tables").DataFrame(kept)
        columns[table.name] = list(kept)
    frame = outer_join(frames)
    unknown = [column for column in kinds if column not in found]
    if unknown:
        raise TableError(
            f"no column {unknown[0]}, whose kind is told; there are {listed(list(found))}"
        )
    views, told = _views(tables, patterns, columns)
    shown = [view for own in views.values() for view in own]
    words = [column for column in shown if found[column] == CATEGORICAL]
    if words:
        told.append(f"categories: {listed(words)}")
    many = [column for column in words if frame[column].nunique() > MOST_WORDS]
    if many:
        told.append(f"of more than {MOST_WORDS} words the most frequent count: {listed(many)}")
    files = {table.label: Extent.of(table.frame, frames[table.name]) for table in tables}
    joined = Table(frame[shown], views, {c: found[c] for c in shown}, files=files)
    told += [f"{n} of {len(frame)} lack {view}" for view, n in joined.lacking().items()]
    return replace(joined, notes=(*notes, *told))


def _views(
    tables: Sequence[TableSource], patterns: Mapping[str, str], columns: Mapping[str, list[str]]
) -> tuple[dict[str, list[str]], list[str]]:
    """Return columns of each view, and notes about what is in none."""
    if len(tables) > 1:
        if patterns:
            raise TableError("--view divides one file; each of several files is a view already")
        return dict(columns), []
    ((name, everything),) = columns.items()
    if not patterns:
        inside = {v: [c for c in own if c in everything] for v, own in tables[0].views.items()}
        return {view: own for view, own in inside.items() if own} or {name: everything}, []
    views: dict[str, list[str]] = {}
    owner: dict[str, str] = {}
    told: list[str] = []
    for view, pattern in patterns.items():
        parts = _parts(pattern)
        views[view] = [c for c in everything if any(fnmatchcase(c, part) for part in parts)]
        if not views[view]:
            raise TableError(
                f"view {view}: no column of {tables[0].label} is like {pattern}; there are "
                f"{listed(everything)}"
            )
        # The target, ids and groups, or a column that tells nothing.
        idle = [part for part in parts if not any(fnmatchcase(c, part) for c in everything)]
        told += [f"view {view}: {part} is not learned from" for part in idle]
        for column in views[view]:
            if column in owner:
                raise TableError(f"column {column} is in two views, {owner[column]} and {view}")
            owner[column] = view
    rest = [column for column in everything if column not in owner]
    return views, [*told, f"in no view, left out: {listed(rest)}"] if rest else told


def _parts(pattern: str) -> list[str]:
    """Patterns that are told in one, divided by commas."""
    return [part.strip() for part in pattern.split(",")]


def _check_patterns(
    patterns: Mapping[str, str], read: Sequence[TableSource], free: list[str]
) -> None:
    """Raise where a part of a view's pattern is like no column of one file: it may be a slip.

    `free` are the columns that are neither target nor ids nor groups.
    """
    parts = [(view, part) for view, pattern in patterns.items() for part in _parts(pattern)]
    for view, part in parts if len(read) == 1 else ():
        if not any(fnmatchcase(column, part) for column in read[0].frame.columns):
            raise TableError(
                f"view {view}: no column of {read[0].label} is like {part}; there are "
                f"{listed(free)}"
            )


def _labelled(table: Table, values: Any, task: str | None) -> Table:
    """Return the samples whose target is known."""
    name, values = str(values.name), values.reindex(table.frame.index)
    known = values.notna() & table.frame.notna().any(axis=1)
    if not known.any():
        raise TableError(f"target {name} is missing in every row that has values; see --target")
    values = values[known]
    task = task_of(name, values.infer_objects(), task)
    values = as_labels(values) if task == "classes" else values
    notes = [f"target {described(name, values, task)}"]
    if not known.all():
        notes.append(f"left out {int((~known).sum())} samples without target or without values")
    return replace(
        table,
        frame=table.frame[known],
        groups=None if table.groups is None else table.groups[known],
        target=values,
        task=task,
        notes=(*table.notes, *notes),
    )


def with_positive(table: Table, positive: str | None) -> Table:
    """Return a table whose target tells one class from all others."""
    if positive is None:
        return table
    if table.task != "classes":
        raise TableError(f"--positive {positive}: target {table.target.name} holds numbers")
    values = one_against_all(table.target, positive)
    told = f"target {described(str(values.name), values, 'classes')}"
    return replace(table, target=values, positive=positive, notes=(*table.notes, told))
