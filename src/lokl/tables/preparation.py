"""What a model takes: its columns, their kinds and views.

From tables as people keep them to numbers on one scale.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl.base.delegation import model_layers
from lokl.tables.columns import CATEGORICAL, NUMERIC
from lokl.tables.sources import TableError


@dataclass(frozen=True)
class Schema:
    """Columns that a model knows, by view, and what is noted of ids and target in training."""

    views: dict[str, list[str]]
    kinds: dict[str, str]
    on: str | None = None
    target: str | None = None
    task: str | None = None
    positive: str | None = None


def schema_of(model: Any) -> Schema:
    """Return what a fitted model takes.

    Models of tables begin with a :class:`TablePreparation`. Others are known by the names of their
    columns, which all hold numbers.
    """
    first = model.steps[0][1] if hasattr(model, "steps") else model
    if isinstance(first, TablePreparation):
        # Two classes keep their names; of more, all but one were made one.
        known = first.prior_ if isinstance(first.prior_, dict) else {}
        many = f"not {first.positive}" in known
        noted = (first.on, first.target_name_, first.task, first.positive if many else None)
        return Schema(first.views_, first.kinds_, *noted)
    columns = getattr(model, "feature_names_in_", None)
    if columns is None:
        raise TableError(
            "the model was fitted to columns without names, so that those of a table cannot be "
            "matched; fit it to a data frame, or with `lokl fit`"
        )
    names = [str(column) for column in columns]
    return Schema(_views(model, names), dict.fromkeys(names, NUMERIC))


def places_in_model(model: Any) -> dict[str, list[int]] | None:
    """Return columns of each view as they come out of the preparation of a fitted model.

    None for models without one: each of their kernels is then a view.
    """
    first = model.steps[0][1] if hasattr(model, "steps") else model
    return first.prepared_views_ if isinstance(first, TablePreparation) else None


def _views(model: Any, names: list[str]) -> dict[str, list[str]]:
    for own, _ in model_layers(model):
        kernels = getattr(own, "kernels_", None)
        if kernels and len(kernels) > 1 and all(kernel.is_view for kernel in kernels):
            used = [kernel.columns_used() for kernel in kernels]
            return {
                name: [names[column] for column in columns]
                for name, columns in zip(own.kernel_names_, used, strict=True)
            }
    return {"all columns": names}


# A column with more different words is rather a name of each sample than a property of some.
MOST_WORDS = 100


class TablePreparation(TransformerMixin, BaseEstimator):
    """Numbers are standardised, words become columns of zeros and ones, gaps are filled.

    A gap in a view that a sample has gets the median of the column, a word that is missing or was
    never seen is zero in all its columns; of many words the hundred most frequent count. A view
    that a sample lacks altogether stays missing: the model leaves it out. Columns are found by
    name, in any order.

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
    task : {"classes", "numbers"} or None, default=None
        What the target holds.
    positive : str or None, default=None
        Class of the target that is told from all others, noted likewise.
    categories : mapping of str to list of str, or None, default=None
        Words that get a column of their own, so that places of views are known before anything is
        learned: see :func:`places_of`. Those that training samples do not have are zero for every
        sample. None is all words of the training samples.

    Attributes
    ----------
    views_, kinds_, target_name_
        As given, for those who ask the file of a model what it takes.
    prepared_views_ : dict of str to list of int
        Places of each view among the prepared columns.
    medians_, means_, scales_ : dict of str to float
        Of the numeric columns.
    categories_ : dict of str to list of str
        Words of the others that have a column.
    known_ : dict of str to list of str
        Those of them that training samples have.
    prior_ : dict of class to float, float or None
        Share of each class, or mean of the numbers, where a target was given.
    n_features_in_ : int
    feature_names_in_ : array of str
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
    ):
        self.views = views
        self.kinds = kinds
        self.on = on
        self.target = target
        self.task = task
        self.positive = positive
        self.categories = categories

    def fit(self, X: Any, y: Any = None) -> "TablePreparation":
        """Learn medians, scales and words.

        Parameters
        ----------
        X : data frame
        y : array of shape (n_samples,), optional
            Only for `prior_`.

        Returns
        -------
        self
        """
        columns = [column for own in self.views.values() for column in own]
        self.views_ = {view: list(own) for view, own in self.views.items()}
        self.kinds_ = {column: self.kinds[column] for column in columns}
        self.target_name_ = self.target
        self._learn_numbers(X, [c for c in columns if self.kinds_[c] == NUMERIC])
        words = [c for c in columns if self.kinds_[c] == CATEGORICAL]
        found = {column: frequent_words(X[column]) for column in words}
        given = self.categories
        self.categories_ = found if given is None else {c: list(given[c]) for c in words}
        self.known_ = {c: [w for w in found[c] if w in self.categories_[c]] for c in words}
        self.prior_ = None if y is None else _prior(np.asarray(y), self.task)
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array(columns, dtype=object)
        self.prepared_views_ = places_of(self.views_, self.categories_)
        return self

    def _learn_numbers(self, X: Any, columns: list[str]) -> None:
        values = _floats(X, columns)
        known = ~np.isnan(values)
        # Columns without any number are zero; those that are constant once their mean is off.
        values[:, ~known.any(axis=0)] = 0.0
        scale = np.nanstd(values, axis=0)
        for name, learned in (
            ("medians_", np.nanmedian(values, axis=0)),
            ("means_", np.nanmean(values, axis=0)),
            ("scales_", np.where(scale > 0, scale, 1.0)),
        ):
            setattr(self, name, dict(zip(columns, learned.tolist(), strict=True)))

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
        block = self._block(columns, X)
        if lacking.any():
            block[lacking] = self._lacking(view, X, lacking)[lacking]
        return block

    def _lacking(self, view: str, X: Any, where: Array) -> Array:
        if len(self.views_) == 1:
            name = X.index[int(np.argmax(where))]
            raise TableError(f"sample {name} has no value in any column that the model knows")
        return np.full((len(X), len(self.prepared_views_[view])), np.nan)

    def _block(self, columns: Sequence[str], X: Any) -> Array:
        places = places_of({column: [column] for column in columns}, self.categories_)
        block = np.zeros((len(X), sum(map(len, places.values()))))
        numeric = [column for column in columns if self.kinds_[column] == NUMERIC]
        if numeric:
            values = _floats(X, numeric)
            median, mean, scale = (
                np.array([learned[column] for column in numeric])
                for learned in (self.medians_, self.means_, self.scales_)
            )
            values = np.where(np.isnan(values), median, values)
            block[:, [places[column][0] for column in numeric]] = (values - mean) / scale
        for column in columns:
            if self.kinds_[column] == CATEGORICAL:
                words = _words(X[column]).to_numpy()
                for place, own in zip(places[column], self.categories_[column], strict=True):
                    if own in self.known_[column]:
                        block[:, place] = words == own
        return block


def places_of(
    views: Mapping[str, Sequence[str]], categories: Mapping[str, Sequence[str]]
) -> dict[str, list[int]]:
    """Return places of each view among the prepared columns, where words have these columns."""
    places, start = {}, 0
    for view, columns in views.items():
        width = sum(len(categories[c]) if c in categories else 1 for c in columns)
        places[view] = list(range(start, start + width))
        start += width
    return places


def frequent_words(values: Any) -> list[str]:
    """Return the words of a column, the most frequent of many, in their order."""
    counts = Counter(_words(values).dropna())
    return sorted(sorted(counts, key=lambda word: (-counts[word], word))[:MOST_WORDS])


def _words(values: Any) -> Any:
    return values.astype(object).map(str, na_action="ignore")


def _floats(X: Any, columns: list[str]) -> Array:
    found: Array = X[columns].to_numpy(dtype=float, na_value=np.nan, copy=True)
    return found


def _prior(y: Array, task: str | None) -> Any:
    if task == "numbers":
        return float(np.mean(y))
    labels, counts = np.unique(y, return_counts=True)
    return dict(zip(labels.tolist(), (counts / len(y)).tolist(), strict=True))
