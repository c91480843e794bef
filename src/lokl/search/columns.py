"""Tables of any kind as numbers: words and categories become columns of zeros and ones.

Columns on scales that suit kernels, learned from training samples alone.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import norm
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from lokl._arrays import Array, is_sparse
from lokl.kernels import RBF
from lokl.kernels.columns import column_names, resolve_columns

# A column of words with more is rather a name of each sample than a property of some.
_MOST_CATEGORIES = 100
# Sparse matrices are laid out where that takes little memory, and where they are hardly sparse.
_FEW_NUMBERS, _DENSE_SHARE = 2_000_000, 0.1


class ReadColumns(TransformerMixin, BaseEstimator):
    """Reads arrays, sparse matrices and data frames as numbers; NaN is a missing value.

    Columns of words or categories become one column of zeros and ones for each of their categories,
    of the hundred that are most frequent; categories that were not seen in training are zeros in
    all of them. Whatever is learned from values, such as scales, is left to
    :class:`PrepareColumns`, which sees training samples only.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the training samples came with column names.
    categories_ : list
        For each column its categories, None for a column of numbers.
    names_ : list of str
        Of the columns that come out.
    """

    def fit(self, X: Any, y: Any = None) -> "ReadColumns":
        """Find out which columns hold words, and which words.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : ignored
        """
        X = _table(X)
        validate_data(self, X, skip_check_array=True)
        self.dense_ = not is_sparse(X) or _worth_laying_out(X)
        self.categories_: list[list[Any] | None] = [None] * X.shape[1]
        if not is_sparse(X) and not _all_numbers(X):
            columns = [_Column.of(X, j) for j in range(X.shape[1])]
            self.categories_ = [column.categories() for column in columns]
        given = column_names(X) or [str(j) for j in range(X.shape[1])]
        self.names_ = [
            name if own is None else f"{name}={category}"
            for name, own in zip(given, self.categories_, strict=True)
            for category in (own if own is not None else [None])
        ]
        return self

    def transform(self, X: Any) -> Any:
        """Return samples as numbers.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X : array or CSR matrix of shape (n_samples, n_columns)
        """
        check_is_fitted(self)
        X = _table(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        if is_sparse(X):
            return X.toarray() if self.dense_ else X
        if all(own is None for own in self.categories_) and _all_numbers(X):
            return _finite(_numbers(X), column_names(X))
        blocks = [
            _Column.of(X, j).numbers() if own is None else _Column.of(X, j).indicators(own)
            for j, own in enumerate(self.categories_)
        ]
        return _finite(np.column_stack(blocks), self.names_)

    def places(self, columns: Any, X: Any) -> Array:
        """Positions among the columns that come out of columns of a view.

        Parameters
        ----------
        columns : names, positions, slice, mask or selector
        X : samples as they were given to :meth:`fit`
        """
        chosen = resolve_columns(columns, self.n_features_in_, column_names(X), X)
        widths = [1 if own is None else len(own) for own in self.categories_]
        ends = np.cumsum(widths)
        return np.concatenate([np.arange(ends[j] - widths[j], ends[j]) for j in chosen])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


@dataclass(frozen=True, eq=False)
class _Column:
    """One column of a table that may hold anything."""

    name: str
    values: Array  # of objects, or of numbers
    missing: Array  # mask
    is_category: bool  # whether the table says so

    @classmethod
    def of(cls, X: Any, place: int) -> "_Column":
        if not hasattr(X, "iloc"):
            values = X[:, place]
            return cls(str(place), values, _missing(values), False)
        series = X.iloc[:, place]
        name = str(X.columns[place])
        if series.dtype.kind in "biuf" and not hasattr(series, "cat"):
            values = np.asarray(series.to_numpy(dtype=float, na_value=np.nan))
            return cls(name, values, np.isnan(values), False)
        values = np.asarray(series, dtype=object)
        return cls(name, values, np.asarray(series.isna()), hasattr(series, "cat"))

    def categories(self) -> list[Any] | None:
        """Categories in their order, the most frequent only; None for numbers."""
        if self.values.dtype.kind in "biuf":
            return None
        present = self.values[~self.missing].tolist()
        if not self.is_category and all(isinstance(value, Real) for value in present):
            return None
        for value in present:
            if not isinstance(value, str | Real):
                raise TypeError(
                    f"column {self.name!r}: a value of a column argument must be a string or a "
                    f"number, got {value!r}; make numbers or words of it, or leave the column out"
                )
        counts = Counter(present)
        frequent = sorted(counts, key=lambda value: (-counts[value], str(value)))
        return sorted(frequent[:_MOST_CATEGORIES], key=str)

    def numbers(self) -> Array:
        if self.values.dtype.kind in "biuf":
            return np.asarray(self.values, dtype=float)
        found = np.full(len(self.values), np.nan)
        for row in np.flatnonzero(~self.missing):
            if not isinstance(self.values[row], Real):
                raise ValueError(
                    f"column {self.name!r} held numbers in training, and holds "
                    f"{self.values[row]!r} at row {row}; give a number, or NaN if it is missing"
                )
            found[row] = float(self.values[row])
        return found

    def indicators(self, categories: list[Any]) -> Array:
        place = {category: j for j, category in enumerate(categories)}
        found = np.zeros((len(self.values), len(categories)))
        for row, value in enumerate(self.values.tolist()):
            if self.missing[row]:
                found[row] = np.nan
            elif isinstance(value, str | Real) and value in place:
                found[row, place[value]] = 1.0
        return found


def _table(X: Any) -> Any:
    """Return rows and columns: a data frame as it is, else an array or a CSR matrix."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        if min(X.shape) == 0:
            check_array(X, dtype=None, ensure_all_finite=False)
        return X
    if is_sparse(X):
        return check_array(X, accept_sparse="csr", dtype=np.float64)
    # Names of other libraries' data frames are lost with the frame.
    X = X.to_pandas() if hasattr(X, "to_pandas") and hasattr(X, "columns") else X
    if hasattr(X, "iloc"):
        return X
    return check_array(X, dtype=None, ensure_all_finite=False)


