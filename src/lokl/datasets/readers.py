"""LIBSVM's text, ``label column:value ...``, some lines at a time.

Samples that arrive block by block, in one array that is made once.

Readers: contents of files to samples and labels.

Files of one's own in memory: read block by block into one array that is made once.
"""

import csv
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse as sp
from scipy.io import loadmat
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch

from lokl._arrays import Array, is_sparse
from lokl._frames import need_pandas
from lokl.datasets.download import is_compressed, opened
from lokl.datasets.errors import DatasetError
from lokl.datasets.registry import Record

# Bytes of text that are read at a time. The numbers of them take several times as many.
BLOCK_SIZE = 2**22


@dataclass(frozen=True, eq=False)
class Lines:
    """What some lines hold, with columns as they are numbered there."""

    data: Array
    columns: Array
    starts: Array
    labels: Array

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    def samples(self, n_features: int, first_column: int) -> Any:
        """Return a CSR matrix; `first_column` is the number of the first column in the text."""
        columns = self.columns - np.int32(first_column) if first_column else self.columns
        shape = (self.n_rows, n_features)
        return sp.csr_matrix((self.data, columns, self.starts), shape=shape)


def parse_lines(text: bytes, dtype: Any = np.float64) -> Lines:
    """Read whole lines; raise a ValueError where they are of another kind."""
    if not text.strip():
        nothing = np.empty(0, dtype=np.int32)
        return Lines(np.empty(0, dtype), nothing, np.zeros(1, dtype=np.int32), np.empty(0))
    X, y = load_svmlight_file(io.BytesIO(text), zero_based=True, dtype=dtype)
    # They have 64 bits, which LibSVM refuses.
    return Lines(X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32), y)


def line_blocks(
    stream: Any, block_size: int = BLOCK_SIZE, seen: Callable[[bytes], Any] | None = None
) -> Iterator[bytes]:
    """Yield the text of a stream in blocks of whole lines.

    Parameters
    ----------
    stream : binary stream
    block_size : int
        Bytes of a block; a line that is longer is a block by itself.
    seen : callable, optional
        Called with everything that was read, in order.
    """
    begun: list[bytes] = []
    while chunk := stream.read(block_size):
        if seen is not None:
            seen(chunk)
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join([*begun, chunk[:end]])
            begun = []
        begun.append(chunk[end:])
    if any(begun):
        yield b"".join(begun)


@dataclass(frozen=True)
class Counts:
    """How much text holds.

    Attributes
    ----------
    n_rows, n_values : int
    first_column, last_column : int or None
        Smallest and largest number of a column; None where no row has a value.
    """

    n_rows: int = 0
    n_values: int = 0
    first_column: int | None = None
    last_column: int | None = None

    @classmethod
    def of(cls, lines: Lines) -> "Counts":
        """Counts of some lines."""
        if not len(lines.columns):
            return cls(lines.n_rows)
        ends = int(lines.columns.min()), int(lines.columns.max())
        return cls(lines.n_rows, len(lines.data), *ends)

    def __add__(self, other: "Counts") -> "Counts":
        rows, values = self.n_rows + other.n_rows, self.n_values + other.n_values
        first = [end for end in (self.first_column, other.first_column) if end is not None]
        last = [end for end in (self.last_column, other.last_column) if end is not None]
        return Counts(rows, values, min(first, default=None), max(last, default=None))

    @property
    def base(self) -> int:
        """Number of the first column: 0 only where a column has it."""
        return 0 if self.first_column == 0 else 1

    @property
    def n_features(self) -> int:
        return 0 if self.last_column is None else self.last_column + 1 - self.base


# Below this share of nonzero values and above this number of columns, CSR saves work.
_SHARE, _COLUMNS = 0.25, 64


def as_csr(n_rows: int, n_features: int, n_values: int) -> bool:
    """Whether samples with so many values come as CSR matrix where nobody says otherwise."""
    return n_features > _COLUMNS and n_values < _SHARE * n_rows * n_features


