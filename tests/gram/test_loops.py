"""Every compiled loop against its plain numpy twin."""

import ast
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from lokl.gram import _mixing
from lokl.gram._mixing import (
    GAUSSIAN,
    LINEAR,
    MATERN,
    POLYNOMIAL,
    SQUARE,
    TANH,
    Loads,
    Products,
    Program,
    Side,
    Sides,
    SparsePair,
    Target,
    Tiles,
)
from lokl.gram.layouts import TILE, Panels, SparseOverlaps, _no_pair
from lokl.kernels import dot

DTYPES = [np.float32, np.float64]
both = pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
seeds = st.integers(0, 2**16)
# Lengths around the ends of tiles, and short ones.
lengths = st.integers(1, 9) | st.sampled_from([TILE - 1, TILE, TILE + 1, 2 * TILE + 3])
few = settings(max_examples=15)
# Below 2 to this power, Gaussians are zero.
LEAST = {np.float32: -100, np.float64: -900}


def denormal(values):
    """Whether there is a number below the smallest normal one that is not zero."""
    return bool(((values != 0) & (np.abs(values) < np.finfo(values.dtype).tiny)).any())


def test_no_constant_of_another_file_is_frozen_into_compiled_code():
    # Numba's cache on disk looks only at the file of a function: after a change of an imported
    # number, the old code would go on with the old one.
    tree = ast.parse(Path(_mixing.__file__).read_text())
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [name for name in imported if name.startswith("lokl")]


@njit(fastmath=_mixing._FAST)
def exp2_loop(t, out):
    for j in range(t.shape[0]):
        out[j] = _mixing.exp2_nonpositive(t[j])


def exp2(t):
    out = np.empty_like(t)
    exp2_loop(t, out)
    return out


@njit(fastmath=_mixing._FAST)
def values_of(step, dots, left_norm, right_norms, values):
    _mixing._kernel_values(step, dots, left_norm, right_norms, values)


