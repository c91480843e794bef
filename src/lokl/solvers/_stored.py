"""Compiled solver for machines on a matrix that is stored as a whole.

One call solves one machine: it takes working sets, copies their small matrix out of the whole one,
moves pairs in it, and carries the moves over to the gradient of all samples. Nothing of it needs
the interpreter, so that threads solve machines side by side.
"""

import numpy as np
from numba import njit

from lokl.gram._rows import subtract_rows
from lokl.solvers._climb import climb, copy_out
from lokl.solvers._smo import _offsets, smo

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Told to users while a loop is compiled.
PURPOSES = {"solve_stored": "selection"}

# Functions that only loops call are compiled without what would unpack their arguments, and nothing
# is compiled to be called from C.
_LOOP = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
_INNER = {**_LOOP, "no_cpython_wrapper": True}
# Working sets are solved to this share of the violation, and never finer than half the tolerance.
_SHARE = 0.1
# Steps in one working set: far more than it needs.
_STEPS = 100_000
# Pair moves after which all free coefficients are moved together.
_STEPS_TO_CLIMB = 5000


@njit(**_LOOP)
def solve_stored(matrix, machine, box, epsilon, ridge, tol, size, max_steps):
    """Solve ``max_u t'u - epsilon |u| - u'(K + R)u / 2`` from any feasible point.

    Parameters
    ----------
    matrix : array of shape (n, n)
        ``K``.
    machine : tuple of arrays of shape (n,)
        Coefficients and gradient ``t - (K + R) u``, updated in place.
    box : tuple of arrays of shape (n,)
        Lower and upper bounds.
    epsilon : float
    ridge : array of shape (n,)
    tol : float
        Violation that is left.
    size : int
        Of working sets.
    max_steps : int

    Returns
    -------
    violation, steps, curvature
        As `smo` has them.
    """
    n = machine[0].shape[0]
    size = min(size, n)
    # Rank 2 are free samples of the last working set, 1 others of it that moved.
    index, rank = np.empty(size, np.int64), np.empty(n, np.int8)
    small = np.empty((size, size), matrix.dtype)
    _rank_free(machine[0], box, rank)
    steps, climb_at, curvature = 0, _STEPS_TO_CLIMB, np.inf
    while True:
        best, low = _extremes(machine, box, epsilon)
        violation = best - low
        if violation <= tol or steps >= max_steps:
            break
        if steps >= climb_at:
            climb_at = steps + _STEPS_TO_CLIMB
            climb(matrix, machine, box, epsilon, ridge, tol)
            continue
        count = _choose(machine, box, epsilon, rank, (best, low, 0.5 * tol), index)
        inner_tol = max(0.5 * tol, _SHARE * violation)
        middle = 0.5 * (best + low)
        taken, moved, smallest = _improve(
            matrix, machine, box, epsilon, ridge, index[:count], small, rank, middle, inner_tol
        )
        steps += taken
        curvature = min(curvature, smallest)
        if moved == 0:
            break
    return violation, steps, curvature


@njit(**_INNER)
def _improve(matrix, machine, box, epsilon, ridge, index, small, rank, middle, tol):
    """Solve a working set and carry its moves over to all samples.

    `middle` is taken from the gradient, so that what is left of it has few digits. Returns steps,
    samples that moved, and the smallest curvature.
    """
    coef, gradient = machine
    count = index.shape[0]
    copy_out(matrix, index, count, ridge, small)
    own_coef, own_gradient = np.empty(count), np.empty(count, matrix.dtype)
    own_lower, own_upper = np.empty(count), np.empty(count)
    for a in range(count):
        j = index[a]
        own_coef[a], own_gradient[a] = coef[j], gradient[j] - middle
        own_lower[a], own_upper[a] = box[0][j], box[1][j]
    steps, _, curvature = smo(
        small, own_coef, own_gradient, own_lower, own_upper, epsilon, tol, _STEPS
    )
    change, places = np.empty(count), np.empty(count, np.int64)
    moved = 0
    for a in range(count):
        j, u = index[a], own_coef[a]
        step = u - coef[j]
        free = own_lower[a] < u < own_upper[a] and u != 0.0
        rank[j] = 2 if free else (1 if step != 0.0 else 0)
        if step != 0.0:
            coef[j] = u
            gradient[j] -= ridge[j] * step
            places[moved], change[moved] = j, step
            moved += 1
    subtract_rows(0, gradient.shape[0], matrix, places[:moved], change[:moved], gradient)
    return steps, moved, curvature


@njit(**_INNER)
def _extremes(machine, box, epsilon):
    """Largest gain of raising a coefficient, and smallest loss of lowering one."""
    coef, gradient = machine
    best, low = -np.inf, np.inf
    for j in range(coef.shape[0]):
        rise, fall = _offsets(coef[j], box[0][j], box[1][j], epsilon)
        best = max(best, gradient[j] + rise)
        low = min(low, gradient[j] + fall)
    return best, low


@njit(**_INNER)
def _rank_free(coef, box, rank):
    """In a start from another solution, the free samples are those that will move."""
    for j in range(coef.shape[0]):
        rank[j] = 2 if (box[0][j] < coef[j] < box[1][j] and coef[j] != 0.0) else 0


@njit(**_INNER)
def _choose(machine, box, epsilon, rank, span, index):
    """Choose a working set, in rising order: half of it the last one's, half violators.

    Ranks are used up. Returns the number of samples.
    """
    coef, gradient = machine
    n, size = coef.shape[0], index.shape[0]
    best, low, least = span
    count, chosen = 0, np.zeros(n, np.bool_)
    for wanted in (2, 1):
        for j in range(n):
            if rank[j] == wanted and count < size // 2:
                chosen[j] = True
                count += 1
    for j in range(n):
        rank[j] = 0
    values, who = np.empty(n), np.empty(n, np.int64)
    for rising in (True, False):
        found = 0
        for j in range(n):
            rise, fall = _offsets(coef[j], box[0][j], box[1][j], epsilon)
            value = gradient[j] + rise - low if rising else best - gradient[j] - fall
            if value > least and not chosen[j]:
                values[found], who[found] = value, j
                found += 1
        room = (size - count) // 2 if rising else size - count
        count += _take_largest(values, who, found, room, chosen)
    place = 0
    for j in range(n):
        if chosen[j]:
            index[place] = j
            place += 1
    return place


@njit(**_INNER)
def _take_largest(values, who, found, room, chosen):
    """Choose those with the largest values, `room` of them or all; return how many."""
    if found <= room:
        for q in range(found):
            chosen[who[q]] = True
        return found
    if room <= 0:
        return 0
    last = np.partition(values[:found], found - room)[found - room]
    taken = 0
    # Those above the last one first: many may be equal to it.
    for above in (True, False):
        for q in range(found):
            fits = values[q] > last if above else values[q] == last
            if fits and taken < room:
                chosen[who[q]] = True
                taken += 1
    return taken
