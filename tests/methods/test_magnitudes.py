"""Numbers of any size: a right answer, or an error that says what to scale. Never NaN."""

import numpy as np
import pytest
from estimator_cases import X, labels, score
from method_cases import RECORDS
from numpy.testing import assert_allclose
from scipy import sparse

import lokl
from lokl import LMKLClassifier, SwMKLClassifier, UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF, AnisotropicRBF, Kernel, Laplacian, Linear, Polynomial, precomputed
from lokl.solvers import Exact

Y, T = labels(X), score(X)
SCALE = "scale the data, for example with sklearn.preprocessing.StandardScaler"
every_estimator = pytest.mark.parametrize("name", RECORDS)


def target(name):
    return T if name.endswith("Regressor") else Y


def made(name, kernels=None, **settings):
    return getattr(lokl, name)(kernels, random_state=0, **settings)


@every_estimator
@pytest.mark.parametrize("scale", [1e-170, 1e160], ids=str)
def test_data_that_vanishes_or_overflows_is_refused(name, scale):
    for kernels in (None, [Polynomial(2), Linear()], [RBF(1.0), Laplacian()]):
        with pytest.raises(ValueError, match=SCALE):
            made(name, kernels).fit(X * scale, target(name))


@every_estimator
@pytest.mark.parametrize("scale", [1e-100, 1e-80], ids=str)
def test_kernels_whose_values_vanish_are_refused(name, scale):
    square = Polynomial(2, coef0=0.0)
    for kernel in (square, square.normalized(), square.normalized("mean_diag")):
        with pytest.raises(ValueError, match=f"values of the kernel vanish; {SCALE}"):
            made(name, [kernel]).fit(X * scale, target(name))


def test_samples_too_small_to_have_an_angle_count_as_zero():
    kernel = Polynomial(2, coef0=0.0).normalized()
    rows = np.vstack([X, X[:3] * 1e-80, X[:3] * 1e-70])
    assert_allclose(kernel.diag(rows), [1.0] * len(X) + [0.0] * 3 + [1.0] * 3)
    assert_allclose(kernel(rows), kernel(rows).T)
    model = UniformMKLClassifier([kernel]).fit(rows, labels(rows))
    assert np.isfinite(model.decision_function(rows)).all()


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e65])
@pytest.mark.parametrize("name", ["UniformMKLClassifier", "LpMKLClassifier", "CLMKLClassifier"])
def test_the_standard_kernels_take_data_of_any_other_scale(name, scale):
    usual = made(name).fit(X * np.sign(scale), Y).decision_function(X)
    model = made(name).fit(X * scale, Y)
    decided = model.decision_function(X * scale)
    assert np.isfinite(decided).all()
    assert np.isfinite(model.contributions(X * scale)).all()
    # The constant of the quadratic kernel is all of it at one end, and nothing at the other.
    assert np.mean((decided > 0) == (usual > 0)) > 0.7


@pytest.mark.parametrize(
    ("kernel", "scale", "what"),
    [
        (Polynomial(2), 1e67, "values of the kernel"),
        (Polynomial(500), 1.0, "values of the kernel"),
        (Polynomial(500).normalized(), 1.0, "values of the kernel"),
        (Polynomial(2, 1e300), 1.0, "values of the kernel"),
        (Linear(), 1e137, "squares of its values"),
        (RBF(), 1e137, "squares of its values"),
        (RBF("median"), 1e137, "squares of its values"),
        (AnisotropicRBF([1.0, 1e300, 1.0, 1.0]), 1.0, "squares of its values"),
        (Linear().on([1, 2]).normalized("trace"), 1e137, "squares of its values"),
        (RBF(1.0) * Polynomial(3), 1e45, "values of the kernel"),
    ],
    ids=str,
)
def test_the_error_names_kernel_and_sample(kernel, scale, what):
    data = X.copy()
    data[7] = [3e5, 4e5, -5e5, 2e5]
    message = f"sample 7 is too large for kernel 'mine': {what} overflow; {SCALE}"
    with pytest.raises(ValueError, match=message):
        UniformMKLClassifier({"mine": kernel}).fit(data * scale, Y)
    with pytest.raises(ValueError, match=message):
        UniformMKLClassifier({"mine": kernel}).fit(sparse.csr_matrix(data * scale), Y)
    # Rows without weight do not count, and do not change the numbers of the others.
    weight = np.ones(len(X))
    weight[:3] = 0
    with pytest.raises(ValueError, match="sample 7 is too large"):
        UniformMKLClassifier({"mine": kernel}).fit(data * scale, Y, weight)


def test_columns_that_no_kernel_looks_at_do_not_count():
    data = np.column_stack([X, np.full(len(X), 1e200)])
    model = UniformMKLClassifier([RBF(0.5).on([0, 1, 2, 3])]).fit(data, Y)
    expected = UniformMKLClassifier([RBF(0.5)]).fit(X, Y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(data), expected, atol=1e-8)