def mix_stored(program, dots, rows, sides, target, order=None, width=TILE):
    """Mix stored inner products, all tiles of columns or some."""
    order = np.arange(-(-dots.shape[1] // width)) if order is None else order
    products = Products(dots, _no_pair(dots.dtype))
    tiles = Tiles(order, width, half=False)
    _mixing.mix(0, len(order), program, products, rows, sides, target, tiles)


def hard_exponents(dtype, lowest):
    """The whole range: evenly, near zero, and around integers and half integers."""
    grid = np.arange(lowest, 0.25, 0.5)
    points = [np.linspace(lowest, 0, 100_003), -np.geomspace(1e-30, -lowest, 5_003), [-0.0, 0.0]]
    near = [np.nextafter(grid.astype(dtype), dtype(side)) for side in (-np.inf, np.inf)]
    t = np.concatenate([*points, grid, *near]).astype(dtype)
    return t[(t <= 0) & (t >= lowest)]


def test_exp2_in_single_precision_over_the_whole_range():
    t = hard_exponents(np.float32, -100.0)
    expected = np.exp2(t.astype(np.float64))
    assert (np.abs(exp2(t) - expected) <= 3e-7 * expected).all()


def test_exp2_in_double_precision_over_the_whole_range():
    t = hard_exponents(np.float64, -900.0)[::17]
    values = exp2(t)
    with localcontext() as context:
        context.prec = 40
        exact = [Decimal(2) ** Decimal(float(x)) for x in t]
        error = max(abs(Decimal(float(v)) / e - 1) for v, e in zip(values, exact, strict=True))
    assert error <= Decimal("4e-16")


@both
@given(st.integers(-1100, 0))
def test_exp2_of_integers_is_exact(dtype, power):
    expected = dtype(2.0) ** power if power >= LEAST[dtype] else 0.0
    assert exp2(np.array([power], dtype))[0] == expected


@both
def test_exp2_ends_at_one_and_at_zero(dtype):
    least = dtype(LEAST[dtype])
    below = [np.nextafter(least, dtype(-np.inf)), least - 1, -127.0, -130.0, -1023.0, -1100.0]
    below = [t for t in [*below, -1e6, -(2.0**24), -1e9, -1e30] if t < least]
    below = np.array([*below, -np.finfo(dtype).max], dtype)
    assert_array_equal(exp2(below), np.zeros(len(below)))
    assert_array_equal(exp2(np.array([1e-3, 5.0, 1e9], dtype)), np.ones(3, dtype))


@both
def test_squares_are_exact_or_zero_and_never_denormal(dtype):
    powers = np.arange(LEAST[dtype], 0.25, 0.25)
    values = np.concatenate([[0.0], 2.0**powers]).astype(dtype)
    out, nothing = values.copy(), np.zeros_like(values)
    step = (SQUARE, dtype(0.0), dtype(0.0), 1)
    values_of(step, nothing, dtype(0.0), nothing, out)
    counts = values >= dtype(2.0) ** (LEAST[dtype] // 2)
    assert_array_equal(out, np.where(counts, values, dtype(0.0)) ** 2)
    assert not denormal(out)


def kernel_values(step, dots, left_norm, right_norms, before):
    operation, gamma, coef0, degree = step
    if operation == SQUARE:
        return before**2
    if operation == GAUSSIAN:
        return np.exp(-gamma * np.maximum(left_norm + right_norms - 2 * dots, 0.0))
    if operation == LINEAR:
        return dots
    if operation == MATERN:
        t = np.sqrt((2 * degree + 1) * np.maximum(left_norm + right_norms - 2 * dots, 0.0))
        sums = [1.0, 1.0 + gamma * t, 1.0 + gamma * t + (gamma * t) ** 2 / 3.0]
        return sums[degree] * np.exp(-gamma * t)
    if operation == POLYNOMIAL:
        return (gamma * dots + coef0) ** degree
    return np.tanh(gamma * dots + coef0)


def all_values(program, dots, left_norms, right_norms):
    """Values of every kernel, (m, rows, columns), in double precision."""
    operations, gammas, coefs, degrees, _ = program
    result = np.empty((len(operations), *dots.shape))
    for i, step in enumerate(zip(operations, gammas, coefs, degrees, strict=True)):
        for p in range(len(dots)):
            before = result[i - 1, p] if i else None
            result[i, p] = kernel_values(step, dots[p], left_norms[p], right_norms, before)
    return result


def mix(program, dots, left, rows, right, out, out_rows, accumulate):
    (left_norms, left_factors), (right_norms, right_factors) = left, right
    values = all_values(program, dots, left_norms[rows], right_norms)
    if left_factors.shape[1]:
        trust = np.einsum("irp,irj->ipj", left_factors[:, :, rows], right_factors)
    else:
        trust = program[-1][:, np.newaxis, np.newaxis]
    mixed = (trust * values).sum(axis=0)
    out[out_rows] = mixed + (out[out_rows] if accumulate else 0.0)


PROGRAMS = {
    "linear": [(LINEAR, 1.0, 0.0, 1)],
    "polynomials": [(POLYNOMIAL, 0.3, 0.5, degree) for degree in (1, 2, 3, 6)],
    "matern": [(MATERN, 0.4, 0.0, degree) for degree in (0, 1, 2)],
    "tanh": [(TANH, 0.2, -0.1, 1)],
    "ladder of two": [(GAUSSIAN, 0.1, 0.0, 1), (SQUARE, 0.2, 0.0, 1)],
    "ladder of five": [(GAUSSIAN, 0.05, 0.0, 1), *[(SQUARE, 0.0, 0.0, 1)] * 4],
    "ladder of nine by squares alone": [(GAUSSIAN, 0.01, 0.0, 1), *[(SQUARE, 0.0, 0.0, 1)] * 8],
    "ladder of eight": [
        *[(GAUSSIAN, 0.01, 0.0, 1), *[(SQUARE, 0.0, 0.0, 1)] * 4],
        *[(GAUSSIAN, 0.32, 0.0, 1), *[(SQUARE, 0.0, 0.0, 1)] * 2],
    ],
    "all": [
        (LINEAR, 1.0, 0.0, 1),
        (POLYNOMIAL, 0.5, 1.0, 2),
        (GAUSSIAN, 0.02, 0.0, 1),
        *[(SQUARE, 0.0, 0.0, 1)] * 3,
        (GAUSSIAN, 1.1, 0.0, 1),
        (TANH, 0.3, 0.1, 1),
    ],
}
every_program = pytest.mark.parametrize("steps", PROGRAMS.values(), ids=PROGRAMS)


def make_program(steps, weights, dtype):
    operations, gammas, coefs, degrees = (np.array(column) for column in zip(*steps, strict=True))
    return Program(
        operations.astype(np.int64),
        gammas.astype(dtype),
        coefs.astype(dtype),
        degrees.astype(np.int64),
        weights.astype(dtype),
    )


def problem(steps, n, p, rank, dtype, seed, fill=0.6):
    """Two sides of samples with norms and factors, a program, and rows of the left side."""
    rng = np.random.default_rng(seed)
    # Weights and factors of every size and sign, and none.
    sizes = 10.0 ** rng.integers(-25, 1, size=len(steps))
    sizes *= rng.choice([-1.0, 0.0, 1.0, 1.0], size=len(steps))
    program = make_program(steps, sizes * (0.1 + rng.random(len(steps))), dtype)
    sides = []
    for size in (p, n):
        X = (rng.normal(size=(size, 5)) * (rng.random((size, 5)) < fill)).astype(dtype)
        factors = 0.1 + rng.random((len(steps), rank, size if rank else 0))
        factors = (factors * sizes[:, np.newaxis, np.newaxis]).astype(dtype)
        sides.append((X, Side((X**2).sum(axis=1), factors)))
    rows = rng.permutation(p)[: 1 + p // 2]
    out = rng.normal(size=(p + 2, n)).astype(dtype)
    return program, *sides, rows, out, rng.permutation(p + 2)[: len(rows)]


def sparse_pair(X, Z, overlap):
    return SparsePair(Panels(sparse.csr_matrix(X)).lists, Panels(Z).panels, overlap)


def dots_of(X, Z, overlap):
    """Inner products, or sums of the smaller of two entries."""
    return np.minimum(X[:, np.newaxis], Z).sum(axis=2) if overlap else X @ Z.T


def doubled(thing):
    if isinstance(thing, tuple):
        return tuple(map(doubled, thing))
    return thing.astype(np.float64) if thing.dtype == np.float32 else thing.copy()


def check(actual, expected, dtype):
    relative = 1e-12 if dtype == np.float64 else 2e-5
    scale = max(np.abs(expected).max(initial=0.0), 1.0)
    assert_allclose(actual, expected, rtol=relative, atol=relative * scale)


@every_program
@both
@few
@given(
    seed=seeds,
    n=lengths,
    p=st.integers(1, 4),
    rank=st.integers(0, 3),
    accumulate=st.booleans(),
    cut=st.floats(0, 1),
    width=st.sampled_from([TILE // 4, TILE]),
)
def test_mix_of_stored_products(steps, dtype, seed, n, p, rank, accumulate, cut, width):
    program, (X, left), (Z, right), rows, out, out_rows = problem(steps, n, p, rank, dtype, seed)
    dots = X[rows] @ Z.T
    expected = doubled(out)
    mix(*doubled((program, dots, left)), rows, doubled(right), expected, out_rows, accumulate)
    order = np.random.default_rng(seed).permutation(-(-n // width))
    for part in np.split(order, [int(cut * len(order))]):
        work = (program, dots, rows, Sides(left, right), Target(out, out_rows, accumulate))
        mix_stored(*work, part, width)
    check(out, expected, dtype)


@every_program
@both
@few
@given(
    seed=seeds,
    n=lengths,
    p=st.integers(1, 4),
    rank=st.integers(0, 3),
    accumulate=st.booleans(),
    cut=st.integers(0, 2),
    fill=st.sampled_from([0.0, 0.3, 1.0]),
    overlap=st.booleans(),
)
def test_mix_of_sparse_rows(steps, dtype, seed, n, p, rank, accumulate, cut, fill, overlap):
    sides = problem(steps, n, p, rank, dtype, seed, fill)
    program, (X, left), (Z, right), rows, out, out_rows = sides
    if overlap:
        (X, left), (Z, right) = (
            (np.abs(A), side._replace(norms=np.abs(A).sum(axis=1)))
            for A, side in ((X, left), (Z, right))
        )
    pair = sparse_pair(X, Z, overlap)
    products = Products(np.empty((0, 0), dtype), pair)
    expected = doubled(out)
    dots = dots_of(doubled(X)[rows], doubled(Z), overlap)
    mix(*doubled((program, dots, left)), rows, doubled(right), expected, out_rows, accumulate)
    # Panels in any order, in two calls.
    order = np.random.default_rng(seed).permutation(len(pair.panels))
    middle = min(cut, len(order))
    tiles = Tiles(order, pair.panels.shape[2], half=False)
    for s, e in ((0, middle), (middle, len(order))):
        work = (program, products, rows, Sides(left, right), Target(out, out_rows, accumulate))
        _mixing.mix(s, e, *work, tiles)
    check(out, expected, dtype)


@both
@few
@given(
    seed=seeds,
    n=lengths,
    p=st.integers(1, 4),
    fill=st.sampled_from([0.0, 0.3, 1.0]),
    overlap=st.booleans(),
)
def test_dots_sparse(dtype, seed, n, p, fill, overlap):
    rng = np.random.default_rng(seed)
    X, Z = ((rng.normal(size=(k, 11)) * (rng.random((k, 11)) < fill)).astype(dtype) for k in (p, n))
    if overlap:
        X, Z = np.abs(X), np.abs(Z)
    rows = rng.permutation(p)
    pair = sparse_pair(X, Z, overlap)
    out = np.full((p, n), np.nan, dtype=dtype)
    _mixing.dots_sparse(0, n, pair, rows, out)
    check(out, dots_of(X[rows].astype(float), Z.astype(float), overlap), dtype)


@both
@few
@given(seed=seeds, n=lengths, p=st.integers(1, 4), fill=st.sampled_from([0.0, 0.3, 1.0]))
def test_dots_by_column(dtype, seed, n, p, fill):
    rng = np.random.default_rng(seed)
    X, Z = ((rng.random((k, 11)) * (rng.random((k, 11)) < fill)).astype(dtype) for k in (p, n))
    rows = rng.permutation(p)
    left, right = SparseOverlaps(sparse.csr_matrix(X)), SparseOverlaps(sparse.csr_matrix(Z))
    out = np.full((p, n), np.nan, dtype=dtype)
    _mixing.dots_by_column(0, p, left.lists, right.columns, rows, out)
    check(out, dots_of(X[rows].astype(float), Z.astype(float), True), dtype)


@both
@given(seed=seeds, n=st.integers(0, 6), d=st.integers(1, 9), fill=st.sampled_from([0.0, 0.5, 1.0]))
def test_lists_and_panels_hold_the_samples(dtype, seed, n, d, fill):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < fill)).astype(dtype)
    for given_as in (X, sparse.csr_matrix(X)):
        features = Panels(given_as)
        pointers, indices, entries = features.lists
        assert (np.diff(pointers) % 4 == 0).all()
        again = np.zeros((n, d), dtype)
        for row in range(n):
            place = slice(pointers[row], pointers[row + 1])
            np.add.at(again[row], indices[place], entries[place])
        assert_array_equal(again, X)
        panels = features.panels
        assert panels.shape == (1, d, features.width)
        assert_array_equal(panels[0, :, :n].T, X)
        assert not panels[0, :, n:].any()


@every_program
@both
@few
@given(
    seed=seeds,
    n=lengths,
    p=st.integers(1, 5),
    q=st.integers(1, 3),
    damped=st.booleans(),
    begin=st.integers(0, 3),
)
def test_kernel_sums(steps, dtype, seed, n, p, q, damped, begin):
    program, (X, left), (Z, right), _, _, _ = problem(steps, n, p, 1, dtype, seed)
    rng = np.random.default_rng(seed)
    dots = X @ Z.T
    coefs = rng.normal(size=(len(steps), q, n)).astype(dtype)
    damping = rng.random((p, n) if damped else (0, 0)).astype(dtype)
    start = rng.normal(size=(p, len(steps), q))
    values = all_values(*doubled((program, dots, left[0], right[0])))[:, :, begin:]
    expected = start + np.einsum(
        "ipj,pj,iqj->piq",
        values,
        (damping if damped else np.ones((p, n)))[:, begin:],
        coefs.astype(float)[:, :, begin:],
    )
    out = start.copy()
    for s, e in ((0, p // 2), (p // 2, p)):
        norms = (left.norms, right.norms)
        _mixing.kernel_sums(s, e, program, dots, norms, Loads(coefs, damping, begin), out)
    check(out, expected, dtype)


@both
@few
@given(seed=seeds, n=lengths, count=st.integers(0, 9), cut=st.floats(0, 1))
def test_subtract_rows(dtype, seed, n, count, cut):
    rng = np.random.default_rng(seed)
    slab = rng.normal(size=(12, n)).astype(dtype)
    slots, coef, target = rng.permutation(12)[:count], rng.normal(size=count), rng.normal(size=n)
    expected = target - coef @ slab[slots].astype(np.float64)
    for s, e in ((0, int(cut * n)), (int(cut * n), n)):
        _mixing.subtract_rows(s, e, slab, slots, coef, target)
    # Sums are in double precision, whatever the rows are stored in.
    assert_allclose(target, expected, rtol=1e-12, atol=1e-12)


@both
@few
@given(seed=seeds, n=lengths)
def test_a_gaussian_is_never_above_one(dtype, seed, n):
    rng = np.random.default_rng(seed)
    X = (1e3 * rng.normal(size=(n, 5))).astype(dtype)
    program = make_program([(GAUSSIAN, 0.5, 0.0, 1)], np.ones(1), dtype)
    none = np.empty((1, 0, 0), dtype)
    norms = (X**2).sum(axis=1)
    out, rows = np.empty((1, n), dtype), np.zeros(1, dtype=np.intp)
    side = Side(norms, none)
    work = (program, X[:1] @ X.T, rows, Sides(side, side), Target(out, rows, False))
    mix_stored(*work)
    assert (out <= 1).all()
    assert (out >= 0).all()


def test_compiled_code_has_every_operation_of_kernels():
    assert tuple(_mixing.OPERATIONS) == dot.OPERATIONS
    assert _mixing.SQUARE not in _mixing.OPERATIONS.values()


NINE = [*PROGRAMS["ladder of five"], (GAUSSIAN, 1.6, 0.0, 1), *[(SQUARE, 0.0, 0.0, 1)] * 3]


@both
@few
@given(
    seed=seeds,
    rank=st.integers(0, 2),
    spread=st.sampled_from([1.0, 5.0, 30.0]),
    # Trust is snapped to none below a thousandth; both sides have some.
    size=st.sampled_from([1.0, 1e-3]),
)
def test_far_apart_samples_leave_no_denormal_numbers(dtype, seed, rank, spread, size):
    rng = np.random.default_rng(seed)
    n = TILE + 3
    X = (spread * rng.random((n, 3))).astype(dtype)
    norms, rows = (X**2).sum(axis=1), np.arange(8)
    factors = size ** rng.random((9, rank, n if rank else 0))
    program = make_program(NINE, size ** rng.random(9), dtype)
    side = Side(norms, factors.astype(dtype))
    out, dots = np.empty((8, n), dtype), X[:8] @ X.T
    work = (program, dots, rows, Sides(side, side), Target(out, rows, False))
    mix_stored(*work)
    assert not denormal(out)
    # Every kernel by itself is what a buffer of values holds after its turn.
    values = np.empty((8, 9, n), dtype)
    _mixing.values_by_kernel(0, 8, program, dots, (norms[:8], norms), np.arange(9), values)
    assert not denormal(values)
    assert (values[:, -1] == 0).any() or spread < 30
    if dtype == np.float64:
        expected = all_values(program, dots, norms[:8], norms).transpose(1, 0, 2)
        assert_allclose(values, expected, atol=1e-10)
