"""LIBSVM's text, ``label column:value ...``, some lines at a time."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse as sp
from sklearn.datasets import load_svmlight_file

from lokl._arrays import Array

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
