"""Models that are larger than a worker: each worker has some regions, and samples come to them."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._threads import one_thread
from lokl.distributed.blocks import samples
from lokl.distributed.cluster import Cluster, need_dask
from lokl.distributed.sizes import pickled_size
from lokl.models.regions import Cover, Question, Regions, take
from lokl.regions.base import InRegions

# Bytes of the models that are in one part.
_BYTES_OF_PART = 64 * 2**20
_ABOUT = {
    "predict": "decide",
    "decision_function": "decide",
    "predict_proba": "probabilities",
    "gate": "trust",
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
    with one_thread():
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
    with one_thread():
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
