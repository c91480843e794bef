"""Reading files of samples as one table of views with a target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lokl._frames import need_pandas
from lokl._text import shorten_list, suggestion
from lokl.datasets.readers import as_numbers, split_sheet
from lokl.kernels.gene_sets import match_sets, read_gmt
from lokl.search.columns import MAX_CATEGORIES
from lokl.tables.join import about_isolated_ids, disambiguate_columns, outer_join, with_ids
from lokl.tables.preparation import REGRESSION, SURVIVAL, TablePreparation
from lokl.tables.sources import (
    CATEGORICAL,
    NUMERIC,
    TableError,
    TableSource,
    read_column,
    read_sources,
)

CLASSIFICATION = "classification"
# Option that is named in errors about covariates.
_COVARIATE = "--covariates"
# Survival has options of its own.
TASKS = (CLASSIFICATION, REGRESSION)
# A target of integers with more distinct values is a regression target.
_MAX_CLASSES = 20
# Columns of a gene set that is used.
MIN_SET = 5
# Words that mark samples of a test cohort.
_TEST = ("test", "yes", "true", "1")
# What is done with covariates, and the name of their view.
ADJUST, AS_VIEW = "adjust", "view"
COVARIATES = "covariates"
# Words for an observed event, and for a censored sample, up to the first colon.
_EVENT = ("1", "true", "yes", "event", "dead", "died", "deceased", "death")
_CENSORED = ("0", "false", "no", "censored", "alive", "living")


class TableSize(NamedTuple):
    """Size of a file."""

    rows: int
    columns: int
    empty: float  # share of empty cells


@dataclass(frozen=True, eq=False)
class Table:
    r"""Samples in rows.

    Attributes
    ----------
    frame : data frame
        Numbers and text, missing ones as NaN or None; the index has the ids.
    views : dict of str to list of str
        Columns of each view.
    kinds : dict of str to {"numeric", "categorical"}
        Kind of each column.
    target : series or None
        Values to predict; times for survival.
    task : {"classification", "regression", "survival"} or None
    event : series or None
        Whether the event was observed at the time of each sample, for survival.
    groups : series or None
        Samples of one group stay together in cross-validation.
    cohort : series or None
        Whether each sample belongs to the test cohort.
    covariates : tuple of str
        Columns whose effect models remove from the columns of the views.
    on : str or None
        Name of the column of ids; None if ids are row numbers.
    notes : tuple of str
        Facts about what was inferred and left out, one line each; see also :meth:`describe`.
    positive : str or None
        Class that is compared with all others, if one was named.
    files : dict of str to TableSize
        Size of each file with features, by the name it was given.
    gene_sets : dict of str to list of str
        Numeric columns of each gene set; sets may overlap. Empty without gene sets.

    See Also
    --------
    lokl.tables.read_table : Reads it from files.
    lokl.tables.TablePreparation : Prepares the columns for a model.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lokl.tables import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "patients.csv"
    ...     _ = path.write_text("patient,age,weight,ill\nP1,31,70,no\nP2,52,81,yes\nP3,47,,no\n")
    ...     table = read_table([str(path)], on="patient", target=f"{path}:ill")
    >>> table.kinds
    {'age': 'numeric', 'weight': 'numeric'}
    >>> table.views
    {'patients': ['age', 'weight']}
    """

    frame: Any
    views: dict[str, list[str]]
    kinds: dict[str, str]
    target: Any = None
    task: str | None = None
    groups: Any = None
    cohort: Any = None
    covariates: tuple[str, ...] = ()
    on: str | None = None
    notes: tuple[str, ...] = ()
    positive: str | None = None
    files: dict[str, TableSize] = field(default_factory=dict)
    gene_sets: dict[str, list[str]] = field(default_factory=dict)
    event: Any = None

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
            view: int(self.frame.reindex(columns=columns).isna().all(axis=1).sum())
            for view, columns in self.views.items()
        }
        return {view: count for view, count in counts.items() if count}

    def take(self, rows: Any) -> "Table":
        """Return a table of some of the samples; `rows` is an array of bool."""
        names = ("target", "event", "groups", "cohort")
        columns = {name: getattr(self, name) for name in names}
        taken: dict[str, Any] = {
            n: None if own is None else own[rows] for n, own in columns.items()
        }
        return replace(self, frame=self.frame[rows], **taken)

    def describe(self) -> list[tuple[str, str]]:
        """Return lines about the samples: a word for each line, and its text."""
        sizes = [
            f"{Path(label).name} {size.rows} x {size.columns}" for label, size in self.files.items()
        ]
        lacking = [f", {n} without {view}" for view, n in self.n_missing().items()]
        joined = f"joined on {self.on}: " if len(sizes) > 1 and self.on else ""
        joined += f"{len(self.ids)} samples{''.join(lacking)}"
        lines = [("read", f"{' · '.join(sizes)}   {joined}")]
        if self.target is not None and self.target.notna().any():
            lines.append(("target", f"{self.target.name}: {self._describe_target()}"))
        return [*lines, *(("note", note) for note in self.notes)]

    def _describe_target(self) -> str:
        known = self.target.dropna()
        if self.task == SURVIVAL:
            n_events = int(self.event.eq(True).sum())
            return (
                f"times from {known.min():g} to {known.max():g}, {n_events} events "
                f"({self.event.name}), {len(known) - n_events} censored"
            )
        if self.is_regression:
            return f"numbers from {known.min():g} to {known.max():g}"
        # Integers became floats where the class of a sample is unknown.
        counts = known.convert_dtypes().value_counts()
        return shorten_list([f"{label} {count}" for label, count in counts.items()], 8)


def read_table(
    sources: Sequence[str],
    *,
    on: str | None = None,
    target: str | None = None,
    groups: str | None = None,
    cohort: str | None = None,
    views: Mapping[str, str] | None = None,
    kinds: Mapping[str, str] | None = None,
    task: str | None = None,
    positive: str | None = None,
    na: Sequence[str] = (),
    delimiter: str = "",
    covariates: Sequence[str] = (),
    covariates_as: str = ADJUST,
    gene_sets: str | None = None,
    gene_sets_size: int = MIN_SET,
    gene_sets_rest: str | None = None,
    time: str | None = None,
    event: str | None = None,
) -> Table:
    r"""Read files as one table of training samples.

    Parameters
    ----------
    sources : sequence of str
        Paths of CSV, TSV, LIBSVM text, Parquet, Feather, Excel, ``.npz``, AnnData (``.h5ad``) or
        MuData (``.h5mu``) files, or the name of a data set. Each file is a view, as is each sheet
        of a workbook (``book.xlsx``), unless sheets are named (``book.xlsx:SHEET``), and each
        modality of a container, or its layer (``file.h5mu:rna/LAYER``); samples that are missing
        from a file lack that view. Columns of ``obs`` are not features.
    on : str, optional
        Column of ids in every file. Without it, rows are matched by their order.
    target : str, optional
        Column to predict, ``FILE:COLUMN`` or ``book.xlsx:SHEET:COLUMN``; the file need not be a
        view. LIBSVM text, ``.npz`` files and data sets have a target of their own.
    groups : str, optional
        Column of groups, or ``FILE:COLUMN``.
    cohort : str, optional
        Column, or ``FILE:COLUMN``, of the test cohort: its samples have "test", "yes", "true" or 1.
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
    covariates : sequence of str
        Columns, or ``FILE:COLUMN``, such as age and batch. They are not features of the view in
        whose file they are.
    covariates_as : {"adjust", "view"}, default="adjust"
        Whether models remove the effect of covariates from all columns, or use them as the view
        "covariates".
    gene_sets : str, optional
        Path of a GMT file; its genes are names of columns.
    gene_sets_size : int, default=5
        Sets with fewer columns are left out.
    gene_sets_rest : str, optional
        Name of a further set, of all numeric columns that are in no set.
    time, event : str, optional
        Columns of survival data, or ``FILE:COLUMN``, instead of a target: the time of the event or
        of the last observation, and whether the event was observed.

    Returns
    -------
    table : Table
        Samples, views and target.

    Raises
    ------
    TableError
        One line that names the file, the row and the column, and a remedy.

    See Also
    --------
    lokl.join_views : Joins data frames.
    lokl.tables.TablePreparation : Prepares the columns for a model.
    lokl.datasets.read : Reads one file of numbers.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lokl.tables import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "patients.csv"
    ...     _ = path.write_text("patient,age,weight,ill\nP1,31,70,no\nP2,52,81,yes\nP3,47,,no\n")
    ...     table = read_table([str(path)], on="patient", target=f"{path}:ill")
    >>> table.ids, table.task
    (['P1', 'P2', 'P3'], 'classification')
    >>> table.target.tolist()
    ['no', 'yes', 'no']
    """
    _check_outcome(time, event, {"--target": target, "--task": task, "--positive": positive})
    options = {"na": na, "delimiter": delimiter, "text_columns": [on] if on else []}
    read = _read_files(sources, options)
    own_target = read[0].target if len(read) == 1 and time is None else None
    wanted = {"--target": target or own_target, "--groups": groups, "--test-column": cohort}
    wanted |= {f"{_COVARIATE} {column}": column for column in covariates}
    wanted |= {"--time": time, "--event": event}
    files, taken, owners = _take_columns(wanted, read, on, options)
    isolated = about_isolated_ids(files) if on is not None else ""
    if isolated:
        raise TableError(f"{isolated}; see --on {on}")
    # A file or sheet that has only the target or the groups is not a view.
    used = [
        k
        for k in range(len(read))
        if (files[k].frame.shape[1] and read[k].is_view) or len(read) == 1
    ]
    tables = [files[k] for k in used], [read[k] for k in used]
    known, given = [(owners[f"{_COVARIATE} {one}"]) for one in covariates], dict(kinds or {})
    kinds_of_covariates = {column: given.pop(column, None) for _, column in known}
    table = replace(_join_features(*tables, views or {}, given), on=on)
    if known:
        if "--target" in taken and owners["--target"] in known:
            raise TableError(f"--covariates {owners['--target'][1]}: it is the target")
        table = _with_covariates(table, known, kinds_of_covariates, covariates_as)
    if gene_sets is not None:
        table = _with_gene_sets(table, gene_sets, gene_sets_size, gene_sets_rest)
    elif gene_sets_rest is not None:
        raise TableError(f"--gene-sets-rest {gene_sets_rest} needs --gene-sets FILE")
    if "--groups" in taken:
        table = replace(table, groups=taken["--groups"].reindex(table.frame.index))
    if "--test-column" in taken:
        table = replace(table, cohort=_is_test(taken["--test-column"].reindex(table.frame.index)))
    if time is not None:
        return _with_outcome(table, taken["--time"], taken["--event"])
    if "--target" not in taken:
        return table
    return _with_target(table, taken["--target"], task, positive)


def read_new(
    sources: Sequence[str],
    schema: TablePreparation,
    *,
    on: str | None = None,
    na: Sequence[str] | None = (),
    delimiter: str = "",
    target: str | None = None,
    event: str | None = None,
) -> Table:
    """Read files of new samples; columns are matched by their names in training.

    Parameters
    ----------
    sources : sequence of str
        Files as for :func:`read_table`; views may be absent.
    schema : TablePreparation
        Columns of the model; see :func:`lokl.tables.preparation.schema_of`.
    on : str, optional
        Column of ids; by default the one of training, if all files have it.
    na, delimiter
        As for :func:`read_table`.
    target : str, optional
        Column of the known target, or ``FILE:COLUMN``; by default the one of training, if a file
        has it. The column of times for survival.
    event : str, optional
        Column of known events, likewise.

    Returns
    -------
    table : Table
        The target is None if unknown, and missing for samples without one. Columns that the
        model does not use are left out, with a note.
    """
    id_columns = [name for name in (on, schema.on) if name is not None]
    options = {"na": na, "delimiter": delimiter, "text_columns": id_columns}
    read = _read_files(sources, options)
    if on is None and schema.on is not None:
        everywhere = all(schema.on in source.frame.columns for source in read)
        on = schema.on if everywhere or len(read) > 1 else None
    outcome = _known_outcome(read, schema, target, event)
    files, taken, _ = _take_columns(outcome, read, on, options)
    selected = [_select(source, schema) for source in files[: len(read)]]
    # Samples are those of files and sheets with columns of the model.
    covariates = set(schema.covariates or ())
    known = [own for own, _ in selected if set(own.columns) - covariates]
    frame = outer_join(known or [features for features, _ in selected])
    others = [own for own, _ in selected if set(own.columns) and not set(own.columns) - covariates]
    if known and others:
        # Covariates alone are not a sample.
        frame = outer_join([frame, *others]).loc[frame.index]
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise TableError(f"column {repeated[0]} is in two files; leave it out of one of them")
    if frame.shape[1] == 0:
        columns = shorten_list(list(schema.kinds))
        raise TableError(f"{read[0].label} has none of the columns of the model: {columns}")
    notes = _remarks(read)
    own = (schema.target, schema.event)
    ignored = [name for _, others in selected for name in others if name not in own]
    if ignored:
        notes.append(f"not used by the model, ignored: {shorten_list(ignored)}")
    values, events = _known_values(taken, schema, frame.index)
    views = {view: list(names) for view, names in schema.views.items()}
    return Table(
        frame,
        views,
        dict(schema.kinds),
        values,
        schema.task,
        covariates=tuple(schema.covariates or ()),
        on=on,
        notes=tuple(notes),
        files={
            source.label: _size(source.frame, own)
            for source, (own, _) in zip(files, selected, strict=False)
        },
        event=events,
    )


def _known_outcome(
    read: Sequence[TableSource], schema: TablePreparation, target: str | None, event: str | None
) -> dict[str, str | None]:
    """Return the columns of the target of new samples by option; empty if it is unknown."""
    outcome = {"--target": target or schema.target}
    if schema.task == SURVIVAL:
        outcome = {"--time": target or schema.target, "--event": event or schema.event}
    names = {column for source in read for column in source.frame.columns}
    is_known = target is not None or names.issuperset(outcome.values())
    return outcome if is_known else {}


def _known_values(taken: Mapping[str, Any], schema: TablePreparation, index: Any) -> Any:
    """Return the target of new samples, and the events of survival; None if they are unknown."""
    if "--time" in taken:
        return _outcome(taken["--time"], taken["--event"], index)
    values = taken.get("--target")
    if values is not None:
        values = _finite(values.dropna().infer_objects())
        if schema.task != REGRESSION:
            values = _merged(_as_classes(values), schema.merged_class())
        values = values.reindex(index)
    return values, None


def _select(source: TableSource, schema: TablePreparation) -> tuple[Any, list[str]]:
    """Return the columns of the model, by their names in the model, and names of the others."""
    kept, others = {}, []
    for column in source.frame.columns:
        # Columns that occurred in two tables of training have the name of their view as prefix.
        candidates = (f"{source.name}:{column}", column)
        name = next((name for name in candidates if name in schema.kinds), None)
        if name is None:
            # Columns of a table that is not a view need not be of the model.
            others += [column] * source.is_view
        else:
            _, kept[name] = read_column(source, column, schema.kinds[name])
    frame = need_pandas("reading tables").DataFrame(kept, index=source.frame.index)
    return frame, others


def _read_files(sources: Sequence[str], options: Mapping[str, Any]) -> list[TableSource]:
    """Read all files; their names, which become names of views, must differ."""
    if not sources:
        raise TableError("no files are given")
    labels: dict[str, str] = {}
    read = [table for source in sources for table in read_sources(source, **options)]
    for source in read:
        if source.name in labels and source.is_view:
            raise TableError(
                f"{labels[source.name]} and {source.label} would both be the view {source.name}; "
                "rename one of them"
            )
        labels[source.name] = source.label
    return read


def _remarks(tables: Sequence[TableSource]) -> list[str]:
    return [f"{table.label}: {table.remarks}" for table in tables if table.remarks]


def _take_columns(
    wanted: Mapping[str, str | None],
    read: Sequence[TableSource],
    on: str | None,
    options: Mapping[str, Any],
) -> tuple[list[TableSource], dict[str, Any], dict[str, tuple[TableSource, str]]]:
    """Take the columns of some options out of the tables.

    Parameters
    ----------
    wanted : mapping of str to str or None
        Column of each option, or ``FILE:COLUMN``.
    read : sequence of TableSource
    on : str or None
        Column of ids.
    options : mapping
        As for :func:`read_source`, for other files that are named.

    Returns
    -------
    files : list of TableSource
        All tables that are needed, first those of `read`, with ids and without the columns.
    taken : dict of str to series
        Column of each option.
    owners : dict of str to (TableSource, str)
        Table of each option, with all columns, and the name of its column.
    """
    files = list(read)
    columns = {}
    for option, given in wanted.items():
        if given:
            option_name = option.partition(" ")[0]
            found = (0, on) if given == on else _find_column(given, files, option_name, options)
            if found[1] == on:
                raise TableError(
                    f"{option_name} {given} and --on {on} name the same column; --on has the ids, "
                    f"name another column for {option_name}"
                )
            columns[option] = found
    files = with_ids(files, on)
    owners = {option: (files[k], column) for option, (k, column) in columns.items()}
    taken = {option: source.frame[column] for option, (source, column) in owners.items()}
    for k, column in set(columns.values()):
        files[k] = replace(files[k], frame=files[k].frame.drop(columns=column))
    return files, taken, owners


def _find_column(
    given: str, files: list[TableSource], option: str, options: Mapping[str, Any]
) -> tuple[int, str]:
    """Return the position of a table and the name of its column.

    Parameters
    ----------
    given : str
        Column, or ``FILE:COLUMN``.
    files : list of TableSource
        A file that is not among them is read and appended.
    option : str
        Name of the option in messages.
    options : mapping
        As for :func:`read_source`.
    """
    owners = [k for k, source in enumerate(files) if given in source.frame.columns]
    if len(owners) > 1:
        first, second = (files[k].label for k in owners[:2])
        raise TableError(
            f"column {given} is in {first} and in {second}; pass {option} {first}:{given}"
        )
    if owners:
        return owners[0], given
    file, colon, column = given.rpartition(":")
    for k, source in enumerate(files):
        if colon and file in (source.label, source.name, Path(source.label).name):
            return k, source.require(column, option)
    if colon and split_sheet(file)[0].exists():
        found = read_sources(file, **options)
        if len(found) > 1:
            sheets = ", ".join(f"{source.label}:{column}" for source in found)
            raise TableError(f"{option} {given}: name the sheet; use one of {sheets}")
        files += found
        return len(files) - 1, files[-1].require(column, option)
    if colon and ("." in file or "/" in file):
        raise TableError(f"{option} {given}: there is no file {file}")
    if len(files) > 1:
        hint = suggestion(given, {c for source in files for c in source.frame.columns})
        hint = hint or f"; if it is in another file, pass {option} FILE:{given}"
        raise TableError(f"no file has a column {given}{hint} (see {option})")
    return 0, files[0].require(given, option)


def _join_features(
    tables: Sequence[TableSource],
    read: Sequence[TableSource],
    patterns: Mapping[str, str],
    kinds: Mapping[str, str],
) -> Table:
    """Return the informative columns of all files, by view.

    Parameters
    ----------
    tables : sequence of TableSource
        Tables without the columns of ids, target and groups.
    read : sequence of TableSource
        The same tables with all columns.
    patterns, kinds : mapping of str to str
        As `views` and `kinds` of :func:`read_table`.
    """
    notes = _remarks(tables)
    names = disambiguate_columns({table.name: list(table.frame.columns) for table in tables})
    frames, inferred, sizes = {}, {}, {}
    for table in tables:
        frame, kinds_of_table, dropped = _features(table, names[table.name], kinds)
        frames[table.name] = frame
        inferred.update(kinds_of_table)
        notes += dropped
        sizes[table.label] = _size(table.frame, frame)
    unknown = [column for column in kinds if column not in inferred]
    if unknown:
        hint = suggestion(unknown[0], inferred) or f"; there are {shorten_list(list(inferred))}"
        raise TableError(f"no column {unknown[0]}, whose kind is given{hint} (see --kind)")
    if patterns and len(tables) > 1:
        raise TableError("--view divides one file, but each of several files is a view already")
    views = {name: list(frame.columns) for name, frame in frames.items()}
    if patterns:
        views, more = _views_of_patterns(patterns, read[0], list(inferred))
        notes += more
    elif len(tables) == 1:
        own = {view: [c for c in names if c in inferred] for view, names in read[0].views.items()}
        views = {view: columns for view, columns in own.items() if columns} or views
    used = [column for columns in views.values() for column in columns]
    frame = outer_join(list(frames.values()))[used]
    joined = Table(frame, views, {c: inferred[c] for c in used}, files=sizes)
    return replace(joined, notes=(*notes, *_notes_about(joined)))


def _with_covariates(
    table: Table,
    covariates: Sequence[tuple[TableSource, str]],
    kinds: Mapping[str, str | None],
    how: str,
) -> Table:
    """Return a table with covariates.

    Parameters
    ----------
    table : Table
    covariates : sequence of (TableSource, str)
        Tables and columns; samples without other columns are left out.
    kinds : mapping of str to {"numeric", "categorical"} or None
        Kind of each covariate, None if it is not given.
    how : {"adjust", "view"}
    """
    if how not in (ADJUST, AS_VIEW):
        hint = suggestion(how, (ADJUST, AS_VIEW)) or f"; use {ADJUST} or {AS_VIEW}"
        raise TableError(f"--covariates-as {how}: unknown word{hint}")
    names = [column for _, column in covariates]
    known = [*table.frame.columns, table.on]
    for k, name in enumerate(names):
        if name in known or name in names[:k]:
            raise TableError(f"covariate {name} is in two files, or named twice; rename one")
    if COVARIATES in table.views:
        raise TableError(f"a view has the name {COVARIATES}; rename its file")
    found, columns = {}, {}
    for source, name in covariates:
        found[name], values = read_column(source, name, kinds[name])
        columns[name] = values.reindex(table.frame.index)
        reason = _why_uninformative(columns[name], found[name])
        if reason:
            raise TableError(f"--covariates {name}: nothing to adjust for ({reason}); leave it out")
    listed = shorten_list(names)
    note = f"covariates {listed}: their linear effect on all other columns is removed, as estimated"
    note += " from training samples"
    frame = need_pandas("reading tables").DataFrame(columns)
    views, joined = table.views, table.frame.join(frame)
    if how == AS_VIEW:
        views, note = {**views, COVARIATES: names}, f"covariates {listed}: a view of their own"
    return replace(
        table,
        frame=joined,
        views=views,
        kinds={**table.kinds, **found},
        covariates=() if how == AS_VIEW else tuple(names),
        notes=(*table.notes, note),
    )


def _size(frame: Any, features: Any) -> TableSize:
    """Return the size of a file; whether a cell is empty depends on the kind of its column."""
    n_rows, n_columns = frame.shape
    empty = float(features.isna().to_numpy().mean()) if features.size else 0.0
    return TableSize(n_rows, n_columns, empty)


def _features(
    table: TableSource, names: Mapping[str, str], kinds: Mapping[str, str]
) -> tuple[Any, dict[str, str], list[str]]:
    """Return the informative columns of a file.

    Parameters
    ----------
    table : TableSource
    names : mapping of str to str
        New name of each column.
    kinds : mapping of str to {"numeric", "categorical"}
        Kinds that are given; columns with one are kept in any case.

    Returns
    -------
    frame : data frame
        Columns by their new names.
    kinds : dict of str to {"numeric", "categorical"}
        Kinds of these columns.
    notes : list of str
        Columns that were left out, and why.
    """
    kept: dict[str, Any] = {}
    kept_kinds: dict[str, str] = {}
    dropped: dict[str, list[str]] = {}
    for column in table.frame.columns:
        kind, values = read_column(table, column, kinds.get(column))
        reason = "" if column in kinds else _why_uninformative(values, kind)
        if reason:
            dropped.setdefault(reason, []).append(column)
        else:
            kept[names[column]] = values
            kept_kinds[names[column]] = kind
    if not kept:
        raise TableError(f"{table.label} has no column to learn from; see --target and --on")
    notes = [f"{table.label}: left out {shorten_list(c)} ({why})" for why, c in dropped.items()]
    return need_pandas("reading tables").DataFrame(kept), kept_kinds, notes


def _why_uninformative(values: Any, kind: str) -> str:
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


def _notes_about(table: Table) -> list[str]:
    """Return notes about categories."""
    words = [column for column, kind in table.kinds.items() if kind == CATEGORICAL]
    many = [column for column in words if table.frame[column].nunique() > MAX_CATEGORIES]
    notes = [f"categories: {shorten_list(words)}"] if words else []
    if many:
        notes.append(f"only the {MAX_CATEGORIES} most frequent categories: {shorten_list(many)}")
    return notes


def _views_of_patterns(
    patterns: Mapping[str, str], file: TableSource, features: list[str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Return columns of each view, and notes about columns in no view.

    Every part of a pattern must match a column of the file, and every view needs a feature.
    """
    views: dict[str, list[str]] = {}
    notes: list[str] = []
    owner: dict[str, str] = {}
    for view, pattern in patterns.items():
        parts = {part: _matching(file.frame.columns, part) for part in pattern.split(",")}
        views[view] = [c for c in features if any(c in columns for columns in parts.values())]
        unmatched = [part.strip() for part, columns in parts.items() if not columns]
        if unmatched or not views[view]:
            raise TableError(
                f"view {view}: no column of {file.label} matches {(*unmatched, pattern)[0]}; there "
                f"are {shorten_list(features)}"
            )
        # Target, ids and groups, and uninformative columns.
        unused = [p.strip() for p, columns in parts.items() if not set(columns) & set(features)]
        notes += [f"view {view}: {part} is not used as a feature" for part in unused]
        for column in views[view]:
            if owner.setdefault(column, view) != view:
                raise TableError(f"column {column} is in two views, {owner[column]} and {view}")
    rest = [column for column in features if column not in owner]
    return views, [*notes, f"in no view, left out: {shorten_list(rest)}"] if rest else notes


