"""Models that are larger than a worker: each worker has some regions, and samples come to them.

What a fitted model says about collections: lazy, block by block.

How right a model is about a collection, from sums over its blocks.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, column, is_sparse
from lokl._threads import single_threaded
from lokl.regions.dask.blocks import (
    Blocks,
    aligned,
    beside,
    pickled_size,
    samples,
    whole_rows,
    with_lengths,
)
from lokl.regions.dask.cluster import Cluster, need_dask
from lokl.regions.dask.summary import Moments
from lokl.regions.estimators import InRegions
from lokl.regions.model import Cover, Question, Regions, take

# Bytes of the models that are in one part.
_BYTES_OF_PART = 64 * 2**20
_ABOUT = {
    "predict": "decide",
    "decision_function": "decide",
    "predict_proba": "probabilities",
    "weights": "trust",
    "contributions": "parts",
}


@dataclass(frozen=True, eq=False)
class Held:
    """Regions of one cover whose models are in one place: `first`, and those up to `behind`."""

    cover: int
    first: int
    behind: int


@dataclass(frozen=True, eq=False)
class SomeRegions:
    """Regions whose models are in one place; it says how large it is, as Dask wants to know."""

    regions: Regions
    n_bytes: int

    def __sizeof__(self) -> int:
        return self.n_bytes


@dataclass(frozen=True, eq=False)
class Shell:
    """A fitted estimator without the models of its regions, and where these are."""

    model: InRegions
    parts: list[Held]
    method: str
    question: Question
    nothing: Array


@dataclass(frozen=True, eq=False)
class Told(Regions):
    """Regions that have been asked elsewhere."""

    total: Array = None  # type: ignore[assignment]

    def mean(self, question: Question, X: Any, samples: Any, threads: int) -> Array:
        return self.total


@dataclass(frozen=True, eq=False)
class Piece:
    """Samples of a block for one part: which rows they are, and the rows themselves."""

    rows: Array
    samples: Any


def ask_in_parts(cluster: Cluster, model: Any, method: str, X: Any, nothing: Array) -> Any:
    """Ask a model in regions, some of which are on each worker."""
    array, delayed = need_dask().array, need_dask().delayed
    question = Question(_ABOUT[method], len(getattr(model, "classes_", ())))
    held, parts = _divided(model._model)
    shell = Shell(_without_models(model), held, method, question, nothing)
    shared = delayed(shell, pure=False, traverse=False)
    # One after the other, since a worker may not have room for two at once on their way. Tasks hold
    # on to futures that are their arguments, as they are.
    there = [cluster.client.scatter(part, hash=False) for part in parts]
    blocks, answers = samples(X), []
    for part, length in zip(blocks.parts, blocks.lengths, strict=True):
        pieces = delayed(_sorted_out, pure=False)(shared, part)
        told = [
            delayed(_ask_part, pure=False)(shared, own, delayed(_picked, pure=False)(pieces, k))
            for k, own in enumerate(there)
        ]
        answer = delayed(_put_together, pure=False)(shared, part, pieces, told)
        shape = (np.nan if length is None else length, *nothing.shape[1:])
        answers.append(array.from_delayed(answer, shape, meta=nothing))
    return array.concatenate(answers, axis=0, allow_unknown_chunksizes=True)


def _divided(whole: Regions) -> tuple[list[Held], list[SomeRegions]]:
    """Neighbouring regions in parts of some bytes."""
    held: list[Held] = []
    for number, cover in enumerate(whole.covers):
        first, size = 0, 0
        for place, own in enumerate(cover.regions):
            own_size = pickled_size(own)
            if place > first and size + own_size > _BYTES_OF_PART:
                held.append(Held(number, first, place))
                first, size = place, 0
            size += own_size
        held.append(Held(number, first, len(cover.regions)))
    parts = [_only(whole, part) for part in held]
    return held, [SomeRegions(part, pickled_size(part)) for part in parts]


def _only(whole: Regions, part: Held | None) -> Regions:
    """Return regions without the models that are in other parts; None: without all."""
    covers = []
    for number, cover in enumerate(whole.covers):
        models: list[Any] = [None] * len(cover.regions)
        if part is not None and part.cover == number:
            models[part.first : part.behind] = cover.regions[part.first : part.behind]
        covers.append(Cover(cover.tree, models))
    return replace(whole, covers=covers)


def _without_models(model: Any) -> Any:
    shell = copy.copy(model)
    vars(shell).update(estimators_=[], _model=_only(model._model, None))
    return shell


def _sorted_out(shell: Shell, X: Any) -> list[Piece | None]:
    """Samples of a block for each part; None for no samples."""
    if X.shape[0] == 0:
        return [None] * len(shell.parts)
    with single_threaded():
        rows, given = shell.model._new(X)
        shares = [cover.tree.divide(rows) for cover in shell.model._model.covers]
    pieces: list[Piece | None] = []
    for part in shell.parts:
        found = [own for own, _ in shares[part.cover][part.first : part.behind]]
        own = np.unique(np.concatenate(found))
        pieces.append(Piece(own, take(given, own)) if len(own) else None)
    return pieces


def _picked(pieces: Sequence[Any], number: int) -> Any:
    return pieces[number]


def _ask_part(shell: Shell, part: SomeRegions, piece: Piece | None) -> Array | None:
    if piece is None:
        return None
    with single_threaded():
        rows, given = shell.model._new(piece.samples)
        return part.regions.mean(shell.question, rows, given, 1)


def _put_together(
    shell: Shell, X: Any, pieces: Sequence[Piece | None], told: Sequence[Array | None]
) -> Array:
    """Answer about a block, from what the parts say about their samples."""
    if X.shape[0] == 0:
        return shell.nothing
    regions = shell.model._model
    total = np.zeros((X.shape[0], *regions.shape(shell.question)))
    for piece, values in zip(pieces, told, strict=True):
        if piece is not None:
            total[piece.rows] += values
    answered = copy.copy(shell.model)
    answered._model = Told(**vars(regions), total=total)
    return np.asarray(getattr(answered, shell.method)(X))


# Models that are larger do not go through the scheduler with every graph, but are handed to the
# workers once.
_LARGE = 8 * 2**20
# Of the memory of a worker: models in regions that are larger are divided among the workers.
_SHARE = 0.1


def predict(model: Any, X: Any, client: Any = None) -> Any:
    """Class or value of each sample.

    Parameters
    ----------
    model : fitted estimator
        Of any kind, fitted here or elsewhere. It is in the graph once, whatever the number of
        blocks; a model of more than 8 MB is handed to all workers of the client at once. A model in
        regions that takes more than a tenth of a worker's memory is divided among the workers, and
        samples go where the models of their regions are.
    X : dask array or dask data frame of shape (n_samples, n_features)
    client : distributed.Client or None, default=None
        Whose workers are handed a large model; None is the current client. The answer itself is
        computed wherever Dask computes it.

    Returns
    -------
    answer : dask array
        What ``model.predict`` returns, in the chunks of `X`; chunks of data frames have unknown
        sizes.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from lokl import UniformMKLClassifier, distributed
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = UniformMKLClassifier(["rbf"]).fit(X, y)
    >>> labels = distributed.predict(model, da.from_array(X, chunks=(50, 2)))
    >>> labels.chunks
    ((50, 50, 50, 50),)
    >>> bool((labels.compute() == model.predict(X)).all())
    True
    """
    return ask(model, "predict", X, client)


def decision_function(model: Any, X: Any, client: Any = None) -> Any:
    """Decision about each sample; arguments as in :func:`predict`."""
    return ask(model, "decision_function", X, client)


def predict_proba(model: Any, X: Any, client: Any = None) -> Any:
    """Probabilities of the classes of each sample; arguments as in :func:`predict`."""
    return ask(model, "predict_proba", X, client)


def weights(model: Any, X: Any, client: Any = None) -> Any:
    """How far each kernel is trusted at each sample; arguments as in :func:`predict`."""
    return ask(model, "weights", X, client)


def contributions(model: Any, X: Any, client: Any = None) -> Any:
    """Signed part of each kernel in the decision; arguments as in :func:`predict`."""
    return ask(model, "contributions", X, client)


def ask(model: Any, question: str, X: Any, client: Any) -> Any:
    """Ask a model about every block."""
    check_is_fitted(model)
    if not hasattr(model, question):
        raise ValueError(f"{type(model).__name__} has no {question}")
    X, cluster = whole_rows(X), Cluster(client)
    nothing = _answer_about_nothing(model, question, X)
    size = 0 if cluster.client is None else pickled_size(model)
    if isinstance(model, InRegions) and size > _SHARE * cluster.memory:
        return ask_in_parts(cluster, model, question, X, nothing)
    options: dict[str, Any] = {"question": question, "nothing": nothing, "meta": nothing}
    options["model"] = _in_graph(cluster, model, size)
    if hasattr(X, "columns"):
        return X.map_partitions(_ask, **options)
    if nothing.ndim == 1:
        return X.map_blocks(_ask, drop_axis=1, **options)
    chunks = (X.chunks[0], *((length,) for length in nothing.shape[1:]))
    return X.map_blocks(_ask, chunks=chunks, new_axis=[*range(2, nothing.ndim)], **options)


def _ask(X: Any, *, model: Any, question: str, nothing: Array) -> Array:
    if X.shape[0] == 0:
        return nothing
    # Dask has the cores.
    with single_threaded():
        return np.asarray(getattr(model, question)(X))


def _in_graph(cluster: Cluster, model: Any, size: int) -> Any:
    """Return a model as one node, which tasks refer to."""
    if size <= _LARGE:
        return need_dask().delayed(model, pure=False, traverse=False)
    # On every worker, so that it is still there when one is lost.
    return cluster.client.scatter(model, broadcast=True, hash=False)


def _answer_about_nothing(model: Any, question: str, X: Any) -> Array:
    """Answer of no rows: it has the type and the columns of every other."""
    example = _example(X)
    with single_threaded():
        return np.asarray(getattr(model, question)(example))[:0]


def _example(X: Any) -> Any:
    """One row as the blocks of a collection have them."""
    if hasattr(X, "columns"):
        from dask.dataframe.dispatch import meta_nonempty

        return meta_nonempty(X._meta).iloc[:1]
    row = np.zeros((1, X.shape[1]), dtype=X.dtype)
    return sparse.csr_matrix(row) if is_sparse(X._meta) else row


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
