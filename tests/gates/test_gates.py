"""Laws of gates: values are not negative, redistributed if views are missing, differentiable."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import lokl.gates
from lokl._arrays import Samples, as_dense
from lokl.gates import (
    ConstantGate,
    Gate,
    GateOn,
    GaussianGate,
    GroupGate,
    RepresentationGate,
    SigmoidGate,
    SoftmaxGate,
    WeightedGate,
)
from lokl.gates.base import rescale_missing
from lokl.gates.representation import Standardized


def side(samples):
    """Return group 0 or 1, by the sign of the first feature."""
    return (as_dense(samples.given)[:, 0] > 0).astype(np.intp)


def first_two(samples):
    return samples.filled[:, :2]


def closeness(samples):
    """Return known gate values, equal for all kernels, that differ between samples."""
    size = np.abs(as_dense(samples.filled)).sum(axis=1)
    n_kernels = 3 if samples.present is None else samples.present.shape[1]
    return rescale_missing(np.tile(np.exp(-size)[:, np.newaxis], n_kernels), samples.present)


def memberships(samples):
    """Return the same values divided between two clusters: rank two."""
    h = closeness(samples)
    return np.stack([0.25 * h, 0.75 * h], axis=2)


SIMPLE = [
    SoftmaxGate(),
    SoftmaxGate(1.5),
    SigmoidGate(),
    SigmoidGate(2.0),
    GaussianGate(),
    GaussianGate(0.7),
    ConstantGate(),
]
LEARNED = [
    *SIMPLE,
    RepresentationGate(GroupGate(2), side),
    RepresentationGate(SoftmaxGate(1.5), first_two),
]
# Their parameters are weights that methods find in closed form; they have three kernels.
WEIGHED = [WeightedGate(closeness), WeightedGate(memberships, by_rank=True)]
SUMS_TO_ONE = [gate for gate in LEARNED if gate.sums_to_one]
PUBLIC = {name: getattr(lokl.gates, name) for name in lokl.gates.__all__}


def label(gate):
    inner = type(gate.gate).__name__ if isinstance(gate, RepresentationGate) else ""
    return repr(gate) if gate in SIMPLE else f"{type(gate).__name__}({inner})"


simple_gate = pytest.mark.parametrize("gate", SIMPLE, ids=repr)
learned_gate = pytest.mark.parametrize("gate", LEARNED, ids=label)
every_gate = pytest.mark.parametrize("gate", LEARNED + WEIGHED, ids=label)
competing_gate = pytest.mark.parametrize("gate", SUMS_TO_ONE, ids=label)
problems = given(
    seed=st.integers(0, 2**16), n=st.integers(1, 6), m=st.integers(1, 4), as_csr=st.booleans()
)


def problem(gate, seed, n, m, as_csr=False):
    """Samples, parameters away from symmetry, and a mask that leaves every sample a kernel."""
    rng = np.random.RandomState(seed)
    m = 3 if gate in WEIGHED else m
    X = rng.normal(size=(n, 3)) * (rng.uniform(size=(n, 3)) < 0.7)
    X = sparse.csr_matrix(X) if as_csr else X
    start = gate.init(X, m, rng)
    params = gate.project(start + 0.1 * rng.uniform(size=start.shape))
    present = rng.uniform(size=(n, m)) < 0.6
    present[np.arange(n), rng.randint(m, size=n)] = True
    return X, params, present


def slopes(function, params, step=1e-6):
    """Central differences, entry by entry."""
    result = np.empty(params.shape)
    for place in np.ndindex(params.shape):
        up, down = params.copy(), params.copy()
        up[place] += step
        down[place] -= step
        result[place] = (function(up) - function(down)) / (2 * step)
    return result


def test_every_exported_gate_is_in_the_list():
    exported = {c for c in PUBLIC.values() if isinstance(c, type) and c is not Gate}
    tested = {type(gate) for gate in LEARNED + WEIGHED} | {GroupGate}
    # A setting of methods and not a gate by itself.
    assert exported == tested | {GateOn}


@every_gate
@problems
def test_gate_values_are_finite_and_not_negative(gate, seed, n, m, as_csr):
    X, params, present = problem(gate, seed, n, m, as_csr)
    for H in (gate(X, params), gate(X, params, present)):
        assert H.shape[:2] == present.shape
        assert np.isfinite(H).all()
        assert (H >= 0).all()
        assert gate.kernel_weights(H).shape == present.shape


@every_gate
@problems
def test_sparse_equals_dense(gate, seed, n, m, as_csr):
    X, params, present = problem(gate, seed, n, m)
    S = sparse.csr_matrix(X)
    assert_allclose(gate(S, params, present), gate(X, params, present))
    start = [gate.init(Z, present.shape[1], np.random.RandomState(seed)) for Z in (X, S)]
    assert_array_equal(*start)


@pytest.mark.parametrize("gate", SIMPLE, ids=label)
@problems
def test_sparse_samples_that_are_centred_equal_dense(gate, seed, n, m, as_csr):
    X, params, present = problem(gate, seed, n, m)
    scale = Standardized.learn(X, np.ones(n))
    Z, S = scale(X), scale(sparse.csr_matrix(X))
    H, G = gate(Z, params, present), np.random.RandomState(seed).normal(size=present.shape)
    assert_allclose(gate(S, params, present), H, atol=1e-9)
    slopes = [gate.pullback(own, params, H, G) for own in (Z, S)]
    assert_allclose(*slopes, atol=1e-9)


@every_gate
@problems
def test_samples_are_gated_as_their_rows_are(gate, seed, n, m, as_csr):
    X, params, present = problem(gate, seed, n, m, as_csr)
    samples = Samples.of(X, present)
    H = gate(X, params, present)
    assert_array_equal(gate.at(samples, params), H)
    if isinstance(gate, RepresentationGate):
        Z = gate.representation(samples)
        assert_array_equal(gate.values(Z, params, present), H)


@every_gate
@problems
def test_a_sample_is_gated_by_itself(gate, seed, n, m, as_csr):
    X, params, present = problem(gate, seed, n, m, as_csr)
    H = gate(X, params, present)
    for j in range(n):
        assert_allclose(gate(X[[j]], params, present[[j]]), H[[j]])


@competing_gate
@problems
def test_gates_that_sum_to_one_do_with_missing_views_as_well(gate, seed, n, m, as_csr):
    X, params, present = problem(gate, seed, n, m, as_csr)
    assert_allclose(gate(X, params).sum(axis=1), 1.0)
    assert_allclose(gate(X, params, present).sum(axis=1), 1.0)


@every_gate
@problems
def test_the_gate_of_a_missing_view_goes_to_the_others(gate, seed, n, m, as_csr):
    X, params, present = problem(gate, seed, n, m, as_csr)
    H, masked = gate(X, params), gate(X, params, present)
    assert (masked[~present] == 0).all()
    assert_allclose(gate(X, params, np.ones_like(present)), H)
    if gate in WEIGHED:
        factor = present.shape[1] / present.sum(axis=1, keepdims=True)
        assert_allclose(gate.kernel_weights(masked), present * factor * gate.kernel_weights(H))
    elif gate in SUMS_TO_ONE:
        left = H * present
        assert_allclose(masked, left / left.sum(axis=1, keepdims=True), rtol=1e-10)
    elif isinstance(gate, ConstantGate):
        assert_allclose((masked**2).sum(axis=1), (H**2).sum(axis=1))
        left = H**2 * present
        assert_allclose(masked**2, left * params.sum() / left.sum(axis=1, keepdims=True))
    else:
        assert_array_equal(masked[present], H[present])


@learned_gate
@problems
def test_pullback_is_the_gradient(gate, seed, n, m, as_csr):
    X, params, _ = problem(gate, seed, n, m, as_csr)
    G = np.random.RandomState(seed).normal(size=(n, m))
    numeric = slopes(lambda v: np.sum(G * gate(X, v)), params)
    H = gate(X, params)
    assert_allclose(gate.pullback(X, params, H, G), numeric, rtol=1e-5, atol=1e-6)


@learned_gate
@problems
def test_pullback_is_the_gradient_where_views_are_missing(gate, seed, n, m, as_csr):
    X, params, present = problem(gate, seed, n, m, as_csr)
    G = np.random.RandomState(seed).normal(size=(n, m))
    numeric = slopes(lambda v: np.sum(G * gate(X, v, present)), params)
    gradient = gate.pullback(X, params, gate(X, params, present), G)
    assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)


@problems
def test_a_common_direction_of_all_kernels_changes_no_softmax_gate(seed, n, m, as_csr):
    X, V, present = problem(SoftmaxGate(1.0), seed, n, m, as_csr)
    rng = np.random.RandomState(seed)
    shift, G = rng.normal(size=(4, 1)), rng.normal(size=(n, m))
    for mask in (None, present):
        H = SoftmaxGate()(X, V, mask)
        assert_allclose(SoftmaxGate()(X, V + shift, mask), H, atol=1e-12)
        assert_allclose(SoftmaxGate().pullback(X, V, H, G).sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("gate", [SoftmaxGate(), SigmoidGate(), GaussianGate()], ids=repr)
def test_far_samples_overflow_nothing(gate):
    X = np.array([[1e6, 0.0], [-1e6, 1e6], [0.0, 0.0]])
    params = np.array([[1.0, -1.0], [2.0, 0.5], [1e-3, 3.0]])
    H = gate(X, params)
    assert np.isfinite(H).all()
    assert np.isfinite(gate.pullback(X, params, H, np.ones_like(H))).all()


@every_gate
@problems
def test_projection_keeps_what_is_allowed_and_allows_what_it_returns(gate, seed, n, m, as_csr):
    X, params, _ = problem(gate, seed, n, m, as_csr)
    assert_allclose(gate.project(params), params, atol=1e-12)
    wild = 10.0 * np.random.RandomState(seed).normal(size=params.shape)
    kept = wild.copy()
    projected = gate.project(wild)
    assert_array_equal(wild, kept)
    assert_allclose(gate.project(projected), projected, atol=1e-12)
    assert np.isfinite(gate(X, projected)).all()


def test_projection_is_the_nearest_allowed_point():
    assert_array_equal(ConstantGate().project(np.array([-1.0, 0.0, 2.0])), [0.0, 0.0, 2.0])
    projected = GaussianGate().project(np.array([[-1.0, 5.0], [-2.0, 0.5]]))
    assert_array_equal(projected[0], [-1.0, 5.0])
    assert 0 < projected[1, 0] <= 1e-3
    assert projected[1, 1] == 0.5


@every_gate
def test_start_values_depend_on_the_generator_alone(gate):
    X = np.random.RandomState(0).normal(size=(5, 3))
    m = 3 if gate in WEIGHED else 4
    first, again = (gate.init(X, m, np.random.RandomState(7)) for _ in range(2))
    assert_array_equal(first, again)
    assert_allclose(gate(X, gate.project(first)), gate(X, first))


def test_start_values_follow_the_settings():
    X = np.random.RandomState(0).normal(size=(5, 3))
    for gate in (SoftmaxGate(0.2), SigmoidGate(0.2)):
        start = gate.init(X, 50, np.random.RandomState(0))
        assert start.shape == (4, 50)
        assert 0.15 < np.abs(start).max() <= 0.2
    centres = GaussianGate(0.5).init(X, 5, np.random.RandomState(0))
    assert_array_equal(np.sort(centres[:-1].T, axis=0), np.sort(X, axis=0))
    assert (centres[-1] == 0.5).all()
    assert GaussianGate().init(X, 9, np.random.RandomState(0)).shape == (4, 9)
    assert_allclose(ConstantGate().init(X, 4, None), 0.25)
    assert_array_equal(ConstantGate([1, 0, 2]).init(X, 3, None), [1.0, 0.0, 2.0])


def test_a_constant_gate_is_the_root_of_its_weights():
    H = ConstantGate()(np.zeros((3, 2)), np.array([0.0, 4.0, 9.0]))
    assert_array_equal(H, [[0.0, 2.0, 3.0]] * 3)
    assert_array_equal(ConstantGate().kernel_weights(H), [[0.0, 4.0, 9.0]] * 3)


def test_a_weight_of_zero_gives_no_slope_and_no_warning():
    mu = np.array([0.0, 4.0])
    H = ConstantGate()(np.zeros((3, 2)), mu)
    gradient = ConstantGate().pullback(np.zeros((3, 2)), mu, H, np.ones((3, 2)))
    assert_allclose(gradient, [0.0, 3 * 0.25])


def test_kernel_weights_of_a_gate_of_higher_rank_are_sums_over_its_rank():
    H = np.random.RandomState(0).uniform(size=(4, 2, 3))
    assert_allclose(SoftmaxGate().kernel_weights(H), H.sum(axis=2))


@pytest.mark.parametrize("weights", [[1.0], [1.0, -0.5], [1.0, np.nan], [1, np.inf], [[1.0, 1.0]]])
def test_weights_that_fit_no_two_kernels_are_refused(weights):
    with pytest.raises(ValueError, match="ConstantGate needs 2 finite weights"):
        ConstantGate(weights).init(np.zeros((3, 2)), 2, None)


def test_a_gate_without_gradient_says_so():
    class Fixed(Gate):
        def init(self, X, n_kernels, rng):
            return np.ones(n_kernels)

        def __call__(self, X, params, present=None):
            return np.tile(params, (X.shape[0], 1))

    X, H = np.zeros((2, 1)), np.ones((2, 3))
    with pytest.raises(TypeError, match="Fixed"):
        Fixed().pullback(X, np.ones(3), H, H)
    assert_array_equal(Fixed().project(np.ones(3)), np.ones(3))


@every_gate
def test_copies_have_the_same_values(gate):
    X, params, present = problem(gate, 0, 5, 3)
    for copy in (clone(gate), pickle.loads(pickle.dumps(gate))):
        assert_array_equal(copy(X, params, present), gate(X, params, present))


@simple_gate
def test_copies_have_the_same_settings(gate):
    assert repr(clone(gate)) == repr(pickle.loads(pickle.dumps(gate))) == repr(gate)
    assert repr(eval(repr(gate), PUBLIC)) == repr(gate)
    for name in gate.get_params():
        changed = clone(gate).set_params(**{name: 0.25})
        assert getattr(changed, name) == 0.25


@learned_gate
def test_read_only_samples_are_read_only(gate, read_only):
    X = read_only(np.random.RandomState(0).normal(size=(5, 3)))
    params = read_only(np.array(gate.init(X, 2, np.random.RandomState(0))))
    H = read_only(gate(X, params))
    gate.pullback(X, gate.project(params), H, H)
