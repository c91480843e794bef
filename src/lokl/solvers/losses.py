"""Losses by their names, and which of them a solver minimises."""

from collections.abc import Callable
from typing import Any

from lokl._checks import check_choice
from lokl.solvers.base import Solver
from lokl.solvers.problem import Problem, hinge, squared_hinge

# Of classifiers, the preferred one first.
CLASSIFICATION: dict[str, Callable[[Any, Any], Problem]] = {
    "hinge": hinge,
    "squared_hinge": squared_hinge,
}
REGRESSION = "epsilon_insensitive"
CHOICES = ("auto", *CLASSIFICATION)


def classification_loss(loss: str, solver: Solver) -> str:
    """Return the loss of a classifier: the one asked for, or the first that the solver knows.

    A solver never changes the loss it was asked for: a pair that is impossible is an error.
    """
    check_choice("loss", loss, CHOICES)
    known = [name for name in CLASSIFICATION if name in solver.losses]
    if loss == "auto" and known:
        return known[0]
    if loss in known:
        return loss
    kind = type(solver).__name__
    others = f"loss={known[0]!r}, or " if known else ""
    raise ValueError(
        f"loss={loss!r} and solver={solver!r} do not go together: {kind} minimises "
        f"{', '.join(solver.losses)}; use {others}solver='exact'"
    )


def check_regression(solver: Solver) -> None:
    """Raise where a solver does not know the loss of regressions."""
    if REGRESSION not in solver.losses:
        raise ValueError(
            f"solver={solver!r} does not solve regressions: {type(solver).__name__} minimises "
            f"{', '.join(solver.losses)}; use solver='exact'"
        )
