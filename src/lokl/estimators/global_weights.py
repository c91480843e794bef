"""Global methods: one weight for each kernel, the same at every sample."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from lokl._arrays import Array
from lokl.estimators.base import Training
from lokl.estimators.learned_gate import LearnedGate
from lokl.estimators.machine import Fitted
from lokl.gates import Weighted
from lokl.gates.weighted import Everywhere
from lokl.optimizers import Machines, Step


@dataclass(eq=False, repr=False)
class GlobalWeights(LearnedGate):
    """``k = sum_i w_i k_i``; a method says how the weights are found."""

    @abstractmethod
    def _path(self, machines: Machines, base: Array) -> Iterator[Step]:
        """Steps whose parameters are weights of shape (1, n_kernels)."""

    def _learn(self, training: Training) -> Fitted:
        gate = Weighted(Everywhere(len(training.kernels)))
        base = gate.base(training.samples, training.present)
        machines = self._machines(training, base)
        fitted = self._walk(self._path(machines, base), machines.gram, gate)
        self.weights_ = fitted.params[0]
        return fitted
