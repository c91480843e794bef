"""Samples as every part takes them: made once, when data enters the library."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array, is_sparse


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows of data, and which kernels can look at which of them.

    A view that a sample lacks is NaN in all its columns as `given`, which gates look at; kernels
    look at the same rows `filled` with 0 for NaN.
    """

    given: Any  # {array, CSR matrix} of shape (n_samples, n_features)
    filled: Any
    present: Array | None = (
        None  # (n_samples, n_kernels), False where a view is missing; None: nowhere
    )
    weight: Array | None = None  # (n_samples,), how much each sample counts in training
    frame: Any = None  # as the user gave them, for selections of columns by name

    @classmethod
    def of(cls, X: Any, present: Array | None = None) -> "Samples":
        """Return rows as samples, NaN filled with 0."""
        if is_sparse(X) or not np.isnan(X).any():
            return cls(X, X, present)
        return cls(X, np.where(np.isnan(X), 0.0, X), present)

    @property
    def n_samples(self) -> int:
        return int(self.given.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.given.shape[1])

    def take(self, rows: Array) -> "Samples":
        """Return some of the samples; all of them in their order are returned as they are."""
        if len(rows) == self.n_samples and (rows == np.arange(self.n_samples)).all():
            return self
        given = self.given[rows]
        return Samples(
            given,
            given if self.filled is self.given else self.filled[rows],
            None if self.present is None else self.present[rows],
            None if self.weight is None else self.weight[rows],
            None if self.frame is None else self.frame.iloc[rows],
        )

    def rows_seen_by(self, kernel: int) -> Array:
        """Numbers of the samples that have the view of a kernel."""
        if self.present is None:
            return np.arange(self.n_samples)
        return np.flatnonzero(self.present[:, kernel])

    def seen_by(self, kernel: int) -> "Samples":
        """Return the samples that have the view of a kernel, for that kernel alone."""
        if self.present is None:
            return self
        part = self.take(self.rows_seen_by(kernel))
        return Samples(part.filled, part.filled, None, part.weight, part.frame)


def sample_weight(samples: Samples) -> Array:
    """Return the weights of training samples, one each where none were given."""
    return np.ones(samples.n_samples) if samples.weight is None else samples.weight
