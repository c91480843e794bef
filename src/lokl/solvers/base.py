"""Solver interface, default limits on the work of solvers, and checks of what they find."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from lokl._arrays import Array
from lokl._warnings import warn_once
from lokl.gram import GatedGram, InnerProducts
from lokl.solvers.problem import Dual, Problem

# Default limits are far more than problems need on scaled data.
# Matrix entries that may be read, and the cost of a step in addition to them.
_ENTRIES, _OVERHEAD = 6e9, 200
# Fewest steps per sample that a large problem may take.
_STEPS_PER_SAMPLE = 1000
# Most samples of a problem that is solved in float64, and the tolerance below which all are.
_PRECISE, _FINE = 1024, 1e-4
# Relative to the largest diagonal entry, how far rounding makes curvatures of repeated samples
# negative, in single and in double precision.
_SINGLE, _DOUBLE = 1e-3, 1e-6


class Solver(BaseEstimator, ABC):
    """Finds the coefficients of a :class:`Problem` on a :class:`~lokl.gram.GatedGram`.

    Attributes
    ----------
    losses : tuple of str
        Losses it can minimise: "hinge", "squared_hinge", "epsilon_insensitive", "censored" (epsilon
        insensitive with bounds on one side for some samples), "squared". It never receives a
        problem with another loss.
    is_low_rank : bool
        Whether it replaces kernels by a few features. Such features exist only for positive
        semidefinite kernels with fixed settings, so methods that learn the settings of a kernel by
        gradient do not work with it.

    See Also
    --------
    lokl.solvers.Exact : The default solver.
    lokl.solvers.LibSVM : LibSVM on the stored matrix.
    lokl.solvers.MWU : Multiplicative weights, in little memory.
    lokl.solvers.Primal : Low-rank features instead of kernels.
    lokl.solvers.Squared : The squared loss.

    Examples
    --------
    >>> from lokl.solvers import Exact
    >>> Exact().losses
    ('hinge', 'squared_hinge', 'epsilon_insensitive', 'censored', 'squared')
    >>> Exact(tol=1e-3).with_tolerance(1e-5).tolerance
    1e-05
    """

    losses: ClassVar[tuple[str, ...]] = ("hinge", "squared_hinge", "epsilon_insensitive")
    is_low_rank: ClassVar[bool] = False

    def inner_products(self, X: Any, *, keep: bool = False) -> InnerProducts:
        """Lay out training samples in the precision and memory of this solver.

        Parameters
        ----------
        X : {array, CSR matrix} of shape (n_samples, n_features)
            Without NaN.
        keep : bool, default=False
            Whether gates or kernels will change while the samples stay.
        """
        return InnerProducts(X, keep=keep)

    @abstractmethod
    def solve(
        self, gram: GatedGram, problem: Problem, start: Array | None = None, ceiling: float = np.inf
    ) -> Dual:
        """Solve one problem.

        Parameters
        ----------
        gram : GatedGram
        problem : Problem
        start : array of shape (n_samples,), optional
            Warm start: coefficients of a similar problem.
        ceiling : float, optional
            The caller has no use for an optimum above this value. A solver may stop once its dual
            value, which only grows, exceeds it.

        Returns
        -------
        Dual
        """

    def solve_together(
        self,
        gram: GatedGram,
        problems: Sequence[Problem],
        starts: Sequence[Array | None] | None = None,
    ) -> list[Dual]:
        """Solve several problems of all samples.

        Parameters
        ----------
        gram : GatedGram
        problems : sequence of Problem
        starts : sequence of arrays of shape (n_samples,), optional
            Warm starts; None for a problem without one.

        Returns
        -------
        list of Dual
            One for each problem.
        """
        starts = [None] * len(problems) if starts is None else starts
        return [self.solve(gram, *case) for case in zip(problems, starts, strict=True)]

    def solve_subsets(
        self, gram: GatedGram, problems: Sequence[Problem], starts: Sequence[Array] | None = None
    ) -> list[Dual]:
        """Solve several problems, in each of which some samples are absent.

        Parameters
        ----------
        gram : GatedGram
            Of all samples.
        problems : sequence of Problem
        starts : sequence of arrays of shape (n_samples,), optional
            Warm starts: coefficients of the problems with all samples.

        Returns
        -------
        list of Dual
            One for each problem.
        """
        return [self.solve(gram, problem) for problem in problems]

    @property
    def tolerance(self) -> float:
        """Violation of the optimality conditions that is left; 0 if it cannot be set."""
        return 0.0

    def with_tolerance(self, tolerance: float) -> "Solver":
        """Return a solver with another tolerance, or itself if that cannot be set."""
        return self

    def precise_for(self, problems: Sequence[Problem]) -> "Solver":
        """Return a solver whose precision is enough for some problems; by default itself."""
        return self

    def with_share_of_memory(self, share: float) -> "Solver":
        """Return a solver that uses a fraction of the memory, or itself if it has no budget."""
        budget = self.get_params(deep=False).get("cache_size")
        return self if budget is None else clone(self).set_params(cache_size=share * budget)


class TolerantSolver(Solver):
    """A solver with the settings `tol`, the violation it leaves, and `dtype`, of its rows."""

    tol: float
    dtype: Any = "auto"

    @property
    def tolerance(self) -> float:
        return float(self.tol)

    def with_tolerance(self, tolerance: float) -> Solver:
        changed: Solver = clone(self).set_params(tol=tolerance)
        return changed

    def dtype_for(self, n_samples: int) -> Any:
        """Return the precision of rows or features; "auto" is double if that costs little."""
        is_fine = n_samples <= _PRECISE or self.tol < _FINE
        return "float64" if self.dtype == "auto" and is_fine else self.dtype


def default_step_limit(n_samples: int, working_set: int, share: float = 1.0) -> int:
    """Return the limit on pair moves; a solver with slower moves takes a smaller `share`."""
    return int(max(share * _ENTRIES / (working_set + _OVERHEAD), _STEPS_PER_SAMPLE * n_samples))


def is_indefinite(curvature: float, scale: float, single: bool) -> bool:
    """Return whether a curvature is impossible for a positive semidefinite kernel.

    Parameters
    ----------
    curvature : float
        Smallest ``K_ii + K_jj - 2 K_ij`` of the pairs that were moved.
    scale : float
        Size of the largest diagonal entry.
    single : bool
        Whether the entries of the matrix are in single precision.
    """
    return curvature < -(_SINGLE if single else _DOUBLE) * scale


def warn_indefinite() -> None:
    """Warn that the kernel is indefinite and the solution may not be the optimum."""
    warn_once(
        "indefinite",
        "the kernel is not positive semidefinite; the solution is a stationary point, "
        "not a certified optimum",
    )


def warn_unconverged(
    work: str, left: str, remedy: str, who: str = "the solver", key: str = "unconverged"
) -> None:
    """Warn, once for each `key`, that a solver stopped early.

    Parameters
    ----------
    work : str
        Number and kind of the steps that were taken.
    left : str
        The measure of convergence, its value and its limit.
    remedy : str
    who, key : str
    """
    text = f"{who} stopped after {work} with a {left}; {remedy}"
    warn_once(key, text, ConvergenceWarning)
