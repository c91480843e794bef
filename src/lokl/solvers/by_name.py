"""Solvers by their short names."""

from typing import Any

from lokl.solvers.base import Solver
from lokl.solvers.exact import Exact
from lokl.solvers.libsvm import LibSVM
from lokl.solvers.mwu import MWU

SOLVERS: dict[str, type[Any]] = {"exact": Exact, "libsvm": LibSVM, "mwu": MWU}


def resolve_solver(solver: Any, **settings: Any) -> Solver:
    """Return a solver object: made by name with `settings`, or as given."""
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, str) and solver in SOLVERS:
        made: Solver = SOLVERS[solver](**settings)
        return made
    raise ValueError(f"unknown solver {solver!r}; give a Solver or one of {', '.join(SOLVERS)}")
