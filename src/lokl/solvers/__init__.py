"""Solvers of SVMs on one Gram matrix, and of all SVMs of a fit."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.solvers.base import Solver as Solver
    from lokl.solvers.exact import Exact as Exact
    from lokl.solvers.libsvm import LibSVM as LibSVM
    from lokl.solvers.machines import Machines as Machines
    from lokl.solvers.machines import Solution as Solution
    from lokl.solvers.mwu import MWU as MWU
    from lokl.solvers.primal import Primal as Primal
    from lokl.solvers.problem import Dual as Dual
    from lokl.solvers.problem import Problem as Problem
    from lokl.solvers.problem import as_squared_hinge as as_squared_hinge
    from lokl.solvers.problem import censored as censored
    from lokl.solvers.problem import epsilon_insensitive as epsilon_insensitive
    from lokl.solvers.problem import hinge as hinge
    from lokl.solvers.problem import squared_hinge as squared_hinge
    from lokl.solvers.problem import squared_loss as squared_loss
    from lokl.solvers.solve import solve_svc as solve_svc
    from lokl.solvers.solve import solve_svr as solve_svr
    from lokl.solvers.squared import Squared as Squared
    from lokl.solvers.squared import SquaredPath as SquaredPath
    from lokl.solvers.squared import squared_hinge_path as squared_hinge_path
    from lokl.solvers.squared import squared_path as squared_path
    from lokl.solvers.squared import squared_path_features as squared_path_features

__getattr__, __all__ = lazy_exports(__name__)
