"""Landmarks: a few samples whose kernel values approximate the whole kernel matrix.

Randomly pivoted Cholesky draws a sample with a probability in proportion to the residual of its
diagonal entry, after subtracting the part that the samples drawn before explain. Samples similar to
a drawn one are hardly ever drawn, outliers early. Only the diagonal of the matrix and the columns
of the drawn samples are computed.

Samples are drawn in blocks: many proposals at once, of which those are rejected that the accepted
ones before them explain. Accepted samples are distributed as if they had been drawn one by one, and
the columns of a block are updated by one matrix product.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular

from lokl._arrays import Array
from lokl._threads import multiply
from lokl.gram import mixing
from lokl.gram.plan import Points

# Share of the landmarks that are proposed at once; at least, and at most.
_SHARE, _FEWEST, _MOST = 0.1, 16, 256
# Residual share of the trace that counts as zero, by the bytes of a number.
_NOTHING = {4: 1e-7, 8: 1e-13}
# Pivots below this share of the diagonal residual are rounding.
_LEAST_PIVOT = 1e-12
# After this many blocks in a row without an accepted sample, the residual is rounding.
_PATIENCE = 3


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Samples that were chosen.

    Attributes
    ----------
    rows : array of int of shape (n_landmarks,)
        In the order in which they were drawn.
    residual : float
        Share of the trace of the matrix that they do not explain.
    factor : array of shape (n_samples, n_landmarks)
        ``F`` with ``K`` close to ``F F'``.
    """

    rows: Array
    residual: float
    factor: Array


def choose_landmarks(points: Points, most: int, rng: np.random.RandomState) -> Landmarks:
    """Choose at most `most` samples by blocked randomly pivoted Cholesky.

    Parameters
    ----------
    points : Points
        Samples under the kernels and gates of the matrix.
    most : int
    rng : RandomState
    """
    n, dtype = points.n_samples, points.plan.dtype
    diag = np.maximum(mixing.diag(points), 0.0)
    trace, nothing = float(diag.sum()), _NOTHING[dtype.itemsize]
    all_rows, left = np.arange(n), diag.copy()
    # Columns of the factor are filled block by block.
    factor = np.empty((n, min(most, n)), dtype=dtype)
    rows: list[int] = []
    size = int(np.clip(_SHARE * most, _FEWEST, _MOST))
    idle = 0
    while len(rows) < factor.shape[1] and left.sum() > nothing * trace and idle < _PATIENCE:
        proposed = rng.choice(n, size=size, p=left / left.sum())
        part = points.take(proposed)
        explained = factor[proposed, : len(rows)].astype(np.float64)
        block = mixing.block(part, part) - explained @ explained.T
        chosen = _accepted(block, left[proposed], rng)[: factor.shape[1] - len(rows)]
        idle = 0 if len(chosen) else idle + 1
        if not len(chosen):
            continue
        new = proposed[chosen]
        columns = np.empty((n, len(new)), dtype=dtype)
        mixing.fill(points, all_rows, points.take(new), columns, all_rows)
        columns -= multiply(factor[:, : len(rows)], factor[new, : len(rows)].T)
        small, failure = lapack.dpotrf(block[np.ix_(chosen, chosen)], lower=1, clean=1)
        if failure:
            # The residual of these samples is rounding.
            left[new] = 0.0
            continue
        inverse = solve_triangular(small, np.eye(len(new)), lower=True)
        columns = multiply(columns, inverse.T.astype(dtype))
        factor[:, len(rows) : len(rows) + len(new)] = columns
        rows += new.tolist()
        left -= np.einsum("ij,ij->i", columns, columns, dtype=np.float64)
        np.maximum(left, 0.0, out=left)
        left[new] = 0.0
    residual = float(left.sum()) / trace if trace > 0 else 0.0
    return Landmarks(np.array(rows, dtype=np.intp), residual, factor[:, : len(rows)])


def _accepted(block: Array, density: Array, rng: np.random.RandomState) -> Array:
    """Return the positions of accepted proposals, each tested against the accepted ones before it.

    Parameters
    ----------
    block : array of shape (n_proposed, n_proposed)
        Residual of the matrix among the proposals.
    density : array of shape (n_proposed,)
        Residual of the diagonal, to which the proposals were drawn in proportion.
    rng : RandomState
    """
    left, accepted = block.astype(np.float64), []
    threshold = rng.uniform(size=len(density)) * density
    for k in range(len(density)):
        pivot = left[k, k]
        if pivot <= threshold[k] or pivot <= _LEAST_PIVOT * density[k]:
            continue
        accepted.append(k)
        row = left[k, k:] / np.sqrt(pivot)
        left[k:, k:] -= np.outer(row, row)
    return np.array(accepted, dtype=np.intp)
