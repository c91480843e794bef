"""What can be wrong with tables that people bring.

Tables that are text: cells between delimiters, and LIBSVM's lines.

One file or data set as a data frame, with what it tells about itself.
"""

import bz2
import csv
import gzip
import io
import lzma
import re
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from lokl._frames import need_pandas


class TableError(ValueError):
    """A table cannot be used: one line that names file, row and column, and says what would help.

    Rows count as in a spreadsheet: the header of a text file is row 1.
    """


_OPEN: dict[str, Any] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
_DELIMITERS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'"}
# Cells that are missing values whatever the user says.
_MISSING = ("", "NA", "NaN", "nan")
_LIBSVM_LINE = re.compile(r"\s*[-+\w.,]+(\s+\d+:\S+)*\s*(#.*)?")


def read_delimited(
    path: Path, given: str, delimiter: str, text_columns: Sequence[str], na: Sequence[str]
) -> Any:
    """Return the data frame of a text file with a header."""
    pandas = need_pandas("reading tables")
    text = _text(path, given)
    header = next(csv.reader(io.StringIO(text), delimiter=delimiter), [])
    _check_header(given, header, delimiter)
    with warnings.catch_warnings():
        # Longer rows than the header are otherwise cut.
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        try:
            return pandas.read_csv(
                io.StringIO(text),
                sep=delimiter,
                index_col=False,
                dtype={name: str for name in text_columns if name in header},
                keep_default_na=False,
                na_values=[*_MISSING, *na],
                low_memory=False,
            )
        except (pandas.errors.ParserError, pandas.errors.ParserWarning) as reason:
            raise TableError(_lengths(given, str(reason), len(header))) from reason


def _text(path: Path, given: str) -> str:
    try:
        with _OPEN.get(path.suffix.lower(), open)(path, "rb") as stream:
            content: bytes = stream.read()
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as reason:
        raise TableError(f"{given} is damaged: it cannot be unpacked ({reason})") from reason
    if b"\0" in content[:4096]:
        raise TableError(f"{given} is not text; give CSV, TSV, Parquet, LIBSVM text or .npz")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        row = content[: reason.start].count(b"\n") + 1
        raise TableError(
            f"{given}, row {row}: not in UTF-8 (byte {content[reason.start]:#x}); save the file in "
            "UTF-8, for example with: iconv -f latin1 -t utf8"
        ) from reason
    if not text.strip():
        raise TableError(f"{given} is empty")
    return text


def _check_header(given: str, header: Sequence[str], delimiter: str) -> None:
    if len(header) == 1:
        for other, shown in _DELIMITERS.items():
            if other != delimiter and other in header[0]:
                raise TableError(
                    f"{given}: its cells seem to be divided by {shown}, not by "
                    f"{_DELIMITERS.get(delimiter, repr(delimiter))}; see --delimiter"
                )
    seen: set[str] = set()
    for number, name in enumerate(header, 1):
        if not name.strip():
            raise TableError(f"{given}, row 1: column {number} has no name; name it in the header")
        if name in seen:
            raise TableError(f"{given}: column {name} is there twice; rename one of them")
        seen.add(name)


def _lengths(given: str, told: str, width: int) -> str:
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", told)
    if found:
        return f"{given}, row {found[2]}: {found[3]} cells, but the header has {found[1]}"
    if "Length of header" in told:
        return (
            f"{given}: rows have more cells than the header, {width}; name all columns in it, also "
            "that of the ids"
        )
    return f"{given} cannot be read as a table: {' '.join(told.split())}"


def read_libsvm(path: Path, given: str, most_values: int) -> Any:
    """Return the data frame of lines ``label column:value ...``; the labels are ``label``."""
    from sklearn.datasets import load_svmlight_file

    pandas = need_pandas("reading tables")
    text = _text(path, given)
    for number, line in enumerate(text.splitlines(), 1):
        if not _LIBSVM_LINE.fullmatch(line) and line.strip():
            hint = "" if number > 1 else "; name a table .csv or .tsv, or give --delimiter"
            raise TableError(f"{given}, row {number}: no line of LIBSVM text{hint}")
    try:
        X, y = load_svmlight_file(io.BytesIO(text.encode()))
    except ValueError as reason:
        raise TableError(f"{given} is no LIBSVM text: {' '.join(str(reason).split())}") from reason
    if X.shape[0] * X.shape[1] > most_values:
        raise TableError(
            f"{given} has {X.shape[0]} rows of {X.shape[1]} columns, too many for a table; use "
            "the Python interface, which takes sparse matrices"
        )
    frame = pandas.DataFrame(X.toarray(), columns=[f"f{j}" for j in range(1, X.shape[1] + 1)])
    whole = np.all(y == np.floor(y))
    return frame.assign(label=y.astype(np.int64) if whole else y)


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
