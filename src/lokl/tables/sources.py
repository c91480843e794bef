"""One file or data set as a data frame, with what it tells about itself."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from lokl._tables import need_pandas
from lokl.tables.errors import TableError
from lokl.tables.text import read_delimited, read_libsvm

_COMPRESSED = (".gz", ".bz2", ".xz")
# Values of a data frame that are too many for one process, in the place of a slow failure.
_MOST_VALUES = 5 * 10**8


@dataclass(frozen=True, eq=False)
class Source:
    """A table as it was found."""

    name: str  # of the view that it is, the name of the file without endings
    label: str  # as messages call it
    frame: Any
    first_row: int = 1  # number of the first row of values, as a person counts rows
    target: str | None = None  # column that is the target unless told otherwise
    views: dict[str, list[str]] = field(default_factory=dict)  # where the file itself has several

    def row(self, place: Any) -> int:
        """Number of a row, as a person counts."""
        return int(place) + self.first_row


def read_source(
    given: str, *, text_columns: Sequence[str] = (), na: Sequence[str] = (), delimiter: str = ""
) -> Source:
    """Read a file by its ending, or a data set by its name.

    Parameters
    ----------
    given : str
        Path of a CSV, TSV, Parquet, LIBSVM (also .gz, .bz2, .xz) or ``.npz`` file, or the name of a
        data set.
    text_columns : sequence of str
        Columns whose values are names, however much they look like numbers.
    na : sequence of str
        Words for a missing value, beside the empty cell, NA and NaN.
    delimiter : str
        Of a text file, where its ending does not tell.
    """
    need_pandas("reading tables")
    path = Path(given).expanduser()
    if not path.exists():
        return _data_set(given)
    if path.is_dir():
        raise TableError(f"{given} is a folder; name a file in it")
    stem, ending = _endings(path)
    try:
        if path.stat().st_size == 0:
            raise TableError(f"{given} is empty")
        if ending == ".parquet":
            return Source(stem, given, _checked(given, _parquet(path)))
        if ending == ".npz":
            return _arrays(path, stem, given)
        if ending in (".csv", ".tsv") or delimiter:
            sign = delimiter or {".csv": ",", ".tsv": "\t"}[ending]
            frame = read_delimited(path, given, sign, text_columns, na)
            return Source(stem, given, _checked(given, frame), first_row=2)
        frame = read_libsvm(path, given, _MOST_VALUES)
        return Source(stem, given, frame, target="label")
    except OSError as reason:
        raise TableError(f"{given} cannot be read: {reason.strerror or reason}") from reason


def _endings(path: Path) -> tuple[str, str]:
    plain = path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path
    return plain.stem, plain.suffix.lower()


def _checked(given: str, frame: Any) -> Any:
    if frame.shape[1] == 0:
        raise TableError(f"{given} has no columns")
    if len(frame) == 0:
        raise TableError(f"{given} has a header and no rows")
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise TableError(f"{given}: column {repeated[0]} is there twice; rename one of them")
    return frame


def _parquet(path: Path) -> Any:
    pandas = need_pandas("reading tables")
    try:
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise ImportError(
            "reading Parquet needs pyarrow; install it with: pip install 'lokl[data]'"
        ) from error
    except OSError:
        raise
    except Exception as reason:
        # pyarrow fails with errors of its own kinds on damaged bytes.
        raise TableError(f"{path} is no Parquet file, or damaged ({_line(reason)})") from reason
    if not isinstance(frame.index, pandas.RangeIndex):
        frame = frame.reset_index()
    return frame.rename(columns=str)


def _arrays(path: Path, stem: str, given: str) -> Source:
    """Arrays of a ``.npz`` file: those with columns are views, others are columns."""
    pandas = need_pandas("reading tables")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, zipfile.BadZipFile, EOFError) as reason:
        raise TableError(f"{given} is no .npz file of plain arrays ({_line(reason)})") from reason
    blocks, views = [], {}
    lengths = {name: values.shape[0] if values.ndim else 0 for name, values in arrays.items()}
    if len(set(lengths.values())) != 1:
        shown = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise TableError(f"{given}: its arrays are of different length ({shown or 'none at all'})")
    for name, values in arrays.items():
        if values.ndim > 2:
            raise TableError(f"{given}: array {name} has {values.ndim} axes; a table has two")
        columns = [name] if values.ndim == 1 else [f"{name}{j}" for j in range(values.shape[1])]
        if values.ndim == 2:
            views[name] = columns
        blocks.append(pandas.DataFrame(values.reshape(len(values), -1), columns=columns))
    target = next((name for name in ("target", "y", "label") if lengths.get(name)), None)
    frame = _checked(given, pandas.concat(blocks, axis=1))
    return Source(stem, given, frame, target=target, views=views if len(views) > 1 else {})


def _data_set(name: str) -> Source:
    """Read a data set by its name."""
    from lokl.datasets import DatasetError, available, load

    if name not in available():
        known = "give a path, or a name that `lokl datasets list` shows"
        close = get_close_matches(name, available(), 1)
        hint = f"did you mean {close[0]}? Else {known}" if close else known
        raise TableError(f"{name} is neither a file nor a data set; {hint}")
    try:
        bunch = load(name)
    except (DatasetError, ImportError) as reason:
        raise TableError(_line(reason)) from reason
    X = bunch.data
    _refuse_too_many(name, X.shape, _MOST_VALUES)
    X = X.toarray() if hasattr(X, "toarray") else X
    columns = [str(c) for c in bunch.get("feature_names") or range(1, X.shape[1] + 1)]
    columns = [c if "feature_names" in bunch else f"f{c}" for c in columns]
    pandas = need_pandas("reading tables")
    frame = pandas.DataFrame(X, columns=columns)
    names = bunch.get("target_names")
    target = np.asarray(bunch.target)
    frame["target"] = target if names is None else np.asarray(names)[target]
    views = {view: columns[place] for view, place in bunch.get("views", {}).items()}
    return Source(name, name, frame, target="target", views=views)


def _refuse_too_many(given: str, shape: tuple[int, ...], most: int) -> None:
    if shape[0] * shape[1] > most:
        raise TableError(
            f"{given} has {shape[0]} rows of {shape[1]} columns, too many for a table; use the "
            "Python interface, which takes sparse matrices"
        )


def _line(reason: BaseException) -> str:
    return " ".join(str(reason).split())[:200]
