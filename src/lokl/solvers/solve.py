"""One machine without an estimator around it."""

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from lokl._threads import one_pool
from lokl.gram import GatedGram
from lokl.kernels import Precomputed
from lokl.kernels.dictionaries import named_kernels
from lokl.kernels.presence import read_samples
from lokl.kernels.shorthand import is_one_kernel
from lokl.solvers.base import Solver
from lokl.solvers.by_name import resolve_solver
from lokl.solvers.losses import CLASSIFICATION, check_regression, classification_loss
from lokl.solvers.problem import Dual, Problem, epsilon_insensitive


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
        A kernel is an object, a word or a function, as in ``kernels`` of an estimator.
        Several kernels are averaged. With an array or a GatedGram, `X` is None.
    X : {array-like, sparse matrix} of shape (n_samples, n_features) or None
    y : array-like of shape (n_samples,)
        Two distinct labels; the larger one is the positive class.
    C : float or array of shape (n_samples,), default=1.0
        Cost, also by sample; 0 leaves a sample out.
    loss : {"auto", "hinge", "squared_hinge"}, default="auto"
        "auto" is the hinge, and the squared hinge where the solver knows no other ("mwu").
    solver : {"exact", "libsvm", "mwu", "primal"} or Solver, default="exact"
    start : array of shape (n_samples,), optional
        Signed coefficients to start from.
    **settings
        Of a solver given by name: ``tol``, ``cache_size``, ``max_iter``, ``dtype``. An object has
        its own.

    Returns
    -------
    Dual
        Signed coefficients, intercept, objective, certified gap and number of steps.

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
    machine = resolve_solver(solver, **settings)
    make = CLASSIFICATION[classification_loss(loss, machine)]
    problem = make(np.where(y == labels[1], 1.0, -1.0), C)
    return _solve(kernel_or_gram, X, problem, machine, start)


def solve_svr(
    kernel_or_gram: Any,
    X: Any,
    y: Any,
    C: Any = 1.0,
    *,
    epsilon: float = 0.1,
    solver: Any = "exact",
    start: Any = None,
    **settings: Any,
) -> Dual:
    """Solve epsilon-insensitive support vector regression; parameters as in :func:`solve_svc`."""
    machine = resolve_solver(solver, **settings)
    check_regression(machine)
    problem = epsilon_insensitive(column_or_1d(y), C, epsilon)
    return _solve(kernel_or_gram, X, problem, machine, start)


def _solve(kernel_or_gram: Any, X: Any, problem: Problem, machine: Solver, start: Any) -> Dual:
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
        X = read_samples(kernels, list(named), X, training=True).filled
        gram = machine.inner_products(X).gated(kernels)
    if gram.n_samples != len(problem.target):
        raise ValueError(
            f"the Gram matrix has {gram.n_samples} samples, y has {len(problem.target)}"
        )
    if start is not None:
        start = np.asarray(start, dtype=float)
        if start.shape != problem.target.shape or not np.isfinite(start).all():
            raise ValueError(
                f"start has one finite coefficient for each of the {gram.n_samples} samples, "
                f"got shape {start.shape}"
            )
    with one_pool(gram.n_samples):
        return machine.solve(gram, problem, start)
