"""Training samples counted once each, in an order that only kernels decide.

Folds and other draws go by the number of a sample. On distinct samples, ordered by what kernels see
in them, they are the same however rows are ordered or written: as features, as a sparse matrix or
as numbers of a stored one, twice or with a weight of 2.
"""

from dataclasses import replace

import numpy as np

from lokl._arrays import Array
from lokl.estimators._base.earlier import Earlier
from lokl.estimators._base.training import Training
from lokl.gates import Constant
from lokl.solvers.duplicates import names_of_rows


def distinct(training: Training) -> Training:
    """Return the distinct samples with the weights of equal ones added up."""
    names = names_of_rows(training.samples.given, training.targets)
    _, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    once = _merged(training, first, inverse) if len(first) < len(names) else training
    order = np.argsort(_likeness(once), kind="stable")
    return replace(
        once,
        samples=once.samples.take(order),
        rows=once.rows[order],
        problems=[problem.take(order) for problem in once.problems],
        # What earlier fits have left belongs to samples in their own order.
        earlier=Earlier(),
    )


def _merged(training: Training, first: Array, inverse: Array) -> Training:
    weight = np.bincount(inverse, weights=training.weight, minlength=len(first))
    return replace(
        training,
        samples=replace(training.samples.take(first), weight=weight),
        rows=training.rows[first],
        problems=[problem.merged(first, inverse) for problem in training.problems],
        earlier=Earlier(),
    )


def _likeness(training: Training) -> Array:
    """How like all others each sample is: its row of the averaged kernels, summed."""
    params = np.full(training.n_kernels, 1.0 / training.n_kernels)
    gram = training.gram(Constant().at(training.samples, params))
    return gram.dot(training.weight)
