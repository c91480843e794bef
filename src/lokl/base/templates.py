"""Methods that move a gate in rounds: limit, log and callback in one place.

Global methods: one weight for each kernel, the same at every sample.

Methods whose kernel does not depend on the targets: folds can share its matrix.
"""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lokl._arrays import Array, Samples
from lokl._threads import limit_blas_for
from lokl._warnings import DeferredWarnings, warn_once
from lokl.base.estimator import KernelEstimator
from lokl.base.model import AttributeDocs, GatedMachine
from lokl.base.settings import CALLBACK, ROUNDS, setting, settings
from lokl.base.training import Training
from lokl.gates import Gate, WeightedGate
from lokl.gates.base import EqualGates
from lokl.optimizers import OptimizerStep
from lokl.solvers.machines import Fold, check_any_left, held_out_decisions

logger = logging.getLogger("lokl")


@dataclass(frozen=True, eq=False)
class OptimizationTrace:
    """A path of steps that was followed to its end."""

    last: OptimizerStep
    history: list[float]  # objective after every step

    def summary(self) -> dict[str, Any]:
        """What a model tells about it: history, gap and number of rounds."""
        return {"history": self.history, "gap": self.last.gap, "rounds": len(self.history)}


@settings
class IterativeEstimator(KernelEstimator):
    """Settings of methods in rounds, and the trace along a path of steps."""

    max_iter: int = setting(100, ROUNDS, "Limit on the rounds of the method, -1 for none.")
    callback: Any = setting(
        None,
        CALLBACK,
        "Called with every :class:`~lokl.optimizers.OptimizerStep`; True stops the method.",
    )

    _is_common = True
    _counts_rounds = True
    _own_attributes: ClassVar[AttributeDocs] = {
        "history_": ("array", "Objective after every round."),
        "n_iter_": ("int", "Rounds."),
    }

    def _run(self, path: Iterable[OptimizerStep], limit: int | None = None) -> OptimizationTrace:
        """Follow a path to its end, to the limit on rounds, or until the callback returns True."""
        limit = self.max_iter if limit is None else limit
        history: list[float] = []
        for step in path:
            history.append(step.objective)
            if self.verbose:
                logger.info(
                    "%s: round %d, objective %.6g, gap %.3g",
                    type(self).__name__,
                    len(history),
                    step.objective,
                    step.gap,
                )
            if self.callback is not None:
                said = self.callback(step)
                # Other values that count as true, such as a number, are no request to stop.
                if isinstance(said, bool | np.bool_) and said:
                    break
            if len(history) == limit:
                warn_once(
                    "rounds",
                    f"{type(self).__name__} stopped after max_iter={self.max_iter} rounds; raise "
                    "max_iter, or ask for less by learn_tol",
                    ConvergenceWarning,
                )
                break
        return OptimizationTrace(step, history)


# Given what every objective of weights is made of, as keywords.
Path = Callable[..., Iterator[OptimizerStep]]


def learn_weights(
    learner: IterativeEstimator, training: Training, path: Path, *, resume: bool = True
) -> GatedMachine:
    """Learn ``k = sum_i w_i k_i`` along the path of a method.

    It is made of machines, the kernels under full trust, that trust, and the weights that the last
    fit of a line ended with; its parameters are weights of shape (1, n_kernels). With `resume`
    False every fit begins afresh.
    """
    gate = WeightedGate(EqualGates(training.n_kernels))
    base = gate.base(training.samples)
    name = "weights" if resume else None
    trace = learner._run(
        path(
            machines=training.machines(resume=name),
            gram=training.gram(base, keep=True),
            base=base,
            first=training.cache.warm_start(name, from_exchange=True),
        )
    )
    step = trace.last
    if resume:
        training.cache.store(name, step.params)
    weights = step.params[0]
    return training.model(gate, step.params, step.solution, weights_=weights, **trace.summary())


@settings
class FixedKernel(KernelEstimator):
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
        data = self._validate(X, y, sample_weight)
        with DeferredWarnings(), np.errstate(all="ignore"):
            training = self._training(data, self._encode_targets(data.y, data.weight)[0])
            place = np.full(len(data.weight), -1)
            place[training.rows] = np.arange(training.n_samples)
            counted = [(_counted(place[kept]), _counted(place[left])) for kept, left in folds]
            check_any_left(counted)
            with limit_blas_for(training.work):
                gate, params = self._gate(training.samples, training.n_kernels)
                gram = training.gram(gate.at(training.samples, params))
                found = held_out_decisions(training.solver, gram, training.problems, counted)
        decisions = np.zeros((len(place), found.shape[1]))
        decisions[training.rows] = found
        return decisions


def _counted(places: Array) -> Array:
    return places[places >= 0]
