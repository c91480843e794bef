"""A kernel of clinical columns: numbers, categories and ordered values side by side."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lokl._arrays import Array, as_dense, as_samples
from lokl.kernels.base import Kernel
from lokl.kernels.columns import resolve_columns


class Clinical(Kernel):
    """Mean similarity of columns: ``k(x, z) = sum_c s_c(x_c, z_c) / d``.

    - Numbers: ``s_c = max(0, 1 - |x_c - z_c| / range_c)`` with the range of the training samples.
    - Categories: 1 if they are equal, otherwise 0.
    - Ordered values, such as stages: as numbers, but of their ranks among the training values. A
      new value has the rank of the next larger one.

    Every column has the same weight, whatever its unit. A missing value (NaN) has the similarity 0
    with every value, also with itself, so that the kernel stays positive semidefinite.

    Parameters
    ----------
    categorical : sequence of int or str, default=()
        Columns of categories, coded as numbers; names need a data frame.
    ordered : sequence of int or str, default=()
        Columns of ordered values.
    ranges : sequence of float, optional
        Range of each column, learned by :meth:`bind`.
    levels : sequence of sequence of float, optional
        Values of each ordered column in their order, learned by :meth:`bind`.

    See Also
    --------
    lokl.kernels.AdditiveLaplacian : Mean of Laplacians of single columns.
    lokl.kernels.Linear : Inner products.

    References
    ----------
    .. [1] A. Daemen, B. De Moor. Development of a Kernel Function for Clinical Data. Annual
       International Conference of the IEEE Engineering in Medicine and Biology Society, 2009.
       https://doi.org/10.1109/IEMBS.2009.5334847

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.kernels import Clinical
    >>> X = np.array([[30.0, 0.0, 1.0], [60.0, 1.0, 2.0], [90.0, 1.0, 4.0]])  # age, sex, stage
    >>> Clinical(categorical=[1], ordered=[2]).bind(X)(X).round(2)
    array([[1.  , 0.33, 0.  ],
           [0.33, 1.  , 0.67],
           [0.  , 0.67, 1.  ]])
    """

    label = "clinical"

    def __init__(
        self,
        categorical: Sequence[int | str] = (),
        ordered: Sequence[int | str] = (),
        ranges: Sequence[float] | None = None,
        levels: Sequence[Sequence[float]] | None = None,
    ):
        self.categorical = categorical
        self.ordered = ordered
        self.ranges = ranges
        self.levels = levels

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        table = X if frame is None else frame
        categorical, ordered = (
            resolve_columns(list(columns), table).tolist() if len(columns) else []
            for columns in (self.categorical, self.ordered)
        )
        both = sorted(set(categorical) & set(ordered))
        if both:
            raise ValueError(f"column {both[0]} is in categorical and in ordered; choose one")
        values = as_dense(as_samples(X)).astype(float)
        if weight is not None:
            values = values[np.asarray(weight) > 0]
        levels = [np.unique(values[:, c][~np.isnan(values[:, c])]).tolist() for c in ordered]
        ranked = _with_ranks(values, ordered, levels)
        low = np.where(np.isnan(ranked), np.inf, ranked).min(axis=0, initial=np.inf)
        high = np.where(np.isnan(ranked), -np.inf, ranked).max(axis=0, initial=-np.inf)
        # Columns without values have no range.
        ranges = np.where(high > low, high - low, 0.0)
        return Clinical(categorical, ordered, ranges.tolist(), levels)

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = self._read(X)
        right = left if Z is None else self._read(Z)
        values = np.zeros((len(left), len(right)))
        assert self.ranges is not None
        for c, width in enumerate(self.ranges):
            near, far = left[:, [c]], right[:, c]
            if c in self.categorical or width == 0.0:
                values += near == far
            else:
                # Comparisons with NaN are false.
                distance = np.abs(near / width - far / width)
                values += np.where(distance < 1.0, 1.0 - distance, 0.0)
        return values / max(left.shape[1], 1)

    def diag(self, X: Any) -> Array:
        return np.asarray((~np.isnan(self._read(X))).mean(axis=1))

    def _read(self, X: Any) -> Array:
        """Return samples with ranks in the ordered columns, (n_samples, n_features)."""
        if self.ranges is None or self.levels is None:
            raise ValueError(f"{self!r} learns ranges from training data; call bind(X) first")
        values = as_dense(as_samples(X)).astype(float)
        ordered = [c for c in self.ordered if isinstance(c, int)]
        return _with_ranks(values, ordered, self.levels)


def _with_ranks(values: Array, ordered: Sequence[int], levels: Sequence[Sequence[float]]) -> Array:
    """Return values with ranks instead of the values of ordered columns."""
    for c, known in zip(ordered, levels, strict=True):
        missing = np.isnan(values[:, c])
        values[:, c] = np.searchsorted(known, values[:, c])
        values[missing, c] = np.nan
    return values
