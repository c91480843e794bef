"""Compiled rounds of the multiplicative-weights solver, on rows that are in memory."""

from collections import namedtuple

import numpy as np
from numba import njit

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Told to users while a loop is compiled.
PURPOSES = {
    "pairwise": "multiplicative weights by pairs",
    "frank_wolfe": "multiplicative weights",
    "kernel_rounds": "multiplicative weights of several kernels",
}

# Signs of the samples and ridges on the diagonal, and what the rounds update: the sum ``a`` of all
# of them, ``v_i = G_i a``, ``Q_i = a' G_i a`` and ``g = sum_i mu_i v_i``.
Sums = namedtuple("Sums", "sign ridge a v Q g")

# Functions that only loops call are compiled without what would unpack their arguments, and nothing
# is compiled to be called from C.
_LOOP = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
_INNER = {**_LOOP, "no_cpython_wrapper": True}


@njit(**_INNER)
def extremes(sign, alpha, g):
    """Of each class the sample with the smallest `g`, and with the largest among the active ones.

    Returns four positions: least and most of the class of sign +1, then of the class of sign -1;
    -1 where there is none.
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


@njit(**_LOOP)
def pairwise(slab, slots, sign, alpha, g, ridge, diag, rounds):
    """Move mass inside a class, from the active sample with the largest `g` to the smallest.

    ``g = G alpha`` with ``G = Y K Y + ridge``; `alpha` and `g` are updated in place. Each step is
    the exact minimum of ``alpha' G alpha`` along its line. Stops early at a row that is not there.

    Returns
    -------
    done : int
        Rounds.
    first, second : int
        Rows that are missing, -1 for none.
    curvature : float
        Smallest curvature met; negative where `K` is indefinite.
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


@njit(**_LOOP)
def frank_wolfe(slab, slots, sign, alpha, g, ridge, t, rounds):
    """Step ``1 / (t + 1)`` towards half a unit on the smallest `g` of each class.

    This is what multiplicative weights come down to with one kernel. Arguments and results as in
    :func:`pairwise`; `t` rounds have been done before.
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


@njit(**_LOOP)
def kernel_shares(Q, rate, relative):
    """Shares ``mu_i`` proportional to ``sinh(c q_i) / q_i`` with ``q_i = sqrt(Q_i)``.

    The rate ``c`` is `rate`, or with `relative` it is `rate` over the largest ``q_i``.
    """
    q = np.sqrt(np.maximum(Q, 0.0))
    top = q.max()
    c = rate / top if relative and top > 0.0 else rate
    shares = np.empty(Q.shape[0])
    for i in range(Q.shape[0]):
        if q[i] > 0.0:
            shares[i] = (np.exp(c * (q[i] - top)) - np.exp(-c * (q[i] + top))) / q[i]
        else:
            shares[i] = 2.0 * c * np.exp(-c * top)
    total = shares.sum()
    if total <= 0.0:
        shares[:] = 1.0
        total = float(shares.shape[0])
    return shares / total


@njit(**_LOOP, fastmath={"nsz", "contract"})
def kernel_rounds(slab, slots, sums, rate, relative, rounds):
    """Rounds of multiplicative weights with several kernels, `sums` updated in place.

    Each puts half a unit more on the sample with the smallest `g` of each class. `slab` is
    (n_rows, n_kernels, n_samples). Stops early at a row that is not there, and returns the rounds
    done and the rows missing, -1 for none.
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
            own = rise[i, up] - fall[i, up] - rise[i, down] + fall[i, down]
            after = before + 0.5 * (own + ridge[up] + ridge[down])
            Q[i] += 0.5 * (before + after)
        shares = kernel_shares(Q, rate, relative)
        g[:] = 0.0
        for i in range(m):
            share = shares[i]
            for j in range(n):
                moved = v[i, j] + 0.5 * sign[j] * (rise[i, j] - fall[i, j])
                v[i, j] = moved
                g[j] += share * moved
            v[i, up] += 0.5 * ridge[up]
            v[i, down] += 0.5 * ridge[down]
        g[up] += 0.5 * ridge[up]
        g[down] += 0.5 * ridge[down]
    return rounds, -1, -1
