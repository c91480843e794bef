"""Reading files of samples as one table of views with a target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, NamedTuple

from lokl._frames import need_pandas
from lokl.search.columns import MAX_CATEGORIES
from lokl.tables.columns import (
    CATEGORICAL,
    CLASSIFICATION,
    REGRESSION,
    as_classes,
    describe_target,
    find_column,
    infer_task,
    one_versus_rest,
    read_column,
    require_column,
    shorten_list,
    why_uninformative,
)
from lokl.tables.join import check_ids_overlap, disambiguate_columns, outer_join, with_ids
from lokl.tables.sources import TableError, TableSource, read_source


class TableSize(NamedTuple):
    """Size of a file."""

    rows: int
    columns: int
    empty: float  # share of empty cells


@dataclass(frozen=True, eq=False)
class Table:
    """Samples in rows.

    Attributes
    ----------
    frame : data frame
        Numbers and text, missing ones as NaN or None; the index has the ids.
    views : dict of str to list of str
        Columns of each view.
    kinds : dict of str to {"numeric", "categorical"}
        Kind of each column.
    target : series or None
        Values to predict.
    task : {"classification", "regression"} or None
    groups : series or None
        Samples of one group stay together in cross-validation.
    on : str or None
        Name of the column of ids; None if ids are row numbers.
    notes : tuple of str
        Facts about what was read, inferred and left out, one line each.
    positive : str or None
        Class that is compared with all others, if one was named.
    files : dict of str to TableSize
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
    files: dict[str, TableSize] = field(default_factory=dict)

    @cached_property
    def ids(self) -> list[str]:
        """Ids of the samples."""
        return list(self.frame.index)

    @property
    def is_regression(self) -> bool:
        """Whether the target is numeric instead of classes."""
        return self.task == REGRESSION

    def n_missing(self) -> dict[str, int]:
        """Number of samples without each view, for views that some samples lack."""
        counts = {
            view: int(self.frame[columns].isna().all(axis=1).sum())
            for view, columns in self.views.items()
        }
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
    """Read files as one table of training samples.

    Parameters
    ----------
    sources : sequence of str
        Paths of CSV, TSV, Parquet, LIBSVM text or ``.npz`` files, or the name of a data set. Each
        file is a view; samples that are missing from a file lack that view.
    on : str, optional
        Column of ids in every file. Without it, rows are matched by their order.
    target : str, optional
        Column to predict, or ``FILE:COLUMN``; the file need not be a view. LIBSVM text, ``.npz``
        files and data sets have a target of their own.
    groups : str, optional
        Column of groups, or ``FILE:COLUMN``.
    views : mapping of str to str, optional
        Views of one file: name and pattern of columns, such as ``{"blood": "b_*,iron"}``.
    kinds : mapping of str to {"numeric", "categorical"}, optional
        Kinds of columns; inferred by default.
    task : {"classification", "regression"}, optional
        Inferred by default: text and few distinct integers are classes.
    positive : str, optional
        Class of the target to compare with all others, which become one class.
    na : sequence of str, optional
        Cells that are missing values, in addition to empty cells, NA and NaN.
    delimiter : str, optional
        Character between the cells of text files; given by their ending by default.

    Returns
    -------
    table : Table

    Raises
    ------
    TableError
        One line that names the file, the row and the column, and a remedy.
    """
    options = {"na": na, "delimiter": delimiter, "text_columns": [on] if on else []}
    views, kinds = views or {}, kinds or {}
    read = read_files(sources, options)
    wanted = {"--target": target or _default_target(read), "--groups": groups}
    files, positions = find_columns(wanted, read, options)
    files = with_ids(files, on)
    if on is not None:
        check_ids_overlap(files, on)
    taken = {option: files[i].frame[column] for option, (i, column) in positions.items()}
    files = _without_columns(files, positions)
    _check_patterns(views, read, list(files[0].frame.columns))
    table = replace(_join_features(files[: len(read)], views, kinds), on=on)
    if "--groups" in taken:
        table = replace(table, groups=taken["--groups"].reindex(table.frame.index))
    if "--target" not in taken:
        return table
    return with_positive(_with_target(table, taken["--target"], task), positive)


