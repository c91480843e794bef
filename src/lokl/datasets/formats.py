"""Readers: contents of files to samples and labels."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse as sp
from scipy.io import loadmat
from sklearn.datasets import load_svmlight_file

from lokl._arrays import Array, is_sparse
from lokl.datasets.errors import DatasetError
from lokl.datasets.registry import Record

Contents = Mapping[Path, bytes]  # of the files of a record, in its order


def parse(record: Record, contents: Contents) -> dict[str, Any]:
    """Return data, target and what else a record has; errors name a file."""
    readers = {"libsvm": libsvm, "mat": mat, "tcga": tcga}
    path = next(iter(contents))
    try:
        parsed = readers[record.format](record, contents)
    except (MemoryError, DatasetError):
        raise
    except Exception as reason:
        # Readers of other libraries fail with many kinds of errors on damaged bytes.
        raise DatasetError(f"{path} cannot be read as {record.name}: {reason}") from reason
    if parsed["data"].shape != (record.n, record.d):
        raise DatasetError(
            f"{path} has shape {parsed['data'].shape}, but {record.name} has "
            f"{(record.n, record.d)}; it is damaged or another version"
        )
    return parsed


def libsvm(record: Record, contents: Contents) -> dict[str, Any]:
    """Lines of ``label column:value ...``, as CSR."""
    ((path, content),) = contents.items()
    X, y = load_svmlight_file(io.BytesIO(content), n_features=record.d)
    _check_finite(path, X)
    _check_finite(path, y[:, np.newaxis], "the labels")
    # The indices have 64 bits, which LibSVM refuses.
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return {"data": X, "target": y}


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
        _check_finite(path, block, name)
    _check_finite(path, labels, "the labels")
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
    _check_finite(path, values)
    return values


def _check_finite(path: Path, values: Any, part: str = "") -> None:
    """Raise an error that names the first value that is no finite number; places count from 1."""
    stored = values.data if is_sparse(values) else values
    if np.isfinite(stored).all():
        return
    found = sp.coo_matrix(values)
    bad = np.flatnonzero(~np.isfinite(found.data))[0]
    of_part = f" of {part}" if part else ""
    raise DatasetError(
        f"{path}: row {found.row[bad] + 1}, column {found.col[bad] + 1}{of_part} is "
        f"{found.data[bad]}, not a finite number; mend the file, or fetch it again"
    )