def _matching(columns: Sequence[str], pattern: str) -> list[str]:
    return [column for column in columns if fnmatchcase(column, pattern.strip())]


def _with_gene_sets(table: Table, path: str, min_size: int, rest: str | None) -> Table:
    """Return a table with the sets of a GMT file that have enough of its numeric columns.

    Each view has sets of its own; with several views, their names begin with the view.
    """
    try:
        sets = read_gmt(Path(path).expanduser())
    except ValueError as reason:
        raise TableError(str(reason)) from reason
    found: dict[str, list[str]] = {}
    notes, failures = [], []
    for view, columns in table.views.items():
        numeric = [column for column in columns if table.kinds[column] == NUMERIC]
        # Columns of two tables have the name of their view as prefix.
        genes = [column.removeprefix(f"{view}:") for column in numeric]
        try:
            matched = match_sets(genes, sets, min_size)
        except ValueError as reason:
            failures.append(f"view {view}: {reason}")
            continue
        used = {j for positions in matched.values() for j in positions}
        others = [j for j in range(len(numeric)) if j not in used]
        if rest is not None and others:
            if rest in matched:
                raise TableError(f"--gene-sets-rest {rest}: {path} has a set of this name")
            matched[rest] = others
        prefix = f"{view}: " if len(table.views) > 1 else ""
        found |= {f"{prefix}{n}": [numeric[j] for j in own] for n, own in matched.items()}
        n_sets = len(matched) - (rest in matched)
        left = "no set uses" if rest is None else f"the set {rest} has"
        notes.append(
            f"gene sets: {n_sets} of {len(sets)} have {min_size} or more columns of {view}, "
            f"{len(used)} of {len(numeric)} columns in all; {left} the other {len(others)}"
        )
    if not found:
        raise TableError(f"{failures[0]} (see --gene-sets {path}, --gene-sets-size)")
    return replace(table, gene_sets=found, notes=(*table.notes, *notes))


