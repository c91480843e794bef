"""Permutation test of the chosen model: its score if the target were unrelated to the samples."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array
from lokl.tables import TableError


@dataclass(frozen=True)
class PermutationTest:
    """Score of a candidate compared with its scores on permuted targets.

    Attributes
    ----------
    score : float
        Of the first repeat, whose folds all permutations share.
    mean, best : float
        Mean and best score on permuted targets.
    n_as_good : int
        Permuted targets with a score that is at least as good.
    n_permutations : int
        Finished permutations.
    """

    score: float
    mean: float
    best: float
    n_as_good: int
    n_permutations: int

    @property
    def p_value(self) -> float:
        """Probability of so good a score if target and samples were unrelated."""
        return (1 + self.n_as_good) / (1 + self.n_permutations)


def permuted_target(
    y: Array, fold: Array, groups: Array | None, rng: np.random.RandomState
) -> Array:
    """Return a target that is permuted within folds, so that folds keep their classes.

    Groups whose samples have one target exchange it as a whole. If the target differs within some
    group, it is permuted within groups.

    Parameters
    ----------
    y : array of shape (n_samples,)
    fold : int array of shape (n_samples,)
        Fold in which each sample is tested; equal for all if folds do not depend on the target.
    groups : array of shape (n_samples,) or None
    rng : RandomState

    Returns
    -------
    permuted : array of shape (n_samples,)

    Raises
    ------
    TableError
        If there is only one permutation.
    """
    unit, block = np.arange(len(y)), fold
    if groups is not None:
        _, first, codes = np.unique(groups, return_index=True, return_inverse=True)
        if np.array_equal(y, y[first[codes]]):
            unit = codes
        else:
            block = codes
    _, first = np.unique(unit, return_index=True)
    own, values = block[first], y[first]
    if all(len(np.unique(values[own == one])) < 2 for one in np.unique(own)):
        raise TableError(
            "--permutations: samples that may exchange their target all have the same one; use "
            "fewer folds, or leave out --permutations"
        )
    source = np.empty_like(first)
    source[np.argsort(own, kind="stable")] = np.lexsort((rng.random_sample(len(own)), own))
    return np.asarray(values[source][unit])
