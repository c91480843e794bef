"""A machine on one Gram matrix: the solver protocol."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from sklearn.base import BaseEstimator, clone

from lokl._arrays import Array
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
