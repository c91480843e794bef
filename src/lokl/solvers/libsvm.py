"""LibSVM, through scikit-learn, behind the same contract."""

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR

from lokl._arrays import Array
from lokl._warnings import warn_once
from lokl.gram import GatedGram, InnerProducts
from lokl.solvers.base import TolerantSolver, default_step_limit
from lokl.solvers.problem import Dual, Problem

# Replaces infinite bounds, which LibSVM does not accept.
_HUGE = 1e10
# Fraction of the exact solver's step limit: LibSVM's steps are slower and cannot be interrupted.
_SHARE_OF_STEPS = 0.01


class LibSVM(TolerantSolver):
    """LibSVM on the stored Gram matrix: for comparisons; memory grows with the square of n.

    A solve is one call of compiled code, so Ctrl-C takes effect only at its end.

    Parameters
    ----------
    tol : float, default=1e-3
        Largest violation of the optimality conditions that is left.
    cache_size : float, default=512
        Megabytes of LibSVM's own cache; the matrix itself comes on top.
    max_iter : int, default=-1
        Limit on the steps. The default, -1, is far more than problems of this size need on scaled
        data.

    See Also
    --------
    lokl.solvers.Exact : The default solver.
    lokl.solvers.solve_svc : Solves a two-class SVM.

    Examples
    --------
    >>> from lokl.kernels import RBF
    >>> from lokl.solvers import LibSVM, solve_svc
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [1, -1, -1, 1]
    >>> dual = solve_svc(RBF(1.0), X, y, C=10.0, solver=LibSVM())
    >>> round(dual.objective, 2), dual.converged
    (3.12, True)
    """

    def __init__(self, tol: float = 1e-3, cache_size: float = 512, max_iter: int = -1):
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter

    def inner_products(self, X: Any, *, keep: bool = False) -> InnerProducts:
        # LibSVM needs the whole matrix, whatever the budget.
        needed = X.shape[0] ** 2 * 8 / 2**20 + 1
        return InnerProducts(X, cache_size=needed, dtype="float64", keep=keep)

    def solve(
        self, gram: GatedGram, problem: Problem, start: Array | None = None, ceiling: float = np.inf
    ) -> Dual:
        # LibSVM supports neither warm starts nor a ceiling. With zero weights on a precomputed
        # matrix scikit-learn returns wrong support rows, so absent samples are left out.
        present = np.flatnonzero(problem.present)
        K = np.asarray(gram.block(present), dtype=np.float64)
        target = problem.target[present]
        cost = np.minimum(problem.bound[present], _HUGE)
        coef = np.zeros(gram.n_samples)
        steps, converged = 0, True
        if not problem.is_classification or len(np.unique(target)) > 1:
            svm = self._svm(problem, len(present))
            ridged = K + np.diag(problem.ridge[present])
            try:
                svm.fit(ridged, target, sample_weight=cost)
            except ValueError as reason:
                raise ValueError(
                    "LibSVM did not find finite coefficients for kernel values up to "
                    f"{np.abs(ridged).max():.3g} and costs up to {cost.max():.3g}; scale the data, "
                    "lower C, or use solver='exact'"
                ) from reason
            converged = svm.fit_status_ == 0
            coef[present[svm.support_]] = svm.dual_coef_[0]
            # LibSVM's coefficients exceed their bounds by rounding.
            coef = np.clip(coef, problem.lower, problem.upper)
            steps = int(np.sum(svm.n_iter_))
        gradient = problem.target - problem.ridge * coef
        gradient[present] -= K @ coef[present]
        if len(present) < gram.n_samples:
            absent = np.flatnonzero(~problem.present)
            gradient[absent] -= gram.cross(absent, present) @ coef[present]
        if not converged:
            warn_once(
                "unconverged",
                f"LibSVM stopped after {steps} steps; raise max_iter, or scale the data",
                ConvergenceWarning,
            )
        return problem.dual(coef, gradient, steps, converged)

    def _svm(self, problem: Problem, n_samples: int) -> SVC | SVR:
        limit = self.max_iter
        if limit < 0:
            limit = default_step_limit(n_samples, n_samples, _SHARE_OF_STEPS)
        settings = {**self.get_params(), "max_iter": limit, "kernel": "precomputed"}
        if problem.is_classification:
            return _QuietSVC(**settings)
        return _QuietSVR(epsilon=problem.epsilon, **settings)


class _Quiet:
    """Does not warn about `fit_status_`: the solver collects the warnings of a fit."""

    def _warn_from_fit_status(self) -> None:
        pass


class _QuietSVC(_Quiet, SVC):
    pass


class _QuietSVR(_Quiet, SVR):
    pass
