"""Files as Dask collections, whose blocks are read by the workers."""

import atexit
import glob
import shutil
import tempfile
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse as sp

from lokl.datasets import DatasetError, fetch, info
from lokl.datasets.loader import locate
from lokl.datasets.readers import (
    DelimitedText,
    LibsvmCounts,
    LibsvmText,
    ParquetTable,
    TableFile,
    is_compressed,
    is_sparse_layout,
    open_binary,
    open_table,
    parse_libsvm,
    rebased,
)
from lokl.regions.dask.graph import Cluster, need_dask

# Bytes of text of a block; the parsed values take several times as many.
_BLOCK_SIZE = 16 * 2**20
# Rows of a table from which the numeric columns are inferred.
_HEAD_ROWS = 1000


def read(
    path: Any,
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    n_features: int | None = None,
    sparse: bool | None = None,
    dtype: Any = np.float64,
    na: Sequence[str] = (),
    block_size: int = _BLOCK_SIZE,
    scratch: Any = None,
    client: Any = None,
) -> tuple[Any, Any]:
    r"""Read LIBSVM text, CSV, TSV, Parquet or ``.npz`` as Dask collections.

    Parameters
    ----------
    path : str, path or sequence of these
        Files, patterns such as ``"part-*.csv"``, or the name of a data set in LIBSVM's format. All
        workers must have access to the files. Their endings determine the format, as in
        :func:`lokl.datasets.read`.
    target : str, optional
        Column of a table that is the target; see :func:`lokl.datasets.read` for its default.
    columns : sequence of str, optional
        Columns of a table that are features; None is all but the target.
    n_features : int, optional
        Number of features of LIBSVM text; None is the largest of any row.
    sparse : bool or None, default=None
        Whether blocks of LIBSVM text are CSR matrices or arrays. None selects CSR if there are more
        than 64 columns of which less than a quarter is nonzero.
    dtype : dtype, default=float64
        Data type of the features. float32 takes half the memory.
    na : sequence of str, optional
        Cells of text that are missing values, in addition to empty cells, NA and NaN.
    block_size : int, default=16 MB
        Bytes of a block in the file. Row groups of a Parquet file are not divided, and an ``.npz``
        file is one block.
    scratch : str or path, optional
        Folder in which compressed text (.bz2, .gz, .xz) is decompressed, since blocks cannot start
        inside it; all workers must have access to it. By default a temporary folder that is removed
        when Python ends.
    client : distributed.Client or None, default=None
        Cluster on which the rows of LIBSVM text are counted, in one pass over it. None is the
        current client, or Dask's default scheduler.

    Returns
    -------
    X : dask array (LIBSVM text) or dask data frame (tables)
        Features.
    y : dask array or dask series
        None for a table without a target.

    See Also
    --------
    lokl.datasets.read : Into memory.
    lokl.distributed.fit : Fits on the collections.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lokl import distributed
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "patients.csv"
    ...     _ = path.write_text("a,b,target\n1,2,0\n3,4,1\n")
    ...     X, y = distributed.read(path, "target")
    ...     columns, n_rows = list(X.columns), len(y)
    >>> columns, n_rows
    (['a', 'b'], 2)
    """
    need_dask()
    paths, width = _find_files(path)
    files = [open_table(file, na=na) for file in paths]
    formats = sorted({_format_of(file) for file in files})
    if len(formats) > 1:
        raise ValueError(f"all files must have one format, got {' and '.join(formats)}")
    first = files[0]
    if isinstance(first, DelimitedText | LibsvmText):
        paths = _decompressed(paths, scratch)
    if isinstance(first, LibsvmText):
        n_features = width if n_features is None else n_features
        return _libsvm(Cluster(client), paths, n_features, sparse, dtype, block_size)
    frame, numeric = _frame(first, [*map(str, paths)], target or first.target, dtype, block_size)
    columns, target = first.select(target, columns, list(frame.columns))
    X = frame[columns].astype({name: dtype for name in columns if name in numeric})
    return X, None if target is None else frame[target]


def _format_of(file: TableFile) -> str:
    if isinstance(file, DelimitedText):
        return f"{file.format_name} ({file.layout.delimiter!r})"
    return file.format_name


