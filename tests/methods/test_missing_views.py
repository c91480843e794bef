"""Samples that lack whole views, in training and in prediction."""

import numpy as np
import pandas as pd
import pytest
from estimator_cases import (
    FRESH,
    MACHINES,
    THEIRS,
    TIGHT,
    X,
    labels,
    machine,
    outcome,
    samples,
    score,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from method_cases import CLASSIFIERS, RECORDS, REGRESSORS, estimators, make
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import lokl
from lokl import UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF, Laplacian, Linear

machines = pytest.mark.parametrize("name", MACHINES)
VIEWS = {"left": [0, 1], "middle": [2], "right": [3]}
KERNELS = {
    "left": RBF(0.5).on(VIEWS["left"]),
    "middle": Linear().on(VIEWS["middle"]),
    "right": Laplacian(0.7).on(VIEWS["right"]),
}


def holes(X, seed=0, share=0.3):
    """Set whole views to NaN; every sample keeps at least one."""
    rng = np.random.RandomState(seed)
    present = rng.uniform(size=(len(X), 3)) > share
    present[np.arange(len(X)), rng.randint(3, size=len(X))] = True
    X = X.copy()
    for seen, columns in zip(present.T, VIEWS.values(), strict=True):
        X[np.ix_(~seen, columns)] = np.nan
    return X, present


def reference_gram(X, there, Z, here, kernels=KERNELS):
    """``sum_i h_i(x) h_i(z) k_i(x, z)`` with the trust of a sample shared by the views it has."""
    left, right = (np.sqrt(p / p.sum(axis=1, keepdims=True)) for p in (there, here))
    X, Z = np.nan_to_num(X), np.nan_to_num(Z)
    return sum(
        np.outer(left[:, i], right[:, i]) * kernel(X, Z)
        for i, kernel in enumerate(kernels.values())
    )


@machines
def test_trust_is_shared_by_the_views_a_sample_has(name):
    train, _ = holes(X)
    fresh, present = holes(FRESH, seed=1)
    model, y = machine(name, KERNELS)
    trust = model.fit(train, y).weights(fresh)
    assert (trust[~present] == 0).all()
    np.testing.assert_allclose(trust, present / present.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(trust.sum(axis=1), 1.0)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**16), share=st.floats(0, 0.9))
def test_training_with_holes_is_the_machine_on_the_explicit_matrix(seed, share):
    train, there = holes(X, seed, share)
    fresh, here = holes(FRESH, seed + 1, share)
    K, block = reference_gram(train, there, train, there), reference_gram(fresh, here, train, there)
    y, t = labels(X), score(X)
    svc = SVC(kernel="precomputed", tol=THEIRS).fit(K, y)
    ours = UniformMKLClassifier(KERNELS, tol=TIGHT).fit(train, y)
    np.testing.assert_allclose(outcome(ours, fresh), outcome(svc, block), atol=1e-4)
    svr = SVR(kernel="precomputed", tol=THEIRS).fit(K, t)
    ours = UniformMKLRegressor(KERNELS, tol=TIGHT).fit(train, t)
    np.testing.assert_allclose(ours.predict(fresh), svr.predict(block), atol=1e-4)


@machines
def test_holes_only_in_prediction(name):
    fresh, here = holes(FRESH, seed=2)
    model, y = machine(name, KERNELS)
    model.fit(X, y)
    there = np.ones((len(model.support_), 3))
    block = reference_gram(fresh, here, model.support_vectors_, there)
    expected = block @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(outcome(model, fresh), expected, atol=1e-9)


@machines
def test_parts_still_add_up_and_missing_views_have_none(name):
    train, _ = holes(X)
    fresh, present = holes(FRESH, seed=1)
    model, y = machine(name, KERNELS)
    parts = model.fit(train, y).contributions(fresh).reshape(len(FRESH), -1, 3)
    np.testing.assert_allclose(
        parts.sum(axis=2) + model.intercept_, outcome(model, fresh), atol=1e-9
    )
    assert (parts[np.broadcast_to(~present[:, np.newaxis, :], parts.shape)] == 0).all()


@machines
def test_the_learned_kernel_knows_about_holes(name):
    train, there = holes(X)
    fresh, here = holes(FRESH, seed=1)
    model, y = machine(name, KERNELS)
    model.fit(train, y)
    assert np.isnan(model.support_vectors_).any()
    np.testing.assert_allclose(
        model.kernel_(fresh, train), reference_gram(fresh, here, train, there), atol=1e-12
    )
    diagonal = reference_gram(fresh, here, fresh, here).diagonal()
    np.testing.assert_allclose(model.kernel_.diag(fresh), diagonal, atol=1e-12)


