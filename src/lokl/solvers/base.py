"""A machine on one Gram matrix: the solver protocol.

Steps that are far more than a problem needs on scaled data: where solvers stop by default.

Kernels that are not positive semidefinite, and how solvers find out.

Machines that cannot tell samples apart because the kernels are too small for the cost.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from lokl._arrays import Array
from lokl._warnings import warn_once
from lokl.gram import GatedGram, InnerProducts
from lokl.solvers.problem import Dual, Problem


class Solver(BaseEstimator, ABC):
    """Finds the coefficients of a :class:`Problem` on a :class:`~lokl.gram.GatedGram`.

    Attributes
    ----------
    losses : tuple of str
        Losses it can minimise: "hinge", "squared_hinge", "epsilon_insensitive". It is never given a
        problem of another.
    is_low_rank : bool
        Whether it sees kernels through few features of them. These stand for positive semidefinite
        kernels, and only for those that they were made of: what follows the settings of a kernel by
        gradient does not go with it.
    """

    losses: ClassVar[tuple[str, ...]] = ("hinge", "squared_hinge", "epsilon_insensitive")
    is_low_rank: ClassVar[bool] = False

    def inner_products(self, X: Any, *, keep: bool = False) -> InnerProducts:
        """Lay out training samples in the precision and memory this solver wants.

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
        self,
        gram: GatedGram,
        problem: Problem,
        start: Array | None = None,
        ceiling: float = float("inf"),
    ) -> Dual:
        """Solve one problem.

        Parameters
        ----------
        gram : GatedGram
        problem : Problem
        start : array of shape (n_samples,), optional
            Coefficients of a similar problem to start from.
        ceiling : float, optional
            The caller has no use for an optimum above this: a solver may stop once its dual value,
            which only grows, has passed it.
        """

    def solve_parts(
        self, gram: GatedGram, problems: Sequence[Problem], starts: Sequence[Array] | None = None
    ) -> list[Dual]:
        """Solve several problems from which samples are absent, each by itself.

        Parameters
        ----------
        gram : GatedGram
            Of all samples.
        problems : sequence of Problem
        starts : sequence of arrays, optional
            Coefficients of the problems with all samples, which a solver may start from.
        """
        return [self.solve(gram, problem) for problem in problems]

    @property
    def tolerance(self) -> float:
        """Violation of the optimality conditions that is left; 0 where that cannot be chosen."""
        return 0.0

    def with_tolerance(self, tolerance: float) -> "Solver":
        """Return a solver that leaves so much; itself where that cannot be chosen."""
        return self

    def with_share_of_memory(self, share: float) -> "Solver":
        """Return a solver that uses a part of the memory; itself where it has no budget."""
        return self


class TolerantSolver(Solver):
    """A solver with the settings `tol`, the violation it leaves, and `cache_size`, in megabytes."""

    tol: float
    cache_size: float

    @property
    def tolerance(self) -> float:
        return float(self.tol)

    def with_tolerance(self, tolerance: float) -> Solver:
        changed: Solver = clone(self).set_params(tol=tolerance)
        return changed

    def with_share_of_memory(self, share: float) -> Solver:
        smaller: Solver = clone(self).set_params(cache_size=share * self.cache_size)
        return smaller


# Entries of rows that may be looked at, and what a step costs beside them.
_WORK, _OVERHEAD = 6e9, 200
# Steps for each sample that a large problem may need at least.
_STEPS_A_SAMPLE = 1000
# Rounds of working sets, each of which costs as much as thousands of steps in a small set.
_ROUNDS, _ROUNDS_A_SAMPLE = 5000, 0.1
# Times that rows are computed anew, where the memory holds so few that most rounds miss one.
_FETCHES, _FETCHES_A_SAMPLE = 20_000, 100
# Rounds in which an objective must fall by more than rounding does, at least and by sample.
_PATIENCE, _PATIENCE_A_SAMPLE = 1000, 10


def enough_steps(n_samples: int, working_set: int, share: float = 1.0) -> int:
    """Pair moves of a working set; a solver that is slower at them takes a smaller `share`."""
    return int(max(share * _WORK / (working_set + _OVERHEAD), _STEPS_A_SAMPLE * n_samples))


def enough_rounds(n_samples: int) -> int:
    """Working sets, whatever their size."""
    return int(max(_ROUNDS, _ROUNDS_A_SAMPLE * n_samples))


def enough_fetches(n_samples: int) -> int:
    """Times that rows which are not in memory may be computed for multiplicative weights."""
    return max(_FETCHES, _FETCHES_A_SAMPLE * n_samples)


def enough_patience(n_samples: int) -> int:
    """Rounds of multiplicative weights that may pass without a fall of the objective."""
    return max(_PATIENCE, _PATIENCE_A_SAMPLE * n_samples)


# Rounding makes curvatures of repeated samples negative by so much of the largest diagonal entry.
_SINGLE, _DOUBLE = 1e-3, 1e-6


def is_indefinite(curvature: float, scale: float, single: bool) -> bool:
    """Whether a pair was met that no positive semidefinite kernel has.

    Parameters
    ----------
    curvature : float
        The smallest ``K_ii + K_jj - 2 K_ij`` that was met.
    scale : float
        Size of the largest diagonal entry.
    single : bool
        Whether the entries of the matrix are in single precision.
    """
    return curvature < -(_SINGLE if single else _DOUBLE) * scale


def tell_of_indefinite_kernels() -> None:
    """Warn that a solution may not be the optimum."""
    warn_once(
        "indefinite",
        "the kernel is not positive semidefinite; the solution is a stationary point, "
        "not a certified optimum",
    )


# Mean of the diagonal times the sum of all costs, below which kernels count as too small. Kernels
# of trace one have 1 at C = 1, those of mean diagonal one have the number of samples.
_WEAK = 2.0


def is_saturated(problem: Problem, dual: Dual, diag: Callable[[], Array]) -> bool:
    """Whether all of the smaller class is at its bound and every sample gets the same decision.

    Then no sample's kernel sum reaches the margin, the intercept alone decides, and it names the
    larger class whatever the sample. `diag` gives the kernel values of the samples with themselves,
    where it comes to that.
    """
    said = dual.decision
    if said.min() <= 0.0 <= said.max() or not problem.is_classification:
        return False
    up, down = problem.upper > 0, problem.lower < 0
    cost = np.maximum(problem.upper, -problem.lower)
    if not np.isfinite(cost).all() or not up.any() or not down.any():
        return False
    if float(diag().mean()) * float(cost.sum()) > _WEAK:
        # Costs that differ much between the classes have the same effect, but on purpose.
        return False
    smaller = up if cost[up].sum() <= cost[down].sum() else down
    at_bound = (np.abs(dual.coef[smaller]) >= (1.0 - 1e-6) * cost[smaller]).all()
    return bool(at_bound and np.abs(said - dual.intercept).max() < 1.0)


def warn_if_saturated(
    problems: Sequence[Problem], duals: Sequence[Dual], diags: Sequence[Callable[[], Array]]
) -> None:
    """Tell the user about machines that predict one class for every sample."""
    # A machine without samples, whose view all of them lack, has nothing to tell.
    machines = [own for own in zip(problems, duals, diags, strict=True) if len(own[1].coef)]
    if machines and all(is_saturated(*own) for own in machines):
        warn_once(
            "saturated",
            "the machine is saturated: kernel values are so small for this C that all samples get "
            "the decision of the larger class. Raise C, or normalise the kernels with "
            "normalized('mean_diag') instead of 'trace'",
        )
