"""Encoding, imputing and scaling of columns, for AutoMKL and for tables.

scikit-learn's transformers do not serve here. OneHotEncoder encodes a missing value as a category
or as zeros, but a sample that lacks a view must stay missing in all its columns. It also rejects
columns that mix text and numbers. SimpleImputer and QuantileTransformer take no sample weights,
while a weight of two must be equal to a repeated row.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import norm
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from lokl._arrays import Array, is_sparse
from lokl._frames import NUMBERS, as_pandas
from lokl.kernels import RBF
from lokl.kernels.columns import column_names, resolve_columns

# A column with more categories rather identifies samples than describes them.
MAX_CATEGORIES = 100
# Sparse matrices become arrays if that takes little memory, or if they are hardly sparse.
_MAX_DENSE_VALUES, _DENSE_SHARE = 2_000_000, 0.1
# Skewness above which ranks are more useful than values; 2 for an exponential distribution.
_MAX_SKEWNESS = 2.0
# Numeric columns with at most this many values may be categories.
_MAX_VALUES = 10
# Mean distance of two standard normal numbers.
_MEAN_NORMAL_DISTANCE = 2.0 / np.sqrt(np.pi)
# Points of the piecewise linear function from a skewed column to normal scores.
_N_KNOTS = 200
# Rows from whose distances the unit of a view is computed.
_ROWS_FOR_UNIT = 200
_TINY = np.finfo(float).tiny


class _ColumnTransformer(TransformerMixin, BaseEstimator):
    """Base of transformers of arrays with NaN and of sparse matrices."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


