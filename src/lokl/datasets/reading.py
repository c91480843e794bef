"""Files of one's own in memory: read block by block into one array that is made once."""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from lokl._arrays import Array
from lokl._tables import need_pandas
from lokl.datasets.errors import DatasetError
from lokl.datasets.filling import Filling, as_csr
from lokl.datasets.formats import check_columns
from lokl.datasets.libsvm_text import BLOCK_SIZE, Counts, line_blocks, parse_lines
from lokl.datasets.storage import is_compressed, opened

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
            X[first:behind, place] = _numbers(table.path, name, block[name], first)
        if target is not None:
            targets.append(np.asarray(block[target]))
        first = behind
    y = np.concatenate(targets) if targets else None
    return Bunch(data=X, target=y, feature_names=own)


def _numbers(path: Path, name: str, values: Any, first: int) -> Array:
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
