"""Methods whose kernel does not depend on the targets: folds can share its matrix."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._notices import Collected
from lokl._samples import Samples
from lokl._threads import one_pool
from lokl.estimators._base.learner import Learner
from lokl.estimators._base.settings import settings
from lokl.gates import Gate
from lokl.solvers.held_out import Fold, check_any_left, held_out_decisions


@settings
class FixedKernel(Learner):
    """A method that learns nothing but its machines."""

    @abstractmethod
    def _gate(self, samples: Samples, n_kernels: int) -> tuple[Gate, Array]:
        """Return the gate and its parameters, which no target has a part in."""

    def _held_out(self, X: Any, y: Any, folds: Iterable[Fold], sample_weight: Any = None) -> Array:
        """Decisions about samples that were left out, (n_samples, n_tasks), on one matrix.

        Settings that depend on the samples, such as ``gamma="scale"``, and balanced class weights
        are those of all samples. Samples of no weight, and those never left out, have 0. Columns of
        the data are noted on the estimator, as by a fit: call this of a copy.
        """
        data = self._read(X, y, sample_weight)
        with Collected(), np.errstate(all="ignore"):
            training = self._training(data, self._stated(data.y, data.weight)[0])
            place = np.full(len(data.weight), -1)
            place[training.rows] = np.arange(training.n_samples)
            counted = [(_counted(place[kept]), _counted(place[left])) for kept, left in folds]
            check_any_left(counted)
            with one_pool(training.work):
                gate, params = self._gate(training.samples, training.n_kernels)
                gram = training.gram(gate.at(training.samples, params))
                found = held_out_decisions(training.solver, gram, training.problems, counted)
        decisions = np.zeros((len(place), found.shape[1]))
        decisions[training.rows] = found
        return decisions


def _counted(places: Array) -> Array:
    return places[places >= 0]
