"""Input tables of the command: files by their ending, and data sets by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from lokl._frames import need_pandas
from lokl.datasets import available, load
from lokl.datasets.readers import check_frame_size, one_line, open_table, split_endings


class TableError(ValueError):
    """A table cannot be used; one line that names file, row and column, and a remedy.

    Rows count as in a spreadsheet: the header of a text file is row 1.
    """


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
    """

    name: str
    label: str
    frame: Any
    first_row: int = 1
    target: str | None = None
    views: Mapping[str, list[str]] = field(default_factory=dict)

    def row(self, position: Any) -> int:
        """Return the number of a row, as a spreadsheet counts rows."""
        return int(position) + self.first_row


def read_source(
    given: str,
    *,
    text_columns: Sequence[str] = (),
    na: Sequence[str] | None = (),
    delimiter: str = "",
) -> TableSource:
    """Read a file by its ending, or a data set by its name.

    Parameters
    ----------
    given : str
        Path of a CSV, TSV, Parquet, LIBSVM (also .gz, .bz2, .xz) or ``.npz`` file, or the name of a
        data set.
    text_columns : sequence of str
        Columns whose values stay text even if they look like numbers.
    na : sequence of str
        Cells that are missing values, in addition to empty cells, NA and NaN.
    delimiter : str
        Character between the cells of a text file; given by the ending by default.
    """
    need_pandas("reading tables")
    path = Path(given).expanduser()
    try:
        if not path.exists():
            return _data_set(given)
        if path.is_dir():
            raise TableError(f"{given} is a folder; name a file in it")
        file = open_table(path, given, na=na, text_columns=text_columns, delimiter=delimiter)
        frame = _checked(given, file.frame)
        name = split_endings(path)[0]
        return TableSource(name, given, frame, file.first_row, file.target, file.views)
    except OSError as reason:
        raise TableError(" ".join(str(reason).split())) from reason


def _checked(label: str, frame: Any) -> Any:
    frame = frame.rename(columns=str)
    if frame.shape[1] == 0:
        raise TableError(f"{label} has no columns")
    if len(frame) == 0:
        raise TableError(f"{label} has a header and no rows")
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise TableError(f"{label}: duplicate column name {repeated[0]!r}; rename one")
    return frame


def _data_set(name: str) -> TableSource:
    if name not in available():
        close = get_close_matches(name, available(), 1)
        hint = f"did you mean {close[0]}? Otherwise " if close else ""
        raise TableError(
            f"{name} is neither a file nor a data set; {hint}give a path, or a name that `lokl "
            "datasets list` shows"
        )
    try:
        bunch = load(name)
    except ImportError as reason:
        raise TableError(one_line(reason)) from reason
    X = bunch.data
    check_frame_size(name, X.shape)
    X = X.toarray() if hasattr(X, "toarray") else X
    names = bunch.get("feature_names")
    columns = [f"f{j}" for j in range(1, X.shape[1] + 1)] if names is None else list(names)
    frame = need_pandas("reading tables").DataFrame(X, columns=columns)
    target = np.asarray(bunch.target)
    labels = bunch.get("target_names")
    frame["target"] = target if labels is None else np.asarray(labels)[target]
    views = {view: columns[part] for view, part in bunch.get("views", {}).items()}
    return TableSource(name, name, frame, target="target", views=views)
