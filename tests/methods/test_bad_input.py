"""What is refused, with the value and the remedy in the message; and odd data that is not."""

import numpy as np
import pandas as pd
import pytest
from estimator_cases import X, labels, samples, score
from scipy import sparse
from sklearn.exceptions import NotFittedError

from lokl import GMKLClassifier, UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF, Chi2, Laplacian, Polynomial, Precomputed, Sigmoid, precomputed
from lokl.solvers import Exact

Y = labels(X)
T = score(X)
ROWS = np.arange(float(len(X)))[:, np.newaxis]


def spoilt(value):
    bad = X.copy()
    bad[3, 1] = value
    return bad


SETTINGS = [
    ({"C": 0}, "C must be a positive finite number, got 0"),
    ({"C": -1.5}, "C must be a positive finite number, got -1.5"),
    ({"C": np.nan}, "C must be a positive finite number, got nan"),
    ({"C": np.inf}, "C must be a positive finite number, got inf"),
    ({"C": "1"}, "C must be a positive finite number, got '1'"),
    ({"C": None}, "C must be a positive finite number, got None"),
    ({"tol": 0}, "tol must be a positive finite number, got 0"),
    ({"tol": "tight"}, "tol must be a positive finite number, got 'tight'"),
    ({"cache_size": 0}, "cache_size must be a positive finite number, got 0"),
    ({"cache_size": -5}, "cache_size must be a positive finite number, got -5"),
    ({"max_iter": -2}, "max_iter must be an integer >= -1, got -2"),
    ({"max_iter": 10.5}, "max_iter must be an integer >= -1, got 10.5"),
    ({"max_iter": None}, "max_iter must be an integer >= -1, got None"),
    ({"random_state": "seed"}, "'seed' cannot be used to seed"),
    ({"solver": "magic"}, "unknown solver 'magic'; give a Solver or one of exact, libsvm"),
    ({"solver": Exact}, "unknown solver .*Exact"),
    ({"n_jobs": "x"}, "n_jobs must be a number of threads, .*, got 'x'"),
    ({"n_jobs": 0}, "n_jobs must be a number of threads, .*, got 0"),
    ({"n_jobs": 1.5}, "n_jobs must be a number of threads, .*, got 1.5"),
    (
        {"solver": Exact(), "tol": 1e-5},
        r"tol=1e-05 .*solver=Exact\(\); .*solver=Exact\(tol=1e-05\)",
    ),
    (
        {"solver": Exact(working_set=77), "cache_size": 100, "max_iter": 5},
        r"cache_size=100, max_iter=5 .*Exact\(cache_size=100, max_iter=5, "
        r"working_set=77\)",
    ),
    ({"kernels": ["circle"]}, "'circle'.*linear, poly2"),
    ({"kernels": "circle"}, "unknown kernel 'circle'"),
    ({"kernels": [RBF]}, "unknown kernel .*RBF"),
    ({"kernels": []}, "kernels is empty"),
    ({"kernels": {}}, "kernels is empty"),
    ({"kernels": 3}, "kernels must be a list or mapping of kernels, got 3"),
    ({"kernels": [RBF(0)]}, "gamma must be a positive finite number, got 0"),
    ({"kernels": [RBF(-2.0)]}, "gamma must be a positive finite number, got -2.0"),
    ({"kernels": [RBF("best")]}, "number, 'scale' or 'auto' or 'median', got 'best'"),
    ({"kernels": [Polynomial(0)]}, "degree must be a positive integer, got 0"),
    ({"kernels": [Polynomial(2, 1.0, -1.0)]}, "coef0 must be finite and not negative, got -1"),
    ({"kernels": [RBF(1.0).normalized("size")]}, "how must be one of .*, got 'size'"),
    ({"kernels": [Chi2()]}, "features must not be negative, got -.*; shift the features"),
    ({"kernels": [RBF(1.0).on([7])]}, "unknown column 7; the data has 4 columns"),
    ({"kernels": [RBF(1.0).on([])]}, "selects no column of 4"),
    ({"kernels": [RBF(1.0).on([True, False])]}, "mask of length 2 does not fit 4 columns"),
    ({"kernels": [RBF(1.0).on("east")]}, "'east' is a name, but the data has no column names"),
    ({"kernels": [RBF(1.0).on(lambda frame: ["east"])]}, "selector needs a data frame"),
    ({"kernels": [Precomputed(np.eye(90))]}, r"one column.*\(90, 4\)"),
]


@pytest.mark.parametrize(("settings", "message"), SETTINGS, ids=lambda value: str(value)[:40])
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        UniformMKLClassifier(**settings).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        UniformMKLRegressor(**settings).fit(X, T)


