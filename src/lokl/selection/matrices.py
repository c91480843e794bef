"""Gram matrices of the samples of a search, in memory that one line hands on to the next."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from lokl._arrays import Array, is_sparse
from lokl.estimators._base.fixed_kernel import FixedKernel
from lokl.estimators._base.solver_choice import chosen_solver
from lokl.gram import GatedGram, InnerProducts
from lokl.kernels import Kernel
from lokl.kernels.presence import read_samples
from lokl.kernels.sameness import same_kernels


class Matrices:
    """Makes matrices of methods whose kernel is fixed, between all samples of a search."""

    def __init__(self) -> None:
        self._lock = Lock()
        # First touches of memory are dear, so what a line leaves is used by the next one.
        self._free: list[InnerProducts] = []

    def of_folds(
        self, model: FixedKernel, data: Any, bound: Sequence[list[Kernel]], megabytes: float
    ) -> list[GatedGram]:
        """Return the matrix of all samples for each fold, with nothing computed yet.

        Folds with the same kernels share one. Where not all matrices fit, each has memory for some
        of its rows.

        Parameters
        ----------
        model : FixedKernel
        data : checked data of the model
        bound : sequence of lists of kernels
            Of each fold, as :func:`bound_in_folds` gives them.
        megabytes : float
            For all of them together.
        """
        distinct = {id(kernels): kernels for kernels in bound}
        share = megabytes / len(distinct)
        made = {key: self._gram(model, data, kernels, share) for key, kernels in distinct.items()}
        return [made[id(kernels)] for kernels in bound]

    def give_back(self, grams: Sequence[GatedGram]) -> None:
        """Let other lines use the memory of whole matrices."""
        with self._lock:
            self._free += {id(gram.inner): gram.inner for gram in grams if gram.fits}.values()

    def _gram(
        self, model: FixedKernel, data: Any, kernels: list[Kernel], megabytes: float
    ) -> GatedGram:
        samples = read_samples(kernels, list(data.kernels), data.X)
        gate, params = model._gate(samples, len(kernels))
        inner = self._inner(samples.filled, chosen_solver(model).dtype)
        inner.cache_size = megabytes
        gram = inner.gated(kernels, gate.at(samples, params))
        if not gram.fits:
            # There is no room for rows beside the whole matrix of another line.
            inner.release()
        return gram

    def _inner(self, X: Any, dtype: Any) -> InnerProducts:
        with self._lock:
            for place, inner in enumerate(self._free):
                if inner.dtype == dtype and _equal(inner.X, X):
                    return self._free.pop(place)
            # Memory for other samples goes before that for these comes.
            del self._free[:1]
        return InnerProducts(X, dtype=dtype)


def bound_in_folds(data: Any, trains: Sequence[Array]) -> list[list[Kernel]]:
    """Bind kernels to the rows of each fold that count.

    Settings such as ``RBF("scale")`` depend on them; where folds bind all kernels alike, they are
    given the same list.

    Parameters
    ----------
    data : checked data of an estimator
    trains : sequence of arrays
        Rows that each fold learns from.
    """
    found: list[list[Kernel]] = []
    for train in trains:
        rows = train[data.weight[train] > 0]
        frame = None if data.frame is None else data.frame.iloc[rows]
        X, weight = data.X[rows], data.weight[rows]
        kernels = [kernel.bind(X, weight, frame) for kernel in data.kernels.values()]
        found.append(next((known for known in found if same_kernels(known, kernels)), kernels))
    return found


def _equal(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if is_sparse(left) != is_sparse(right) or left.shape != right.shape:
        return False
    return not (left != right).nnz if is_sparse(left) else np.array_equal(left, right)