def _with_target(table: Table, values: Any, task: str | None, positive: str | None) -> Table:
    """Return the samples whose target is known.

    Parameters
    ----------
    table : Table
    values : series
        Target by id; it may have other ids, and missing values.
    task, positive : str or None
        As for :func:`read_table`.
    """
    name, values = str(values.name), values.reindex(table.frame.index)
    features = [column for columns in table.views.values() for column in columns]
    usable = values.notna() & table.frame[features].notna().any(axis=1)
    if not usable.any():
        raise TableError(f"target {name} is missing in every row that has values; see --target")
    values = _finite(values[usable])
    task = _infer_task(name, values.infer_objects(), task)
    if task != REGRESSION:
        values = _one_versus_rest(_as_classes(values), positive)
    elif positive is not None:
        raise TableError(f"--positive {positive}: target {name} has no classes")
    n_unusable = int((~usable).sum())
    notes = [f"left out {n_unusable} samples without target or without values"] * bool(n_unusable)
    return replace(
        table,
        frame=table.frame[usable],
        groups=None if table.groups is None else table.groups[usable],
        cohort=None if table.cohort is None else table.cohort[usable],
        target=values,
        task=task,
        positive=positive,
        notes=(*table.notes, *notes),
    )


def _finite(values: Any) -> Any:
    """Return a target, or raise `TableError` for infinite values."""
    numbers, words = as_numbers(values)
    infinite = np.isinf(numbers.to_numpy())
    if infinite.any() and not len(words):
        sample = values.index[int(np.argmax(infinite))]
        raise TableError(
            f"target {values.name}, sample {sample}: the value is infinite; correct it, or leave "
            "the cell empty"
        )
    return values


