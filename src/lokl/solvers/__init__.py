"""Solvers of SVMs on one Gram matrix, and of all SVMs of a fit."""

from lokl.solvers.base import Solver
from lokl.solvers.exact import Exact
from lokl.solvers.libsvm import LibSVM
from lokl.solvers.machines import Machines, Solution
from lokl.solvers.mwu import MWU
from lokl.solvers.primal import Primal
from lokl.solvers.problem import Dual, Problem, epsilon_insensitive, hinge, squared, squared_hinge
from lokl.solvers.solve import solve_svc, solve_svr

__all__ = [
    "MWU",
    "Dual",
    "Exact",
    "LibSVM",
    "Machines",
    "Primal",
    "Problem",
    "Solution",
    "Solver",
    "epsilon_insensitive",
    "hinge",
    "solve_svc",
    "solve_svr",
    "squared",
    "squared_hinge",
]