@every_estimator
def test_new_samples_that_overflow_are_refused(name):
    model = made(name).fit(X, target(name))
    fresh = X.copy()
    fresh[4] *= 1e160
    asked = [model.predict, model.weights, model.contributions]
    for ask in [*asked, *([model.decision_function] if hasattr(model, "classes_") else [])]:
        with pytest.raises(ValueError, match=f"sample 4 is too large for kernel .*{SCALE}"):
            ask(fresh)


def test_new_samples_that_vanish_are_near_zero():
    model = UniformMKLClassifier().fit(X, Y)
    np.testing.assert_allclose(
        model.decision_function(X * 1e-200), model.decision_function(X * 0.0), atol=1e-12
    )


@pytest.mark.parametrize("own_width", [False, True])
@pytest.mark.parametrize("scale", [1e-12, 1e20])
def test_float32_is_used_only_where_it_holds_the_numbers(scale, own_width):
    kernels = [RBF(0.25 / scale**2)] if own_width else None
    rng = np.random.default_rng(0)
    many = rng.normal(size=(1200, 3))
    y = many[:, 0] + many[:, 1] > 0
    model = UniformMKLClassifier(kernels).fit(many * scale, y)
    precise = UniformMKLClassifier(kernels, solver=Exact(dtype="float64")).fit(many * scale, y)
    assert model.score(many * scale, y) > 0.9
    np.testing.assert_allclose(
        model.decision_function(many * scale), precise.decision_function(many * scale), atol=0.05
    )


def test_float32_samples_are_squared_in_float64():
    wide = (X * 1e25).astype(np.float32)
    model = UniformMKLClassifier().fit(wide, Y)
    expected = UniformMKLClassifier().fit(wide.astype(np.float64), Y)
    np.testing.assert_allclose(
        model.decision_function(wide), expected.decision_function(wide), rtol=1e-5, atol=1e-5
    )


@every_estimator
@pytest.mark.parametrize("weight", [1e308, 1e101])
def test_weights_that_overflow_are_refused(name, weight):
    with pytest.raises(
        ValueError, match=f"sample_weight is too large: {weight:.3g}".replace("+", ".")
    ):
        made(name).fit(X, target(name), np.full(len(X), weight))


def test_costs_that_overflow_are_refused():
    weight = np.full(len(X), 1e60)
    for model, y in ((UniformMKLClassifier(C=1e60), Y), (UniformMKLRegressor(C=1e60), T)):
        with pytest.raises(
            ValueError, match=r"C=1e.60 times sample_weight up to 1e.60.*; .*Lower C"
        ):
            model.fit(X, y, weight)
    with pytest.raises(ValueError, match=r"class_weight up to 1e.200"):
        UniformMKLClassifier(class_weight={0: 1e200, 1: 1.0}).fit(X, Y)


class Bad(Kernel):
    """A kernel with a diagonal that looks innocent."""

    label = "bad"

    def __init__(self, value=np.nan):
        self.value = value

    def __call__(self, X, Z=None):
        Z = X if Z is None else Z
        values = X @ Z.T
        values[np.abs(X[:, :1] - Z[:, 0]) > 3.0] = self.value
        return values

    def diag(self, X):
        return (X**2).sum(axis=1)


def test_the_last_line_of_defence_is_an_error():
    with pytest.raises(ValueError, match=f"numbers have overflowed: .* is not finite; {SCALE}"):
        UniformMKLClassifier([Bad()], max_iter=100).fit(X, Y)
    model = UniformMKLClassifier([Bad()]).fit(X[np.abs(X[:, 0]) < 1.2], Y[np.abs(X[:, 0]) < 1.2])
    fresh = X[:5].copy()
    fresh[3, 0] = 4.5
    for ask in (model.predict, model.decision_function, model.contributions):
        with pytest.raises(ValueError, match=f"numbers have overflowed at sample 3; {SCALE}"):
            ask(fresh)


def test_stored_matrices_are_not_judged_by_their_row_numbers():
    kernels, index = precomputed([X @ X.T])
    assert UniformMKLClassifier(kernels).fit(index, Y).score(index, Y) > 0.5


@pytest.mark.parametrize("gamma", [1e-300, 1e-20, 1e20, 1e300])
def test_gammas_of_any_size_say_nothing_to_numpy(gamma):
    kernels = [RBF(gamma), Laplacian(gamma), Linear()]
    for model in (LMKLClassifier(kernels, random_state=0), SwMKLClassifier(kernels, n_jobs=2)):
        assert np.isfinite(model.fit(X, Y).decision_function(X)).all()


@pytest.mark.parametrize("name", ["UniformMKLClassifier", "MWUMKLClassifier", "LpMKLRegressor"])
def test_costs_that_vanish_are_an_error(name):
    weight = np.full(len(X), 1e-300)
    with pytest.raises(ValueError, match=r"too small: C=1e-12 times the weights is .*Raise C"):
        made(name, C=1e-12).fit(X, Y, sample_weight=weight)
