"""Contributions of columns: Shapley values that add up to the contributions of views."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, scale

import lokl
from lokl._compiled import CompiledModule
from lokl._methods import METHODS
from lokl.datasets import make_views
from lokl.explain import column_contributions, column_importance, explain
from lokl.explain.shapley import Sampling, column_quantiles, column_values, quadrature_rules
from lokl.kernels import (
    RBF,
    AdditiveLaplacian,
    AnisotropicRBF,
    Callable,
    Cosine,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    per_view,
    precomputed,
)

_loops = CompiledModule("lokl.explain._shapley")
quiet = pytest.mark.filterwarnings(
    "ignore:.* samples lack a view", "ignore:.*explains", "ignore:.*stopped after"
)


def sampling(n_orders=2, seed=0):
    return Sampling(n_orders, np.random.RandomState(seed), set())


def brute_force(value, n_columns):
    """Shapley values from the value of every subset of columns."""
    columns = range(n_columns)
    values = {
        own: value(list(own))
        for size in range(n_columns + 1)
        for own in combinations(columns, size)
    }
    total = []
    for c in columns:
        rest = [e for e in columns if e != c]
        total.append(0.0)
        for size in range(n_columns):
            weight = math.factorial(size) * math.factorial(n_columns - size - 1)
            for own in combinations(rest, size):
                change = values[tuple(sorted((*own, c)))] - values[own]
                total[-1] = total[-1] + weight / math.factorial(n_columns) * change
    return np.stack(total, axis=-1)


def game(kernel, X, Z, coef):
    """Function of the columns that are present, as the module describes it."""
    points, d = column_quantiles(Z), X.shape[1]

    def single(c, left):
        """Values of a kernel whose samples differ in column c only."""
        A, B = np.zeros((len(left), d)), np.zeros((len(Z), d))
        A[:, c], B[:, c] = left, Z[:, c]
        return kernel(A, B)

    present = np.stack([single(c, X[:, c]) for c in range(d)])
    absent = np.stack([single(c, points[:, c]).mean(axis=0) for c in range(d)])

    def of_product(own):
        factors = np.repeat(absent[:, np.newaxis], len(X), axis=1)
        factors[own] = present[own]
        return factors.prod(axis=0) @ coef

    def of_additive(own):
        # All other terms of a kernel between equal columns are one.
        terms = np.repeat(absent[:, np.newaxis], len(X), axis=1)
        terms[own] = present[own]
        return (terms - (d - 1) / d).sum(axis=0) @ coef

    def of_polynomial(own):
        moved = np.repeat(Z.mean(axis=0)[np.newaxis], len(X), axis=0)
        moved[:, own] = X[:, own]
        return kernel(moved, Z) @ coef

    if isinstance(kernel, AdditiveLaplacian):
        return of_additive
    return of_polynomial if isinstance(kernel, Linear | Polynomial) else of_product


KERNELS = st.one_of(
    st.floats(0.01, 3.0).map(RBF),
    st.floats(0.01, 3.0).map(Laplacian),
    st.floats(0.01, 1.0).map(lambda gamma: RBF(gamma) * Laplacian(0.3)),
    st.floats(0.0, 1.0).map(lambda gamma: AnisotropicRBF([gamma, *range(20)])),
    st.floats(0.1, 2.0).map(AdditiveLaplacian),
    st.just(Linear()),
    st.tuples(st.integers(1, 3), st.floats(0.1, 2.0), st.floats(0.0, 2.0)).map(
        lambda own: Polynomial(*own)
    ),
)


@settings(max_examples=60)
@given(kernel=KERNELS, n_columns=st.integers(1, 8), seed=st.integers(0, 99))
def test_values_are_shapley_values(kernel, n_columns, seed):
    rng = np.random.RandomState(seed)
    X, Z = rng.normal(size=(2, n_columns)), rng.normal(size=(4, n_columns))
    if isinstance(kernel, AnisotropicRBF):
        kernel = AnisotropicRBF(kernel.gammas[:n_columns])
    coef, used = rng.normal(size=(4, 2)), sampling()
    values = column_values(kernel, X, Z, coef, used)
    expected = brute_force(game(kernel, X, Z, coef), n_columns)
    np.testing.assert_allclose(values, expected, atol=1e-10)
    assert not used.used


def test_ten_columns_are_exact():
    rng = np.random.RandomState(0)
    X, Z, coef = rng.normal(size=(1, 10)), rng.normal(size=(3, 10)), rng.normal(size=(3, 1))
    for kernel in (RBF(0.2), Laplacian(0.2)):
        expected = brute_force(game(kernel, X, Z, coef), 10)
        np.testing.assert_allclose(
            column_values(kernel, X, Z, coef, sampling()), expected, atol=1e-10
        )


def plain_product_values(X, Z, absent, coef, squared, absolute, rules):
    """The compiled loop in numpy, with its largest rule."""
    _, offsets, nodes, weights = rules
    nodes, weights = nodes[offsets[-2] :], weights[offsets[-2] :]
    step = np.abs(X[:, np.newaxis] - Z)
    change = np.maximum(np.exp(-step * (squared * step + absolute)), _loops.LEAST) - absent
    factors = absent[..., np.newaxis] + change[..., np.newaxis] * nodes
    product = factors.prod(axis=2, keepdims=True)
    integral = (weights * product / factors).sum(axis=3)
    return np.einsum("jt,pjc,pjc->ptc", coef, change, integral)


@settings(max_examples=40)
@given(
    st.integers(1, 6),
    st.integers(1, 8),
    st.integers(1, 60),
    st.integers(1, 3),
    st.floats(-2, 2),
    st.integers(0, 99),
)
def test_compiled_loop_equals_numpy(n, m, d, tasks, power, seed):
    rng = np.random.RandomState(seed)
    X, Z, coef = rng.normal(size=(n, d)), rng.normal(size=(m, d)), rng.normal(size=(m, tasks))
    absent = rng.uniform(0.1, 1.0, size=(m, d))
    widths = rng.uniform(size=(2, d)) * 10.0**power / d
    rules, out = quadrature_rules(d), np.zeros((n, tasks, d))
    _loops.product_values(0, n, X, Z, absent, coef, *widths, rules, out)
    expected = plain_product_values(X, Z, absent, coef, *widths, rules)
    np.testing.assert_allclose(out, expected, atol=1e-11 * np.abs(coef).sum())


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e3, 1e8])
def test_widths_far_from_the_data_give_finite_values(gamma):
    rng = np.random.RandomState(0)
    X, Z, coef = rng.normal(size=(3, 700)), rng.normal(size=(5, 700)), rng.normal(size=(5, 1))
    values = column_values(RBF(gamma), X, Z, coef, sampling())
    assert np.isfinite(values).all()
    assert np.abs(values.sum(axis=2) - RBF(gamma)(X, Z) @ coef).max() < np.abs(coef).sum()


def test_orders_of_columns_samples_and_support_vectors_do_not_matter():
    rng = np.random.RandomState(0)
    X, Z, coef = rng.normal(size=(5, 9)), rng.normal(size=(7, 9)), rng.normal(size=(7, 2))
    columns, rows, stored = rng.permutation(9), rng.permutation(5), rng.permutation(7)
    for kernel in (RBF(0.3), Laplacian(0.1), Polynomial(3, 0.2), AdditiveLaplacian(0.5)):
        values = column_values(kernel, X, Z, coef, sampling())
        moved = column_values(
            kernel, X[rows][:, columns], Z[stored][:, columns], coef[stored], sampling()
        )
        np.testing.assert_allclose(moved, values[rows][:, :, columns], atol=1e-12)


def test_columns_without_effect_have_no_value_and_equal_columns_equal_ones():
    rng = np.random.RandomState(0)
    X, Z, coef = rng.normal(size=(5, 4)), rng.normal(size=(7, 4)), rng.normal(size=(7, 1))
    X[:, 3] = Z[:, 3] = 2.0
    X[:, 1], Z[:, 1] = X[:, 0], Z[:, 0]
    for kernel in (RBF(0.3), Laplacian(0.1), Polynomial(2, 0.2), Linear(), AdditiveLaplacian(0.5)):
        values = column_values(kernel, X, Z, coef, sampling())
        np.testing.assert_allclose(values[:, :, 3], 0.0, atol=1e-12)
        np.testing.assert_allclose(values[:, :, 0], values[:, :, 1], atol=1e-12)


def test_sums_views_and_normalised_kernels_add_up():
    rng = np.random.RandomState(0)
    X, Z, coef = rng.normal(size=(5, 6)), rng.normal(size=(7, 6)), rng.normal(size=(7, 2))
    left, right = RBF(0.3).on([0, 2]).bind(Z), Linear().on([1, 2, 5]).bind(Z)
    both = column_values(left + right, X, Z, coef, sampling())
    parts = [column_values(own, X, Z, coef, sampling()) for own in (left, right)]
    np.testing.assert_allclose(both, parts[0] + parts[1], atol=1e-12)
    assert (both[:, :, [3, 4]] == 0).all()
    twice = column_values(RBF(0.3).normalized("trace").bind(Z), X, Z, coef, sampling())
    np.testing.assert_allclose(
        twice, column_values(RBF(0.3), X, Z, coef, sampling()) / len(Z), atol=1e-12
    )
    cosine = column_values(Cosine(), X, Z, coef, sampling())
    norms = np.linalg.norm(X, axis=1)[:, np.newaxis, np.newaxis]
    unit = coef / np.linalg.norm(Z, axis=1)[:, np.newaxis]
    np.testing.assert_allclose(cosine * norms, column_values(Linear(), X, Z, unit, sampling()))


def test_random_orders_come_close_to_exact_values():
    """The stored samples are a grid, so that columns are independent."""
    rng = np.random.RandomState(0)
    levels = np.linspace(-1, 1, 4)
    Z = np.stack(np.meshgrid(levels, levels, levels), axis=-1).reshape(-1, 3)
    X, coef = rng.normal(size=(2, 3)), rng.normal(size=(len(Z), 1))
    used = sampling(4000)
    values = column_values(Callable(lambda A, B: rbf_kernel(A, B, gamma=0.5)), X, Z, coef, used)
    assert used.used

    def value(own):
        moved = Z[np.newaxis].repeat(len(X), axis=0)
        moved[:, :, own] = X[:, np.newaxis, own]
        return np.stack([(RBF(0.5)(rows, Z) @ coef).mean(axis=0) for rows in moved])

    np.testing.assert_allclose(values, brute_force(value, 3), atol=0.03 * np.abs(coef).sum() / 10)


VIEWS_X, VIEWS_Y, VIEWS, _ = make_views(80, missing=0.15, random_state=0)
TWO_KERNELS = {**per_view(RBF(0.1), VIEWS), "more": Linear().on(slice(0, 4))}


@quiet
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_columns_add_up_to_the_contributions_of_views(method, n_classes):
    y = (VIEWS_Y + (VIEWS_X[:, 3] > 1)) % n_classes
    model = getattr(lokl, method.classifier)(TWO_KERNELS, C=2)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    X = VIEWS_X if model._accepts_missing_views() else np.nan_to_num(VIEWS_X)
    model.fit(X, y)
    found, expected = column_contributions(model, X), model.contributions(X)
    assert found.views == [*list(VIEWS)] or len(found.views) == len(TWO_KERNELS) - 1
    merged = np.stack(
        [expected[..., 0] + expected[..., -1], *np.moveaxis(expected[..., 1:-1], -1, 0)], axis=-1
    )
    np.testing.assert_allclose(found.by_view(), merged, atol=1e-8)
    missing = np.isnan(X[:, 0])
    assert (found.values[missing][..., found.view == 0] == 0).all()


@quiet
@pytest.mark.parametrize(
    "method", [method for method in METHODS if method.regressor], ids=lambda method: method.name
)
def test_columns_of_regressions_add_up(method):
    X = np.nan_to_num(VIEWS_X)
    target = np.column_stack([X[:, 0] + X[:, 5], np.sin(X[:, 9])])
    model = getattr(lokl, method.regressor)(per_view(RBF(0.1), VIEWS), C=2)
    model.fit(X, target)
    found = column_contributions(model, X[:9])
    np.testing.assert_allclose(found.by_view(), model.contributions(X[:9]), atol=1e-8)


@quiet
@pytest.mark.parametrize("kind", ["TrustedVote", "LDMKL", "UniformMKL", "ExpertAverage"])
def test_explained_columns_add_up_to_explained_views(kind):
    y = np.array(["a", "b", "c"])[(VIEWS_Y + (VIEWS_X[:, 3] > 1)) % 3]
    model = getattr(lokl, f"{kind}Classifier")(per_view(RBF(0.1), VIEWS), C=2).fit(VIEWS_X, y)
    found = explain(model, VIEWS_X, columns=True)
    assert found.columns is not None
    np.testing.assert_allclose(found.columns.by_view(), found.contributions, atol=1e-8)
    assert explain(model, VIEWS_X[:3]).columns is None
    sample = found.sample_at(4)
    sizes = [abs(own.contribution) for own in sample.columns]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == pytest.approx(np.abs(found.columns.values[4]).max())
    assert "Columns that matter most" in str(sample)
    assert sample.to_dict()["columns"][0]["column"] == sample.columns[0].column
    frame = found.columns.to_frame(found.ids)
    assert frame.shape == (80, 12)
    assert frame.columns.names == ["view", "column"]


def test_sparse_samples_have_the_values_of_dense_ones():
    rng = np.random.RandomState(0)
    X = np.where(rng.uniform(size=(60, 15)) < 0.7, 0.0, rng.normal(size=(60, 15)))
    model = lokl.UniformMKLClassifier(["linear", "rbf", "poly2"], C=3).fit(X, X[:, 0] > X[:, 1])
    dense = column_contributions(model, X[:5])
    np.testing.assert_allclose(
        column_contributions(model, sparse.csr_matrix(X[:5])).values, dense.values, atol=1e-10
    )


def test_a_linear_model_has_its_weights_times_deviations():
    X, y = load_wine(return_X_y=True)
    X, y = scale(X[y < 2]), y[y < 2]
    model = lokl.UniformMKLClassifier(["linear"]).fit(X, y)
    coef = lokl.explain.feature_weights(model).coef.ravel()
    values = column_contributions(model, X).values
    moved = X * coef
    np.testing.assert_allclose(values - values.mean(axis=0), moved - moved.mean(axis=0), atol=1e-8)


def wine():
    data = load_wine(as_frame=True)
    return data.data.assign(kind=np.where(data.data.alcohol > 13, "high", "low")), data.target


@pytest.mark.filterwarnings("ignore:the best .* of the grid")
def test_encoded_columns_are_added_up():
    X, y = wine()
    numbers = [*X.columns[:-1]]
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers[::-1]),
        (OneHotEncoder(), ["kind"]),
    )
    pipeline = make_pipeline(columns, lokl.UniformMKLClassifier(["linear", "rbf"])).fit(X, y)
    found = column_contributions(pipeline, X)
    assert found.columns == [*X.columns] * 2
    Z = columns.transform(X)
    inner = column_contributions(pipeline[-1], Z)
    np.testing.assert_allclose(found.values[..., 0], inner.values[..., len(numbers) - 1])
    one_hot = inner.values[..., len(numbers) : len(numbers) + 2].sum(axis=-1)
    np.testing.assert_allclose(found.values[..., len(numbers)], one_hot)
    merged = found.merged()
    assert merged.columns == [*X.columns]
    np.testing.assert_allclose(merged.values.sum(axis=-1), found.values.sum(axis=-1))


def test_automkl_gives_the_columns_of_the_table():
    X, y = wine()
    views = {"first": [*X.columns[:6]], "second": [*X.columns[6:]]}
    for model in (lokl.AutoMKLClassifier(), lokl.AutoMKLClassifier(views)):
        model.fit(X[::2], y[::2])
        found = column_contributions(model, X[1::2])
        assert set(found.columns) == set(X.columns)
        # Kernels on the same scaling are one view.
        total = model.contributions(X[1::2]).sum(axis=-1)
        np.testing.assert_allclose(found.values.sum(axis=-1), total, atol=1e-8)


def test_selected_columns_keep_their_names_and_mixed_ones_get_new_ones():
    X, y = wine()
    X = X.drop(columns="kind")
    selected = make_pipeline(StandardScaler(), SelectKBest(k=4), lokl.UniformMKLClassifier(["rbf"]))
    kept = selected.fit(X, y)[1].get_support()
    assert column_contributions(selected, X).columns == [*X.columns[kept]]
    mixed = make_pipeline(StandardScaler(), PCA(3), lokl.UniformMKLClassifier(["rbf"])).fit(X, y)
    assert column_contributions(mixed, X).columns == ["pca0", "pca1", "pca2"]


def test_importance_finds_the_informative_columns():
    """Five of 500 columns matter, in six data sets."""
    found = []
    for seed in range(6):
        rng = np.random.RandomState(seed)
        X = rng.normal(size=(600, 500))
        y = X[:, :5] @ [1, -1, 1, -1, 1] + 0.5 * rng.normal(size=600) > 0
        model = lokl.UniformMKLClassifier(["rbf"], C=10).fit(X[:500], y[:500])
        table = column_importance(model, X[500:], n_bootstraps=50, n_largest=5, random_state=0)
        found += [int(name[1:]) < 5 for name in table.rows[:5]]
        assert (np.diff(table["importance"]) <= 0).all()
        assert table["selected"].sum() == pytest.approx(5.0)
        assert (table["importance_low"] <= table["importance_high"]).all()
    assert np.mean(found) >= 0.95


def test_direction_is_the_sign_of_a_linear_weight():
    X = np.random.RandomState(0).normal(size=(200, 3))
    frame = pd.DataFrame(X, columns=["up", "down", "none"])
    model = lokl.UniformMKLClassifier(["rbf"], C=10).fit(frame, X[:, 0] - X[:, 1] > 0)
    table = column_importance(model, frame, random_state=0)
    assert set(table.rows[:2]) == {"up", "down"}
    assert table.row("up")["direction"] > 0.8
    assert table.row("down")["direction"] < -0.8


def test_bad_input_is_named():
    X, y = load_wine(return_X_y=True)
    kernels, index = precomputed([scale(X) @ scale(X).T])
    stored = lokl.UniformMKLClassifier(kernels).fit(index, y)
    with pytest.raises(ValueError, match="stored kernels"):
        column_contributions(stored, index)
    assert explain(stored, index, columns=True).columns is None
    model = lokl.UniformMKLClassifier([Matern()]).fit(scale(X), y)
    assert column_contributions(model, scale(X)[:2], n_orders=1).approximate
    with pytest.raises(ValueError, match="n_orders"):
        column_contributions(model, X, n_orders=0)
    with pytest.raises(ValueError, match="n_largest"):
        column_importance(model, X, n_largest=0)
