"""The solver that the settings of an estimator ask for."""

from dataclasses import fields
from typing import Any

from lokl.solvers import Solver
from lokl.solvers.by_name import resolve_solver


def chosen_solver(learner: Any) -> Solver:
    """Make the solver by its name with the settings of the learner, or take the object given.

    An object has settings of its own: what was changed in the learner for the solver's sake would
    have no effect, which is an error.
    """
    names = ["tol", "cache_size"] if learner._counts_rounds else ["tol", "cache_size", "max_iter"]
    if isinstance(learner.solver, Solver):
        defaults = {known.name: known.default for known in fields(learner)}
        if learner._stores_rows:
            names.remove("cache_size")
        names = [name for name in names if getattr(learner, name) != defaults[name]]
    return resolve_solver(learner.solver, **{name: getattr(learner, name) for name in names})