# Their methods work on arrays, whatever output scikit-learn is configured for.
class ColumnEncoder(_ColumnTransformer, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Encodes arrays, sparse matrices and data frames as numbers; NaN is a missing value.

    A column of text or categories becomes one column of zeros and ones for each of its hundred most
    frequent categories. Categories that did not occur in training are zero in all of them. Nothing
    else is learned from the values: scales belong to :class:`ColumnScaler`.

    Parameters
    ----------
    categories : mapping of str to list, optional
        Categories of columns by name; all other columns are numeric. None infers both from the
        training samples.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str of shape (n_features,)
        If the training samples have column names.
    categories_ : list of length n_features
        Categories of each column, None for a numeric column.
    names_ : list of str
        Names of the encoded columns.

    See Also
    --------
    lokl.search.ColumnScaler : Scales the encoded columns.
    sklearn.preprocessing.OneHotEncoder : Encodes categories in scikit-learn.

    Examples
    --------
    >>> import pandas as pd
    >>> from lokl.search import ColumnEncoder
    >>> frame = pd.DataFrame({"age": [31, 52, 47], "sex": ["f", "m", "f"]})
    >>> encoder = ColumnEncoder().fit(frame)
    >>> encoder.names_
    ['age', 'sex=f', 'sex=m']
    >>> encoder.transform(frame)
    array([[31.,  1.,  0.],
           [52.,  0.,  1.],
           [47.,  1.,  0.]])
    """

    def __init__(self, categories: Mapping[str, Sequence[Any]] | None = None):
        self.categories = categories

    def fit(self, X: Any, y: Any = None) -> "ColumnEncoder":
        """Find the columns of text and their categories.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : ignored
        """
        X = _as_table(X)
        validate_data(self, X, skip_check_array=True)
        self.dense_ = not is_sparse(X) or _is_worth_dense(X)
        names = column_names(X) or [str(j) for j in range(X.shape[1])]
        self.categories_: list[list[Any] | None] = [None] * X.shape[1]
        if self.categories is not None:
            known = self.categories
            self.categories_ = [list(known[n]) if n in known else None for n in names]
        elif not is_sparse(X) and not _is_numeric(X):
            self.categories_ = [_categories(X, j) for j in range(X.shape[1])]
        self.names_ = [
            name if categories is None else f"{name}={category}"
            for name, categories in zip(names, self.categories_, strict=True)
            for category in (categories if categories is not None else [None])
        ]
        return self

    def transform(self, X: Any) -> Any:
        """Return samples as numbers.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X : array or CSR matrix of shape (n_samples, n_encoded)
        """
        check_is_fitted(self)
        X = _as_table(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        if is_sparse(X):
            return X.toarray() if self.dense_ else X
        if all(categories is None for categories in self.categories_) and _is_numeric(X):
            values = X.to_numpy(dtype=float) if hasattr(X, "iloc") else X
            return _check_finite(np.asarray(values, dtype=float), column_names(X))
        blocks = [
            _numbers(X, j) if categories is None else _indicators(_values(X, j), categories)
            for j, categories in enumerate(self.categories_)
        ]
        return _check_finite(np.column_stack(blocks), self.names_)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the encoded columns.

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        return np.array(self.names_, dtype=object)

    def positions(self, columns: Any, X: Any) -> Array:
        """Return the positions of the encoded columns of a view.

        Parameters
        ----------
        columns : names, positions, slice, mask or selector
        X : samples as passed to :meth:`fit`
        """
        chosen = resolve_columns(columns, _as_table(X))
        widths = [1 if categories is None else len(categories) for categories in self.categories_]
        ends = np.cumsum(widths)
        return np.concatenate([np.arange(ends[j] - widths[j], ends[j]) for j in chosen])


def frequent_categories(values: Sequence[Any]) -> list[Any]:
    """Return the most frequent values, at most `MAX_CATEGORIES`, in the order of their text."""
    counts = Counter(values)
    ranked = sorted(counts, key=lambda value: (-counts[value], str(value)))
    return sorted(ranked[:MAX_CATEGORIES], key=str)


def _values(X: Any, j: int) -> Array:
    """Return a column as numbers if its data type is numeric, otherwise as objects, (n,)."""
    if not hasattr(X, "iloc"):
        return np.asarray(X[:, j])
    series = X.iloc[:, j]
    if series.dtype.kind in "biuf" and not hasattr(series, "cat"):
        return np.asarray(series.to_numpy(dtype=float, na_value=np.nan))
    return np.asarray(series, dtype=object)


def _categories(X: Any, j: int) -> list[Any] | None:
    """Return the categories of a column, None for numbers."""
    values = _values(X, j)
    if values.dtype.kind in "biuf":
        return None
    present = values[~_missing(values)].tolist()
    is_categorical = hasattr(X, "iloc") and hasattr(X.iloc[:, j], "cat")
    if not is_categorical and all(isinstance(value, NUMBERS) for value in present):
        return None
    for value in present:
        if not isinstance(value, (str, *NUMBERS)):
            raise TypeError(
                f"column {_name(X, j)!r}: a value of a column argument must be a string or a "
                f"number, got {value!r}; convert the column, or leave it out"
            )
    return frequent_categories(present)


def _numbers(X: Any, j: int) -> Array:
    """Return a numeric column, of shape (n_samples,), NaN for missing values."""
    values = _values(X, j)
    if values.dtype.kind in "biuf":
        return np.asarray(values, dtype=float)
    numbers = np.full(len(values), np.nan)
    for row in np.flatnonzero(~_missing(values)):
        if not isinstance(values[row], NUMBERS):
            raise ValueError(
                f"column {_name(X, j)!r} was numeric in training, but is {values[row]!r} at row "
                f"{row}; pass a number, or NaN if it is missing"
            )
        numbers[row] = float(values[row])
    return numbers


def _indicators(values: Array, categories: list[Any]) -> Array:
    """Return zeros and ones of shape (n_samples, n_categories), NaN for missing values."""
    code = {category: j for j, category in enumerate(categories)}
    codes = [
        code.get(value, -1) if isinstance(value, (str, *NUMBERS)) else -1
        for value in values.tolist()
    ]
    encoded = (np.array(codes)[:, np.newaxis] == np.arange(len(categories))).astype(float)
    encoded[_missing(values)] = np.nan
    return encoded


def _name(X: Any, j: int) -> str:
    return str(X.columns[j] if hasattr(X, "iloc") else j)


def _as_table(X: Any) -> Any:
    """Return a data frame as it is, and anything else as an array or a CSR matrix."""
    X = as_pandas(X)
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        if min(X.shape) == 0:
            check_array(X, dtype=None, ensure_all_finite=False)
        return X
    if is_sparse(X):
        return check_array(X, accept_sparse="csr", dtype=np.float64)
    return check_array(X, dtype=None, ensure_all_finite=False)


def _is_worth_dense(X: Any) -> bool:
    size = X.shape[0] * X.shape[1]
    return size <= _MAX_DENSE_VALUES or X.nnz >= _DENSE_SHARE * size


def _is_numeric(X: Any) -> bool:
    kinds = X.dtypes.tolist() if hasattr(X, "iloc") else [X.dtype]
    return all(kind.kind in "biuf" and isinstance(kind, np.dtype) for kind in kinds)


def _check_finite(X: Array, names: list[str] | None) -> Array:
    """Return `X`, or raise ValueError for the first infinite value."""
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(X.sum())
    if suspicious and np.isinf(X).any():
        row, column = np.argwhere(np.isinf(X))[0]
        name = int(column) if names is None else repr(names[column])
        raise ValueError(
            f"Input X contains infinity at row {row}, column {name}; correct the value, or set it "
            "to NaN if it is missing"
        )
    return X


def _missing(values: Array) -> Array:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    # Only NaN differs from itself; comparing NA of pandas gives NA instead of a bool.
    return np.array([value is None or (value != value) is not False for value in values.tolist()])


class ColumnScaler(_ColumnTransformer, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Scales columns, imputes missing values, and scales views by their distances.

    A numeric column is centred and divided by its standard deviation; a skewed one is replaced by
    the normal scores of its ranks. Columns of two values, and columns that are zero in more than
    half of the samples, keep their shape: the two values, or zero and a typical nonzero value, are
    two units apart, however rare one of them is. Constant columns become zero. A missing value
    becomes the mean of its column. If a sample lacks all columns of one of several views, they stay
    missing.

    Other scalings can be chosen for each view. "ranks" replaces all numbers by the normal scores of
    their ranks. "categories" has one column for each value of a column with three to ten values,
    which may be categories that were written as numbers. "ranks, categories" does both. Sparse
    matrices are only scaled.

    Finally, every view is divided by the root of the median squared distance of its samples, so
    that ``RBF(1.0)`` has a sensible width.

    Parameters
    ----------
    views : list of arrays of int, optional
        Columns of each view, which stand side by side in the result. None instead of an array, or
        of the list, is one view of all columns, which no sample lacks.
    unit : bool, default=True
        Whether views are divided by their distances.
    scale : bool, default=True
        Whether columns are changed at all; row indices of stored matrices must not be.
    scaling : str or list of str, default="auto"
        "auto", "ranks", "categories" or "ranks, categories", for all views or for each.

    Attributes
    ----------
    centre_, scale_ : array of shape (n_features,)
    normal_scores_ : dict of int to (values, scores)
        Knots of the function from values to normal scores, for each skewed column.
    ranks_ : dict of int to (values, scores)
        The same for each column with more than ten values.
    values_ : dict of int to (values, shares)
        Values of each column with three to ten values, and their shares of the samples.
    units_ : list of float
        Divisor of each view.

    See Also
    --------
    lokl.search.ColumnEncoder : Encodes text before.
    lokl.AutoMKLClassifier : Chooses everything.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.search import ColumnScaler
    >>> X = np.array([[1.0, 100.0], [2.0, 300.0], [np.nan, 200.0]])
    >>> ColumnScaler(unit=False).fit_transform(X).round(2)
    array([[-1.  , -1.22],
           [ 1.  ,  1.22],
           [ 0.  ,  0.  ]])
    """

    def __init__(
        self,
        views: Sequence[Any] | None = None,
        unit: bool = True,
        scale: bool = True,
        scaling: str | Sequence[str] = "auto",
    ):
        self.views = views
        self.unit = unit
        self.scale = scale
        self.scaling = scaling

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "ColumnScaler":
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
        self.ranks_: dict[int, tuple[Array, Array]] = {}
        self.values_: dict[int, tuple[Array, Array]] = {}
        self.centre_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.scale and is_sparse(X):
            self.scale_ = _scale_of_entries(X, weight)
        elif self.scale:
            self._fit_columns(X, weight)
        n_views = 1 if self.views is None else len(self.views)
        self.units_ = [1.0] * n_views
        if self.unit:
            self.units_ = [_unit(self._view(X, view), weight) for view in range(n_views)]
        return self

    def transform(self, X: Any) -> Any:
        """Return scaled samples, with views side by side.

        Parameters
        ----------
        X : {array, CSR matrix} of shape (n_samples, n_features)

        Returns
        -------
        X : array or CSR matrix of shape (n_samples, n_columns of all views)
        """
        check_is_fitted(self)
        blocks = [self._view(X, view) for view in range(len(self.units_))]
        if len(blocks) == 1:
            return blocks[0]
        return sparse.hstack(blocks, format="csr") if is_sparse(X) else np.hstack(blocks)

    def view_slices(self) -> list[slice]:
        """Return the columns of each view in the result of :meth:`transform`."""
        check_is_fitted(self)
        return adjacent_slices([len(own) for own in self._sources()])

    def sources(self) -> Array:
        """Return the column that each column of the result comes from, (n_scaled,)."""
        check_is_fitted(self)
        return np.array([column for own in self._sources() for column, _ in own], dtype=np.intp)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns of all views.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns; x0, x1, ... by default.
        """
        check_is_fitted(self)
        given = input_features
        names = [f"x{c}" for c in range(self.n_features_in_)] if given is None else list(given)
        return np.array(
            [
                names[column] if value is None else f"{names[column]}={value:g}"
                for own in self._sources()
                for column, value in own
            ],
            dtype=object,
        )

    def _sources(self) -> list[list[tuple[int, float | None]]]:
        """Return the column that each column of each view comes from.

        An indicator also has the value that it stands for, other columns None.
        """
        views, found = [None] if self.views is None else self.views, []
        for view, given in enumerate(views):
            columns = range(self.n_features_in_) if given is None else map(int, given)
            scaling = self.scaling if isinstance(self.scaling, str) else self.scaling[view]
            known = self.values_ if "categories" in scaling else {}
            found.append([(c, v) for c in columns for v in (known[c][0] if c in known else [None])])
        return found

    def _fit_columns(self, X: Array, weight: Array) -> None:
        present = ~np.isnan(X)
        W = np.where(present, weight[:, np.newaxis], 0.0)
        total = np.maximum(W.sum(axis=0), _TINY)
        filled = np.where(present, X, 0.0)
        low = np.where(present, X, np.inf).min(axis=0)
        high = np.where(present, X, -np.inf).max(axis=0)
        constant = ~(high > low)
        # Moved to the range from 0 to 1, cubes neither overflow nor vanish, and values far from
        # zero keep their digits.
        low = np.where(constant, 0.0, low)
        span = np.where(constant, 1.0, high - low)
        moved = np.where(present, (filled - low) / span, 0.0)
        mean = (W * moved).sum(axis=0) / total
        moved = np.where(present, moved - mean, 0.0)
        deviation = np.sqrt((W * moved**2).sum(axis=0) / total)
        cubes = (W * moved**3).sum(axis=0) / total
        skewness = np.abs(cubes) / np.maximum(deviation**3, _TINY)
        two_values = (~present | (low == X) | (high == X)).all(axis=0)
        mostly_zero = (W * (present & (X == 0))).sum(axis=0) > 0.5 * total
        n_nonzero = np.maximum((W * (filled != 0)).sum(axis=0), _TINY)
        typical = span * np.sqrt((W * (filled / span) ** 2).sum(axis=0) / n_nonzero)
        scale = np.where(two_values, span / 2, np.where(mostly_zero, typical / 2, span * deviation))
        self.centre_ = np.where(constant, 0.0, low + span * mean)
        self.scale_ = np.where(constant, np.inf, scale)
        skewed = ~two_values & ~mostly_zero & ~constant & (skewness > _MAX_SKEWNESS)
        wanted = self._scalings()
        for column in np.flatnonzero(~two_values & ~constant):
            rows, j = present[:, column], int(column)
            values, own = X[rows, column], weight[rows]
            if skewed[column]:
                self.normal_scores_[j] = _normal_scores(values, own)
            if wanted == {"auto"}:
                continue
            distinct, codes = np.unique(values, return_inverse=True)
            if len(distinct) > _MAX_VALUES:
                self.ranks_[j] = _normal_scores(values, own)
            else:
                share = np.bincount(codes, weights=own)
                self.values_[j] = distinct, share / share.sum()

    def _scalings(self) -> set[str]:
        """Return the scalings of all views."""
        return {self.scaling} if isinstance(self.scaling, str) else set(self.scaling)

    def _view(self, X: Any, view: int) -> Any:
        """Return the scaled columns of one view."""
        given = None if self.views is None else self.views[view]
        columns = None if given is None else np.asarray(given, dtype=np.intp)
        if is_sparse(X):
            factors = 1.0 / (self.scale_ * self.units_[view])
            scaled = (X @ sparse.diags_array(factors, format="csr")).tocsr()
            return scaled if columns is None else scaled[:, columns]
        chosen = np.arange(X.shape[1]) if columns is None else columns
        X = X[:, chosen]
        scaling = self.scaling if isinstance(self.scaling, str) else self.scaling[view]
        missing = np.isnan(X)
        lacks_view = missing.all(axis=1) if columns is not None else np.zeros(len(X), bool)
        blocks = [
            self._scaled_column(X[:, j], int(column), scaling) for j, column in enumerate(chosen)
        ]
        scaled = np.column_stack(blocks) if blocks else X
        scaled[lacks_view] = np.nan
        return scaled / self.units_[view]

    def _scaled_column(self, values: Array, column: int, scaling: str) -> Array:
        """Return the scaled columns, (n_samples, n_columns), of one column; 0 if missing."""
        if "categories" in scaling and column in self.values_:
            return _indicators_of_numbers(values, *self.values_[column])
        knots = self.ranks_ if "ranks" in scaling else self.normal_scores_
        if column in knots:
            scaled = np.interp(values, *knots[column])
        else:
            scaled = (values - self.centre_[column]) / self.scale_[column]
        return np.where(np.isnan(values), 0.0, scaled)[:, np.newaxis]


def adjacent_slices(widths: Sequence[int]) -> list[slice]:
    """Return the columns of blocks that stand side by side, given their numbers of columns."""
    ends = np.cumsum(widths).tolist()
    return [slice(end - width, end) for width, end in zip(widths, ends, strict=True)]


def _indicators_of_numbers(values: Array, known: Array, share: Array) -> Array:
    """Return one column for each known value, centred; 0 for missing values.

    Two random samples have the same mean l_1 distance as in a standard normal column.
    """
    indicators = (values[:, np.newaxis] == known) - share
    indicators[np.isnan(values)] = 0.0
    return np.asarray(_MEAN_NORMAL_DISTANCE / (2.0 * (1.0 - share @ share)) * indicators)


def _scale_of_entries(X: Any, weight: Array) -> Array:
    """Return half of a typical nonzero value of each column, infinity for empty columns."""
    W = X.copy()
    W.data = np.repeat(weight, np.diff(X.indptr)) * (X.data != 0)
    count = np.asarray(W.sum(axis=0)).ravel()
    W.data = W.data * X.data**2
    squares = np.asarray(W.sum(axis=0)).ravel()
    scale = np.sqrt(squares / np.maximum(count, 1e-300)) / 2
    return np.where((scale > 0) & np.isfinite(scale), scale, np.inf)


def _normal_scores(values: Array, weight: Array) -> tuple[Array, Array]:
    """Return values and their normal scores, between which others are interpolated."""
    points, index = np.unique(values, return_inverse=True)
    mass = np.bincount(index, weights=weight)
    ranks = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    if len(points) > _N_KNOTS:
        chosen = np.unique(np.linspace(0, len(points) - 1, _N_KNOTS).astype(int))
        points, ranks = points[chosen], ranks[chosen]
    return points, norm.ppf(ranks)


def _unit(X: Any, weight: Array) -> float:
    """Return the root of the median squared distance of samples that have the view."""
    if not is_sparse(X):
        present = ~np.isnan(X[:, 0])
        X, weight = X[present], weight[present]
    if X.shape[0] > _ROWS_FOR_UNIT:
        chosen = np.linspace(0, X.shape[0] - 1, _ROWS_FOR_UNIT).astype(np.intp)
        X, weight = X[chosen], weight[chosen]
    gamma = RBF("median").bind(X, weight)
    return float(1.0 / np.sqrt(gamma.gamma))
