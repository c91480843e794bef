"""How right a model is about a collection, from sums over its blocks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, column
from lokl.distributed.answers import predict
from lokl.distributed.blocks import Blocks, aligned, beside, samples, with_lengths
from lokl.distributed.cluster import Cluster, need_dask
from lokl.distributed.moments import Moments


def score(model: Any, X: Any, y: Any, sample_weight: Any = None, client: Any = None) -> Any:
    """Accuracy of a classifier, coefficient of determination of a regressor: as `model.score`.

    Parameters
    ----------
    model : fitted estimator
    X : dask array or dask data frame of shape (n_samples, n_features)
    y : dask array, dask series or array of shape (n_samples,), or (n_samples, n_targets)
        Where its chunks differ from those of `X` and are of unknown size, rows are counted at once.
    sample_weight : dask array, dask series or array of shape (n_samples,), optional
    client : distributed.Client or None, default=None
        As in :func:`predict`.

    Returns
    -------
    score : dask array of shape ()
        Lazy; ``float(score)`` computes it.
    """
    check_is_fitted(model)
    if not (is_classifier(model) or is_regressor(model)):
        raise ValueError(f"{type(model).__name__} is neither a classifier nor a regressor")
    array, delayed = need_dask().array, need_dask().delayed
    own, predicted = samples(X).without_empty(), beside(predict(model, X, client), "X")
    given = [replace(own, parts=predicted.without_empty().parts), beside(y, "y")]
    if sample_weight is not None:
        given.append(beside(sample_weight, "sample_weight"))
    found, *others = _side_by_side(Cluster(client), own, given)
    judge, end = (_hits, _accuracy) if is_classifier(model) else (_residuals, _determination)
    weights = others[1].parts if len(others) > 1 else [None] * len(found.parts)
    every = zip(found.parts, others[0].parts, weights, strict=True)
    parts = [delayed(judge, pure=False)(*rows) for rows in every]
    return array.from_delayed(delayed(end, pure=False)(parts), (), dtype=np.float64)


def _side_by_side(cluster: Cluster, X: Blocks, given: Sequence[Blocks]) -> list[Blocks]:
    """Predictions about X beside others, in the same rows; as they are where nothing speaks for it.

    Rows of unknown number are counted in X: predictions would have to be made for that.
    """
    predicted, *others = given
    if all(blocks.lengths == X.lengths for blocks in others):
        return list(given)
    counted, *known = with_lengths(cluster, [X, *others])
    own = replace(predicted, lengths=counted.lengths).without_empty()
    return [own, *aligned(own, *known)]


def _rows(predicted: Array, y: Any, weight: Any) -> tuple[Array, Array]:
    """Targets and weights of a block."""
    y = np.asarray(y)
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    for name, values in (("y", y), ("sample_weight", weight)):
        if len(values) != len(predicted):
            raise ValueError(
                f"a block of X has {len(predicted)} rows, but the same block of {name} "
                f"{len(values)}"
            )
    return y, weight


def _hits(predicted: Array, y: Any, weight: Any) -> tuple[float, float]:
    y, weight = _rows(predicted, y, weight)
    return float(weight @ (y.reshape(-1) == predicted)), float(weight.sum())


def _accuracy(hits: Sequence[tuple[float, float]]) -> Any:
    right, weight = np.sum(hits, axis=0)
    return np.float64(right / weight if weight else np.nan)


@dataclass(frozen=True, eq=False)
class _Residuals:
    squares: Array
    moments: Moments

    def joined(self, other: "_Residuals") -> "_Residuals":
        return _Residuals(self.squares + other.squares, self.moments.joined(other.moments))


def _residuals(predicted: Array, y: Any, weight: Any) -> _Residuals | None:
    y, weight = _rows(predicted, y, weight)
    if not (weight > 0).any():
        return None
    y, predicted = column(y.astype(float)), column(predicted)
    return _Residuals(weight @ (y - predicted) ** 2, Moments.of(y, weight))


def _determination(parts: Sequence[_Residuals | None]) -> Any:
    there = [part for part in parts if part is not None]
    if not there:
        return np.float64(np.nan)
    found = reduce(_Residuals.joined, there)
    left, whole = found.squares, found.moments.squares
    # Of targets that are all equal: right to the last digit, or not.
    share = np.divide(left, whole, out=(left > 0).astype(float), where=whole > 0)
    return np.float64(np.mean(1.0 - share))
