"""LibSVM, through scikit-learn, behind the same contract."""

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR

from lokl._arrays import Array
from lokl._warnings import warn_once
from lokl.gram import GatedGram, InnerProducts
from lokl.solvers.base import TolerantSolver, enough_steps
from lokl.solvers.problem import Dual, Problem

# Stands for an infinite bound, which LibSVM does not know.
_HUGE = 1e10
# Of the steps that the exact solver may take: LibSVM's are slower, and nothing interrupts them.
_SHARE_OF_STEPS = 0.1


class LibSVM(TolerantSolver):
    """LibSVM on the stored Gram matrix: for comparisons; memory grows with the square of n.

    It is one call of compiled code: Ctrl-C is answered only when a machine is finished.

    Parameters
    ----------
    tol : float, default=1e-3
    cache_size : float, default=512
        Megabytes of LibSVM's own cache; the matrix itself comes on top.
    max_iter : int, default=-1
        Limit on the steps; -1 is far more than problems of this size need on scaled data.
    """

    def __init__(self, tol: float = 1e-3, cache_size: float = 512, max_iter: int = -1):
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter

    def inner_products(self, X: Any, *, keep: bool = False) -> InnerProducts:
        # LibSVM has no use for partial rows: the budget is what the whole matrix takes.
        needed = X.shape[0] ** 2 * 8 / 2**20 + 1
        return InnerProducts(X, cache_size=needed, dtype="float64", keep=keep)

    def solve(
        self,
        gram: GatedGram,
        problem: Problem,
        start: Array | None = None,
        ceiling: float = float("inf"),
    ) -> Dual:
        # LibSVM cannot start from coefficients or stop at a value; and with zero weights on a
        # precomputed matrix scikit-learn returns wrong support rows, hence only the samples that
        # take part.
        part = np.flatnonzero((problem.lower < 0) | (problem.upper > 0))
        K = np.asarray(gram.block(part), dtype=np.float64)
        target = problem.target[part]
        cost = np.minimum(np.maximum(-problem.lower, problem.upper)[part], _HUGE)
        coef = np.zeros(gram.n_samples)
        steps, converged = 0, True
        if not problem.is_classification or len(np.unique(target)) > 1:
            machine = self._machine(problem, len(part))
            ridged = K + np.diag(problem.ridge[part])
            try:
                machine.fit(ridged, target, sample_weight=cost)
            except ValueError as reason:
                raise ValueError(
                    "LibSVM did not find finite coefficients for kernel values up to "
                    f"{np.abs(ridged).max():.3g} and costs up to {cost.max():.3g}; scale the data, "
                    "lower C, or use solver='exact'"
                ) from reason
            converged = machine.fit_status_ == 0
            coef[part[machine.support_]] = machine.dual_coef_[0]
            # Coefficients of LibSVM exceed their bounds by rounding.
            coef = np.clip(coef, problem.lower, problem.upper)
            steps = int(np.sum(machine.n_iter_))
        gradient = problem.target - problem.ridge * coef
        gradient[part] -= K @ coef[part]
        if len(part) < gram.n_samples:
            absent = np.setdiff1d(np.arange(gram.n_samples), part)
            gradient[absent] -= gram.cross(absent, part) @ coef[part]
        if not converged:
            warn_once(
                "unconverged",
                f"LibSVM stopped after {steps} steps; raise max_iter, or scale the data",
                ConvergenceWarning,
            )
        return problem.dual(coef, gradient, steps, converged)

    def _machine(self, problem: Problem, n_samples: int) -> SVC | SVR:
        limit = self.max_iter
        if limit < 0:
            limit = enough_steps(n_samples, n_samples, _SHARE_OF_STEPS)
        settings = {
            "kernel": "precomputed",
            "C": 1.0,
            "tol": self.tol,
            "cache_size": self.cache_size,
            "max_iter": limit,
        }
        if problem.is_classification:
            return _QuietSVC(**settings)
        return _QuietSVR(epsilon=problem.epsilon, **settings)


class _Quiet:
    """Says nothing about its end, which `fit_status_` tells: warnings of a fit are collected."""

    def _warn_from_fit_status(self) -> None:
        pass


class _QuietSVC(_Quiet, SVC):
    pass


class _QuietSVR(_Quiet, SVR):
    pass