def _check_outcome(time: str | None, event: str | None, others: Mapping[str, str | None]) -> None:
    """Raise if only one column of survival data is named, or options of other targets."""
    if (time is None) != (event is None):
        given, other = ("--time", "--event") if event is None else ("--event", "--time")
        raise TableError(
            f"{given} {time or event} needs {other}: --time names the column of times, --event the "
            "column with 1 for an observed event and 0 for a censored sample"
        )
    if time is None:
        return
    if time == event:
        raise TableError(f"--time and --event both name {time}; they are two columns")
    for option, value in others.items():
        if value is not None:
            raise TableError(f"{option} {value} does not go with --time and --event; leave it out")


def _with_outcome(table: Table, times: Any, events: Any) -> Table:
    """Return the samples whose time and event are known.

    Parameters
    ----------
    table : Table
    times, events : series
        By id; they may have other ids, and missing values.
    """
    times, events = _outcome(times, events, table.frame.index)
    usable = times.notna() & events.notna() & table.frame.notna().any(axis=1)
    if not usable.any():
        raise TableError(
            f"no row has values, a time in {times.name} and an event in {events.name}; see --time "
            "and --event"
        )
    n_unusable = int((~usable).sum())
    notes = [f"left out {n_unusable} samples without time, event or values"] * bool(n_unusable)
    times, events = times[usable], events[usable].astype(bool)
    if not events.any():
        raise TableError(
            f"--event {events.name}: all {len(events)} samples are censored; some need 1, an "
            "observed event"
        )
    if not times[events].min() < times.max():
        raise TableError(
            f"--time {times.name}: no sample was observed longer than another one until its event, "
            "so that there is no order to learn"
        )
    return replace(
        table,
        frame=table.frame[usable],
        groups=None if table.groups is None else table.groups[usable],
        cohort=None if table.cohort is None else table.cohort[usable],
        target=times,
        event=events,
        task=SURVIVAL,
        notes=(*table.notes, *notes),
    )