@pytest.mark.parametrize("epsilon", [-0.1, np.nan, np.inf, "wide", None])
def test_epsilon_out_of_range_is_named(epsilon):
    with pytest.raises(
        ValueError, match=f"epsilon must be finite and not negative, got {epsilon!r}"
    ):
        UniformMKLRegressor(epsilon=epsilon).fit(X, T)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: -1.0}, "class_weight of class 0 must be finite and not negative, got -1.0"),
        ({0: np.nan}, "class_weight of class 0 must be finite and not negative, got nan"),
        ({7: 1.0}, "not in class_weight"),
        ("heavy", "class_weight.*'heavy'"),
        ({0: 0.0, 1: 0.0}, r"class_weight=\{0: 0.0, 1: 0.0\} leaves 0 of 2 classes with a weight"),
        ({0: 0.0}, r"class_weight=\{0: 0.0\} leaves 1 of 2 classes with a weight above zero"),
        ({0: "much"}, "class_weight of class 0 must be finite and not negative, got 'much'"),
        (np.ones(2), "class_weight must be a dict of factors by class, .* got array"),
        ([1.0, 2.0], "class_weight must be a dict of factors by class, .* 'balanced' or None"),
        (3, "class_weight must be a dict .*, got 3"),
    ],
    ids=str,
)
def test_class_weights_out_of_range_are_named(class_weight, message):
    with pytest.raises(ValueError, match=message):
        UniformMKLClassifier(class_weight=class_weight).fit(X, Y)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (spoilt(np.nan), "Input X contains NaN"),
        (spoilt(np.inf), "Input X contains infinity"),
        (X[:0], r"0 sample\(s\).* while a minimum of 1 is required"),
        (X[:, :0], r"0 feature\(s\).* while a minimum of 1 is required"),
        (X[:, 0], "Expected 2D array, got 1D array instead"),
        (X[:-1], r"inconsistent numbers of samples: \[89, 90\]"),
        (X + 1j, "Complex data not supported"),
        (np.full(X.shape, "a"), "could not convert string to float"),
        (np.full(X.shape, "a", dtype=object), "could not convert string to float"),
        (X[np.newaxis], "dim 3"),
    ],
    ids=["nan", "inf", "empty", "narrow", "flat", "short", "complex", "strings", "objects", "deep"],
)
def test_samples_that_are_refused(data, message):
    for model, y in ((UniformMKLClassifier(), Y), (UniformMKLRegressor(), T)):
        with pytest.raises(ValueError, match=message):
            model.fit(data, y)
    if data.shape[0] and data.shape != X[:-1].shape:
        with pytest.raises(ValueError, match=message):
            UniformMKLClassifier().fit(X, Y).predict(data)


def test_nan_without_views_is_told_with_the_remedy():
    message = (
        r"row 3, column 1\); impute the values, .*, or give each view its own kernel with \.on"
    )
    model = UniformMKLClassifier().fit(X, Y)
    with pytest.raises(ValueError, match=message):
        UniformMKLClassifier().fit(spoilt(np.nan), Y)
    with pytest.raises(ValueError, match=message):
        model.predict(spoilt(np.nan))
    with pytest.raises(ValueError, match=r"contains NaN.*; impute the values, .*SimpleImputer$"):
        GMKLClassifier(combine="product").fit(spoilt(np.nan), Y)
    named = pd.DataFrame(spoilt(np.nan)).add_prefix("gene ")
    with pytest.raises(ValueError, match="row 3, column 'gene 1'"):
        UniformMKLClassifier().fit(named, Y)
    with pytest.raises(ValueError, match="contains NaN; impute"):
        model.predict(sparse.csr_matrix(spoilt(np.nan)))


@pytest.mark.parametrize(
    "tables",
    [
        {"a": X[:, :2], "b": X[:, 2:]},
        [X[:, :2], X[:, 2:]],
        (pd.DataFrame(X), pd.DataFrame(X)),
    ],
    ids=["dictionary", "list", "frames"],
)
def test_several_tables_are_refused_with_the_remedy(tables):
    model = UniformMKLClassifier().fit(X, Y)
    for use in (lambda: UniformMKLClassifier().fit(tables, Y), lambda: model.predict(tables)):
        with pytest.raises(
            ValueError,
            match=r"one table with all columns, .* of 2 tables; join .*join_views.*per_view",
        ):
            use()


def test_indices_of_64_bits_serve_every_kernel():
    wide = sparse.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    kernels = ["laplacian", "rbf"]
    model = UniformMKLClassifier(kernels).fit(wide, Y)
    expected = UniformMKLClassifier(kernels).fit(X, Y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(wide), expected, atol=1e-8)
    np.testing.assert_allclose(Laplacian()(wide), Laplacian()(X))
    assert wide.indices.dtype == np.int64


