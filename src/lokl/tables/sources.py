"""Input tables of the command: files by their ending, data sets by name, and their columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lokl._frames import need_pandas
from lokl._text import one_safe_line, shorten_list, suggestion
from lokl.datasets import load
from lokl.datasets.readers import (
    TableFile,
    as_numbers,
    cell_name,
    number_hint,
    open_tables,
    split_sheet,
)

NUMERIC, CATEGORICAL = "numeric", "categorical"
KINDS = (NUMERIC, CATEGORICAL)
# A column of text is meant to be numeric if more than this share of its cells are numbers.
_NUMERIC_SHARE = 0.8


class TableError(ValueError):
    """A table cannot be used; one line that names file, row and column, and a remedy.

    Rows count as in a spreadsheet: the header of a text file is row 1.

    See Also
    --------
    lokl.tables.read_table : Raises it.

    Examples
    --------
    >>> from lokl.tables import TableError, read_table
    >>> try:
    ...     read_table(["absent.csv"])
    ... except TableError as error:
    ...     print(error)
    there is no file absent.csv; check its path
    """

    def __init__(self, text: object):
        super().__init__(one_safe_line(str(text)))


@dataclass(frozen=True, eq=False)
class TableSource:
    """A table as it was read.

    Attributes
    ----------
    name : str
        Name of the view: the name of the file without its endings.
    label : str
        Name in messages.
    frame : data frame
    first_row : int
        Number of the first row of values, as a spreadsheet counts rows.
    target : str or None
        Column that is the target unless another one is named.
    views : mapping of str to list of str
        Columns of each view, if the file itself has several.
    remarks : str
        What was inferred about the layout of the file; empty if it is the usual one.
    is_view : bool
        Whether columns are features, unless they are named as target or groups.
    """

    name: str
    label: str
    frame: Any
    first_row: int = 1
    target: str | None = None
    views: Mapping[str, list[str]] = field(default_factory=dict)
    remarks: str = ""
    is_view: bool = True

    def at(self, *positions: Any, column: str | None = None) -> str:
        """Return the name of one or more cells in messages, such as "t.csv, row 2, column b".

        Parameters
        ----------
        *positions : int
            Positions of the rows in the data frame.
        column : str, optional
        """
        rows = (int(position) + self.first_row for position in positions)
        return cell_name(self.label, *rows, column=column)

    def require(self, column: str, option: str) -> str:
        """Return the name of a column, or raise `TableError` if the column does not exist."""
        if column not in self.frame.columns:
            known = self.frame.columns
            hint = suggestion(column, known) or f"; it has {shorten_list(known)}"
            raise TableError(f"{self.label} has no column {column}{hint} (see {option})")
        return column


def read_sources(
    given: str,
    *,
    text_columns: Sequence[str] = (),
    na: Sequence[str] | None = (),
    delimiter: str = "",
) -> list[TableSource]:
    """Read a file by its ending, or a data set by its name; a workbook has a table on each sheet.

    Parameters
    ----------
    given : str
        Path of a CSV, TSV, LIBSVM (also .gz, .bz2, .xz), Parquet, Feather, Excel, ``.npz``,
        ``.h5ad`` or ``.h5mu`` file, ``book.xlsx:SHEET``, ``file.h5mu:MODALITY/LAYER``, or the name
        of a data set.
    text_columns : sequence of str
        Columns whose values stay text even if they look like numbers.
    na : sequence of str
        Cells that are missing values, in addition to empty cells, NA and NaN.
    delimiter : str
        Character between the cells of a text file; given by the ending by default.
    """
    need_pandas("reading tables")
    path, _ = split_sheet(given)
    options = {"na": na or (), "text_columns": text_columns, "delimiter": delimiter}
    try:
        if not path.exists():
            return [_data_set(given)]
        if path.is_dir():
            raise TableError(f"{given} is a folder; name a file in it")
        sources = [_source(file) for file in open_tables(given, given, **options)]
    except (OSError, ImportError) as reason:
        raise TableError(" ".join(str(reason).split())) from reason
    for source in sources:
        if source.is_view:
            check_columns(source)
        if len(source.frame) == 0:
            raise TableError(f"{source.label} has a header and no rows; add rows, or leave it out")
    return sources


def _source(file: TableFile) -> TableSource:
    frame = file.frame.rename(columns=str)
    about = file.first_row, file.target, file.views, file.remarks, file.is_view
    return TableSource(file.name, file.label, frame, *about)


def check_columns(source: TableSource) -> None:
    """Raise `TableError` unless a table has columns with different names."""
    columns = source.frame.columns
    if len(columns) == 0:
        raise TableError(f"{source.label} has no columns")
    if not columns.is_unique:
        repeated = columns[columns.duplicated()][0]
        raise TableError(f"{source.label}: duplicate column name {repeated!r}; rename one")


def _data_set(name: str) -> TableSource:
    """Return a data set as a table with the column "target"."""
    try:
        bunch = load(name, as_frame=True)
    except ValueError as reason:
        raise TableError(f"there is no file {name}{_file_hint(name) or f'; {reason}'}") from reason
    frame = bunch.data
    columns, target, labels = list(frame.columns), bunch.target, bunch.get("target_names")
    frame["target"] = target if labels is None else np.asarray(labels)[target]
    views = {view: columns[part] for view, part in bunch.get("views", {}).items()}
    return TableSource(name, name, frame, target="target", views=views)


def _file_hint(name: str) -> str:
    """Return a suggestion of a file in the same folder; nothing if it may be another data set."""
    path = Path(name).expanduser()
    if not path.parent.is_dir():
        return f"; there is no folder {path.parent}"
    hint = suggestion(path.name, (other.name for other in path.parent.iterdir()))
    return hint or ("; check its path" if len(path.parts) > 1 or path.suffix else "")


def read_column(source: TableSource, column: str, kind: str | None = None) -> tuple[str, Any]:
    """Return the kind of a column, inferred unless given, and its values of that kind.

    Returns
    -------
    kind : {"numeric", "categorical"}
    values : series
        Floats, or text with None for missing values.

    Raises
    ------
    TableError
        A cell of a numeric column is infinite, or has a word.
    """
    values = source.frame[column]
    if kind is not None and kind not in KINDS:
        hint = suggestion(kind, KINDS) or f"; use one of {', '.join(KINDS)}"
        raise TableError(f"column {column}: unknown kind {kind!r}{hint}")
    numbers, words = as_numbers(values)
    if kind is None:
        # Numbers with commas are not categories; the first one is reported below.
        n_words = sum(not number_hint(values.iloc[row]) for row in words)
        share = 1 - n_words / max(values.notna().sum(), 1)
        is_numeric = values.dtype.kind in "biuf" or share > _NUMERIC_SHARE
        kind = NUMERIC if is_numeric else CATEGORICAL
    if kind == CATEGORICAL:
        return kind, values.astype(object).map(str, na_action="ignore").where(values.notna(), None)
    if len(words):
        value = values.iloc[words[0]]
        remedy = number_hint(value) or f"leave the cell empty, or pass --na {value}"
        raise TableError(
            f"{source.at(words[0], column=column)}: {str(value)!r} is not a number; {remedy}"
        )
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise TableError(
            f"{source.at(infinite[0], column=column)}: the value is infinite; correct it, or leave "
            "the cell empty"
        )
    return kind, numbers
