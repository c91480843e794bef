"""Files as collections: every block is read where it is needed."""

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

from lokl._frames import need_pandas
from lokl.datasets import DatasetError, available, fetch, info
from lokl.datasets.download import is_compressed, locate, opened
from lokl.datasets.readers import Counts, Lines, as_csr, check_columns, kind_of, parse_lines
from lokl.regions.dask.cluster import Cluster, need_dask

# Bytes of text of a block; its numbers take some times as many.
_BLOCK_SIZE = 16 * 2**20
# Rows of a table that tell which columns are numbers.
_FIRST_ROWS = 1000
_DELIMITERS = {"csv": ",", "tsv": "\t"}


def read(
    path: Any,
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    n_features: int | None = None,
    sparse: bool | None = None,
    dtype: Any = np.float64,
    block_size: int = _BLOCK_SIZE,
    scratch: Any = None,
    client: Any = None,
) -> tuple[Any, Any]:
    """Read LIBSVM text, CSV, TSV or Parquet as Dask collections.

    Parameters
    ----------
    path : str, path or sequence of these
        Files, patterns such as ``"part-*.csv"``, or the name of a data set in LIBSVM's format. All
        workers must see the files. Endings tell the kind, as in :func:`lokl.datasets.read`.
    target : str, optional
        Column of a table that is the target. Of LIBSVM text it is what each line begins with.
    columns : sequence of str, optional
        Columns of a table that are features; None is all but the target.
    n_features : int, optional
        Features of LIBSVM text; None is as many as any row has.
    sparse : bool or None, default=None
        Whether blocks of LIBSVM text are CSR matrices or arrays. None takes CSR for more than 64
        columns of which less than a quarter is filled.
    dtype : dtype, default=float64
        Of the features. float32 takes half the memory.
    block_size : int, default=16 MB
        Bytes of a block, as they are in the file. Groups of rows of a Parquet file are not divided.
    scratch : str or path, optional
        Folder where compressed text (.bz2, .gz, .xz) is unpacked, since it cannot be entered in the
        middle; all workers must see it. None is a folder for temporary files, which is removed when
        Python ends.
    client : distributed.Client or None, default=None
        Where rows of LIBSVM text are counted, which takes one reading of it; None is the current
        client, or Dask's default scheduler.

    Returns
    -------
    X : dask array (LIBSVM text) or dask data frame (tables)
    y : dask array or dask series
        None for a table without a target.
    """
    need_dask()
    paths, width = _paths(path)
    kinds = sorted({kind_of(own) for own in paths})
    if len(kinds) > 1:
        raise ValueError(f"all files must be of one kind, got {' and '.join(kinds)}")
    if kinds != ["parquet"]:
        paths = _unpacked(paths, scratch)
    if kinds == ["libsvm"]:
        wanted = n_features if n_features is not None else width
        return _Text(paths, block_size, dtype).collections(Cluster(client), wanted, sparse)
    return _table(paths, kinds[0], target, columns, dtype, block_size)


def _paths(given: Any) -> tuple[list[Path], int | None]:
    """Files that are meant, and the number of features where it is known."""
    if isinstance(given, list | tuple):
        found = [_paths(own) for own in given]
        return [path for paths, _ in found for path in paths], found[0][1] if found else None
    name = str(Path(str(given)).expanduser())
    if Path(name).is_file():
        return [Path(name)], None
    matching = [Path(match) for match in sorted(glob.glob(name)) if Path(match).is_file()]
    if matching:
        return matching, None
    if str(given) not in available():
        raise DatasetError(f"there is no file {given}, and no data set of this name")
    record = info(str(given))
    if record.format != "libsvm":
        raise DatasetError(f"{given} is no text; load it with lokl.datasets.load({given!r})")
    return list(locate(record)[1] or fetch(record.name)), record.d


def _unpacked(paths: Sequence[Path], scratch: Any) -> list[Path]:
    """Files that can be entered in the middle."""
    if not any(is_compressed(path) for path in paths):
        return list(paths)
    if scratch is None:
        place = need_dask().config.get("temporary-directory", None)
        folder = Path(tempfile.mkdtemp(prefix="lokl-", dir=place))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    else:
        folder = Path(scratch).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
    stems = [path.stem for path in paths]
    # Files of different folders may have one name.
    names = [f"{k}-{s}" if stems.count(s) > 1 else s for k, s in enumerate(stems)]
    return [
        _unpack(path, folder / name) if is_compressed(path) else path
        for path, name in zip(paths, names, strict=True)
    ]


