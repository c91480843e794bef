"""Solvers: a machine on one Gram matrix."""

from lokl.solvers.base import Solver
from lokl.solvers.exact import Exact
from lokl.solvers.functions import resolve_solver, solve_svc, solve_svr
from lokl.solvers.libsvm import LibSVM
from lokl.solvers.mwu import MWU
from lokl.solvers.problem import Dual, Problem, epsilon_insensitive, hinge, squared, squared_hinge

__all__ = [
    "MWU",
    "Dual",
    "Exact",
    "LibSVM",
    "Problem",
    "Solver",
    "epsilon_insensitive",
    "hinge",
    "resolve_solver",
    "solve_svc",
    "solve_svr",
    "squared",
    "squared_hinge",
]
