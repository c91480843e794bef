"""A machine on one Gram matrix: the solver protocol."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from sklearn.base import BaseEstimator

from lokl._arrays import Array
from lokl.gram import GatedGram
from lokl.kernels.base import Kernel
from lokl.solvers.problem import Dual, Problem


class Solver(BaseEstimator, ABC):
    """Finds the coefficients of a :class:`Problem` on a :class:`~lokl.gram.GatedGram`."""

    @abstractmethod
    def gram(
        self, kernels: Sequence[Kernel], X: Any, gates: Array | None = None, **options: Any
    ) -> GatedGram:
        """Make a Gram matrix in the precision and memory this solver wants.

        `options` go to :class:`~lokl.gram.GatedGram`.
        """

    def prepare(self, problem: Problem) -> Problem:
        """Return the problem in the loss that this solver knows; most know all."""
        return problem

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
