"""Solvers and losses by name, and functions that solve one SVM without an estimator."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from lokl import solvers
from lokl._arrays import Samples
from lokl._parameters import check_choice
from lokl._threads import limit_blas_for
from lokl.gram import GatedGram
from lokl.kernels import Precomputed
from lokl.kernels.dictionaries import is_one_kernel, named_kernels
from lokl.kernels.samples import read_samples
from lokl.solvers.base import Solver
from lokl.solvers.problem import (
    Dual,
    Problem,
    epsilon_insensitive,
    hinge,
    squared_hinge,
    squared_loss,
)

# Classes of :mod:`lokl.solvers`, imported when they are used.
SOLVERS = {
    "exact": "Exact",
    "libsvm": "LibSVM",
    "mwu": "MWU",
    "primal": "Primal",
    "squared": "Squared",
}
# Losses of classifiers and of regressors, the preferred ones first.
CLASSIFICATION: dict[str, Callable[[Any, Any], Problem]] = {
    "hinge": hinge,
    "squared_hinge": squared_hinge,
    "squared": partial(squared_loss, is_classification=True),
}
REGRESSION = ("epsilon_insensitive", "squared")
SURVIVAL = ("censored", "squared")


def resolve_solver(solver: Any, **settings: Any) -> Solver:
    """Return the solver of this name with `settings`, or a solver object as it is.

    An object has settings of its own, so further `settings` raise ValueError.
    """
    if isinstance(solver, Solver):
        _check_no_settings(solver, settings)
        return solver
    if isinstance(solver, str) and solver in SOLVERS:
        made: Solver = getattr(solvers, SOLVERS[solver])(**settings)
        return made
    raise ValueError(f"unknown solver {solver!r}; give a Solver or one of {', '.join(SOLVERS)}")


def _check_no_settings(solver: Solver, settings: dict[str, Any]) -> None:
    if not settings:
        return
    given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    params = solver.get_params(deep=False)
    valid = {name: value for name, value in settings.items() if name in params}
    invalid = [name for name in settings if name not in params]
    remedies = [f"write solver={clone(solver).set_params(**valid)!r}"] if valid else []
    remedies += [f"remove {' and '.join(invalid)}"] if invalid else []
    raise ValueError(
        f"{given} has no effect on the object solver={solver!r}; {' and '.join(remedies)}"
    )


def classification_loss(loss: str, solver: Solver) -> str:
    """Return the loss of a classifier; "auto" is the first that the solver supports."""
    return _loss(loss, solver, tuple(CLASSIFICATION), "classification")


def regression_loss(loss: str, solver: Solver) -> str:
    """Return the loss of a regressor; "auto" is the first that the solver supports."""
    return _loss(loss, solver, REGRESSION, "regression")


def _loss(loss: str, solver: Solver, losses: Sequence[str], task: str) -> str:
    """Return one of several losses that the solver supports.

    A loss that the solver does not support raises ValueError: it is never replaced silently.
    """
    check_choice("loss", loss, ("auto", *losses))
    supported = [name for name in losses if name in solver.losses]
    if loss == "auto" and supported:
        return supported[0]
    if loss in supported:
        return loss
    alternative = f"loss={supported[0]!r}, or " if supported else ""
    wanted = f"{task} with loss={loss!r}"
    raise ValueError(
        f"solver={solver!r} does not support {wanted}: {type(solver).__name__} minimises "
        f"{', '.join(solver.losses)}; use {alternative}solver='exact'"
    )


def survival_loss(loss: str, solver: Solver) -> str:
    """Return the loss of a survival model; raise ValueError if the solver does not support it."""
    return _loss(loss, solver, SURVIVAL, "survival")


def regression_problem(loss: str, target: Any, C: Any, epsilon: float) -> Problem:
    """Return the problem of a regression with one of the losses."""
    if loss == "squared":
        return squared_loss(target, C)
    return epsilon_insensitive(target, C, epsilon)


def solve_svc(
    kernel_or_gram: Any,
    X: Any,
    y: Any,
    C: Any = 1.0,
    *,
    loss: str = "auto",
    solver: Any = "exact",
    start: Any = None,
    **settings: Any,
) -> Dual:
    """Solve a two-class support vector machine.

    Parameters
    ----------
    kernel_or_gram : kernel, list of kernels, array of shape (n, n) or GatedGram
        A kernel is an object, a name or a function, as in ``kernels`` of an estimator.
        Several kernels are averaged. With an array or a GatedGram, `X` is None.
    X : {array-like, sparse matrix} of shape (n_samples, n_features) or None
    y : array-like of shape (n_samples,)
        Labels of two classes; the larger one is the positive class.
    C : float or array of shape (n_samples,), default=1.0
        Cost, the same for all samples or one per sample; 0 leaves a sample out.
    loss : {"auto", "hinge", "squared_hinge", "squared"}, default="auto"
        "auto" is the first that the solver supports: the hinge, the squared hinge ("mwu"), or the
        squared loss ("squared").
    solver : {"exact", "libsvm", "mwu", "primal", "squared"} or Solver, default="exact"
    start : array of shape (n_samples,), optional
        Warm start: signed coefficients.
    **settings
        Settings of a solver given by name, such as ``tol``, ``cache_size``, ``max_iter`` and
        ``dtype``.

    Returns
    -------
    Dual
        Signed coefficients, intercept, objective, certified gap and number of steps.

    See Also
    --------
    lokl.solvers.solve_svr : Regression.
    lokl.solvers.Exact : The default solver.
    lokl.UniformMKLClassifier : The same SVM as an estimator.

    Examples
    --------
    >>> from lokl.kernels import Linear
    >>> from lokl.solvers import solve_svc
    >>> dual = solve_svc(Linear(), [[-1.0], [1.0]], [-1, 1], C=10.0, tol=1e-8)
    >>> dual.coef, dual.intercept
    (array([-0.5,  0.5]), 0.0)
    """
    y = column_or_1d(y)
    labels = np.unique(y)
    if len(labels) != 2:
        raise ValueError(f"solve_svc separates two classes, got {len(labels)}: {labels[:5]}")
    solver = resolve_solver(solver, **settings)
    make_problem = CLASSIFICATION[classification_loss(loss, solver)]
    problem = make_problem(np.where(y == labels[1], 1.0, -1.0), C)
    return _solve(kernel_or_gram, X, problem, solver, start)


def solve_svr(
    kernel_or_gram: Any,
    X: Any,
    y: Any,
    C: Any = 1.0,
    *,
    epsilon: float = 0.1,
    loss: str = "auto",
    solver: Any = "exact",
    start: Any = None,
    **settings: Any,
) -> Dual:
    """Solve a support vector regression, epsilon-insensitive or with the squared loss.

    Parameters
    ----------
    kernel_or_gram, X, C, solver, start, **settings
        As in :func:`solve_svc`.
    y : array-like of shape (n_samples,)
        Targets.
    epsilon : float, default=0.1
        Residuals up to this size cost nothing; not used by the squared loss.
    loss : {"auto", "epsilon_insensitive", "squared"}, default="auto"
        "auto" is epsilon-insensitive, or squared if the solver supports no other ("squared").

    Returns
    -------
    Dual
        As :func:`solve_svc` returns it.

    See Also
    --------
    lokl.solvers.solve_svc : Solves a two-class SVM.
    lokl.solvers.Exact : The default solver.
    lokl.UniformMKLRegressor : The same as an estimator.

    Examples
    --------
    >>> from lokl.kernels import Linear
    >>> from lokl.solvers import solve_svr
    >>> dual = solve_svr(Linear(), [[0.0], [1.0]], [0.0, 1.0], C=10.0, epsilon=0.1, tol=1e-8)
    >>> dual.coef.round(3), round(dual.intercept, 3)
    (array([-0.8,  0.8]), 0.1)
    """
    solver = resolve_solver(solver, **settings)
    loss = regression_loss(loss, solver)
    problem = regression_problem(loss, column_or_1d(y), C, epsilon)
    return _solve(kernel_or_gram, X, problem, solver, start)


def _solve(kernel_or_gram: Any, X: Any, problem: Problem, solver: Solver, start: Any) -> Dual:
    if isinstance(kernel_or_gram, GatedGram):
        gram = kernel_or_gram
    else:
        if is_one_kernel(kernel_or_gram) or isinstance(kernel_or_gram, list | dict):
            named = named_kernels(kernel_or_gram)
            X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        else:
            named = {"precomputed": Precomputed(kernel_or_gram)}
            X = np.arange(len(kernel_or_gram), dtype=float)[:, np.newaxis]
        check_consistent_length(X, problem.target)
        with np.errstate(all="ignore"):
            kernels = [kernel.bind(X) for kernel in named.values()]
        X = read_samples(kernels, list(named), Samples(X, X), training=True).filled
        gram = solver.inner_products(X).gated(kernels)
    if gram.n_samples != len(problem.target):
        raise ValueError(
            f"the Gram matrix has {gram.n_samples} samples, y has {len(problem.target)}"
        )
    if start is not None:
        start = np.asarray(start, dtype=float)
        if start.shape != problem.target.shape or not np.isfinite(start).all():
            raise ValueError(
                f"start must be one finite coefficient for each of the {gram.n_samples} samples, "
                f"got shape {start.shape}"
            )
    with limit_blas_for(gram.n_samples):
        return solver.solve(gram, problem, start)