def _find_files(given: Any) -> tuple[list[Path], int | None]:
    """Return paths, and the number of features of a named data set."""
    if isinstance(given, list | tuple):
        parts = [_find_files(part) for part in given]
        return [path for paths, _ in parts for path in paths], parts[0][1] if parts else None
    name = str(Path(str(given)).expanduser())
    if Path(name).is_file():
        return [Path(name)], None
    matching = [Path(match) for match in sorted(glob.glob(name)) if Path(match).is_file()]
    if matching:
        return matching, None
    try:
        record = info(str(given))
    except ValueError as reason:
        raise DatasetError(f"there is no file {given}; {reason}") from reason
    if record.format != "libsvm":
        raise DatasetError(
            f"{given} is not LIBSVM text; load it with lokl.datasets.load({given!r})"
        )
    return list(locate(record)[1] or fetch(record.name)), record.d


def _decompressed(paths: Sequence[Path], scratch: Any) -> list[Path]:
    """Return paths of plain text, in which blocks can start anywhere."""
    if not any(is_compressed(path) for path in paths):
        return list(paths)
    if scratch is None:
        parent = need_dask().config.get("temporary-directory", None)
        folder = Path(tempfile.mkdtemp(prefix="lokl-", dir=parent))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    else:
        folder = Path(scratch).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
    stems = [path.stem for path in paths]
    # Files of different folders may have the same name.
    names = [f"{k}-{s}" if stems.count(s) > 1 else s for k, s in enumerate(stems)]
    return [
        _decompress(path, folder / name) if is_compressed(path) else path
        for path, name in zip(paths, names, strict=True)
    ]


def _decompress(path: Path, result: Path) -> Path:
    part = result.with_name(f"{result.name}.part")
    try:
        with open_binary(path) as stream, part.open("wb") as out:
            shutil.copyfileobj(stream, out, 2**20)
        part.replace(result)
    finally:
        part.unlink(missing_ok=True)
    return result


def _libsvm(
    cluster: Cluster,
    paths: Sequence[Path],
    n_features: int | None,
    sparse: bool | None,
    dtype: Any,
    block_size: int,
) -> tuple[Any, Any]:
    """Return samples and labels of LIBSVM text; rows are counted, so that chunks have lengths."""
    from dask.bytes.core import read_bytes

    blocks, array = [], need_dask().array
    for path in paths:
        _, (texts,) = read_bytes(str(path), delimiter=b"\n", blocksize=block_size, sample=False)
        blocks += [(text, f"{path}, block {k}") for k, text in enumerate(texts, 1)]
    counts = cluster.compute(_count, list(blocks))
    total = reduce(LibsvmCounts.__add__, counts, LibsvmCounts())
    n_rows, width = total.layout(n_features, str(paths[0]))
    if sparse is None:
        sparse = is_sparse_layout(n_rows, width, total.n_values)
    parse = need_dask().delayed(_parse, pure=True, nout=2)
    meta: Any = np.empty((0, 0), dtype=dtype)
    meta = sp.csr_matrix(meta) if sparse else meta
    samples, labels = [], []
    for block, count in zip(blocks, counts, strict=True):
        X, y = parse(*block, dtype, width, total.first_column, sparse)
        samples.append(array.from_delayed(X, (count.n_rows, width), meta=meta))
        labels.append(array.from_delayed(y, (count.n_rows,), dtype=np.float64))
    return array.concatenate(samples, axis=0), array.concatenate(labels)


def _count(text: bytes, label: str) -> LibsvmCounts:
    return LibsvmCounts.of(parse_libsvm(text, label=label)[0])


def _parse(
    text: bytes, label: str, dtype: Any, n_features: int, first_column: int, sparse: bool
) -> tuple[Any, Any]:
    X, y = parse_libsvm(text, dtype, label)
    X = rebased(X, n_features, first_column)
    return X if sparse else X.toarray(), y


def _frame(
    file: TableFile, names: Sequence[str], target: str | None, dtype: Any, block_size: int
) -> tuple[Any, list[str]]:
    """Return the Dask data frame of several files like `file`, and its numeric columns."""
    frames = need_dask().dataframe
    if isinstance(file, DelimitedText):
        numeric = _numeric_columns(next(file.blocks(file.columns, _HEAD_ROWS)))
        # Integers may have gaps further down, which only floating-point columns can represent.
        kinds = {name: dtype for name in numeric if name != target}
        return frames.read_csv(names, blocksize=block_size, dtype=kinds, **file.cells), numeric
    if isinstance(file, ParquetTable):
        frame = frames.read_parquet(names, blocksize=block_size)
    else:
        frame = frames.from_map(_whole_frame, list(names))
    return frame, _numeric_columns(frame)


def _numeric_columns(frame: Any) -> list[str]:
    return [name for name, kind in frame.dtypes.items() if kind.kind in "biuf"]


def _whole_frame(path: str) -> Any:
    return open_table(path).frame