def test_infinity_is_refused_in_views_too():
    with pytest.raises(ValueError, match="Input X contains infinity"):
        UniformMKLClassifier([RBF(1.0).on([0, 1])]).fit(spoilt(-np.inf), Y)


def test_numbers_as_objects_are_numbers():
    model = UniformMKLClassifier().fit(X.astype(object), Y)
    np.testing.assert_array_equal(
        model.decision_function(X), UniformMKLClassifier().fit(X, Y).decision_function(X)
    )


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(90), "two or more classes; the data has one class: 0"),
        (np.full(90, "only"), "two or more classes; the data has one class: only"),
        (T, "Unknown label type: continuous"),
        (np.column_stack([Y, 1 - Y]), r"1d array, got an array of shape \(90, 2\)"),
        (None, "requires y to be passed, but the target y is None"),
        (np.where(np.arange(90) == 4, np.nan, Y), "Input y contains NaN"),
        (np.array(["a", 1, 2.5] * 30, dtype=object), "several types .*: float, int, str; convert"),
        (np.array([0, "a"] * 45, dtype=object), "several types .*: int, str; convert"),
        (np.array(["a", "b", None] * 30, dtype=object), "several types .*: NoneType, str; convert"),
    ],
    ids=["zeros", "only", "continuous", "columns", "none", "nan", "mixed", "two types", "a hole"],
)
def test_labels_that_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        UniformMKLClassifier().fit(X, y)


def test_labels_that_are_numbers_but_typed_as_objects():
    model = UniformMKLClassifier().fit(X, Y.astype(object))
    np.testing.assert_array_equal(model.predict(X), UniformMKLClassifier().fit(X, Y).predict(X))
    assert model.classes_.dtype == Y.dtype


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(np.arange(90) == 4, np.nan, T), "Input y contains NaN"),
        (np.where(np.arange(90) == 4, np.inf, T), "Input y contains infinity"),
        (np.full(90, "a"), "could not convert string to float"),
        (T + 1j, "Complex data not supported"),
        (None, "requires y to be passed"),
    ],
    ids=["nan", "inf", "strings", "complex", "none"],
)
def test_targets_that_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        UniformMKLRegressor().fit(X, y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.where(np.arange(90) == 4, -2.0, 1.0), "finite and not negative, got -2.0"),
        (np.where(np.arange(90) == 4, np.nan, 1.0), "sample_weight contains NaN"),
        (np.where(np.arange(90) == 4, np.inf, 1.0), "sample_weight contains infinity"),
        (np.zeros(90), "(?i)sample weights.*zero"),
        (np.ones(5), r"sample_weight.shape == \(5,\), expected \(90,\)"),
        (np.ones((90, 2)), "must be 1D array or scalar"),
    ],
    ids=["negative", "nan", "inf", "zero", "short", "wide"],
)
def test_weights_that_are_refused(weight, message):
    for model, y in ((UniformMKLClassifier(), Y), (UniformMKLRegressor(), T)):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, weight)


def test_weights_that_leave_one_class_are_refused():
    message = "the data has one class: 1; all other samples have a sample_weight of 0"
    with pytest.raises(ValueError, match=f"two or more classes; {message}"):
        UniformMKLClassifier().fit(X, Y, 1.0 * (Y == 1))


def test_one_weight_for_all_is_a_factor_of_the_cost():
    double = UniformMKLClassifier(["rbf"], tol=1e-9).fit(X, Y, 2.0)
    plain = UniformMKLClassifier(["rbf"], C=2.0, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(double.decision_function(X), plain.decision_function(X), atol=1e-7)


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        (np.ones((90, 80)), r"\(90, 80\)"),
        (np.triu(np.ones((90, 90))), "differ by 1"),
        (np.full((90, 90), np.nan), "row 0, column 0 is nan; leave that sample out"),
        (np.ones((50, 50)), "50 is not in the stored 50 x 50"),
        (np.ones(90), "Expected 2D array"),
    ],
    ids=["wide", "asymmetric", "nan", "small", "flat"],
)
def test_stored_matrices_that_are_refused(gram, message):
    with pytest.raises(ValueError, match=message):
        UniformMKLClassifier([Precomputed(gram)]).fit(ROWS, Y)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (ROWS + 0.5, r"0\.5 is not in the stored 90 x 90"),
        (ROWS - 1, "-1 is not in"),
        (ROWS + 1, "90 is not in"),
    ],
    ids=["between", "below", "above"],
)
def test_row_numbers_that_are_refused(index, message):
    kernels, rows = precomputed([np.eye(90)])
    with pytest.raises(ValueError, match=message):
        UniformMKLClassifier(kernels).fit(index, Y)
    with pytest.raises(ValueError, match=message):
        UniformMKLClassifier(kernels).fit(rows, Y).predict(index)


