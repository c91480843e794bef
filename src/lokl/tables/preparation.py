"""The first step of a model of tables: its columns, by name, encoded as numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, row_hashes
from lokl._frames import as_pandas
from lokl.base.model import kernel_columns, model_layers
from lokl.search.columns import ColumnEncoder, frequent_categories
from lokl.tables.adjustment import CovariateAdjustment
from lokl.tables.sources import CATEGORICAL, NUMERIC, TableError

REGRESSION, SURVIVAL = "regression", "survival"


def schema_of(model: Any) -> "TablePreparation":
    """Return the columns of a fitted model, with the ids and the target of its training table.

    Models of tables begin with a :class:`TablePreparation`, which is returned. Other models need
    column names, and all their columns are numeric.
    """
    first = model.steps[0][1] if hasattr(model, "steps") else model
    if isinstance(first, TablePreparation):
        return first
    columns = getattr(model, "feature_names_in_", None)
    if columns is None:
        raise TableError(
            "the model was fitted to columns without names, so that the columns of a table cannot "
            "be matched; fit it to a data frame, or with `lokl fit`"
        )
    names = [str(column) for column in columns]
    return TablePreparation(_views_of_kernels(model, names), dict.fromkeys(names, NUMERIC))


def _views_of_kernels(model: Any, names: list[str]) -> dict[str, list[str]]:
    """Return the columns of each kernel if each kernel is a view, otherwise one view of all."""
    for layer, _ in model_layers(model):
        views = kernel_columns(layer, names)
        if views and len(views) > 1:
            return views
    return {"all columns": names}


class TablePreparation(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Selects the columns of a model from a data frame and encodes them as numbers.

    Columns are matched by name, in any order, and put in the order of their views. Text becomes
    columns of zeros and ones, as in :class:`lokl.search.ColumnEncoder`. Missing values stay NaN;
    :class:`lokl.search.ColumnScaler` imputes them, unless a sample lacks the whole view.

    Parameters
    ----------
    views : mapping of str to list of str
        Columns of each view.
    kinds : mapping of str to {"numeric", "categorical"}
        Kind of every column.
    on : str or None, default=None
        Name of the column of ids, stored for reading tables of new samples.
    target : str or None, default=None
        Name of the target, stored likewise.
    task : {"classification", "regression", "survival"} or None, default=None
    positive : str or None, default=None
        Class of the target that is compared with all others, stored likewise.
    categories : mapping of str to list of str, or None, default=None
        Categories of the categorical columns, so that the encoded columns are known before fitting:
        see :func:`positions_of`. None takes them from the training samples.
    covariates : list of str or None, default=None
        Columns whose linear effect is removed from the encoded columns of the views; see
        :class:`CovariateAdjustment`. They are in `kinds`, but in no view.
    event : str or None, default=None
        Name of the column of events, if the target is a time, stored likewise.

    Attributes
    ----------
    views_, kinds_, covariates_, target_name_
        As given, shown by ``lokl info``.
    prepared_views_ : dict of str to list of int
        Positions of each view among the encoded columns.
    categories_ : dict of str to list of str
        Categories of the categorical columns.
    encoder_ : ColumnEncoder
    covariate_encoder_ : ColumnEncoder or None
    adjustment_ : CovariateAdjustment or None
    prior_ : dict of class to float, float or None
        Share of each class, or mean of a regression target, if a target was given; None for
        survival.
    row_hashes_ : array of uint64 of shape (n_samples, n_views)
        Hashes of the training rows by view, from which :meth:`learned_from` recognises them.
    n_features_in_ : int
    feature_names_in_ : array of str

    See Also
    --------
    lokl.tables.read_table : Reads tables.
    lokl.search.ColumnScaler : Scales the encoded columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from lokl.tables import TablePreparation
    >>> frame = pd.DataFrame({"age": [31, 52, 47], "sex": ["f", "m", "f"]})
    >>> kinds = {"age": "numeric", "sex": "categorical"}
    >>> preparation = TablePreparation({"clinic": ["age", "sex"]}, kinds).fit(frame)
    >>> preparation.prepared_views_
    {'clinic': [0, 1, 2]}
    >>> preparation.transform(frame)
    array([[31.,  1.,  0.],
           [52.,  0.,  1.],
           [47.,  1.,  0.]])
    """

    def __init__(
        self,
        views: Mapping[str, Sequence[str]],
        kinds: Mapping[str, str],
        on: str | None = None,
        target: str | None = None,
        task: str | None = None,
        positive: str | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        covariates: Sequence[str] | None = None,
        event: str | None = None,
    ):
        self.views = views
        self.kinds = kinds
        self.on = on
        self.target = target
        self.task = task
        self.positive = positive
        self.categories = categories
        self.covariates = covariates
        self.event = event

    def fit(self, X: Any, y: Any = None) -> "TablePreparation":
        """Learn the categories, unless they are given, and the effect of covariates.

        Parameters
        ----------
        X : data frame
        y : array of shape (n_samples,), optional
            Only for `prior_`.

        Returns
        -------
        self
        """
        X = as_pandas(X)
        columns = [column for names in self.views.values() for column in names]
        self.views_ = {view: list(names) for view, names in self.views.items()}
        self.covariates_ = list(self.covariates or ())
        columns += self.covariates_
        self.kinds_ = {column: self.kinds[column] for column in columns}
        self.target_name_ = self.target
        given = self.categories
        self.categories_ = categories_of(X, self.kinds_) if given is None else dict(given)
        self.prior_ = None if y is None else _prior(np.asarray(y), self.task)
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array(columns, dtype=object)
        selected, covariates = self._select(X)
        self.encoder_ = ColumnEncoder(self.categories_).fit(selected)
        self.prepared_views_ = positions_of(self.views_, self.categories_)
        encoded = self.encoder_.transform(selected)
        self.row_hashes_ = self._hashes(encoded)
        self.covariate_encoder_ = self.adjustment_ = None
        if self.covariates_:
            self.covariate_encoder_ = ColumnEncoder(self.categories_).fit(covariates)
            numbers = self.covariate_encoder_.transform(covariates)
            self.adjustment_ = CovariateAdjustment().fit(encoded, numbers)
        return self

    def learned_from(self, X: Any) -> Array:
        """Return whether a training row has the same values in all views that a sample has.

        Parameters
        ----------
        X : data frame
            All columns of a view may be absent.

        Returns
        -------
        learned : array of bool of shape (n_samples,)
        """
        prepared = self._encoded(X)
        hashes, learned = self._hashes(prepared), np.zeros(len(prepared), dtype=bool)
        places = self.prepared_views_.values()
        present = np.column_stack([~np.isnan(prepared[:, own]).all(axis=1) for own in places])
        patterns, code = np.unique(present, axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            rows = code.ravel() == k
            known = self.row_hashes_[:, pattern].sum(axis=1)
            learned[rows] = np.isin(hashes[rows][:, pattern].sum(axis=1), known) & pattern.any()
        return learned

    def _hashes(self, prepared: Array) -> Array:
        """Return hashes of rows by view, (n_samples, n_views); each view has its own."""
        table = np.zeros((len(prepared), len(self.prepared_views_)), dtype=np.uint64)
        for k, own in enumerate(self.prepared_views_.values()):
            table[:, k] = row_hashes(prepared[:, own]) * np.uint64(2 * k + 1)
        return table

    def transform(self, X: Any) -> Array:
        """Return encoded columns, NaN for missing values and for views that a sample lacks.

        Parameters
        ----------
        X : data frame
            All columns of a view may be absent, but no covariate.

        Returns
        -------
        prepared : array of shape (n_samples, n_encoded)
            Adjusted for covariates, if there are any.
        """
        prepared = self._encoded(X)
        if self.adjustment_ is None or self.covariate_encoder_ is None:
            return prepared
        X = as_pandas(X)
        absent = [column for column in self.covariates_ if column not in X.columns]
        if absent:
            raise TableError(
                f"covariate {absent[0]} is missing; add the file that has it, because the model "
                "adjusts all columns for it"
            )
        covariates = self.covariate_encoder_.transform(self._select(X)[1])
        return np.asarray(self.adjustment_.transform(prepared, covariates))

    def _encoded(self, X: Any) -> Array:
        """Return encoded columns before the adjustment for covariates; see :meth:`transform`."""
        check_is_fitted(self)
        X = as_pandas(X)
        for view, columns in self.views_.items():
            absent = [column for column in columns if column not in X.columns]
            if absent and len(absent) < len(columns):
                raise TableError(
                    f"column {absent[0]} of view {view} is missing; add it, or leave out all "
                    "columns of the view if the samples lack it"
                )
        prepared: Array = self.encoder_.transform(self._select(X)[0])
        empty = np.isnan(prepared).all(axis=1)
        if len(self.views_) == 1 and empty.any():
            name = X.index[int(np.argmax(empty))]
            raise TableError(f"sample {name} has no value in any column of the model")
        return prepared

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the encoded columns.

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        return self.encoder_.get_feature_names_out()

    def merged_class(self) -> str | None:
        """Return the class whose alternatives were merged; None if the target had two classes."""
        classes = getattr(self, "prior_", None)
        merged = isinstance(classes, dict) and f"not {self.positive}" in classes
        return self.positive if merged else None

    def _select(self, X: Any) -> tuple[Any, Any]:
        """Return the columns of the views, and the covariates; absent ones are missing values."""
        frame = X.reindex(columns=list(self.kinds_))
        text = [column for column, kind in self.kinds_.items() if kind == CATEGORICAL]
        frame = frame.assign(**{column: _as_text(frame[column]) for column in text})
        return frame.drop(columns=self.covariates_), frame[self.covariates_]


def positions_of(
    views: Mapping[str, Sequence[str]], categories: Mapping[str, Sequence[str]]
) -> dict[str, list[int]]:
    """Return the positions of each view among the encoded columns."""
    positions, start = {}, 0
    for view, columns in views.items():
        width = sum(len(categories[c]) if c in categories else 1 for c in columns)
        positions[view] = list(range(start, start + width))
        start += width
    return positions


def categories_of(frame: Any, kinds: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the most frequent categories of the categorical columns of a data frame."""
    return {
        column: frequent_categories(_as_text(frame[column]).dropna())
        for column, kind in kinds.items()
        if kind == CATEGORICAL
    }


def _as_text(values: Any) -> Any:
    return values.astype(object).map(str, na_action="ignore")


def _prior(y: Array, task: str | None) -> Any:
    """Return the share of each class, the mean of a regression target, or None for survival."""
    if task == SURVIVAL:
        return None
    if task == REGRESSION:
        return float(np.mean(y))
    labels, counts = np.unique(y, return_counts=True)
    return dict(zip(labels.tolist(), (counts / len(y)).tolist(), strict=True))
