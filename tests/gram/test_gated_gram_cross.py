"""Blocks of a Gram matrix, wherever it is stored."""

import numpy as np

from lokl.gram import GatedGram
from lokl.kernels import RBF, Linear


def test_a_block_is_the_same_from_the_whole_matrix_from_rows_and_from_nothing():
    X = np.random.RandomState(0).normal(size=(30, 3))
    rows, columns = np.array([3, 1, 29]), np.array([0, 5, 5, 7])
    expected = 0.5 * (X @ X.T + RBF(0.4)(X))[np.ix_(rows, columns)]
    blocks = []
    for prepare in (lambda gram: None, lambda gram: gram.store(rows[:2]), lambda gram: gram.whole):
        gram = GatedGram([Linear(), RBF(0.4)], X, dtype="float64")
        prepare(gram)
        blocks.append(gram.cross(rows, columns))
        np.testing.assert_allclose(blocks[-1], expected, atol=1e-12)
    # It is the caller's: the stored matrix does not change with it.
    blocks[-1][:] = 0.0
    np.testing.assert_allclose(gram.cross(rows, columns), expected, atol=1e-12)