def test_an_unknown_column_is_named_with_those_there_are():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match="unknown column 'e'; the data has a, b, c, d"):
        UniformMKLClassifier([RBF(1.0).on(["a", "e"])]).fit(frame, Y)


def test_prediction_refuses_other_columns():
    model = UniformMKLClassifier().fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4 features"):
        model.predict(X[:, :3])
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model.fit(frame, Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize("method", ["predict", "decision_function", "weights", "contributions"])
def test_an_unfitted_model_says_so(method):
    with pytest.raises(NotFittedError, match="Call 'fit' with appropriate arguments"):
        getattr(UniformMKLClassifier(), method)(X)


def test_memory_for_less_than_two_rows_is_refused_with_what_is_needed():
    many = samples(2200)
    message = r"cache_size=0.01 .* 2200 samples.* 0\.017 MB"
    with pytest.raises(ValueError, match=message):
        UniformMKLClassifier(["rbf"], cache_size=0.01).fit(many, labels(many))


@pytest.mark.parametrize(
    "kernel", [Sigmoid(5.0, -1.0), Precomputed(-np.eye(90) + 0.5)], ids=["sigmoid", "stored"]
)
def test_an_indefinite_kernel_warns_and_gives_a_model(kernel):
    data = ROWS if isinstance(kernel, Precomputed) else X
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = UniformMKLClassifier([kernel]).fit(data, Y)
    assert np.isfinite(model.decision_function(data)).all()


@pytest.mark.filterwarnings("ignore:the SVM is saturated")
@pytest.mark.parametrize("value", [0.0, 1.0, -30.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly2"])
def test_constant_features_give_the_majority_and_the_middle(value, kernel):
    flat = np.full((90, 3), value)
    skewed = np.where(np.arange(90) < 30, "few", "many")
    model = UniformMKLClassifier([kernel], tol=1e-6).fit(flat, skewed)
    assert (model.predict(flat) == "many").all()
    predicted = UniformMKLRegressor([kernel], epsilon=0.0, tol=1e-6).fit(flat, T).predict(flat)
    assert np.ptp(predicted) == 0
    low, high = np.sort(T)[[44, 45]]
    assert low - 1e-3 <= predicted[0] <= high + 1e-3


def test_one_constant_feature_changes_nothing_for_distances():
    wider = np.column_stack([X, np.full(90, 1e3)])
    plain = UniformMKLClassifier([RBF(0.5)], tol=1e-9).fit(X, Y)
    model = UniformMKLClassifier([RBF(0.5)], tol=1e-9).fit(wider, Y)
    np.testing.assert_allclose(
        model.decision_function(wider), plain.decision_function(X), atol=1e-6
    )


def test_equal_rows_with_opposite_labels_cancel():
    twice, both = np.vstack([X, X]), np.append(Y, 1 - Y)
    model = UniformMKLClassifier(tol=1e-6).fit(twice, both)
    np.testing.assert_allclose(model.decision_function(X), 0.0, atol=1e-6)
    noisy = UniformMKLClassifier(["rbf"], tol=1e-9).fit(
        np.vstack([X, X[:5]]), np.append(Y, 1 - Y[:5])
    )
    assert np.isfinite(noisy.decision_function(X)).all()
    assert noisy.duality_gap_ < 1e-6


@pytest.mark.parametrize("solver", ["exact", "libsvm"])
def test_tiny_data_is_learned(solver):
    corners = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    for n in (2, 3):
        model = UniformMKLClassifier(C=100.0, solver=solver).fit(corners[:n], np.arange(n))
        np.testing.assert_array_equal(model.predict(corners[:n]), np.arange(n))
        line = UniformMKLRegressor(C=100.0, epsilon=0.01, solver=solver)
        line.fit(corners[:n], np.arange(n))
        np.testing.assert_allclose(line.predict(corners[:n]), np.arange(n), atol=0.02)
    alone = UniformMKLRegressor(solver=solver).fit(corners[:1], [3.0])
    np.testing.assert_allclose(alone.predict(corners), 3.0)
    with pytest.raises(ValueError, match="one class"):
        UniformMKLClassifier().fit(corners[:1], [0])


@pytest.mark.parametrize("solver", ["exact", "libsvm"])
def test_a_constant_target_is_predicted_without_support(solver):
    model = UniformMKLRegressor(solver=solver).fit(X, np.full(90, 2.5))
    np.testing.assert_allclose(model.predict(X), 2.5)
    assert len(model.support_) == 0
    assert model.support_fraction_ == 0
    np.testing.assert_array_equal(model.contributions(X), np.zeros((90, 3)))
