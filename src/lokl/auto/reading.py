"""Tables of any kind as numbers: words and categories become columns of zeros and ones."""

from collections import Counter
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from lokl._arrays import Array, is_sparse
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
