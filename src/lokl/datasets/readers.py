"""Readers of files of samples, one for each format.

`READERS` maps the ending of a file to its reader. `lokl.datasets.read`, the command and the Dask
reader open files through it, so that a new format is a subclass of `TableFile` and one entry there.
A sheet of a workbook is a file of its own, written ``book.xlsx:SHEET``.
"""

import bz2
import csv
import gzip
import io
import lzma
import math
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch

from lokl._arrays import Array, is_sparse
from lokl._exports import need
from lokl._frames import NUMBERS, need_pandas
from lokl._text import one_safe_line, suggestion

# Bytes of text that are read at a time. The parsed values take several times as many.
BLOCK_SIZE = 2**22
# Cells that are missing values in every table; `na` adds others.
MISSING_CELLS = ("", "NA", "NaN", "nan")
# A larger data frame would exhaust the memory of most machines after minutes of work.
_MAX_FRAME_VALUES = 5 * 10**8
_BYTES_PER_VALUE = 8
# Below this share of nonzero values and above this number of columns, CSR saves work.
_SPARSE_SHARE, _MAX_DENSE_COLUMNS = 0.25, 64
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_DELIMITER_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "'|'"}
# What zip files and arrays in them raise if they are damaged.
_BROKEN_ARCHIVE = (
    *(ValueError, KeyError, EOFError, OSError, NotImplementedError, RuntimeError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# Files that unpack to more than this many bytes, and to more than this multiple of their size, are
# made to exhaust memory. Tables of measurements shrink to a tenth, constant ones to a hundredth.
_MAX_UNPACKED, _MAX_RATIO = 2**30, 200
# Rows from which the delimiter and the decimal separator are inferred.
_HEAD_ROWS = 200
_DECIMAL_POINT, _DECIMAL_COMMA = (
    re.compile(rf"\s*[-+]?\d*{s}\d+(e[-+]?\d+)?\s*$", re.I) for s in (r"\.", ",")
)
_THOUSANDS = re.compile(r"\s*[-+]?[1-9]\d{0,2}(,\d{3})+\s*$")
_SHEET = re.compile(r"(.+\.(?:xls[xm]|h5ad|h5mu)):([^:]+)$", re.IGNORECASE)
# Table of what is known about the samples of a container: target, groups, covariates.
OBS = "obs"
_OPENERS: dict[str, Any] = {"": open, ".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
COMPRESSED_ENDINGS = tuple(_OPENERS)


class DatasetError(OSError):
    """A data set cannot be read, downloaded or stored; the message names a remedy.

    See Also
    --------
    lokl.datasets.read : Raises it.
    lokl.datasets.MissingDatasetError : The data is not on this machine.

    Examples
    --------
    >>> from lokl.datasets import DatasetError, read
    >>> try:
    ...     read("absent.csv")
    ... except DatasetError as error:
    ...     print(type(error).__name__)
    DatasetError
    """

    def __init__(self, text: object):
        super().__init__(one_safe_line(str(text)))


class MissingDatasetError(DatasetError):
    """A data set is missing on this machine and was not, or could not be, downloaded.

    See Also
    --------
    lokl.datasets.fetch : Raises it.
    lokl.datasets.DatasetError : All errors of data sets.

    Examples
    --------
    >>> from lokl.datasets import DatasetError, MissingDatasetError
    >>> issubclass(MissingDatasetError, DatasetError)
    True
    """


def is_compressed(path: Path) -> bool:
    """Return whether the ending of a name is that of a compression."""
    return path.suffix != "" and path.suffix.lower() in _OPENERS


def split_endings(path: Path) -> tuple[str, str]:
    """Return the name of a file and the ending of its format, both without the compression."""
    plain = path.with_suffix("") if is_compressed(path) else path
    return plain.stem, plain.suffix.lower()


class _Unpacked(io.RawIOBase):
    """A decompressed stream that ends in `DatasetError` if it is out of proportion to its file."""

    def __init__(self, path: Path, stream: Any):
        self.path, self.stream, self.n_read = path, stream, 0
        self.limit = max(_MAX_UNPACKED, _MAX_RATIO * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n_bytes = int(self.stream.readinto(buffer))
        self.n_read += n_bytes
        if self.n_read > self.limit:
            raise DatasetError(
                f"{self.path} unpacks to more than {_MAX_RATIO} times its size; unpack it before "
                "reading if you trust it"
            )
        return n_bytes


def check_archive(path: Path) -> None:
    """Raise ValueError if the members of a zip file are out of proportion to the file."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > max(_MAX_UNPACKED, _MAX_RATIO * path.stat().st_size):
        raise ValueError(f"it unpacks to {size} bytes, more than {_MAX_RATIO} times its size")


@contextmanager
def open_binary(path: Path) -> Iterator[Any]:
    """Open a file, decompressed by its ending; errors inside the block name the file."""
    try:
        with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as stream:
            yield io.BufferedReader(_Unpacked(path, stream)) if is_compressed(path) else stream
    except DatasetError:
        raise
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as reason:
        text = getattr(reason, "strerror", None) or reason
        raise DatasetError(f"{path} cannot be read: {text}") from reason


def dense_frame(
    label: str, X: Any, names: Sequence[str] | None = None, index: Sequence[str] | None = None
) -> Any:
    """Return samples as a data frame; raise `DatasetError` if sparse ones are too large for it.

    Parameters
    ----------
    label : str
        Name in messages.
    X : array or sparse matrix of shape (n_samples, n_features)
    names : sequence of str, optional
        Names of the columns; f1, f2, ... by default.
    index : sequence of str, optional
        Names of the samples; their positions by default.
    """
    if X.shape[0] * X.shape[1] > _MAX_FRAME_VALUES:
        raise DatasetError(
            f"{label} has {X.shape[0]} rows of {X.shape[1]} columns, too many for a table; use the "
            "Python interface, which takes sparse matrices"
        )
    columns = [f"f{j}" for j in range(1, X.shape[1] + 1)] if names is None else list(names)
    values = X.toarray() if is_sparse(X) else X
    return need_pandas("reading tables").DataFrame(values, index=index, columns=columns)


def as_numbers(values: Any, *, text: bool = True) -> tuple[Any, Array]:
    """Return a column as floats, and the positions of other cells than numbers.

    Parameters
    ----------
    values : series
    text : bool, default=True
        Whether text such as "1.5" is a number.

    Returns
    -------
    numbers : series of float
        NaN for missing values and for words.
    words : array of int
        Positions of cells that are neither numbers nor missing.
    """
    pandas, cells = need_pandas("reading tables"), values
    if values.dtype.kind in "mM":
        cells = values.astype(str)
    elif not text and values.dtype.kind not in "biuf":
        cells = values.astype(object)
        cells = cells.where(cells.map(lambda value: isinstance(value, NUMBERS)).astype(bool))
    try:
        numbers = pandas.to_numeric(cells, errors="coerce")
    except OverflowError:
        large = cells.map(_overflow).astype(object)
        numbers = pandas.to_numeric(large.where(large.notna(), cells), errors="coerce")
    floats = np.array(numbers.to_numpy(dtype=float, na_value=np.nan))
    words = np.flatnonzero(np.isnan(floats) & values.notna().to_numpy())
    # Integers in text that are too large for a float are words for pandas before version 3.
    floats[words] = [_overflow(value) for value in cells.iloc[words]]
    words = words[np.isnan(floats[words])]
    return pandas.Series(floats, values.index, name=values.name), words


def _overflow(value: Any) -> float:
    """Return infinity, with its sign, for a number that is too large for a float; otherwise NaN.

    Parameters
    ----------
    value : object
        Cell of a table.
    """
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan
    return number if math.isinf(number) else math.nan


def cell_name(label: str, *rows: int, column: str | None = None) -> str:
    """Return the name of cells in messages, such as "t.csv, rows 2 and 4, column b"."""
    parts = [label]
    if rows:
        parts.append(f"row{'s' if len(rows) > 1 else ''} {' and '.join(map(str, rows))}")
    return ", ".join(parts if column is None else [*parts, f"column {column}"])


@dataclass(eq=False)
class TableFile:
    """A file of samples in rows, with named columns.

    Subclasses define `frame`, and override `columns`, `n_rows` and `blocks` if the format can be
    read in parts.

    Parameters
    ----------
    path : Path
    label : str, optional
        Name of the file in messages; the path by default.
    na : sequence of str
        Cells that are missing values, in addition to empty cells, NA and NaN.
    text_columns : sequence of str
        Columns whose values stay text even if they look like numbers.
    delimiter : str, optional
        Character between the cells of text; inferred from the ending and the header by default.
    sheet : str, optional
        Sheet of a workbook, or table of a container; its only one by default.

    Attributes
    ----------
    first_row : int
        Number of the first row of values, as a spreadsheet counts rows.
    target : str or None
        Column that is the target unless another one is named.
    views : mapping of str to list of str
        Columns of each view, if the file itself has several.
    remarks : str
        What was inferred about the layout of the file; empty if it is the usual one.
    is_view : bool, default=True
        Whether columns of the table are features, unless they are named as target or groups.
    """

    path: Path
    label: str = ""
    na: Sequence[str] = ()
    text_columns: Sequence[str] = ()
    delimiter: str = ""
    sheet: str = ""
    format_name: ClassVar[str] = ""
    first_row: ClassVar[int] = 1
    target: ClassVar[str | None] = None
    views: ClassVar[Mapping[str, list[str]]] = {}
    remarks: ClassVar[str] = ""
    is_view: bool = True

    def __post_init__(self) -> None:
        self.label = as_text(self.label or f"{self.path}{self.sheet and f':{self.sheet}'}")

    @property
    def name(self) -> str:
        """Name of the table: its sheet, or the name of the file without endings."""
        return self.sheet or as_text(split_endings(self.path)[0])

    def error(self, text: str, *rows: int, column: str | None = None) -> DatasetError:
        """Return an error about the file, some of its rows, or a cell."""
        return DatasetError(f"{cell_name(self.label, *rows, column=column)}: {text}")

    def checked_header(self, header: Sequence[Any], row: int) -> list[str]:
        """Return the names of the columns, or raise `DatasetError` for empty and repeated ones."""
        names = ["" if cell is None else str(cell) for cell in header]
        for position, name in enumerate(names, 1):
            if not name.strip():
                raise self.error(f"column {position} has no name; add it to the header", row)
            if name in names[: position - 1]:
                raise self.error(f"duplicate column name {name!r}; rename one")
        return names

    @cached_property
    def frame(self) -> Any:
        """The whole table as a data frame."""
        raise NotImplementedError

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.frame.columns)

    @cached_property
    def n_rows(self) -> int:
        """Number of samples."""
        return len(self.frame)

    def blocks(self, columns: Sequence[str], n_rows: int) -> Iterator[Any]:
        """Yield data frames of some columns, of about `n_rows` rows each."""
        yield self.frame[list(columns)]

    def samples(
        self,
        target: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        dtype: Any = np.float64,
        block_size: int = BLOCK_SIZE,
        **options: Any,
    ) -> Bunch:
        """Return samples in one array that is allocated once; see :func:`read`."""
        columns, target = self.select(target, columns, self.columns)
        wanted = columns if target is None else [*columns, target]
        if self.n_rows == 0:
            raise self.error("no rows")
        X = np.empty((self.n_rows, len(columns)), dtype=dtype)
        rows_per_block = max(1, block_size // (_BYTES_PER_VALUE * len(self.columns)))
        targets, start = [], 0
        for block in self.blocks(wanted, rows_per_block):
            stop = start + len(block)
            for j, name in enumerate(columns):
                X[start:stop, j], words = as_numbers(block[name])
                if len(words):
                    value = block[name].iloc[words[0]]
                    remedy = f"leave the cell empty, pass na=[{value!r}], or select other columns"
                    remedy = number_hint(value) or remedy
                    row = self.first_row + start + int(words[0])
                    raise self.error(f"{value!r} is not a number; {remedy}", row, column=name)
            if target is not None:
                targets.append(np.asarray(block[target]))
            start = stop
        y = np.concatenate(targets) if targets else None
        return Bunch(data=X, target=y, feature_names=columns)

    def select(
        self, target: str | None, columns: Sequence[str] | None, available: Sequence[str]
    ) -> tuple[list[str], str | None]:
        """Return the features and the target among the available columns, or their defaults."""
        target = target or self.target
        features = [n for n in available if n != target] if columns is None else list(columns)
        for name in features if target is None else [*features, target]:
            if name not in available:
                shown = ", ".join(map(str, available[:8]))
                raise DatasetError(f"{self.label} has no column {name!r}; it has {shown}")
        return features, target


class DelimitedText(TableFile):
    """CSV, TSV and other delimited text with a header."""

    format_name = "delimited text"
    first_row = 2

    @cached_property
    def columns(self) -> list[str]:
        with open_binary(self.path) as stream:
            if b"\0" in stream.read(4096):
                raise self.error(f"not text; {_endings_hint()}")
        header = next(self._head(self.layout.delimiter), [])
        if not "".join(header).strip():
            raise self.error("the file is empty; its first row must name the columns")
        return self.checked_header(header, 1)

    @cached_property
    def layout(self) -> "TextLayout":
        """Separators of cells and decimals, inferred from the first rows."""
        expected = _DELIMITERS.get(split_endings(self.path)[1], ",")
        delimiter = self.delimiter or expected
        header = next(self._head(delimiter), [])
        others = [other for other in _DELIMITER_NAMES if len(header) == 1 and other in header[0]]
        if others and self.delimiter:
            shown = [_DELIMITER_NAMES.get(d, repr(d)) for d in (others[0], self.delimiter)]
            seems = "cells seem to be separated by {}, not by {}".format(*shown)
            raise self.error(f"{seems}; see --delimiter")
        delimiter = others[0] if others else delimiter
        rows = islice(self._head(delimiter), 1, _HEAD_ROWS)
        decimal = "," if _has_decimal_commas([c for row in rows for c in row]) else "."
        return TextLayout(delimiter, decimal, expected)

    @property
    def remarks(self) -> str:  # type: ignore[override]
        found = self.layout
        usual = found.delimiter in (found.expected, self.delimiter)
        words = [] if usual else [f"cells separated by {_DELIMITER_NAMES[found.delimiter]}"]
        return ", ".join([*words, *(["decimal commas"] if found.decimal == "," else [])])

    def _head(self, delimiter: str) -> Iterator[list[str]]:
        """Yield the cells of each row, for the first rows of the file."""
        with self._opened() as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            yield from (row for row in csv.reader(text, delimiter=delimiter) if row)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open the file; errors of decoding inside the block name the row."""
        try:
            with open_binary(self.path) as stream:
                yield stream
        except UnicodeDecodeError as reason:
            with open_binary(self.path) as stream:
                row = _first_invalid(stream, bytes.decode)
            raise self.error(
                f"not in UTF-8 (byte {reason.object[reason.start]:#x}); save the file in UTF-8, "
                "for example with: iconv -f latin1 -t utf8",
                row,
            ) from reason

    @property
    def cells(self) -> dict[str, Any]:
        """Options of pandas for the cells of the file."""
        return {
            "sep": self.layout.delimiter,
            "decimal": self.layout.decimal,
            "keep_default_na": False,
            "na_values": [*MISSING_CELLS, *self.na],
        }

    def _chunks(self, n_rows: int | None, **options: Any) -> Iterator[Any]:
        """Yield data frames of `n_rows` rows each, or one of all rows."""
        pandas, header = need_pandas("reading tables"), self.columns
        parser_errors = pandas.errors.ParserError, pandas.errors.ParserWarning
        with self._opened() as stream, warnings.catch_warnings():
            # pandas only warns before it cuts rows that are longer than the header.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            try:
                chunks = pandas.read_csv(
                    stream,
                    index_col=False,
                    dtype={name: str for name in self.text_columns if name in header},
                    # A type for whole columns, unless memory is the reason for chunks.
                    low_memory=n_rows is not None,
                    chunksize=n_rows,
                    **self.cells,
                    **options,
                )
                yield from [chunks] if n_rows is None else chunks
            except parser_errors as reason:
                raise self._parser_error(str(reason)) from reason

    def _parser_error(self, message: str) -> DatasetError:
        match = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message)
        if match:
            return self.error(f"{match[3]} cells, but the header has {match[1]}", int(match[2]))
        if "Length of header" in message:
            remedy = "name all columns in it, including the column of ids"
            return self.error(
                f"rows have more cells than the header, {len(self.columns)}; {remedy}"
            )
        return self.error(f"cannot be read as a table: {' '.join(message.split())}")

    @cached_property
    def frame(self) -> Any:
        return next(self._chunks(None))

    @cached_property
    def n_rows(self) -> int:
        # Lines cannot be counted instead, since cells may contain breaks. One column is enough.
        return sum(len(chunk) for chunk in self._chunks(100_000, usecols=[0]))

    def blocks(self, columns: Sequence[str], n_rows: int) -> Iterator[Any]:
        for chunk in self._chunks(n_rows):
            yield chunk[list(columns)]


class ParquetTable(TableFile):
    """Parquet, read by pyarrow."""

    format_name = "Parquet"

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        parquet = need("pyarrow.parquet", "reading Parquet")
        try:
            with parquet.ParquetFile(self.path) as file:
                yield file
        except (need("pyarrow", "reading Parquet").ArrowException, OSError) as reason:
            raise self.error(f"not a Parquet file, or damaged ({one_line(reason)})") from reason

    @cached_property
    def columns(self) -> list[str]:
        with self._opened() as file:
            return list(file.schema_arrow.names)

    @cached_property
    def n_rows(self) -> int:
        with self._opened() as file:
            return int(file.metadata.num_rows)

    @cached_property
    def frame(self) -> Any:
        # Without pandas' metadata, an index is a column like any other.
        with self._opened() as file:
            return file.read().to_pandas(ignore_metadata=True)

    def blocks(self, columns: Sequence[str], n_rows: int) -> Iterator[Any]:
        with self._opened() as file:
            for batch in file.iter_batches(batch_size=n_rows, columns=list(columns)):
                yield batch.to_pandas(ignore_metadata=True)


class FeatherTable(TableFile):
    """Feather and other files of Arrow, read by pyarrow."""

    format_name = "Feather"

    @cached_property
    def frame(self) -> Any:
        feather = need("pyarrow.feather", "reading Feather")
        try:
            return feather.read_table(self.path).to_pandas(ignore_metadata=True)
        except (need("pyarrow", "reading Feather").ArrowException, OSError) as reason:
            raise self.error(f"not a Feather file, or damaged ({one_line(reason)})") from reason


class ExcelSheet(TableFile):
    """One sheet of a workbook, read by openpyxl; the first row with cells names the columns."""

    format_name = "Excel"

    @cached_property
    def _cells(self) -> tuple[int, list[Any]]:
        """Position of the header, and the cells of all rows from there to the last one."""
        with opened_workbook(self.path, self.error) as book:
            sheets = [self.sheet] if self.sheet else sheet_names(book)
            others = [name for name in book.sheetnames if name not in sheets]
            if len(sheets) > 1:
                shown = ", ".join(f"{self.path}:{name}" for name in sheets)
                raise self.error(f"the workbook has several sheets; name one: {shown}")
            if len(others) == len(book.sheetnames) and self.sheet:
                hint = suggestion(self.sheet, others) or f"; there are {', '.join(others)}"
                raise self.error(f"no such sheet{hint}")
            rows = [row for name in sheets for row in book[name].iter_rows(values_only=True)]
        filled = [k for k, row in enumerate(rows) if any(cell is not None for cell in row)]
        if not filled:
            raise self.error("the sheet is empty; its first row must name the columns")
        return filled[0], rows[filled[0] : filled[-1] + 1]

    @property
    def first_row(self) -> int:  # type: ignore[override]
        return self._cells[0] + 2

    @cached_property
    def frame(self) -> Any:
        start, rows = self._cells
        filled = (column for column in zip_longest(*rows) if any(c is not None for c in column))
        header, *values = zip(*filled, strict=True)
        missing = {*MISSING_CELLS, "#N/A", *self.na}
        frame = need_pandas("reading tables").DataFrame(
            [[None if cell in missing else cell for cell in row] for row in values],
            columns=self.checked_header(header, start + 1),
            dtype=object,
        )
        for name in set(self.text_columns) & set(frame.columns):
            frame[name] = frame[name].map(_as_id, na_action="ignore")
        return frame.infer_objects()


class NumpyArchive(TableFile):
    """Arrays of an ``.npz`` file: those with columns are views, the others are single columns."""

    format_name = "npz"

    @cached_property
    def _arrays(self) -> dict[str, Array]:
        try:
            check_archive(self.path)
            with np.load(self.path, allow_pickle=False) as archive:
                arrays = {name: _plain_array(archive, name) for name in archive.files}
        except _BROKEN_ARCHIVE as reason:
            raise self.error(f"not an .npz file of plain arrays ({one_line(reason)})") from reason
        lengths = {name: array.shape[0] if array.ndim else 0 for name, array in arrays.items()}
        if set(lengths.values()) == {0}:
            raise self.error("its arrays have no rows")
        if len(set(lengths.values())) != 1:
            shown = ", ".join(f"{name}: {length}" for name, length in lengths.items())
            raise self.error(f"its arrays are of different length ({shown or 'none at all'})")
        for name, array in arrays.items():
            if array.ndim > 2:
                raise self.error(f"array {name} has {array.ndim} axes; a table has two")
        return arrays

    def _columns_of(self, name: str) -> list[str]:
        array = self._arrays[name]
        return [name] if array.ndim == 1 else [f"{name}{j}" for j in range(array.shape[1])]

    @property
    def target(self) -> str | None:  # type: ignore[override]
        names = [name for name, array in self._arrays.items() if array.ndim == 1]
        return next((name for name in ("target", "y", "label") if name in names), None)

    @property
    def views(self) -> Mapping[str, list[str]]:  # type: ignore[override]
        wide = [name for name, array in self._arrays.items() if array.ndim == 2]
        return {name: self._columns_of(name) for name in wide} if len(wide) > 1 else {}

    @cached_property
    def frame(self) -> Any:
        pandas = need_pandas("reading tables")
        blocks = [
            pandas.DataFrame(array.reshape(len(array), -1), columns=self._columns_of(name))
            for name, array in self._arrays.items()
        ]
        return pandas.concat(blocks, axis=1)


def _plain_array(archive: Any, name: str) -> Array:
    """Return an array of numbers or text; raise ValueError before memory for others is taken."""
    with archive.zip.open(name if name in archive.zip.namelist() else f"{name}.npy") as member:
        version = np.lib.format.read_magic(member)
        if version not in _HEADERS:
            raise ValueError(f"array {name} has format {version}")
        shape, _, dtype = _HEADERS[version](member)
    size = archive.zip.getinfo(member.name).file_size
    if dtype.kind not in "biufSU":
        raise ValueError(f"array {name} has values of type {dtype}, not numbers or text")
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"array {name} announces shape {shape}, more than its {size} bytes")
    return np.asarray(archive[name])


class Container(TableFile):
    """A matrix of an AnnData or MuData file, or its table `obs`; the index has the ids.

    ``file.h5ad`` has the matrix `X`, ``file.h5ad:LAYER`` a layer; ``file.h5mu:MODALITY`` and
    ``file.h5mu:MODALITY/LAYER`` are those of a modality.
    """

    format_name = "AnnData"

    @staticmethod
    def has_ending(path: Path) -> bool:
        """Return whether a file is a container according to its ending."""
        return READERS.get(split_endings(path)[1]) is Container

    @property
    def is_multimodal(self) -> bool:
        """Whether the file has several modalities."""
        return split_endings(self.path)[1] == ".h5mu"

    @property
    def name(self) -> str:
        """Name of the modality, or of the file."""
        if self.is_multimodal or self.sheet == OBS:
            return self.sheet.partition("/")[0]
        return split_endings(self.path)[0]

    @cached_property
    def tables(self) -> list[str]:
        """Names of the modalities, empty for the only matrix; the last table is `obs`."""
        h5py = need("h5py", "reading AnnData and MuData")
        try:
            with h5py.File(self.path) as file:
                mod = file["mod"] if self.is_multimodal else file["X"]
                names = mod.attrs.get("mod-order", mod) if self.is_multimodal else [""]
                names = [str(name) for name in names]
        except (OSError, KeyError) as reason:
            raise self.error(f"not an {self.format_name} file ({one_line(reason)})") from reason
        return [*names, OBS]

    @cached_property
    def frame(self) -> Any:
        modality, _, layer = self.sheet.partition("/")
        if not self.is_multimodal:
            modality, layer = "", self.sheet
        tables = self.tables
        if self.is_multimodal and modality not in tables:
            hint = suggestion(modality, tables) or f"; there are {', '.join(tables)}"
            raise self.error(f"no such modality{hint}")
        with warnings.catch_warnings():
            # About names that are not unique, which is an error here, and future versions.
            warnings.simplefilter("ignore")
            if self.sheet == OBS:
                return self._about_samples()
            data = self._read(modality)
            if layer and layer not in data.layers:
                known = ", ".join(data.layers) or "no layers"
                raise self.error(f"no layer {layer}; there are {known}")
            X = data.layers[layer] if layer else data.X
        if X is None:
            raise self.error(f"no matrix X; name a layer: {self.path}:{modality or 'LAYER'}")
        X = X if is_sparse(X) else np.asarray(X)
        return dense_frame(
            self.label, X, list(map(str, data.var_names)), data.obs_names.astype(str)
        )

    def _read(self, modality: str) -> Any:
        """Return a modality, or the only one, as AnnData."""
        try:
            if self.is_multimodal:
                return need("mudata", "reading MuData").read_h5ad(self.path, mod=modality)
            return need("anndata", "reading AnnData").read_h5ad(self.path)
        except (OSError, KeyError, ValueError) as reason:
            raise self.error(f"cannot be read ({one_line(reason)})") from reason

    def _about_samples(self) -> Any:
        """Return the table `obs`, with columns of single modalities that it lacks."""
        modalities = self.tables[:-1]
        frames = [self._read(name).obs for name in modalities]
        if self.is_multimodal:
            whole = need("mudata", "reading MuData").read_h5mu(self.path, backed=True)
            frames.insert(0, whole.obs)
            whole.file.close()
        frames = [frame.set_axis(frame.index.astype(str), axis=0) for frame in frames]
        table = frames[0].copy()
        for frame in frames[1:]:
            new = [name for name in frame if name not in table]
            table = table.join(frame[new], how="outer")
        for name in table:
            if table[name].dtype.kind not in "biuf":
                table[name] = table[name].astype(object)
        return table


class LibsvmText(TableFile):
    """Lines of ``label column:value ...``; columns count from 1, or from 0 if a 0 occurs."""

    format_name = "LIBSVM text"
    target = "label"

    def samples(
        self,
        target: str | None = None,
        *,
        n_features: int | None = None,
        sparse: bool | None = None,
        dtype: Any = np.float64,
        block_size: int = BLOCK_SIZE,
        **options: Any,
    ) -> Bunch:
        """Return samples, after a first pass that counts rows and columns; see :func:`read`."""
        counts = LibsvmCounts()
        for X, _ in self._parsed(dtype, block_size):
            counts += LibsvmCounts.of(X)
        n_rows, n_features = counts.layout(n_features, self.label)
        if sparse is None:
            sparse = is_sparse_layout(n_rows, n_features, counts.n_values)
        array = None if sparse else np.empty((n_rows, n_features), dtype=dtype)
        blocks, labels, start = [], [], 0
        for X, y in self._parsed(dtype, block_size):
            X, stop = rebased(X, n_features, counts.first_column), start + len(y)
            if array is None:
                blocks.append(X)
            else:
                X.toarray(out=array[start:stop])
            labels.append(y)
            start = stop
        data = sp.vstack(blocks, format="csr") if array is None else array
        return Bunch(data=data, target=np.concatenate(labels), feature_names=None)

    def _parsed(self, dtype: Any, block_size: int) -> Iterator[tuple[Any, Array]]:
        row = 1
        with open_binary(self.path) as stream:
            while lines := stream.readlines(block_size):
                yield parse_libsvm(b"".join(lines), dtype, self.label, row)
                row += len(lines)

    @cached_property
    def frame(self) -> Any:
        bunch = self.samples()
        whole = np.all(bunch.target == np.floor(bunch.target))
        labels = bunch.target.astype(np.int64) if whole else bunch.target
        return dense_frame(self.label, bunch.data).assign(label=labels)


def read_container(path: Any) -> Any:
    """Return the AnnData or MuData of a file; a table after the name of the file is ignored."""
    file = split_sheet(path)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if split_endings(file)[1] == ".h5mu":
            return need("mudata", "reading MuData").read_h5mu(file)
        return need("anndata", "reading AnnData").read_h5ad(file)


def write_container(container: Any, path: Path) -> None:
    """Write AnnData or MuData to a file."""
    settings = need("anndata", "writing AnnData and MuData").settings
    with warnings.catch_warnings():
        # About future versions of the libraries.
        warnings.simplefilter("ignore")
        # Text of pandas 3 needs the setting, which anndata before 0.12 does not have.
        if hasattr(settings, "allow_write_nullable_strings"):
            with settings.override(allow_write_nullable_strings=True):
                container.write(path)
        else:
            container.write(path)


READERS: dict[str, type[TableFile]] = {
    ".csv": DelimitedText,
    ".tsv": DelimitedText,
    ".parquet": ParquetTable,
    ".feather": FeatherTable,
    ".xlsx": ExcelSheet,
    ".xlsm": ExcelSheet,
    ".npz": NumpyArchive,
    ".h5ad": Container,
    ".h5mu": Container,
}


def open_table(path: Any, label: str = "", **options: Any) -> TableFile:
    """Return the reader of a file: by its ending, LIBSVM text if the ending is unknown.

    Parameters
    ----------
    path : str or Path
        ``book.xlsx:SHEET`` is a sheet of a workbook, ``file.h5mu:MODALITY`` a table of a container.
    label, **options
        As for :class:`TableFile`; a `delimiter` makes any file delimited text, but not a workbook.
    """
    path, sheet = split_sheet(path)
    if not path.is_file():
        raise DatasetError(f"there is no file {path}")
    reader = READERS.get(split_endings(path)[1], LibsvmText)
    if options.get("delimiter") and reader not in (ExcelSheet, Container):
        reader = DelimitedText
    return reader(path, label, sheet=sheet, **options)


def open_tables(path: Any, label: str = "", **options: Any) -> list[TableFile]:
    """Return the readers of all tables of a file: of each sheet of a workbook that has cells.

    A container has a table for each modality, and `obs`, which is not a view.
    """
    file = open_table(path, label, **options)
    if isinstance(file, Container):
        if file.sheet:
            return [file]
        names = [name and f":{name}" for name in file.tables]
        tables = [open_table(f"{path}{n}", label and f"{label}{n}", **options) for n in names]
        tables[-1].is_view = False
        return tables
    if not isinstance(file, ExcelSheet) or file.sheet:
        return [file]
    with opened_workbook(file.path, file.error) as book:
        sheets = sheet_names(book)
    if len(sheets) < 2:
        return [file]
    return [open_table(f"{path}:{name}", label and f"{label}:{name}", **options) for name in sheets]


def split_sheet(path: Any) -> tuple[Path, str]:
    """Return the path of a file, and the name of the sheet after it; empty if there is none."""
    match = None if Path(path).expanduser().exists() else _SHEET.match(str(path))
    return Path(match[1] if match else path).expanduser(), match[2] if match else ""


def as_text(name: str) -> str:
    """Return the name of a file as text, whatever the encoding of the system."""
    # Bytes that are not in the encoding of the system are surrogates, which cannot be written.
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@contextmanager
def opened_workbook(path: Path, error: Callable[[str], DatasetError]) -> Iterator[Any]:
    """Open a workbook for reading values; `error` makes the error of a damaged one."""
    openpyxl = need("openpyxl", "reading Excel")
    try:
        check_archive(path)
        with path.open("rb") as stream, warnings.catch_warnings():
            # About styles and other things besides the values.
            warnings.simplefilter("ignore")
            yield openpyxl.load_workbook(stream, read_only=True, data_only=True)
    except (DatasetError, MemoryError):
        raise
    # Errors of any type: openpyxl checks little of what it reads.
    except Exception as reason:
        raise error(f"not an .xlsx workbook, or damaged ({one_line(reason)})") from reason


def sheet_names(book: Any) -> list[str]:
    """Return the names of the sheets of a workbook that have cells."""
    return [
        sheet.title
        for sheet in book.worksheets
        if any(cell is not None for row in sheet.iter_rows(values_only=True) for cell in row)
    ]


def _as_id(value: Any) -> str:
    """Return a cell as text; whole numbers without decimals, as a spreadsheet shows them."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


@dataclass(frozen=True)
class TextLayout:
    """Separators of a text file.

    Attributes
    ----------
    delimiter, decimal : str
    expected : str
        Delimiter according to the ending of the file.
    """

    delimiter: str
    decimal: str
    expected: str


def _has_decimal_commas(cells: Sequence[str]) -> bool:
    """Return whether commas of numbers are decimal separators.

    They are not if other numbers have a decimal point. It is unknown if all may separate thousands,
    such as in 1,500.
    """
    commas = [cell for cell in cells if _DECIMAL_COMMA.match(cell)]
    is_known = not all(map(_THOUSANDS.match, commas))
    return is_known and not any(map(_DECIMAL_POINT.match, cells))


def number_hint(value: Any) -> str:
    """Return a remedy for a number that is written with a comma; empty for anything else."""
    if isinstance(value, str) and (_DECIMAL_COMMA.match(value) or _THOUSANDS.match(value)):
        return "write numbers with a decimal point and without separators of thousands"
    return ""


def _endings_hint() -> str:
    return f"tables end in {', '.join(READERS)}, any other file is LIBSVM text"


def read(
    path: Any,
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    n_features: int | None = None,
    sparse: bool | None = None,
    dtype: Any = np.float64,
    na: Sequence[str] = (),
    block_size: int = BLOCK_SIZE,
) -> Bunch:
    r"""Read a file of samples with little more memory than the samples take.

    Formats are LIBSVM text, CSV, TSV, Parquet, Feather, Excel and ``.npz``. Text is read twice:
    once to count rows, and once to fill an array of all rows.

    Parameters
    ----------
    path : str or path
        Files that end in ``.csv``, ``.tsv``, ``.parquet``, ``.feather``, ``.xlsx`` and ``.npz`` are
        tables with named columns; any other file is LIBSVM text. Text may be compressed (.bz2, .gz,
        .xz); semicolons between cells and decimal commas are recognised. ``book.xlsx:SHEET`` is a
        sheet of a workbook. Tables need the extra ``data``, workbooks also ``excel``.
    target : str, optional
        Column of a table that is the target. By default an ``.npz`` file has the target
        ``target``, ``y`` or ``label``, and LIBSVM text the first value of each line.
    columns : sequence of str, optional
        Columns of a table that are features; None is all but the target. Empty cells are NaN.
    n_features : int, optional
        Number of features of LIBSVM text; None is the largest of any row.
    sparse : bool or None, default=None
        Whether samples of LIBSVM text are a CSR matrix or an array. None selects CSR if there are
        more than 64 columns and less than a quarter of nonzero values.
    dtype : dtype, default=float64
        float32 takes half the memory.
    na : sequence of str, optional
        Cells of text that are missing values, in addition to empty cells, NA and NaN.
    block_size : int, default=4 MB
        Bytes that are read at a time.

    Returns
    -------
    bunch : Bunch
        ``data`` of shape (n_samples, n_features), ``target`` of shape (n_samples,) (None for a
        table without one) and ``feature_names`` (None for LIBSVM text).

    Raises
    ------
    DatasetError
        The file cannot be read, or has other values than numbers.

    See Also
    --------
    lokl.datasets.load : Data sets by name.
    lokl.distributed.read : As Dask collections.
    lokl.tables.read_table : Read several tables, joined by the ids of their samples.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lokl.datasets import read
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "patients.csv"
    ...     _ = path.write_text("a,b,target\n1,2,0\n3,4,1\n")
    ...     bunch = read(path, "target")
    >>> bunch.data, bunch.target
    (array([[1., 2.],
           [3., 4.]]), array([0, 1]))
    """
    return open_table(path, na=na).samples(
        target,
        columns=columns,
        n_features=n_features,
        sparse=sparse,
        dtype=dtype,
        block_size=block_size,
    )


def parse_libsvm(
    text: bytes, dtype: Any = np.float64, label: str = "text", first_row: int = 1
) -> tuple[Any, Array]:
    """Parse whole lines of LIBSVM text.

    Returns
    -------
    X : CSR matrix of shape (n_lines, largest column + 1)
        Columns as numbered in the text.
    y : array of shape (n_lines,)
    """
    if not text.strip():
        return sp.csr_matrix((0, 0), dtype=dtype), np.empty(0)
    try:
        return _parse_lines(text, dtype)
    except (ValueError, OverflowError) as reason:
        row = first_row - 1 + _first_invalid(text.splitlines(), _parse_lines)
        raise DatasetError(
            f"{label}, row {row}: not a line of LIBSVM text ({one_line(reason)}); {_endings_hint()}"
        ) from reason


def _parse_lines(text: bytes, dtype: Any = np.float64) -> tuple[Any, Array]:
    return load_svmlight_file(io.BytesIO(text), zero_based=True, dtype=dtype)


def _first_invalid(lines: Iterable[bytes], parse: Callable[[bytes], Any]) -> int:
    """Return the number of the first line, from 1, that `parse` rejects."""
    row = 1
    for row, line in enumerate(lines, 1):  # noqa: B007
        try:
            parse(line)
        except (ValueError, OverflowError):
            break
    return row


def rebased(X: Any, n_features: int, first_column: int) -> Any:
    """Return samples of `n_features` columns, the first of which had number `first_column`."""
    # scipy narrows the indices, of which scikit-learn returns 64 bits, to those that LibSVM takes.
    parts = X.data, X.indices - first_column, X.indptr
    return sp.csr_matrix(parts, shape=(X.shape[0], n_features))


@dataclass(frozen=True)
class LibsvmCounts:
    """Size of some LIBSVM text.

    Attributes
    ----------
    n_rows, n_values : int
    smallest, largest : int
        Smallest and largest column number, if there are values.
    """

    n_rows: int = 0
    n_values: int = 0
    smallest: int = np.iinfo(np.int32).max
    largest: int = -1

    @classmethod
    def of(cls, X: Any) -> "LibsvmCounts":
        """Count the rows of a matrix that :func:`parse_libsvm` returned."""
        smallest = X.indices.min(initial=cls.smallest)
        return cls(X.shape[0], X.nnz, int(smallest), int(X.indices.max(initial=cls.largest)))

    def __add__(self, other: "LibsvmCounts") -> "LibsvmCounts":
        return LibsvmCounts(
            self.n_rows + other.n_rows,
            self.n_values + other.n_values,
            min(self.smallest, other.smallest),
            max(self.largest, other.largest),
        )

    @property
    def first_column(self) -> int:
        """Number of the first column: 0 only if that number occurs."""
        return 0 if self.smallest == 0 else 1

    def layout(self, n_features: int | None, label: str) -> tuple[int, int]:
        """Return the shape of all samples, with at least the columns that occur."""
        if self.n_rows == 0:
            raise DatasetError(f"{label} has no rows")
        first, n_needed = self.first_column, max(0, self.largest + 1 - self.first_column)
        n_features = n_needed if n_features is None else n_features
        if n_features < n_needed:
            raise DatasetError(
                f"{label}: column {self.largest} is outside {first} to {first + n_features - 1}; "
                "see n_features"
            )
        return self.n_rows, n_features


def is_sparse_layout(n_rows: int, n_features: int, n_values: int) -> bool:
    """Return whether samples with `n_values` nonzero values are a CSR matrix by default."""
    return n_features > _MAX_DENSE_COLUMNS and n_values < _SPARSE_SHARE * n_rows * n_features


def one_line(reason: BaseException) -> str:
    """Return the text of an error in one line of at most 200 characters."""
    return " ".join(str(reason).split())[:200]