def test_a_full_table_is_the_same_with_and_without_the_machinery():
    far = np.vstack([X, X[:1]])
    far[-1, VIEWS["left"]] = np.nan
    weight = np.append(np.ones(len(X)), 0.0)
    y = labels(X)
    plain = UniformMKLClassifier(KERNELS, tol=TIGHT).fit(X, y)
    absent = UniformMKLClassifier(KERNELS, tol=TIGHT).fit(far, np.append(y, 0), weight)
    np.testing.assert_allclose(outcome(absent, FRESH), outcome(plain, FRESH), atol=1e-9)


def test_scales_are_learned_from_the_samples_that_have_the_view():
    train, present = holes(X)
    kernels = {
        "left": RBF("scale").on([0, 1]),
        "middle": Linear().normalized("mean_diag").on([2]),
        "right": RBF("median").on([3]),
    }
    model = UniformMKLClassifier(kernels).fit(train, labels(X))
    seen = [X[present[:, i]][:, columns] for i, columns in enumerate(VIEWS.values())]
    assert model.kernels_[0].kernel.gamma == pytest.approx(1 / (2 * seen[0].var()))
    assert model.kernels_[1].kernel.scale == pytest.approx(1 / (seen[1] ** 2).mean())
    assert model.kernels_[2].kernel.gamma == RBF("median").bind(seen[2]).gamma


@pytest.mark.parametrize("kernel", [RBF(1.0), RBF("scale"), RBF("median"), Laplacian()], ids=repr)
def test_a_view_that_no_training_sample_has_counts_for_nothing(kernel):
    train = X.copy()
    train[:, VIEWS["left"]] = np.nan
    y = labels(X)
    kernels = [kernel.on(VIEWS["left"]), RBF(1.0).on([2, 3])]
    model = UniformMKLClassifier(kernels, tol=TIGHT).fit(train, y)
    alone = UniformMKLClassifier([RBF(1.0)], tol=TIGHT).fit(X[:, 2:], y)
    fresh = FRESH.copy()
    fresh[:, VIEWS["left"]] = np.nan
    np.testing.assert_allclose(outcome(model, fresh), outcome(alone, FRESH[:, 2:]), atol=1e-7)


def test_columns_that_no_kernel_sees_may_miss_anything():
    loose = X.copy()
    loose[::2, 3] = np.nan
    kernels = [RBF(0.5).on([0, 1]), Linear().on([2])]
    y = labels(X)
    np.testing.assert_array_equal(
        outcome(UniformMKLClassifier(kernels).fit(loose, y), loose),
        outcome(UniformMKLClassifier(kernels).fit(X, y), X),
    )


def test_views_by_name_may_be_missing():
    names = ["a", "b", "c", "d"]
    train, _ = holes(X)
    fresh, _ = holes(FRESH, seed=1)
    kernels = {
        "left": RBF(0.5).on(["a", "b"]),
        "middle": Linear().on("c"),
        "right": KERNELS["right"],
    }
    y = labels(X)
    frame = UniformMKLClassifier(kernels, tol=TIGHT).fit(pd.DataFrame(train, columns=names), y)
    array = UniformMKLClassifier(KERNELS, tol=TIGHT).fit(train, y)
    np.testing.assert_allclose(
        outcome(frame, pd.DataFrame(fresh, columns=names)), outcome(array, fresh), atol=1e-9
    )


def test_many_samples_with_holes():
    many = samples(2300)
    train, there = holes(many)
    fresh, here = holes(FRESH, seed=1)
    y = labels(many)
    ours = UniformMKLClassifier(KERNELS, tol=1e-5).fit(train, y)
    svc = SVC(kernel="precomputed", tol=1e-6).fit(reference_gram(train, there, train, there), y)
    block = reference_gram(fresh, here, train, there)
    np.testing.assert_allclose(outcome(ours, fresh), outcome(svc, block), atol=1e-3)


@pytest.mark.parametrize("when", ["fit", "predict"])
def test_a_partly_missing_view_names_sample_view_and_column(when):
    partly = X.copy()
    partly[7, 1] = np.nan
    model = UniformMKLClassifier(KERNELS)
    if when == "predict":
        model.fit(X, labels(X))
    message = "sample 7 has a part of the view of kernel 'left' but not column 1; impute it"
    with pytest.raises(ValueError, match=message):
        model.predict(partly) if when == "predict" else model.fit(partly, labels(X))


def test_a_partly_missing_view_names_the_column_of_a_frame():
    partly = pd.DataFrame(X, columns=["a", "b", "c", "d"], copy=True)
    partly.loc[7, "b"] = np.nan
    with pytest.raises(ValueError, match=r"sample 7 .* column 'b'; impute it"):
        UniformMKLClassifier(KERNELS).fit(partly, labels(X))


