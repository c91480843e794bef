"""Base classes of methods in rounds and of methods with a fixed kernel."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable
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
    """Last step of an optimiser, and the objective after every step."""

    last: OptimizerStep
    history: list[float]

    def summary(self) -> dict[str, Any]:
        """Return history, gap and number of rounds, as ``Training.model`` takes them."""
        return {"history": self.history, "gap": self.last.gap, "rounds": len(self.history)}


@settings
class IterativeEstimator(KernelEstimator):
    """A method with an outer loop: limit, log and callback of its rounds."""

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

    def _run(self, steps: Iterable[OptimizerStep], limit: int | None = None) -> OptimizationTrace:
        """Run an optimiser to its end, to the limit on rounds, or until the callback stops it."""
        limit = self.max_iter if limit is None else limit
        name, history = type(self).__name__, []
        for step in steps:
            history.append(step.objective)
            if self.verbose:
                text = "%s: round %d, objective %.6g, gap %.3g"
                logger.info(text, name, len(history), step.objective, step.gap)
            result = None if self.callback is None else self.callback(step)
            # Other values that count as true, such as a number, do not stop the method.
            if isinstance(result, bool | np.bool_) and result:
                break
            if len(history) == limit:
                warn_once(
                    "rounds",
                    f"{name} stopped after max_iter={self.max_iter} rounds; raise max_iter or "
                    "learn_tol",
                    ConvergenceWarning,
                )
                break
        return OptimizationTrace(step, history)

    def _learn_weights(
        self,
        training: Training,
        optimize: Callable[..., Iterable[OptimizerStep]],
        *,
        gate: WeightedGate | None = None,
        base: Array | None = None,
        resume: bool = True,
        **learned: Any,
    ) -> GatedMachine:
        """Learn ``k = sum_i w_i <h_i, h_i> k_i`` with fixed gates `h`, by default all equal.

        Parameters
        ----------
        training : Training
        optimize : callable
            Takes the keywords of an objective (machines, gram, base, first) and yields steps whose
            parameters are weights of shape (1, n_kernels) or (rank, n_kernels).
        gate : WeightedGate, optional
        base : array of shape (n_samples, n_kernels) or (n_samples, n_kernels, rank), optional
            Gates of the training samples before they are weighted.
        resume : bool, default=True
            Whether fits of a cost path start from the weights of the previous fit.
        **learned
            Further fitted attributes.
        """
        # Weights of equal gates mean the same on other folds.
        shared = gate is None
        gate = WeightedGate(EqualGates(training.n_kernels)) if gate is None else gate
        base = gate.base(training.samples) if base is None else base
        name = "weights" if resume else None
        steps = optimize(
            machines=training.machines(resume=name),
            gram=training.gram(base, keep=True),
            base=base,
            first=training.cache.warm_start(name, from_exchange=shared),
        )
        trace = self._run(steps)
        params = trace.last.params
        if resume:
            training.cache.store(name, params)
        learned["weights_"] = params if gate.by_rank else params[0]
        return training.model(gate, params, trace.last.solution, **learned, **trace.summary())


@settings
class FixedKernel(KernelEstimator):
    """A method whose kernel does not depend on the targets: folds can share its Gram matrix."""

    @abstractmethod
    def _gate(self, samples: Samples, n_kernels: int) -> tuple[Gate, Array]:
        """Return the gate and its parameters."""

    def _held_out(self, X: Any, y: Any, folds: Iterable[Fold], sample_weight: Any = None) -> Array:
        """Return decisions about held-out samples, (n_samples, n_tasks), from one Gram matrix.

        Settings that depend on the samples, such as ``gamma="scale"``, and balanced class weights
        are computed from all samples. Decisions are 0 for samples without a weight and for samples
        that are never held out. Attributes of the columns are set as by `fit`: call this on a copy.
        """
        data = self._validate(X, y, sample_weight)
        with DeferredWarnings(), np.errstate(all="ignore"):
            training = self._training(data, self._encode_targets(data.y, data.weight)[0])
            position = np.full(len(data.weight), -1)
            position[training.rows] = np.arange(training.n_samples)
            weighted = [
                (position[kept][position[kept] >= 0], position[left][position[left] >= 0])
                for kept, left in folds
            ]
            check_any_left(weighted)
            with limit_blas_for(training.work):
                gate, params = self._gate(training.samples, training.n_kernels)
                gram = training.gram(gate.at(training.samples, params))
                held_out = held_out_decisions(training.solver, gram, training.problems, weighted)
        decisions = np.zeros((len(position), held_out.shape[1]))
        decisions[training.rows] = held_out
        return decisions
