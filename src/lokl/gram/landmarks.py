"""Landmarks: a few samples whose kernel values tell those of all others nearly enough.

Randomly pivoted Cholesky draws a sample with a probability in proportion to what is left of its
diagonal entry when all that is explained by the samples drawn before is taken away. Samples that
are like one drawn already are never drawn, outliers early. It looks at the diagonal of the matrix
and at the columns of the samples that it draws, and at nothing else.

Samples are drawn in blocks: many proposals at once, of which those are rejected that the accepted
ones before them explain. What is accepted is distributed as if samples had been drawn one by one,
and the columns of a block are updated by one matrix product.

Kernel PCA: coordinates of samples that are known by kernel values only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular

from lokl._arrays import Array, Samples, sample_weight
from lokl._threads import multiply
from lokl.gates.representation import Standardized
from lokl.gram import mixing
from lokl.gram.gated_kernel import Expansion, average_kernel
from lokl.gram.plan import Points
from lokl.kernels.base import Kernel

# Share of the landmarks that are proposed at once; at least, and at most.
_SHARE, _FEWEST, _MOST = 0.1, 16, 256
# What is left of the trace, relative, that counts as nothing, by the bytes of a number.
_NOTHING = {4: 1e-7, 8: 1e-13}
# Blocks in a row of which nothing is accepted: what is left is rounding.
_PATIENCE = 3


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Samples that were chosen."""

    rows: Array  # (n_landmarks,), in the order in which they were drawn
    left: float  # share of the trace of the matrix that they do not explain
    factor: Array  # (n_samples, n_landmarks), its products are nearly the matrix


def choose_landmarks(points: Points, most: int, rng: np.random.RandomState) -> Landmarks:
    """Choose at most `most` samples by blocked randomly pivoted Cholesky.

    Parameters
    ----------
    points : Points
        Samples under the kernels and gates whose matrix is looked at.
    most : int
    rng : RandomState
    """
    n, dtype = points.n_samples, points.plan.dtype
    diag = np.maximum(mixing.diag(points), 0.0)
    trace, nothing = float(diag.sum()), _NOTHING[dtype.itemsize]
    everyone, left = np.arange(n), diag.copy()
    # Factor with ``K`` nearly ``F F'``: columns are filled block by block.
    factor = np.empty((n, min(most, n)), dtype=dtype)
    rows: list[int] = []
    size = int(np.clip(_SHARE * most, _FEWEST, _MOST))
    idle = 0
    while len(rows) < factor.shape[1] and left.sum() > nothing * trace and idle < _PATIENCE:
        proposed = rng.choice(n, size=size, p=left / left.sum())
        part = points.take(proposed)
        known = factor[proposed, : len(rows)].astype(np.float64)
        block = mixing.block(part, part) - known @ known.T
        chosen = _accepted(block, left[proposed], rng)[: factor.shape[1] - len(rows)]
        idle = 0 if len(chosen) else idle + 1
        if not len(chosen):
            continue
        new = proposed[chosen]
        columns = np.empty((n, len(new)), dtype=dtype)
        mixing.fill(points, everyone, points.take(new), columns, everyone)
        columns -= multiply(factor[:, : len(rows)], factor[new, : len(rows)].T)
        small, failure = lapack.dpotrf(block[np.ix_(chosen, chosen)], lower=1, clean=1)
        if failure:
            # Rounding: what is left of these samples is no more than that.
            left[new] = 0.0
            continue
        inverse = solve_triangular(small, np.eye(len(new)), lower=True)
        columns = multiply(columns, inverse.T.astype(dtype))
        factor[:, len(rows) : len(rows) + len(new)] = columns
        rows += new.tolist()
        left -= np.einsum("ij,ij->i", columns, columns, dtype=np.float64)
        np.maximum(left, 0.0, out=left)
        left[new] = 0.0
    share = float(left.sum()) / trace if trace > 0 else 0.0
    return Landmarks(np.array(rows, dtype=np.intp), share, factor[:, : len(rows)])


def _accepted(block: Array, density: Array, rng: np.random.RandomState) -> Array:
    """Places of the proposals that stay, when each is asked what those before it leave of it.

    `block` is what is left of their matrix, `density` of their diagonal, to which they were drawn
    in proportion.
    """
    left, kept = block.astype(np.float64), []
    chance = rng.uniform(size=len(density)) * density
    for k in range(len(density)):
        pivot = left[k, k]
        if pivot <= chance[k] or pivot <= 1e-12 * density[k]:
            continue
        kept.append(k)
        row = left[k, k:] / np.sqrt(pivot)
        left[k:, k:] -= np.outer(row, row)
    return np.array(kept, dtype=np.intp)


_LANDMARKS = 500
# Directions with less than this share of the largest variance are rounding.
_NOISE = 1e-9


@dataclass(frozen=True, eq=False)
class KernelScores:
    """Leading kernel-PCA scores under the average kernel, standardised."""

    directions: Expansion  # scores of a sample
    scale: Standardized

    @classmethod
    def learn(
        cls,
        kernels: Sequence[Kernel],
        samples: Samples,
        rng: np.random.RandomState,
        n_components: int = 10,
    ) -> "KernelScores":
        """Learn directions from at most 500 samples, drawn by their weight."""
        n, weight = samples.n_samples, sample_weight(samples)
        kernel = average_kernel(kernels)
        gram = kernel.gram(samples, dtype="float64")
        chosen, share = np.arange(n), weight / weight.sum()
        if n > _LANDMARKS:
            chosen = np.sort(rng.choice(n, size=_LANDMARKS, replace=False, p=share))
            share = np.full(_LANDMARKS, 1.0 / _LANDMARKS)
        K = gram.block(chosen)
        means = K @ share
        centred = K - means - means[:, np.newaxis] + share @ means
        root = np.sqrt(share)
        values, vectors = np.linalg.eigh(root[:, np.newaxis] * centred * root)
        keep = np.flatnonzero(values > _NOISE * values[-1])[::-1][:n_components]
        loads = root[:, np.newaxis] * vectors[:, keep]
        # Signs of eigenvectors are arbitrary: the largest score shall be positive. Scores, unlike
        # loads, do not depend on whether a row is written twice or has a weight of 2.
        scores = loads / share[:, np.newaxis]
        loads *= np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(len(keep))])
        coef = np.zeros((n, len(keep)))
        coef[chosen] = loads - np.outer(share, loads.sum(axis=0))
        directions = Expansion.make(kernel, gram, coef, np.zeros(len(keep)))
        return cls(directions, Standardized.learn(directions(samples), weight))

    def __call__(self, samples: Samples) -> Array:
        return np.asarray(self.scale(self.directions(samples)))