class Filling:
    """Takes CSR matrices of some rows; gives one array, or one CSR matrix, of all rows.

    An array is filled in place. Parts of a CSR matrix are joined at the end, so that two thirds of
    it are held twice for a moment.

    Parameters
    ----------
    n_rows, n_features : int
    sparse : bool or None
        None takes CSR for samples with more than 64 columns of which less than a quarter is filled.
    dtype : dtype
    """

    def __init__(self, n_rows: int, n_features: int, sparse: bool | None, dtype: Any):
        self.shape, self.dtype = (n_rows, n_features), dtype
        self._sparse = sparse
        self._array: Array | None = None
        self._parts: list[Any] = []
        self._n_values = 0
        self.n_added = 0

    def add(self, part: Any) -> None:
        """Take the next rows; those beyond the announced number are counted only."""
        first, self.n_added = self.n_added, self.n_added + part.shape[0]
        if self.n_added > self.shape[0]:
            return
        self._n_values += part.nnz
        if self._array is None and self._is_array():
            self._array = np.empty(self.shape, dtype=self.dtype)
            self._pour()
        if self._array is None:
            self._parts.append(part)
        else:
            part.toarray(out=self._array[first : self.n_added])

    def _is_array(self) -> bool:
        """Whether it is certain that an array is wanted."""
        if self._sparse is None:
            return not as_csr(*self.shape, self._n_values)
        return not self._sparse

    def _pour(self) -> None:
        first = 0
        self._parts.reverse()
        while self._parts:
            part = self._parts.pop()
            part.toarray(out=self._array[first : first + part.shape[0]])  # type: ignore[index]
            first += part.shape[0]

    def finished(self) -> Any:
        """Return all rows; the announced number of them must have been added."""
        if self._array is None and self._is_array():
            self._array = np.empty(self.shape, dtype=self.dtype)
            self._pour()
        if self._array is not None:
            return self._array
        parts, self._parts = self._parts, []
        lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(p.indptr) for p in parts)])
        starts = np.cumsum(lengths)
        values, columns = [part.data for part in parts], [part.indices for part in parts]
        del parts
        data = np.concatenate([np.empty(0, self.dtype), *values])
        del values
        indices = np.concatenate([np.empty(0, np.int32), *columns])
        if starts[-1] <= np.iinfo(np.int32).max:
            starts = starts.astype(np.int32)
        return sp.csr_matrix((data, indices, starts), shape=self.shape)


Contents = Mapping[Path, bytes]  # of the files of a record, in its order


def parse(record: Record, contents: Contents) -> dict[str, Any]:
    """Return data, target and what else a record has; errors name a file."""
    readers = {"mat": mat, "tcga": tcga}
    path = next(iter(contents))
    with readable(record, path):
        parsed = readers[record.format](record, contents)
    check_shape(record, path, parsed["data"].shape)
    return parsed


@contextmanager
def readable(record: Record, path: Path) -> Iterator[None]:
    """Let errors name a file and what it should have been."""
    try:
        yield
    except (MemoryError, DatasetError):
        raise
    except Exception as reason:
        # Readers of other libraries fail with many kinds of errors on damaged bytes.
        raise DatasetError(f"{path} cannot be read as {record.name}: {reason}") from reason


def check_shape(record: Record, path: Path, shape: tuple[int, ...]) -> None:
    """Raise where a file holds other samples than the record says."""
    if shape != (record.n, record.d):
        raise DatasetError(
            f"{path} has shape {shape}, but {record.name} has {(record.n, record.d)}; it is "
            "damaged or another version"
        )


def libsvm(
    record: Record,
    path: Path,
    hashed: Any,
    *,
    sparse: bool | None = None,
    block_size: int = BLOCK_SIZE,
) -> dict[str, Any]:
    """Lines of ``label column:value ...``, block by block.

    Parameters
    ----------
    record : Record
    path : Path
    hashed : hash object
        Is given all the text, also where some of it is wrong.
    sparse : bool or None
        As in :func:`~lokl.datasets.load`.
    block_size : int
        Bytes of text that are read at a time.
    """
    with opened(path) as stream:
        blocks = line_blocks(stream, block_size, hashed.update)
        try:
            return _filled(record, path, blocks, sparse)
        finally:
            for _ in blocks:
                pass


