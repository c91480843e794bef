"""Readers: contents of files to samples and labels."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse as sp
from scipy.io import loadmat

from lokl._arrays import Array, is_sparse
from lokl.datasets.errors import DatasetError
from lokl.datasets.filling import Filling
from lokl.datasets.libsvm_text import BLOCK_SIZE, Counts, line_blocks, parse_lines
from lokl.datasets.registry import Record
from lokl.datasets.storage import opened

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
