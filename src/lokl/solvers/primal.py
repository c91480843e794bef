"""Low rank: a machine on explicit features, for many samples."""

import logging
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from lokl._arrays import Array
from lokl._checks import check_choice, check_count, check_positive
from lokl._notices import tell
from lokl.gram import GatedGram, LowRank, LowRankGram, LowRankProducts
from lokl.solvers.base import TolerantSolver
from lokl.solvers.descent import descend
from lokl.solvers.exact import Exact
from lokl.solvers.problem import Dual, Problem
from lokl.solvers.proximal import Newton
from lokl.solvers.working_set import SMALL

logger = logging.getLogger("lokl")

_KINDS = ("landmarks", "fourier")
# Problems of up to so many samples are solved in float64, and tolerances below this.
_PRECISE, _FINE = 1024, 1e-4
# Steps of Newton's method that are far more than it needs.
_MOST_STEPS = 500


class Primal(TolerantSolver):
    """Features of low rank stand for the kernels: time and memory grow with the samples.

    ``k_i(x, z)`` becomes ``<phi_i(x), phi_i(z)>`` with at most `rank` features, and the machine is
    solved to `tol` on these. Gates multiply features as they multiply kernels, so every method
    learns on them as it does on kernels. New samples are compared with the landmarks only.

    Parameters
    ----------
    rank : int, default=1000
        Features of each kernel, at most. From the number of distinct samples on, the answer is
        that of the exact solver.
    features : {"landmarks", "fourier"}, default="landmarks"
        Kernel values with samples that randomly pivoted Cholesky chooses, for any kernel; or waves
        of random directions, for RBF kernels only.
    tol : float, default=1e-3
        Largest violation of the optimality conditions that is left, on the features.
    cache_size : float, default=512
        Megabytes for stored features. Where they do not fit, they are computed again in every
        pass; landmarks and their matrix (``8 rank^2`` bytes for each kernel) come on top.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Of features.
    max_iter : int, default=-1
        Limit on passes over the samples; -1 is far more than problems need on scaled data.
    sample_size : int, default=50000
        Samples that landmarks are chosen from, at most.
    random_state : int, RandomState or None, default=0
        Decides the choice of landmarks or waves.

    Notes
    -----
    Stored features: dual coordinate descent with shrinking, then the exact block solver for what is
    left. Features that do not fit into `cache_size`: Newton's method in the primal, preconditioned
    conjugate gradients on kernel columns that are computed tile by tile. Either way the intercept
    is not regularised, and the duality gap is certified.
    """

    losses: ClassVar[tuple[str, ...]] = ("hinge", "squared_hinge", "epsilon_insensitive")
    is_low_rank: ClassVar[bool] = True

    def __init__(
        self,
        rank: int = 1000,
        features: str = "landmarks",
        tol: float = 1e-3,
        cache_size: float = 512,
        dtype: Any = "auto",
        max_iter: int = -1,
        sample_size: int = 50_000,
        random_state: Any = 0,
    ):
        self.rank = rank
        self.features = features
        self.tol = tol
        self.cache_size = cache_size
        self.dtype = dtype
        self.max_iter = max_iter
        self.sample_size = sample_size
        self.random_state = random_state

    def inner_products(self, X: Any, *, keep: bool = False) -> LowRankProducts:
        how = LowRank(
            check_count("rank", self.rank),
            check_choice("features", self.features, _KINDS),
            check_count("sample_size", self.sample_size),
            int(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        check_positive("cache_size", self.cache_size)
        dtype = self.dtype
        if dtype == "auto" and (X.shape[0] <= _PRECISE or self.tol < _FINE):
            dtype = "float64"
        return LowRankProducts(X, how, cache_size=self.cache_size, dtype=dtype)

    def solve(
        self,
        gram: GatedGram,
        problem: Problem,
        start: Array | None = None,
        ceiling: float = float("inf"),
    ) -> Dual:
        tol = check_positive("tol", self.tol)
        if gram.is_low_rank:
            gram = cast(LowRankGram, gram)
        else:
            gram = self.inner_products(gram.inner.X).gated(gram.kernels, gram.gates)
        if not ((problem.lower < 0).any() and (problem.upper > 0).any()):
            # Coefficients of one sign cannot sum to zero: the constant decision is optimal.
            return problem.dual(np.zeros(gram.n_samples), problem.target.copy(), 0, True)
        exact = Exact(self.tol, self.cache_size, self.dtype)
        if gram.fits and gram.n_samples <= SMALL and self.max_iter < 0:
            # One working set, whose optimum is polished.
            return exact.solve(gram, problem, start, ceiling)
        if not gram.fits:
            limit = _MOST_STEPS if self.max_iter < 0 else self.max_iter
            search = Newton(gram, problem, tol, limit)
            coef, gradient, done = search.solve(start)
            dual = problem.dual(coef, gradient, search.steps, done)
            return self._told(dual, problem, gradient)
        found = descend(gram, problem, start, tol, self.max_iter)
        dual = problem.dual(found.coef, found.gradient, found.passes, found.violation <= tol)
        if dual.converged or found.passes == self.max_iter:
            return self._told(dual, problem, found.gradient)
        logger.debug("descent: %d passes, violation %.3g", found.passes, found.violation)
        finished = exact.solve(gram, problem, found.coef, ceiling)
        return replace(finished, n_iter=found.passes + finished.n_iter)

    def _told(self, dual: Dual, problem: Problem, gradient: Array) -> Dual:
        """Return a machine; where it is not solved, with a warning and the best intercept."""
        if dual.converged:
            return dual
        up, down = problem.violations(dual.coef, gradient)
        remedy = "raise max_iter, or " if self.max_iter >= 0 else ""
        tell(
            "unconverged",
            f"the solver stopped after {dual.n_iter} passes with a violation of "
            f"{up.max() - down.min():.3g} > tol = {self.tol:.3g}; {remedy}scale the data or the "
            "kernels, or lower C",
            ConvergenceWarning,
        )
        b = problem.least_loss_intercept(dual.coef, gradient)
        return problem.dual(dual.coef, gradient, dual.n_iter, False, b)
