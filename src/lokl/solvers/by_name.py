"""Solvers by their short names."""

from typing import Any

from sklearn.base import clone

from lokl.solvers.base import Solver
from lokl.solvers.exact import Exact
from lokl.solvers.libsvm import LibSVM
from lokl.solvers.mwu import MWU
from lokl.solvers.primal import Primal

SOLVERS: dict[str, type[Any]] = {
    "exact": Exact,
    "libsvm": LibSVM,
    "mwu": MWU,
    "primal": Primal,
}


def resolve_solver(solver: Any, **settings: Any) -> Solver:
    """Return a solver object: made by name with `settings`, or as given, with its own."""
    if isinstance(solver, Solver):
        _refuse(solver, settings)
        return solver
    if isinstance(solver, str) and solver in SOLVERS:
        made: Solver = SOLVERS[solver](**settings)
        return made
    raise ValueError(f"unknown solver {solver!r}; give a Solver or one of {', '.join(SOLVERS)}")


def _refuse(solver: Solver, settings: dict[str, Any]) -> None:
    """Raise where settings are given beside an object: it would not see them."""
    if not settings:
        return
    given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    known = solver.get_params(deep=False)
    taken = {name: value for name, value in settings.items() if name in known}
    remedy = f"leave {' and '.join(settings)} alone"
    if taken:
        remedy = f"write solver={clone(solver).set_params(**taken)!r}"
        if len(taken) < len(settings):
            remedy += (
                f" and leave {' and '.join(name for name in settings if name not in known)} alone"
            )
    raise ValueError(f"{given} has no effect beside the object solver={solver!r}; {remedy}")