def _worth_laying_out(X: Any) -> bool:
    size = X.shape[0] * X.shape[1]
    return size <= _FEW_NUMBERS or X.nnz >= _DENSE_SHARE * size


def _all_numbers(X: Any) -> bool:
    if hasattr(X, "iloc"):
        return all(
            dtype.kind in "biuf" and isinstance(dtype, np.dtype) for dtype in X.dtypes.tolist()
        )
    return X.dtype.kind in "biuf"


def _numbers(X: Any) -> Array:
    return np.asarray(X.to_numpy(dtype=float) if hasattr(X, "iloc") else X, dtype=float)


def _finite(X: Array, names: list[str] | None) -> Array:
    """Return numbers, or an error where one is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(X.sum())
    if suspicious and np.isinf(X).any():
        row, column = np.argwhere(np.isinf(X))[0]
        name = int(column) if names is None else repr(names[column])
        raise ValueError(
            f"Input X contains infinity at row {row}, column {name}; correct the value, or make it "
            "NaN if it is missing"
        )
    return X


def _missing(values: Array) -> Array:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    # Only NaN is not equal to itself; comparing NA of pandas gives NA, which is no bool.
    return np.array([value is None or (value != value) is not False for value in values.tolist()])


# Skewness above which ranks say more than values; that of an exponential distribution is 2.
_SKEWED = 2.0
# Points of the function that makes normal scores of a skewed column.
_KNOTS = 200
# Rows whose distances give the unit of a view.
_ROWS_FOR_UNIT = 200


class PrepareColumns(TransformerMixin, BaseEstimator):
    """Columns of comparable size, without missing values, and views of comparable distances.

    A column of numbers is centred and divided by its standard deviation; a skewed one becomes
    normal scores of its ranks. Columns of two values, and those that are zero in more than half of
    the samples, keep their shape: the two values, or zero and a typical other value, are two units
    apart, however rare one of them is. Constant columns become zero. A missing value becomes the
    mean of its column; where a sample lacks all columns of one of several views, they stay missing.

    At last every view is divided by the root of the median squared distance of its samples, so that
    ``RBF(1.0)`` is a sensible width.

    Parameters
    ----------
    views : list of arrays of int, optional
        Columns of each view. The views are put side by side; None is one view of all columns.
    unit : bool, default=True
        Whether views are divided by their distances.
    scale : bool, default=True
        Whether columns are changed at all; numbers of rows of stored matrices must not be.
    """

    def __init__(self, views: Sequence[Any] | None = None, unit: bool = True, scale: bool = True):
        self.views = views
        self.unit = unit
        self.scale = scale

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "PrepareColumns":
        """Learn scales.

        Parameters
        ----------
        X : {array, CSR matrix} of shape (n_samples, n_features)
            Numbers; NaN for missing values of an array.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        """
        weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, float)
        if (weight <= 0).any():
            X, weight = X[weight > 0], weight[weight > 0]
        self.n_features_in_ = X.shape[1]
        self.normal_scores_: dict[int, tuple[Array, Array]] = {}
        if not self.scale:
            self.centre_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        elif is_sparse(X):
            self.centre_ = np.zeros(X.shape[1])
            self.scale_ = _scale_of_entries(X, weight)
        else:
            self._learn_columns(X, weight)
        self.units_ = [1.0] * self._n_views()
        self.units_ = [
            _unit(self._view(X, number), weight) if self.unit else 1.0
            for number in range(self._n_views())
        ]
        return self

    def transform(self, X: Any) -> Any:
        """Return scaled samples, view beside view.

        Parameters
        ----------
        X : {array, CSR matrix} of shape (n_samples, n_features)

        Returns
        -------
        X : array or CSR matrix
        """
        check_is_fitted(self)
        blocks = [self._view(X, number) for number in range(self._n_views())]
        if len(blocks) == 1:
            return blocks[0]
        return sparse.hstack(blocks, format="csr") if is_sparse(X) else np.hstack(blocks)

    def _n_views(self) -> int:
        return 1 if self.views is None else len(self.views)

    def _learn_columns(self, X: Array, weight: Array) -> None:
        known = ~np.isnan(X)
        W = np.where(known, weight[:, np.newaxis], 0.0)
        total = np.maximum(W.sum(axis=0), np.finfo(float).tiny)
        filled = np.where(known, X, 0.0)
        low = np.where(known, X, np.inf).min(axis=0)
        high = np.where(known, X, -np.inf).max(axis=0)
        constant = ~(high > low)
        # Values from 0 to 1: their cubes neither overflow nor vanish, and values far from zero
        # keep their digits.
        low = np.where(constant, 0.0, low)
        span = np.where(constant, 1.0, high - low)
        moved = np.where(known, (filled - low) / span, 0.0)
        mean = (W * moved).sum(axis=0) / total
        moved = np.where(known, moved - mean, 0.0)
        deviation = np.sqrt((W * moved**2).sum(axis=0) / total)
        cubes = (W * moved**3).sum(axis=0) / total
        skewness = np.abs(cubes) / np.maximum(deviation**3, np.finfo(float).tiny)
        two_values = (~known | (low == X) | (high == X)).all(axis=0)
        zeros = (W * (known & (X == 0))).sum(axis=0) > 0.5 * total
        entries = np.maximum((W * (filled != 0)).sum(axis=0), np.finfo(float).tiny)
        typical = span * np.sqrt((W * (filled / span) ** 2).sum(axis=0) / entries)
        scale = np.where(two_values, span / 2, np.where(zeros, typical / 2, span * deviation))
        self.centre_ = np.where(constant, 0.0, low + span * mean)
        self.scale_ = np.where(constant, np.inf, scale)
        skewed = ~two_values & ~zeros & ~constant & (skewness > _SKEWED)
        for column in np.flatnonzero(skewed):
            rows = known[:, column]
            self.normal_scores_[int(column)] = _normal_scores(X[rows, column], weight[rows])

    def _view(self, X: Any, number: int) -> Any:
        """Columns of one view, scaled."""
        columns = None if self.views is None else np.asarray(self.views[number], dtype=np.intp)
        if is_sparse(X):
            factors = 1.0 / (self.scale_ * self.units_[number])
            scaled = (X @ sparse.diags_array(factors, format="csr")).tocsr()
            return scaled if columns is None else scaled[:, columns]
        own = np.arange(X.shape[1]) if columns is None else columns
        X = X[:, own]
        missing = np.isnan(X)
        scaled = (X - self.centre_[own]) / self.scale_[own]
        for place, column in enumerate(own):
            if column in self.normal_scores_:
                scaled[:, place] = np.interp(X[:, place], *self.normal_scores_[column])
        if missing.any():
            lacking = missing.all(axis=1) if columns is not None else np.zeros(len(X), bool)
            scaled = np.where(missing & ~lacking[:, np.newaxis], 0.0, scaled)
        return scaled / self.units_[number]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def _scale_of_entries(X: Any, weight: Array) -> Array:
    """Half of a typical entry of each column; infinite where there is none."""
    W = X.copy()
    W.data = np.repeat(weight, np.diff(X.indptr)) * (X.data != 0)
    count = np.asarray(W.sum(axis=0)).ravel()
    W.data = W.data * X.data**2
    squares = np.asarray(W.sum(axis=0)).ravel()
    scale = np.sqrt(squares / np.maximum(count, 1e-300)) / 2
    return np.where((scale > 0) & np.isfinite(scale), scale, np.inf)


def _normal_scores(values: Array, weight: Array) -> tuple[Array, Array]:
    """Values and their normal scores, by which others are interpolated."""
    points, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, weights=weight)
    ranks = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    if len(points) > _KNOTS:
        chosen = np.unique(np.linspace(0, len(points) - 1, _KNOTS).astype(int))
        points, ranks = points[chosen], ranks[chosen]
    return points, norm.ppf(ranks)


def _unit(X: Any, weight: Array) -> float:
    """Root of the median squared distance of samples that have the view."""
    if not is_sparse(X):
        present = ~np.isnan(X[:, 0])
        X, weight = X[present], weight[present]
    if X.shape[0] > _ROWS_FOR_UNIT:
        chosen = np.linspace(0, X.shape[0] - 1, _ROWS_FOR_UNIT).astype(np.intp)
        X, weight = X[chosen], weight[chosen]
    gamma = RBF("median").bind(X, weight)
    return float(1.0 / np.sqrt(gamma.gamma))