def _outcome(times: Any, events: Any, index: Any) -> tuple[Any, Any]:
    """Return times as floats and events as True or False of the samples with some ids.

    Missing values stay missing; other values raise a `TableError` that names the sample.
    """
    times, events = times.reindex(index), events.reindex(index)
    for row, value in times.dropna().items():
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise TableError(
                f"--time {times.name}, sample {row}: {value!r} is not a number; leave the cell "
                "empty, or pass --na"
            ) from None
        if not 0 < number < np.inf:
            raise TableError(
                f"--time {times.name}, sample {row}: {number:g} is not a positive time; remove the "
                "sample, or give it a small positive time if the event was at the beginning"
            )
    known = dict.fromkeys(_EVENT, True) | dict.fromkeys(_CENSORED, False)
    words = events.dropna().map(_event_word)
    unknown = words[~words.isin(list(known))]
    if len(unknown):
        raise TableError(
            f"--event {events.name}, sample {unknown.index[0]}: {events[unknown.index[0]]!r} is "
            "neither an event nor a censored sample; write 1 for an observed event and 0 otherwise"
        )
    return times.astype(float), words.map(known).reindex(index)


def _event_word(value: Any) -> str:
    """Return a value of a column of events as a lower-case word; ``1:DECEASED`` becomes 1."""
    return str(value).partition(":")[0].strip().lower().removesuffix(".0")


