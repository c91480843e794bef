"""Products of tiles: columns or features of some rows, those of one kernel beside the other's."""

from itertools import pairwise

import numpy as np

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl._threads import multiply

_rows = CompiledModule("lokl.gram._rows")

# Sums over a tile that are too few to be worth a copy of it in another precision.
_FEW_SUMS = 8


def square_norms(tile: Array, spans: list[slice]) -> Array:
    """Squared norms of each kernel's features, (n_rows, n_kernels)."""
    norms = [np.einsum("jk,jk->j", tile[:, s], tile[:, s], dtype=np.float64) for s in spans]
    return np.stack(norms, axis=1)


def apart(tile: Array, starts: Array, loads: Array) -> Array:
    """Products of a tile with loads, kernel by kernel: (n_rows, n_kernels, *loads.shape[1:]).

    The columns of a kernel are those from its start to that of the next.
    """
    flat, count = loads.reshape(len(loads), int(np.prod(loads.shape[1:]))), len(starts) - 1
    if _is_mixed(tile, flat):
        out = np.empty((len(tile), count, flat.shape[1]))
        _rows.weigh_columns(tile, starts, np.ascontiguousarray(flat.T), out)
    else:
        spans = [slice(*pair) for pair in pairwise(starts)]
        sums = [multiply(tile[:, span], np.ascontiguousarray(flat[span])) for span in spans]
        out = np.stack(sums, axis=1)
    return out.reshape(len(tile), count, *loads.shape[1:])


def add_up(tile: Array, starts: Array, coef: Array, sums: Array) -> None:
    """Add sums over the rows of a tile, kernel by kernel, to `sums`, (n_columns, size).

    Coefficients are (n_rows, n_kernels, n_columns).
    """
    if _is_mixed(tile, coef):
        _rows.add_columns(tile, starts, coef, sums)
        return
    for i, (first, last) in enumerate(pairwise(starts)):
        own = np.ascontiguousarray(coef[:, i])
        sums[:, first:last] += multiply(tile[:, first:last].T, own).T


def _is_mixed(tile: Array, factors: Array) -> bool:
    """Whether a product in double precision would copy the tile to take few sums of it."""
    return tile.dtype != factors.dtype and factors.shape[-1] <= _FEW_SUMS