def check_columns(counts: Counts, first: int, n_features: int) -> None:
    """Raise where lines have other columns than those that are known."""
    last = first + n_features - 1
    for end in (counts.first_column, counts.last_column):
        if end is not None and not first <= end <= last:
            raise ValueError(f"there is a column {end}; columns are {first} to {last}")


def _filled(
    record: Record, path: Path, blocks: Iterator[bytes], sparse: bool | None
) -> dict[str, Any]:
    filling = Filling(record.n, record.d, sparse, np.float64)
    labels = [np.empty(0)]
    for text in blocks:
        with readable(record, path):
            lines = parse_lines(text)
            check_columns(Counts.of(lines), 1, record.d)
        part = lines.samples(record.d, 1)
        check_finite(path, part, first_row=filling.n_added)
        check_finite(path, lines.labels[:, np.newaxis], "the labels", filling.n_added)
        filling.add(part)
        labels.append(lines.labels)
    check_shape(record, path, (filling.n_added, record.d))
    return {"data": filling.finished(), "target": np.concatenate(labels)}


def mat(record: Record, contents: Contents) -> dict[str, Any]:
    """MATLAB's cells ``X``, one for each view, and labels ``y`` or ``gt``.

    Samples are rows; in some files they are columns.
    """
    # scipy reads streams, too, but its type stubs allow paths only.
    ((path, content),) = contents.items()
    file = loadmat(io.BytesIO(content))  # type: ignore[arg-type]
    labels = np.asarray(file["y"] if "y" in file else file["gt"]).reshape(-1, 1)
    blocks = [np.asarray(cell, dtype=float) for cell in file["X"].ravel()]
    blocks = [block if len(block) == len(labels) else block.T for block in blocks]
    for name, block in zip(record.views, blocks, strict=True):
        check_finite(path, block, name)
    check_finite(path, labels, "the labels")
    return {
        "data": np.hstack(blocks),
        "target": labels.ravel().astype(int),
        "views": column_slices(record.views, [block.shape[1] for block in blocks]),
    }


def tcga(record: Record, contents: Contents) -> dict[str, Any]:
    """Tables of three views and the subtypes, then of two views and the subtypes."""
    mrna, mirna, protein, subtype, mrna_test, mirna_test, subtype_test = contents.items()
    blocks = [_numbers(*file) for file in (mrna, mirna, protein)]
    test = [_numbers(*file) for file in (mrna_test, mirna_test)]
    lacking = np.full((len(test[0]), blocks[2].shape[1]), np.nan)
    return {
        "data": np.hstack(blocks),
        "target": _cells(subtype[1])[:, 0],
        "views": column_slices(record.views, [block.shape[1] for block in blocks]),
        "data_test": np.hstack([*test, lacking]),
        "target_test": _cells(subtype_test[1])[:, 0],
    }


def column_slices(names: Sequence[str], widths: Sequence[int]) -> dict[str, slice]:
    """Where each view is, when views stand side by side."""
    ends = np.cumsum(widths).tolist()
    places = zip(names, widths, ends, strict=True)
    return {name: slice(end - width, end) for name, width, end in places}


def _cells(content: bytes) -> Array:
    """Cells of a table without its header."""
    return np.array(list(csv.reader(io.StringIO(content.decode())))[1:])


def _numbers(path: Path, content: bytes) -> Array:
    """Numbers of a table whose first column names the samples."""
    values = _cells(content)[:, 1:].astype(float)
    check_finite(path, values)
    return values