def _is_test(values: Any) -> Any:
    """Return whether each value of a column of cohorts marks a sample of the test cohort."""
    words = values.map(lambda value: str(value).lower().removesuffix(".0"))
    is_test = words.isin(_TEST)
    if not is_test.any() or is_test.all():
        raise TableError(
            f"--test-column {values.name}: {int(is_test.sum())} of {len(values)} samples are test "
            f"samples ({', '.join(_TEST)}); mark some of them, but not all"
        )
    return is_test


def _infer_task(name: str, values: Any, task: str | None) -> str:
    """Return the task of a target without missing values: as given, or inferred."""
    n_values = values.nunique()
    if n_values < 2:
        raise TableError(
            f"target {name} has the same value, {values.to_list()[0]!r}, in all {len(values)} "
            "rows; a model needs two different values"
        )
    if task not in (None, *TASKS):
        hint = suggestion(task, TASKS) or f"; use one of {', '.join(TASKS)}"
        raise TableError(f"unknown task {task!r}{hint}")
    numeric = values.dtype.kind in "iuf"
    if task == REGRESSION and not numeric:
        raise TableError(
            f"target {name}: {values.iloc[0]!r} is not a number, as --task {REGRESSION} requires"
        )
    if task is not None:
        return task
    few = not numeric or (n_values <= _MAX_CLASSES and bool(np.all(values == np.floor(values))))
    return CLASSIFICATION if few else REGRESSION


def _as_classes(values: Any) -> Any:
    """Return classes without missing ones: integers as integers, everything else as text."""
    if values.dtype.kind == "f" and (values == values.round()).all():
        return values.astype(int)
    return values if values.dtype.kind in "iub" else values.map(str)


def _one_versus_rest(values: Any, positive: str | None) -> Any:
    """Return a target of two classes: `positive` and "not" that one; two classes stay."""
    names = set(values.map(str))
    if positive is not None and positive not in names:
        hint = suggestion(positive, names) or f"; it has {shorten_list(sorted(names), 8)}"
        raise TableError(f"--positive {positive}: target {values.name} has no such class{hint}")
    return values if len(names) == 2 else _merged(values, positive)


def _merged(values: Any, positive: str | None) -> Any:
    """Return classes in which all but `positive` are "not" that one; unchanged for None."""
    names = values.map(str)
    return values if positive is None else names.where(names == positive, f"not {positive}")