def _without_columns(
    sources: Sequence[TableSource], positions: Mapping[str, tuple[int, str]]
) -> list[TableSource]:
    """Return the tables without target and groups."""
    tables = []
    for i, source in enumerate(sources):
        used = [column for position, column in positions.values() if position == i]
        tables.append(replace(source, frame=source.frame.drop(columns=used)))
    return tables


def _default_target(read: Sequence[TableSource]) -> str | None:
    return read[0].target if len(read) == 1 else None


def find_columns(
    wanted: Mapping[str, str | None], read: Sequence[TableSource], options: Mapping[str, Any]
) -> tuple[list[TableSource], dict[str, tuple[int, str]]]:
    """Return all files that are needed, and index of the file and column of each option."""
    files, positions = list(read), {}
    for option, given in wanted.items():
        if given is None:
            continue
        owner, column = find_column(given, files, option)
        if owner is None:
            file, _, column = given.rpartition(":")
            owner, column = require_column(read_source(file, **options), column, option)
            files.append(owner)
        positions[option] = files.index(owner), column
    return files, positions


def read_files(sources: Sequence[str], options: Mapping[str, Any]) -> list[TableSource]:
    """Read all files; their names, which become names of views, must differ."""
    if not sources:
        raise TableError("no files are given")
    read = [read_source(source, **options) for source in sources]
    names: dict[str, str] = {}
    for source in read:
        if source.name in names:
            raise TableError(
                f"{names[source.name]} and {source.label} would both be the view {source.name}; "
                "rename one of them"
            )
        names[source.name] = source.label
    return read


def _join_features(
    tables: Sequence[TableSource], patterns: Mapping[str, str], kinds: Mapping[str, str]
) -> Table:
    """Return the informative columns of all files, by view."""
    notes = [f"{table.label}: {len(table.frame)} x {table.frame.shape[1]}" for table in tables]
    names = disambiguate_columns({table.name: list(table.frame.columns) for table in tables})
    frames, inferred = {}, {}
    for table in tables:
        frames[table.name], kinds_of_table, dropped = _features(table, names[table.name], kinds)
        inferred.update(kinds_of_table)
        notes += dropped
    unknown = [column for column in kinds if column not in inferred]
    if unknown:
        raise TableError(
            f"no column {unknown[0]}, whose kind is given; there are {shorten_list(list(inferred))}"
        )
    columns = {name: list(frame.columns) for name, frame in frames.items()}
    views, view_notes = _views(tables, patterns, columns)
    used = [column for names_of_view in views.values() for column in names_of_view]
    frame = outer_join(list(frames.values()))[used]
    sizes = {table.label: _size(table.frame, frames[table.name]) for table in tables}
    joined = Table(frame, views, {c: inferred[c] for c in used}, files=sizes)
    return replace(joined, notes=(*notes, *view_notes, *_notes_about(joined)))


def _size(frame: Any, values: Any) -> TableSize:
    """Return the size of a file; cells are empty or not once they are values."""
    rows, columns = frame.shape
    return TableSize(rows, columns, float(values.isna().to_numpy().mean()))


def _features(
    table: TableSource, names: Mapping[str, str], kinds: Mapping[str, str]
) -> tuple[Any, dict[str, str], list[str]]:
    """Return the informative columns of a file by new name, their kinds, and notes about others."""
    kept: dict[str, Any] = {}
    kept_kinds: dict[str, str] = {}
    dropped: dict[str, list[str]] = {}
    for column in table.frame.columns:
        kind, values = read_column(table, column, kinds.get(column))
        reason = "" if column in kinds else why_uninformative(values, kind)
        if reason:
            dropped.setdefault(reason, []).append(column)
        else:
            kept[names[column]] = values
            kept_kinds[names[column]] = kind
    if not kept:
        raise TableError(f"{table.label} has no column to learn from; see --target and --on")
    notes = [f"{table.label}: left out {shorten_list(c)} ({why})" for why, c in dropped.items()]
    return need_pandas("reading tables").DataFrame(kept), kept_kinds, notes


