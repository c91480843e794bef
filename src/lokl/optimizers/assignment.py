"""Which kernels a sample uses: the best choice under bounds on their number."""

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from lokl._arrays import Array


def choose(gains: Array, least: int, most: int, present: Array | None = None) -> Array:
    """Switch on the kernels of largest gain, sample by sample.

    Maximises ``sum_i h_i gain_i`` over ``h`` in {0, 1} with ``least <= sum h <= most``: all kernels
    with a positive gain, at least and at most as many as allowed. Ties go to the earlier kernel.

    Parameters
    ----------
    gains : array of shape (n_samples, n_kernels)
    least, most : int
    present : boolean array of shape (n_samples, n_kernels), optional
        Kernels whose view a sample lacks stay off, and the bounds follow what is left.
    """
    if present is not None:
        gains = np.where(present, gains, -np.inf)
    order = np.argsort(-gains, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(gains.shape[1])[np.newaxis], axis=1)
    on = ((gains > 0) & (rank < most)) | (rank < least)
    return np.asarray(on if present is None else on & present, dtype=float)


def choose_together(
    gains: Array, least: int, most: int, uses: int, present: Array | None = None
) -> Array:
    """Like :func:`choose`, with every kernel used by at least `uses` samples: an integer program.

    Raises
    ------
    ValueError
        Where no choice satisfies all bounds.
    """
    n, m = gains.shape
    there = np.ones((n, m), dtype=bool) if present is None else present
    counts = there.sum(axis=1)
    by_sample = sparse.kron(sparse.eye_array(n), np.ones((1, m)), format="csr")
    by_kernel = sparse.kron(np.ones((1, n)), sparse.eye_array(m), format="csr")
    result = milp(
        -gains.ravel(),
        integrality=np.ones(n * m),
        bounds=Bounds(0, there.astype(float).ravel()),
        constraints=[
            LinearConstraint(by_sample, np.minimum(least, counts), np.minimum(most, counts)),
            LinearConstraint(by_kernel, np.full(m, uses), np.full(m, np.inf)),
        ],
    )
    if result.x is None:
        raise ValueError(
            f"no choice of at most {most} of {m} kernels for each of {n} samples uses every kernel "
            f"{uses} times; lower least_uses, or raise k_max"
        )
    return np.asarray(np.round(result.x).reshape(n, m))
