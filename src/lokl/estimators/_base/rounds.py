"""Methods that move a gate in rounds: limit, log and callback in one place."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lokl._notices import tell
from lokl.estimators._base.learner import Learner
from lokl.estimators._base.rules import CALLBACK, ROUNDS
from lokl.estimators._base.settings import setting, settings
from lokl.models.described import Attributes
from lokl.optimizers import Step

logger = logging.getLogger("lokl")


@dataclass(frozen=True, eq=False)
class Walk:
    """A path of steps that was followed to its end."""

    last: Step
    history: list[float]  # objective after every step

    def facts(self) -> dict[str, Any]:
        """What a model tells about it: history, gap and number of rounds."""
        return {"history": self.history, "gap": self.last.gap, "rounds": len(self.history)}


@settings
class Rounds(Learner):
    """Settings of methods in rounds, and the walk along a path of steps."""

    max_iter: int = setting(100, ROUNDS, "Limit on the rounds of the method, -1 for none.")
    callback: Any = setting(
        None,
        CALLBACK,
        "Called with every :class:`~lokl.optimizers.Step`; the method stops when it returns True.",
    )

    _is_common = True
    _counts_rounds = True
    _learned: ClassVar[Attributes] = {
        "history_": ("array", "Objective after every round."),
        "n_iter_": ("int", "Rounds."),
    }

    def _follow(self, path: Iterable[Step], limit: int | None = None) -> Walk:
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
                tell(
                    "rounds",
                    f"{type(self).__name__} stopped after max_iter={self.max_iter} rounds; raise "
                    "max_iter, or ask for less by learn_tol",
                    ConvergenceWarning,
                )
                break
        return Walk(step, history)