@pytest.mark.parametrize(
    ("columns", "message"),
    [([1], "sample 7 has a part of the view"), ([0, 1, 2, 3], "sample 7 lacks every view")],
    ids=["partly", "altogether"],
)
def test_a_hole_names_the_sample_as_it_was_given(columns, message):
    bad = X.copy()
    bad[7, columns] = np.nan
    weight = np.where(np.arange(len(X)) < 5, 0.0, 1.0)
    with pytest.raises(ValueError, match=message):
        UniformMKLClassifier(KERNELS).fit(bad, labels(X), weight)


@pytest.mark.parametrize("when", ["fit", "predict"])
def test_a_sample_without_any_view_is_named(when):
    lost = X.copy()
    lost[7] = np.nan
    model = UniformMKLClassifier(KERNELS)
    if when == "predict":
        model.fit(X, labels(X))
    with pytest.raises(ValueError, match="sample 7 lacks every view; remove it"):
        model.predict(lost) if when == "predict" else model.fit(lost, labels(X))


@pytest.mark.parametrize(
    "kernels",
    [None, ["rbf"], [RBF(1.0).on([0, 1]), Linear()], [RBF(1.0).on([0]) + Linear()]],
    ids=["default", "rbf", "one without a view", "sum without a view"],
)
@pytest.mark.parametrize("when", ["fit", "predict"])
def test_nan_without_views_is_an_error(kernels, when):
    missing, _ = holes(X)
    model = UniformMKLClassifier(kernels)
    if when == "predict":
        model.fit(X, labels(X))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.predict(missing) if when == "predict" else model.fit(missing, labels(X))


def far_away(n=60, offset=10.0):
    """Two views of two columns each; the first lies far from zero."""
    rng = np.random.RandomState(0)
    y = np.arange(n) % 2
    far = rng.normal(size=(n, 4)) + (2 * y - 1)[:, np.newaxis]
    far[:, :2] += offset
    return far, y


TWO_VIEWS = {"far": Linear().on([0, 1]), "near": Linear().on([2, 3])}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", estimators())
@pytest.mark.parametrize("missing", [[0, 1], [2, 3]], ids=["far", "near"])
def test_samples_without_a_view_and_kernels_off_centre_warn_once_a_call(name, missing):
    """Also where the view that is missing is not the one at fault."""
    far, y = far_away()
    model = make(name, TWO_VIEWS, tol=1e-3).fit(far, y)
    holes = far.copy()
    holes[:20, missing] = np.nan
    model.predict(far)
    model.weights(holes)
    if RECORDS[name].can("vote"):  # every expert has its own intercept
        model.predict(holes)
        return
    for ask in ("predict", "contributions"):
        with pytest.warns(UserWarning, match="20 of 60 samples lack a view, and these") as warned:
            getattr(model, ask)(holes)
        assert len(warned) == 1
        assert "off centre: 'far';" in str(warned[0].message)


def test_kernels_off_centre_do_harm_and_the_remedies_help():
    far, y = far_away(200, offset=30.0)
    fresh = far_away(200, offset=30.0)[0]
    fresh[:, 2:] = np.nan

    def accuracy(kernel, move):
        kernels = {name: kernel.on(view.columns) for name, view in TWO_VIEWS.items()}
        model = UniformMKLClassifier(kernels).fit(move(far), y)
        return model.score(move(fresh), y)

    scale = StandardScaler().fit(far)
    with pytest.warns(UserWarning, match="lean to one side"):
        assert accuracy(Linear(), lambda Z: Z) < 0.7
    # Nothing is warned of here.
    assert accuracy(Linear(), scale.transform) > 0.85
    assert accuracy(RBF("scale"), lambda Z: Z) > 0.85


@pytest.mark.parametrize("when", ["fit", "predict"])
def test_nan_in_a_sparse_matrix_is_an_error(when):
    # Entries that are not stored are zeros: a sparse matrix has no place for missing views.
    missing = sparse.csr_matrix(holes(X)[0])
    model = UniformMKLClassifier([RBF(0.5).on([0, 1]), Linear().on([2]), RBF(1.0).on([3])])
    if when == "predict":
        model.fit(sparse.csr_matrix(X), labels(X))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(missing) if when == "predict" else model.fit(missing, labels(X))


@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_a_view_that_no_sample_has_is_never_trusted(name):
    views = {"left": RBF(0.5).on(VIEWS["left"]), "right": Linear().on(VIEWS["right"])}
    train = X.copy()
    train[:, VIEWS["right"]] = np.nan
    y = labels(X) if name.endswith("Classifier") else score(X)
    model = getattr(lokl, name)(views, random_state=0).fit(train, y)
    np.testing.assert_array_equal(model.weights(train)[..., 1], 0.0)
    assert np.isfinite(model.predict(train)).all()
