"""From tables as people keep them to numbers on one scale."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl.tables.columns import CATEGORICAL, NUMERIC
from lokl.tables.errors import TableError


class TablePreparation(TransformerMixin, BaseEstimator):
    """Numbers are standardised, words become columns of zeros and ones, gaps are filled.

    A gap in a view that a sample has gets the median of the column, a word that is missing or was
    never seen is zero in all its columns. A view that a sample lacks altogether stays missing: the
    model leaves it out. Columns are found by name, in any order.

    Parameters
    ----------
    views : mapping of str to list of str
        Columns of each view.
    kinds : mapping of str to {"numeric", "categorical"}
        Of every column.
    on : str or None, default=None
        Name of the column of ids, noted for those who read tables for the model.
    target : str or None, default=None
        Name of the target, noted likewise.

    Attributes
    ----------
    views_, kinds_, target_name_
        As given, for those who ask the file of a model what it takes.
    prepared_views_ : dict of str to list of int
        Places of each view among the prepared columns.
    medians_, means_, scales_ : dict of str to float
        Of the numeric columns.
    categories_ : dict of str to list of str
        Words of the others.
    n_features_in_ : int
    feature_names_in_ : array of str
    """

    def __init__(
        self,
        views: Mapping[str, Sequence[str]],
        kinds: Mapping[str, str],
        on: str | None = None,
        target: str | None = None,
    ):
        self.views = views
        self.kinds = kinds
        self.on = on
        self.target = target

    def fit(self, X: Any, y: Any = None) -> "TablePreparation":
        """Learn medians, scales and words.

        Parameters
        ----------
        X : data frame
        y : ignored

        Returns
        -------
        self
        """
        columns = [column for own in self.views.values() for column in own]
        self.views_ = {view: list(own) for view, own in self.views.items()}
        self.kinds_ = {column: self.kinds[column] for column in columns}
        self.target_name_ = self.target
        self.medians_, self.means_, self.scales_ = {}, {}, {}
        self.categories_: dict[str, list[str]] = {}
        for column, kind in self.kinds_.items():
            present = X[column].dropna()
            if kind == CATEGORICAL:
                self.categories_[column] = sorted(set(map(str, present)))
                continue
            values = present.to_numpy(dtype=float)
            self.medians_[column] = float(np.median(values)) if len(values) else 0.0
            self.means_[column] = float(values.mean()) if len(values) else 0.0
            # A column that is constant is zero once its mean is taken off.
            self.scales_[column] = float(values.std()) or 1.0 if len(values) else 1.0
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array(columns, dtype=object)
        start, self.prepared_views_ = 0, {}
        for view, own in self.views_.items():
            width = sum(len(self.categories_.get(column, [0])) for column in own)
            self.prepared_views_[view] = list(range(start, start + width))
            start += width
        return self

    def transform(self, X: Any) -> Array:
        """Return numbers on one scale, NaN in the views that a sample lacks.

        Parameters
        ----------
        X : data frame
            May lack all columns of a view.

        Returns
        -------
        prepared : array of shape (n_samples, n_prepared)
        """
        check_is_fitted(self)
        return np.hstack([self._view(view, own, X) for view, own in self.views_.items()])

    def _view(self, view: str, columns: Sequence[str], X: Any) -> Array:
        absent = [column for column in columns if column not in X.columns]
        if len(absent) == len(columns):
            return self._lacking(view, X, np.ones(len(X), dtype=bool))
        if absent:
            raise TableError(
                f"column {absent[0]} of view {view} is not there; give it, or leave out all "
                "columns of the view: samples then lack it"
            )
        lacking = X[list(columns)].isna().all(axis=1).to_numpy()
        block = np.hstack([self._column(column, X[column]) for column in columns])
        if lacking.any():
            block[lacking] = self._lacking(view, X, lacking)[lacking]
        return block

    def _lacking(self, view: str, X: Any, where: Array) -> Array:
        if len(self.views_) == 1:
            name = X.index[int(np.argmax(where))]
            raise TableError(f"sample {name} has no value in any column that the model knows")
        return np.full((len(X), len(self.prepared_views_[view])), np.nan)

    def _column(self, column: str, values: Any) -> Array:
        if self.kinds_[column] == NUMERIC:
            numbers = values.to_numpy(dtype=float, na_value=np.nan)
            numbers = np.where(np.isnan(numbers), self.medians_[column], numbers)
            return ((numbers - self.means_[column]) / self.scales_[column])[:, np.newaxis]
        words = values.astype(object).map(str, na_action="ignore").to_numpy()
        return np.column_stack([words == own for own in self.categories_[column]]).astype(float)