def _unpack(path: Path, place: Path) -> Path:
    part = place.with_name(f"{place.name}.part")
    try:
        with opened(path) as stream, part.open("wb") as out:
            shutil.copyfileobj(stream, out, 2**20)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
    return place


class _Text:
    """LIBSVM text in blocks of lines."""

    def __init__(self, paths: Sequence[Path], block_size: int, dtype: Any):
        from dask.bytes.core import read_bytes

        self._delayed, self._dtype = need_dask().delayed, dtype
        self._blocks = []
        for path in paths:
            _, (blocks,) = read_bytes(
                str(path), delimiter=b"\n", blocksize=block_size, sample=False
            )
            self._blocks += [(f"{path}, block {k}", text) for k, text in enumerate(blocks, 1)]

    def collections(
        self, cluster: Cluster, n_features: int | None, sparse: bool | None
    ) -> tuple[Any, Any]:
        """Return samples and labels; rows are counted, so that chunks have known sizes."""
        count = self._delayed(_counted, pure=False)
        counts = cluster.compute([count(text, place) for place, text in self._blocks])
        whole = reduce(Counts.__add__, counts, Counts())
        if whole.n_rows == 0:
            raise DatasetError(f"{self._blocks[0][0].rpartition(',')[0]} has no rows")
        width = whole.n_features if n_features is None else n_features
        try:
            check_columns(whole, whole.base, width)
        except ValueError as reason:
            raise DatasetError(f"{reason}; see n_features") from reason
        if sparse is None:
            sparse = as_csr(whole.n_rows, width, whole.n_values)
        array = need_dask().array
        parse = self._delayed(_parsed, pure=True, nout=2)
        meta: Any = np.empty((0, 0), dtype=self._dtype)
        meta = sp.csr_matrix(meta) if sparse else meta
        samples, labels = [], []
        for (place, text), own in zip(self._blocks, counts, strict=True):
            X, y = parse(text, place, self._dtype, width, whole.base, sparse)
            samples.append(array.from_delayed(X, (own.n_rows, width), meta=meta))
            labels.append(array.from_delayed(y, (own.n_rows,), dtype=np.float64))
        return array.concatenate(samples, axis=0), array.concatenate(labels)


def _lines(text: bytes, place: str, dtype: Any) -> Lines:
    try:
        return parse_lines(text, dtype)
    except ValueError as reason:
        raise DatasetError(
            f"{place}: no LIBSVM text ({reason}); tables end in .csv, .tsv or .parquet"
        ) from reason


def _counted(text: bytes, place: str) -> Counts:
    return Counts.of(_lines(text, place, np.float64))


def _parsed(
    text: bytes, place: str, dtype: Any, n_features: int, first_column: int, sparse: bool
) -> tuple[Any, Any]:
    lines = _lines(text, place, dtype)
    X = lines.samples(n_features, first_column)
    return X if sparse else X.toarray(), lines.labels


def _table(
    paths: Sequence[Path],
    kind: str,
    target: str | None,
    columns: Sequence[str] | None,
    dtype: Any,
    block_size: int,
) -> tuple[Any, Any]:
    frames, names = need_dask().dataframe, [str(path) for path in paths]
    if kind == "parquet":
        frame = frames.read_parquet(names, blocksize=block_size)
        numbers = [name for name, own in frame.dtypes.items() if own.kind in "biuf"]
    else:
        sign = _DELIMITERS[kind]
        head = need_pandas("reading tables").read_csv(names[0], sep=sign, nrows=_FIRST_ROWS)
        # Whole numbers may have gaps further down, which only floating numbers can have.
        numbers = [name for name, own in head.dtypes.items() if own.kind in "biuf"]
        kinds = {name: dtype for name in numbers if name != target}
        frame = frames.read_csv(names, sep=sign, blocksize=block_size, dtype=kinds)
    own = [name for name in frame.columns if name != target] if columns is None else list(columns)
    for name in own if target is None else [*own, target]:
        if name not in frame.columns:
            shown = ", ".join(map(str, frame.columns[:8]))
            raise DatasetError(f"{names[0]} has no column {name!r}; there are {shown}")
    X = frame[own].astype({name: dtype for name in own if name in numbers})
    return X, None if target is None else frame[target]
