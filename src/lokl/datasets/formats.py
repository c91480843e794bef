"""Readers: contents of files to samples and labels."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat
from sklearn.datasets import load_svmlight_file

from lokl._arrays import Array
from lokl.datasets.errors import DatasetError
from lokl.datasets.registry import Record


def parse(record: Record, contents: Sequence[bytes], path: Path) -> dict[str, Any]:
    """Return data, target and what else a record has; errors name `path`."""
    readers = {"libsvm": libsvm, "mat": mat, "tcga": tcga}
    try:
        parsed = readers[record.format](record, contents)
    except MemoryError:
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


def libsvm(record: Record, contents: Sequence[bytes]) -> dict[str, Any]:
    """Lines of ``label column:value ...``, as CSR."""
    X, y = load_svmlight_file(io.BytesIO(contents[0]), n_features=record.d)
    # The indices have 64 bits, which LibSVM refuses.
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return {"data": X, "target": y}


def mat(record: Record, contents: Sequence[bytes]) -> dict[str, Any]:
    """MATLAB's cells ``X``, one for each view, and labels ``y``."""
    # scipy reads streams, too, but its type stubs allow paths only.
    file = loadmat(io.BytesIO(contents[0]))  # type: ignore[arg-type]
    blocks = [np.asarray(cell, dtype=float) for cell in file["X"].ravel()]
    return {
        "data": np.hstack(blocks),
        "target": np.asarray(file["y"]).ravel().astype(int),
        "views": column_slices(record.views, [block.shape[1] for block in blocks]),
    }


def tcga(record: Record, contents: Sequence[bytes]) -> dict[str, Any]:
    """Tables of three views and the subtypes, then of two views and the subtypes."""
    mrna, mirna, protein, subtype, mrna_test, mirna_test, subtype_test = map(_cells, contents)
    blocks = [_numbers(table) for table in (mrna, mirna, protein)]
    test = [_numbers(table) for table in (mrna_test, mirna_test)]
    lacking = np.full((len(test[0]), blocks[2].shape[1]), np.nan)
    return {
        "data": np.hstack(blocks),
        "target": subtype[:, 0],
        "views": column_slices(record.views, [block.shape[1] for block in blocks]),
        "data_test": np.hstack([*test, lacking]),
        "target_test": subtype_test[:, 0],
    }


def column_slices(names: Sequence[str], widths: Sequence[int]) -> dict[str, slice]:
    """Where each view is, when views stand side by side."""
    ends = np.cumsum(widths).tolist()
    places = zip(names, widths, ends, strict=True)
    return {name: slice(end - width, end) for name, width, end in places}


def _cells(content: bytes) -> Array:
    """Cells of a table without its header."""
    return np.array(list(csv.reader(io.StringIO(content.decode())))[1:])


def _numbers(table: Array) -> Array:
    """Numbers of a table whose first column names the samples."""
    return table[:, 1:].astype(float)
