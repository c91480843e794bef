"""Compiled rounds of the multiplicative-weights solver, on rows that are in memory.

A loop stops early at a row that is missing, and returns its index: the caller computes it.
"""

from collections import namedtuple

import numpy as np
from numba import njit

from lokl._compiled import INNER, LOOP

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Shown to users while a loop is compiled.
PURPOSES = {
    "pairwise": "multiplicative weights by pairs",
    "frank_wolfe": "multiplicative weights",
    "kernel_rounds": "multiplicative weights of several kernels",
}

# Signs of the samples, ridges on the diagonal, and the sums that each round updates: ``a``, the sum
# of all vertices, ``v_i = G_i a``, ``Q_i = a' G_i a`` and ``g = sum_i mu_i v_i``.
Sums = namedtuple("Sums", "sign ridge a v Q g")


@njit(**INNER)
def extremes(sign, alpha, g):
    """Find, in each class, the sample with the smallest `g` and the active one with the largest.

    Returns four indices: smallest and largest of the class of sign +1, then of the class of sign
    -1. An index is -1 if there is no such sample.
    """
    low_up, high_up, low_down, high_down = -1, -1, -1, -1
    for j in range(g.shape[0]):
        if sign[j] > 0.0:
            if low_up < 0 or g[j] < g[low_up]:
                low_up = j
            if alpha[j] > 0.0 and (high_up < 0 or g[j] > g[high_up]):
                high_up = j
        elif sign[j] < 0.0:
            if low_down < 0 or g[j] < g[low_down]:
                low_down = j
            if alpha[j] > 0.0 and (high_down < 0 or g[j] > g[high_down]):
                high_down = j
    return low_up, high_up, low_down, high_down


@njit(**LOOP)
def pairwise(slab, slots, sign, alpha, g, ridge, diag, rounds):
    """Move mass inside a class, from the active sample with the largest `g` to the smallest.

    Each step is the exact minimum of ``alpha' G alpha`` along its line, with ``G = Y K Y + ridge``.

    Parameters
    ----------
    slab : array of shape (n_rows, n_samples)
        Stored rows of ``K``.
    slots : array of shape (n_samples,)
        Position of each sample's row in `slab`, -1 if it is not stored.
    sign : array of shape (n_samples,)
    alpha, g : arrays of shape (n_samples,)
        Mass of the samples and ``G alpha``, updated in place.
    ridge, diag : arrays of shape (n_samples,)
    rounds : int

    Returns
    -------
    done : int
        Rounds that were done.
    first, second : int
        Missing rows, -1 for none.
    curvature : float
        Smallest curvature of a step. It is negative only if `K` is indefinite.
    """
    smallest = np.inf
    for done in range(rounds):
        low_up, high_up, low_down, high_down = extremes(sign, alpha, g)
        up = g[high_up] - g[low_up]
        down = g[high_down] - g[low_down]
        to, source, side = (low_up, high_up, 1.0) if up >= down else (low_down, high_down, -1.0)
        if to == source:
            return done, -1, -1, smallest
        if slots[to] < 0 or slots[source] < 0:
            return done, to, source, smallest
        near, far = slab[slots[to]], slab[slots[source]]
        curvature = diag[to] + diag[source] - 2.0 * near[source] + ridge[to] + ridge[source]
        smallest = min(smallest, curvature)
        step = alpha[source]
        fall = g[source] - g[to]
        # Without curvature the objective only falls along the line: all mass moves.
        if fall < step * curvature:
            step = fall / curvature
        alpha[source] = 0.0 if step == alpha[source] else alpha[source] - step
        alpha[to] += step
        factor = step * side
        for j in range(g.shape[0]):
            g[j] += factor * sign[j] * (near[j] - far[j])
        g[to] += step * ridge[to]
        g[source] -= step * ridge[source]
    return rounds, -1, -1, smallest


@njit(**LOOP)
def frank_wolfe(slab, slots, sign, alpha, g, ridge, t, rounds):
    """Step ``1 / (t + 1)`` towards half a unit on the smallest `g` of each class.

    This is multiplicative weights with one kernel. Arguments and results as in :func:`pairwise`,
    without the curvature; `t` rounds were done before.
    """
    for done in range(rounds):
        up, _, down, _ = extremes(sign, alpha, g)
        if slots[up] < 0 or slots[down] < 0:
            return done, up, down
        rise, fall = slab[slots[up]], slab[slots[down]]
        share = 1.0 / (t + done + 1.0)
        keep = 1.0 - share
        half = 0.5 * share
        for j in range(g.shape[0]):
            alpha[j] *= keep
            g[j] = keep * g[j] + half * sign[j] * (rise[j] - fall[j])
        alpha[up] += half
        alpha[down] += half
        g[up] += half * ridge[up]
        g[down] += half * ridge[down]
    return rounds, -1, -1


@njit(**LOOP)
def kernel_weights(Q, rate, relative):
    """Return weights ``mu_i`` proportional to ``sinh(c q_i) / q_i`` with ``q_i = sqrt(Q_i)``.

    The rate ``c`` is `rate`, or `rate` over the largest ``q_i`` if `relative`.
    """
    q = np.sqrt(np.maximum(Q, 0.0))
    top = q.max()
    c = rate / top if relative and top > 0.0 else rate
    weights = np.empty(Q.shape[0])
    for i in range(Q.shape[0]):
        if q[i] > 0.0:
            weights[i] = (np.exp(c * (q[i] - top)) - np.exp(-c * (q[i] + top))) / q[i]
        else:
            weights[i] = 2.0 * c * np.exp(-c * top)
    total = weights.sum()
    if total <= 0.0:
        weights[:] = 1.0
        total = float(weights.shape[0])
    return weights / total


@njit(**LOOP, fastmath={"nsz", "contract"})
def kernel_rounds(slab, slots, sums, rate, relative, rounds):
    """Rounds of multiplicative weights with several kernels, `sums` updated in place.

    Each round adds half a unit to the sample with the smallest `g` of each class. `slab` has shape
    (n_rows, n_kernels, n_samples). Returns the rounds that were done and two missing rows, -1 for
    none.
    """
    sign, ridge, a, v, Q, g = sums
    m, n = v.shape
    for done in range(rounds):
        up, _, down, _ = extremes(sign, a, g)
        if slots[up] < 0 or slots[down] < 0:
            return done, up, down
        rise, fall = slab[slots[up]], slab[slots[down]]
        a[up] += 0.5
        a[down] += 0.5
        for i in range(m):
            before = v[i, up] + v[i, down]
            gained = rise[i, up] - fall[i, up] - rise[i, down] + fall[i, down]
            after = before + 0.5 * (gained + ridge[up] + ridge[down])
            Q[i] += 0.5 * (before + after)
        weights = kernel_weights(Q, rate, relative)
        g[:] = 0.0
        for i in range(m):
            weight = weights[i]
            for j in range(n):
                moved = v[i, j] + 0.5 * sign[j] * (rise[i, j] - fall[i, j])
                v[i, j] = moved
                g[j] += weight * moved
            v[i, up] += 0.5 * ridge[up]
            v[i, down] += 0.5 * ridge[down]
        g[up] += 0.5 * ridge[up]
        g[down] += 0.5 * ridge[down]
    return rounds, -1, -1
