"""Whole Gram matrices of the samples of a search, in memory that one line hands on to the next."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from lokl._arrays import Array, is_sparse
from lokl.gates import Constant
from lokl.gram import GatedGram, InnerProducts
from lokl.gram.gated_gram import MEGABYTE
from lokl.kernels import Kernel
from lokl.kernels.presence import read_samples
from lokl.kernels.sameness import same_kernels


def matrices_that_fit(n_samples: int, megabytes: float) -> int:
    """How many whole matrices of single precision a budget holds."""
    return int(megabytes * MEGABYTE // (4 * n_samples**2))


class Matrices:
    """Makes matrices of the average of some kernels between all samples of a search.

    Parameters
    ----------
    dtype : {"auto", "float32", "float64"}
        "auto" is float32 unless values of the kernels would lose digits in it.
    """

    def __init__(self, dtype: Any):
        self._dtype = dtype
        self._lock = Lock()
        # First touches of memory are dear, so what a line leaves is used by the next one.
        self._free: list[InnerProducts] = []

    def of_folds(self, data: Any, bound: Sequence[list[Kernel]]) -> list[GatedGram]:
        """Return the matrix of all samples for each fold; folds with the same kernels share one.

        Parameters
        ----------
        data : checked data of an estimator
        bound : sequence of lists of kernels
            Of each fold, as :func:`bound_in_folds` gives them.
        """
        distinct = {id(kernels): kernels for kernels in bound}
        made = {key: self._gram(data, kernels) for key, kernels in distinct.items()}
        return [made[id(kernels)] for kernels in bound]

    def give_back(self, grams: Sequence[GatedGram]) -> None:
        """Let other lines use the memory of matrices."""
        with self._lock:
            self._free += {id(gram.inner): gram.inner for gram in grams}.values()

    def _gram(self, data: Any, kernels: list[Kernel]) -> GatedGram:
        samples = read_samples(kernels, list(data.kernels), data.X)
        gate = Constant()
        params = gate.init(samples.given, len(kernels), np.random.RandomState(0))
        gram = self._inner(samples.filled).gated(kernels, gate.at(samples, params))
        # Computed once, here.
        _ = gram.whole
        return gram

    def _inner(self, X: Any) -> InnerProducts:
        with self._lock:
            for place, inner in enumerate(self._free):
                if _equal(inner.X, X):
                    return self._free.pop(place)
        return InnerProducts(X, cache_size=np.inf, dtype=self._dtype)


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


def count_distinct(bound: Sequence[list[Kernel]]) -> int:
    """How many matrices the folds need."""
    return len({id(kernels) for kernels in bound})


def _equal(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if is_sparse(left) != is_sparse(right) or left.shape != right.shape:
        return False
    return not (left != right).nnz if is_sparse(left) else np.array_equal(left, right)
