"""Methods that move a gate in rounds: history, log, callback and limit in one place."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from lokl._checks import check_positive as positive
from lokl.estimators.base import Training, logger
from lokl.estimators.machine import Fitted, GatedMachine
from lokl.estimators.validation import check_count
from lokl.gates import Gate
from lokl.gram import GatedGram
from lokl.optimizers import Machines, Step


@dataclass(eq=False, repr=False)
class InRounds(GatedMachine):
    """Common settings and the walk along a path of steps."""

    max_iter: int = field(default=100, kw_only=True)
    callback: Any = field(default=None, kw_only=True)

    _counts_rounds = True

    def _check(self) -> None:
        super()._check()
        if self.max_iter != -1:
            check_count("max_iter", self.max_iter)

    def _machines(self, training: Training, gates: Any) -> Machines:
        """Machines on a Gram matrix that keeps its inner products while gates move."""
        gram = training.solver.gram(training.kernels, training.X, gates, keep_inner=True)
        return Machines(gram, training.solver, training.problems)

    def _walk(
        self, path: Iterable[Step], gram: GatedGram, gate: Gate, limit: int | None = None
    ) -> Fitted:
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
            if self.callback is not None and self.callback(step) is True:
                break
            if len(history) == limit:
                warnings.warn(
                    f"{type(self).__name__} stopped after max_iter={self.max_iter} rounds; raise "
                    "max_iter, or ask for less by learn_tol",
                    ConvergenceWarning,
                    stacklevel=5,
                )
                break
        return Fitted(
            gram,
            gate,
            step.params,
            step.solution,
            history,
            step.gap,
            len(history),
        )


@dataclass(eq=False, repr=False)
class LearnedGate(InRounds):
    """An optimiser moves the gate until a tolerance is met."""

    learn_tol: float = field(default=1e-3, kw_only=True)

    def _check(self) -> None:
        super()._check()
        positive("learn_tol", self.learn_tol)