def check_finite(path: Path, values: Any, part: str = "", first_row: int = 0) -> None:
    """Raise an error that names the first value that is no finite number; places count from 1."""
    stored = values.data if is_sparse(values) else values
    if np.isfinite(stored).all():
        return
    found = sp.coo_matrix(values)
    bad = np.flatnonzero(~np.isfinite(found.data))[0]
    of_part = f" of {part}" if part else ""
    raise DatasetError(
        f"{path}: row {first_row + found.row[bad] + 1}, column {found.col[bad] + 1}{of_part} is "
        f"{found.data[bad]}, not a finite number; mend the file, or fetch it again"
    )


_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BYTES_OF_VALUE = 8


def read(
    path: Any,
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    n_features: int | None = None,
    sparse: bool | None = None,
    dtype: Any = np.float64,
    block_size: int = BLOCK_SIZE,
) -> Bunch:
    """Read LIBSVM text, CSV, TSV or Parquet with little more memory than the samples take.

    Text is read twice: once to count, and once to fill an array that is made for all rows.

    Parameters
    ----------
    path : str or path
        Files that end in ``.csv``, ``.tsv`` and ``.parquet`` are tables whose columns have names;
        any other is LIBSVM text. Text may be compressed (.bz2, .gz, .xz). Tables need the extra
        ``data``.
    target : str, optional
        Column of a table that is the target. Of LIBSVM text it is what each line begins with.
    columns : sequence of str, optional
        Columns of a table that are features; None is all but the target. Empty cells are NaN.
    n_features : int, optional
        Features of LIBSVM text; None is as many as any of its rows has.
    sparse : bool or None, default=None
        Whether samples of LIBSVM text come as CSR matrix or as array. None takes CSR for more than
        64 columns of which less than a quarter is filled.
    dtype : dtype, default=float64
        float32 takes half the memory.
    block_size : int, default=4 MB
        Bytes that are read at a time.

    Returns
    -------
    bunch : Bunch
        ``data``, ``target`` (None for a table without one) and ``feature_names`` (None for LIBSVM
        text).

    Raises
    ------
    DatasetError
        The file cannot be read, or has values that are no numbers.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise DatasetError(f"there is no file {path}")
    kind = kind_of(path)
    if kind == "libsvm":
        return _read_libsvm(path, n_features, sparse, dtype, block_size)
    reader = _Parquet if kind == "parquet" else _Text
    return _read_table(reader(path), target, columns, dtype, block_size)


def kind_of(path: Path) -> str:
    """Return what a file holds by its name: "csv", "tsv", "parquet" or "libsvm"."""
    plain = path.with_suffix("") if is_compressed(path) else path
    ending = plain.suffix.lower()
    return ending[1:] if ending in (*_DELIMITERS, ".parquet") else "libsvm"


def _read_libsvm(
    path: Path, n_features: int | None, sparse: bool | None, dtype: Any, block_size: int
) -> Bunch:
    counts = Counts()
    for lines in _lines(path, dtype, block_size):
        counts += Counts.of(lines)
    if counts.n_rows == 0:
        raise DatasetError(f"{path} has no rows")
    width = counts.n_features if n_features is None else n_features
    try:
        check_columns(counts, counts.base, width)
    except ValueError as reason:
        raise DatasetError(f"{path}: {reason}; see n_features") from reason
    if sparse is None:
        sparse = as_csr(counts.n_rows, width, counts.n_values)
    filling, labels = Filling(counts.n_rows, width, sparse, dtype), []
    for lines in _lines(path, dtype, block_size):
        filling.add(lines.samples(width, counts.base))
        labels.append(lines.labels)
    return Bunch(data=filling.finished(), target=np.concatenate(labels), feature_names=None)


def _lines(path: Path, dtype: Any, block_size: int) -> Iterator[Any]:
    row = 1
    with opened(path) as stream:
        for text in line_blocks(stream, block_size):
            try:
                lines = parse_lines(text, dtype)
            except ValueError as reason:
                raise DatasetError(
                    f"{path}, from row {row} on: no LIBSVM text ({reason}); tables end in .csv, "
                    ".tsv or .parquet"
                ) from reason
            yield lines
            row += lines.n_rows


class _Text:
    """A table of delimited text with a header."""

    def __init__(self, path: Path):
        self.path = path
        self._delimiter = _DELIMITERS[f".{kind_of(path)}"]
        self._pandas = need_pandas("reading tables")
        self.columns = list(map(str, next(self._chunks(1)).columns))
        # A column is enough to count rows, also where cells have line breaks.
        self.n_rows = sum(len(chunk) for chunk in self._chunks(100_000, usecols=[0]))

    def _chunks(self, n_rows: int, **options: Any) -> Iterator[Any]:
        pandas = self._pandas
        told = pandas.errors.ParserError, pandas.errors.EmptyDataError, pandas.errors.ParserWarning
        with opened(self.path) as stream, warnings.catch_warnings():
            # Rows that are longer than the header are otherwise cut.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            try:
                yield from pandas.read_csv(
                    stream,
                    sep=self._delimiter,
                    chunksize=n_rows,
                    index_col=False,
                    **options,
                )
            except told as reason:
                raise DatasetError(f"{self.path} cannot be read as a table: {reason}") from reason

    def blocks(self, columns: Sequence[str], n_rows: int) -> Iterator[dict[str, Any]]:
        for chunk in self._chunks(n_rows):
            chunk.columns = self.columns
            yield {name: chunk[name] for name in columns}


class _Parquet:
    """A Parquet file."""

    def __init__(self, path: Path):
        need_pandas("reading tables")
        try:
            from pyarrow import ArrowException
            from pyarrow.parquet import ParquetFile
        except ImportError as error:
            raise ImportError(
                "reading Parquet needs pyarrow; install it with: pip install 'lokl[data]'"
            ) from error
        self.path = path
        try:
            self._file = ParquetFile(path)
        except (ArrowException, OSError) as reason:
            raise DatasetError(f"{path} is no Parquet file, or damaged ({reason})") from reason
        self.columns = list(self._file.schema_arrow.names)
        self.n_rows = int(self._file.metadata.num_rows)

    def blocks(self, columns: Sequence[str], n_rows: int) -> Iterator[dict[str, Any]]:
        with self._file as file:
            for batch in file.iter_batches(batch_size=n_rows, columns=list(columns)):
                frame = batch.to_pandas()
                yield {name: frame[name] for name in frame.columns}


def _read_table(
    table: Any, target: str | None, columns: Sequence[str] | None, dtype: Any, block_size: int
) -> Bunch:
    own = [name for name in table.columns if name != target] if columns is None else list(columns)
    wanted = own if target is None else [*own, target]
    for name in wanted:
        if name not in table.columns:
            shown = ", ".join(table.columns[:8])
            raise DatasetError(f"{table.path} has no column {name!r}; there are {shown}")
    if table.n_rows == 0:
        raise DatasetError(f"{table.path} has no rows")
    X = np.empty((table.n_rows, len(own)), dtype=dtype)
    n_rows = max(1, block_size // (_BYTES_OF_VALUE * len(table.columns)))
    targets, first = [], 0
    for block in table.blocks(wanted, n_rows):
        behind = first + len(next(iter(block.values())))
        for place, name in enumerate(own):
            X[first:behind, place] = _numbers_of_table(table.path, name, block[name], first)
        if target is not None:
            targets.append(np.asarray(block[target]))
        first = behind
    y = np.concatenate(targets) if targets else None
    return Bunch(data=X, target=y, feature_names=own)


def _numbers_of_table(path: Path, name: str, values: Any, first: int) -> Array:
    pandas = need_pandas("reading tables")
    numbers = pandas.to_numeric(values, errors="coerce")
    wrong = np.flatnonzero((numbers.isna() & ~values.isna()).to_numpy())
    if len(wrong):
        raise DatasetError(
            f"{path}, row {first + wrong[0] + 1} of values, column {name}: "
            f"{values.iloc[wrong[0]]!r} is not a number; write an empty cell, or leave the column "
            "out with columns="
        )
    return np.asarray(numbers.to_numpy(dtype=float, na_value=np.nan))
