"""Samples of folds as the first steps of a pipeline leave them, made once."""

import importlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from lokl._arrays import Array, is_sparse
from lokl.estimators._base.alike import alike

# Bytes of transformed samples that are kept; of more, no fold is.
_KEPT = 2**28


@dataclass(frozen=True, eq=False)
class _Source:
    """What transformed samples come from."""

    steps: Pipeline  # unfitted
    X: Any
    y: Any
    weights: dict[str, Any]

    def is_like(self, other: "_Source") -> bool:
        same = (
            self.X is other.X and self.y is other.y and self.weights.keys() == other.weights.keys()
        )
        same = same and all(other.weights[name] is own for name, own in self.weights.items())
        return same and alike(self.steps, other.steps)


@dataclass(eq=False)
class Transformed:
    """Transformed samples of the folds of one source, as long as it stays the same."""

    _source: _Source | None = None
    # By the rows to learn from; with both kinds of rows, which keeps them from being others.
    _known: dict[int, tuple[Array, Array, Any]] = field(default_factory=dict)

    def come_from(self, steps: Pipeline, X: Any, y: Any, weights: dict[str, Any]) -> None:
        """Say what samples are to be transformed, and how; what came from others is forgotten."""
        source = _Source(steps, X, y, weights)
        if self._source is None or not self._source.is_like(source):
            self._source, self._known = source, {}

    def rows(self, train: Array, test: Array) -> Any:
        """Rows that the steps learn from, and others below them."""
        found = self._known.get(id(train))
        if found is not None and found[0] is train and found[1] is test:
            return found[2]
        assert self._source is not None
        X = _fit_transform(self._source, train, test)
        if _bytes(X) + sum(_bytes(own) for *_, own in self._known.values()) <= _KEPT:
            self._known[id(train)] = train, test, X
        return X


def _fit_transform(source: _Source, train: Array, test: Array) -> Any:
    steps = clone(source.steps)
    X_train, y_train = _safe_split(steps, source.X, source.y, train)
    X_test, _ = _safe_split(steps, source.X, source.y, test, train)
    weights = _check_method_params(source.X, source.weights, train)
    # Not fit and transform: some transformers treat the rows they learn from in another way.
    return _stacked([steps.fit_transform(X_train, y_train, **weights), steps.transform(X_test)])


def _stacked(parts: list[Any]) -> Any:
    """Put rows below rows, of arrays, sparse matrices or data frames."""
    if all(map(is_sparse, parts)):
        return sparse.vstack(parts, format="csr")
    if all(hasattr(part, "columns") for part in parts):
        # pandas or polars, whichever the transformers gave.
        library = importlib.import_module(type(parts[0]).__module__.partition(".")[0])
        return library.concat(parts)
    return np.concatenate(parts)


def _bytes(X: Any) -> float:
    """Memory of arrays and sparse matrices; that of anything else is too much."""
    if is_sparse(X):
        return float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return float(getattr(X, "nbytes", np.inf))
