"""Weights with a bound on their l_p norm: the best ones are known once the machines are."""

from collections.abc import Iterator

import numpy as np

from lokl._arrays import Array
from lokl.gates.weighted import weigh
from lokl.optimizers.machines import Machines
from lokl.optimizers.steps import Step


def closed_form(
    machines: Machines,
    base: Array,
    *,
    p: float = 2.0,
    by_rank: bool = False,
    tol: float = 1e-3,
    start: Array | None = None,
) -> Iterator[Step]:
    """Alternate between machines and weights; the objective falls, the gap is certified.

    Minimises over ``w >= 0``, ``|w_g|_p <= 1`` for every group the dual value of machines on
    ``sum_i sum_r w_gi (b_ir b_ir') o K_i``: l_p-norm MKL with one group, C-LMKL with one for each
    cluster. Both the problem and its dual ``max_u linear(u) - sum_g |S_g(u)|_p* / 2`` are convex.

    Parameters
    ----------
    machines : Machines
    base : array of shape (n_samples, n_kernels[, rank])
        Known gates ``b``.
    p : float, default=2.0
        At least 1; sparse weights at 1, equal weights towards infinity.
    by_rank : bool, default=False
        Whether each rank is a group of its own.
    tol : float, default=1e-3
        Relative duality gap that ends the alternation.
    start : array of shape (n_groups, n_kernels), optional
        First weights; None is ``m^(-1/p)`` each.
    """
    m = base.shape[1]
    groups = base.shape[2] if by_rank else 1
    weights = np.full((groups, m), m ** (-1.0 / p)) if start is None else start
    while True:
        solution = machines.solve(weigh(base, weights))
        # Forms under the known gates alone: they say what a kernel of weight zero would be worth.
        forms = machines.gram.kernel_forms(solution.coef, base)
        S = np.maximum(forms.T if by_rank else forms.sum(axis=1)[np.newaxis], 0.0)
        gap = max(0.5 * float((dual_norm(S, p) - (weights * S).sum(axis=1)).sum()), 0.0)
        yield Step(weights, solution.objective, gap + solution.gap, solution)
        # What the solver leaves open is a matter of its own tolerance: more rounds do not help.
        if gap <= tol * abs(solution.objective):
            return
        weights = best_weights(weights, S, p)


def dual_norm(S: Array, p: float) -> Array:
    """``|S_g|_p*`` of every row, ``1/p + 1/p* = 1``."""
    if p == 1.0:
        return np.asarray(S.max(axis=1))
    if np.isinf(p):
        return np.asarray(S.sum(axis=1))
    return np.asarray(np.linalg.norm(S, ord=p / (p - 1.0), axis=1))


def best_weights(weights: Array, S: Array, p: float) -> Array:
    """Minimisers of ``sum_i |w_i|^2 / weight_i`` on the l_p sphere, ``|w_i| = weight_i sqrt(S_i)``.

    Groups without any norm keep their weights: nothing speaks for others.
    """
    norms = weights * np.sqrt(S)
    top = norms.max(axis=1, keepdims=True)
    scaled = np.divide(norms, top, out=np.zeros_like(norms), where=top > 0)
    if np.isinf(p):
        new = (scaled > 0).astype(float)
    else:
        total = (scaled ** (2.0 * p / (p + 1.0))).sum(axis=1, keepdims=True) ** (1.0 / p)
        powers = scaled ** (2.0 / (p + 1.0))
        new = np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)
    return np.where(top > 0, new, weights)