def _notes_about(table: Table) -> list[str]:
    notes = []
    words = [column for column, kind in table.kinds.items() if kind == CATEGORICAL]
    if words:
        notes.append(f"categories: {shorten_list(words)}")
    many = [column for column in words if table.frame[column].nunique() > MAX_CATEGORIES]
    if many:
        notes.append(f"only the {MAX_CATEGORIES} most frequent categories: {shorten_list(many)}")
    n_samples = len(table.frame)
    return notes + [f"{n} of {n_samples} lack {view}" for view, n in table.n_missing().items()]


def _views(
    tables: Sequence[TableSource], patterns: Mapping[str, str], columns: Mapping[str, list[str]]
) -> tuple[dict[str, list[str]], list[str]]:
    """Return columns of each view, and notes about columns in no view."""
    if len(tables) > 1:
        if patterns:
            raise TableError("--view divides one file, but each of several files is a view already")
        return dict(columns), []
    ((name, everything),) = columns.items()
    if not patterns:
        views = {v: [c for c in names if c in everything] for v, names in tables[0].views.items()}
        return {view: names for view, names in views.items() if names} or {name: everything}, []
    views = {}
    owner: dict[str, str] = {}
    notes: list[str] = []
    for view, pattern in patterns.items():
        parts = _parts(pattern)
        views[view] = [c for c in everything if any(fnmatchcase(c, part) for part in parts)]
        if not views[view]:
            raise TableError(
                f"view {view}: no column of {tables[0].label} matches {pattern}; there are "
                f"{shorten_list(everything)}"
            )
        # Target, ids and groups, and uninformative columns.
        unused = [part for part in parts if not any(fnmatchcase(c, part) for c in everything)]
        notes += [f"view {view}: {part} is not used as a feature" for part in unused]
        for column in views[view]:
            if column in owner:
                raise TableError(f"column {column} is in two views, {owner[column]} and {view}")
            owner[column] = view
    rest = [column for column in everything if column not in owner]
    return views, [*notes, f"in no view, left out: {shorten_list(rest)}"] if rest else notes


def _parts(pattern: str) -> list[str]:
    """Return the patterns between commas."""
    return [part.strip() for part in pattern.split(",")]


def _check_patterns(
    patterns: Mapping[str, str], read: Sequence[TableSource], features: list[str]
) -> None:
    """Raise `TableError` if a part of a view's pattern matches no column, not even the target."""
    parts = [(view, part) for view, pattern in patterns.items() for part in _parts(pattern)]
    for view, part in parts if len(read) == 1 else ():
        if not any(fnmatchcase(column, part) for column in read[0].frame.columns):
            raise TableError(
                f"view {view}: no column of {read[0].label} matches {part}; there are "
                f"{shorten_list(features)}"
            )


def _with_target(table: Table, values: Any, task: str | None) -> Table:
    """Return the samples whose target is known."""
    name, values = str(values.name), values.reindex(table.frame.index)
    known = values.notna() & table.frame.notna().any(axis=1)
    if not known.any():
        raise TableError(f"target {name} is missing in every row that has values; see --target")
    values = values[known]
    task = infer_task(name, values.infer_objects(), task)
    values = as_classes(values) if task == CLASSIFICATION else values
    notes = [f"target {describe_target(name, values, task)}"]
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
    """Return a table whose target separates one class from all others."""
    if positive is None:
        return table
    if table.is_regression:
        raise TableError(f"--positive {positive}: target {table.target.name} has no classes")
    values = one_versus_rest(table.target, positive)
    note = f"target {describe_target(str(values.name), values, CLASSIFICATION)}"
    return replace(table, target=values, positive=positive, notes=(*table.notes, note))
