"""Shared work changes no cell: what a search computes is what GridSearchCV computes."""

import numpy as np
import pytest
import sklearn
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from search_cases import check_like_grid_search, data, targets
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import lokl
from lokl import LpMKLClassifier, UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF, Linear
from lokl.search import KernelSearchCV

# Not what these tests are about.
pytestmark = [
    pytest.mark.filterwarnings("ignore:the best .* of the grid"),
    pytest.mark.filterwarnings("ignore:the SVM is saturated"),
    pytest.mark.filterwarnings("ignore:The scoring .* does not support sample_weight"),
]

# So exact that a start from elsewhere ends in the same place.
EXACT = {"tol": 1e-8}


@pytest.mark.slow
@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**16),
    n_classes=st.integers(2, 3),
    costs=st.lists(
        st.sampled_from([0.1, 0.5, 1.0, 3.0, 10.0]), min_size=1, max_size=4, unique=True
    ),
    stem=st.sampled_from(["UniformMKL", "LpMKL", "SimpleMKL"]),
    weighted=st.booleans(),
    piped=st.booleans(),
    n_jobs=st.sampled_from([None, 2]),
)
def test_classifiers(seed, n_classes, costs, stem, weighted, piped, n_jobs):
    X, y = data(45, n_classes, seed)
    weight = np.random.RandomState(seed).randint(1, 4, size=45)
    model, prefix = getattr(lokl, f"{stem}Classifier")(**EXACT), ""
    if stem != "UniformMKL":
        # Where a fit begins decides where within its gap it ends.
        model.set_params(learn_tol=1e-7)
    if piped:
        prefix = f"{type(model).__name__.lower()}__"
        model = make_pipeline(StandardScaler(), model)
    grid = {
        f"{prefix}C": costs,
        f"{prefix}kernels": [[Linear(), RBF(0.5)], "rbf"],
        f"{prefix}class_weight": [None, "balanced"],
    }
    check_like_grid_search(
        model,
        grid,
        X,
        y,
        fit={f"{prefix}sample_weight": weight} if weighted else {},
        cv=3,
        n_jobs=n_jobs,
        scoring=["accuracy", "balanced_accuracy"],
        refit="accuracy",
        return_train_score=True,
    )


@pytest.mark.slow
@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**16),
    n_targets=st.integers(1, 2),
    stem=st.sampled_from(["UniformMKL", "LpMKL"]),
)
@example(seed=2, n_targets=1, stem="LpMKL")
def test_regressors(seed, n_targets, stem):
    X, y = targets(45, seed)
    y = y if n_targets == 1 else np.column_stack([y, X[:, 0]])
    grid = {"C": [5.0, 0.5], "epsilon": [0.1, 0.01], "kernels__0__gamma": [0.1, 1.0]}
    model = getattr(lokl, f"{stem}Regressor")([RBF(0.5), Linear()], tol=1e-10)
    if stem == "LpMKL":
        # The objective is flat at its minimum: fits that start elsewhere and end within a gap g of
        # it differ by the order of sqrt(g) in weights and scores, here 1e-5.
        model.set_params(learn_tol=1e-10)
    search = KernelSearchCV(model, grid, cv=3).fit(X, y)
    theirs = GridSearchCV(model, grid, cv=3).fit(X, y)
    for name in ("mean_test_score", "split1_test_score", "std_test_score"):
        np.testing.assert_allclose(
            search.cv_results_[name], theirs.cv_results_[name], atol=1e-4, err_msg=name
        )


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_candidates_and_folds_does_not_matter(order):
    X, y = data(60)
    folds = [(np.flatnonzero(np.arange(60) % 3 != k), np.arange(k, 60, 3)) for k in range(3)]
    straight = {"C": [0.1, 1.0, 10.0], "kernels": ["rbf", "linear"]}
    grid = {name: values[::order] for name, values in straight.items()}
    model = UniformMKLClassifier(**EXACT)
    search = KernelSearchCV(model, grid, cv=folds[::order]).fit(X, y)
    table = zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)
    found = {(params["C"], params["kernels"]): score for params, score in table}
    results = KernelSearchCV(model, straight, cv=folds).fit(X, y).cv_results_
    for params, score in zip(results["params"], results["mean_test_score"], strict=True):
        assert found[params["C"], params["kernels"]] == pytest.approx(score)


class Counting(TransformerMixin, BaseEstimator):
    """Counts how often anybody fits it, and may fail."""

    fits = 0

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y=None):
        Counting.fits += 1
        if self.factor < 0:
            raise ValueError("a negative factor")
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X * self.factor


class OtherwiseOnTraining(TransformerMixin, BaseEstimator):
    """Treats rows that it learns from in another way, as target encoders do."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def fit_transform(self, X, y):
        return self.fit(X, y).transform(X) + 0.2 * np.sin(7 * X)

    def transform(self, X):
        return 2 * X


@pytest.fixture
def counted():
    Counting.fits = 0
    return make_pipeline(Counting(), UniformMKLClassifier("rbf"))


LAST = "uniformmklclassifier__"


def test_transformers_are_fitted_once_a_fold_and_once_in_the_end(counted):
    X, y = data(60)
    grid = {f"{LAST}C": [0.1, 1.0, 10.0], f"{LAST}kernels": ["rbf", "linear"]}
    KernelSearchCV(counted, grid, cv=3).fit(X, y)
    assert Counting.fits == 3 + 1


def test_transformers_with_settings_of_their_own_are_fitted_once_each(counted):
    X, y = data(60)
    grid = {f"{LAST}C": [0.1, 1.0, 10.0], "counting__factor": [0.5, 2.0]}
    KernelSearchCV(counted, grid, cv=3).fit(X, y)
    assert Counting.fits == 2 * 3 + 1
    check_like_grid_search(counted, grid, X, y, cv=3)


def test_a_transformer_that_fails_fails_its_candidates_only(counted):
    X, y = data(60)
    grid = {f"{LAST}C": [0.1, 1.0], "counting__factor": [1.0, -1.0]}
    search = KernelSearchCV(counted, grid, cv=3, error_score=-1.0)
    with pytest.warns(FitFailedWarning, match="6 fits failed(.|\n)*a negative factor"):
        search.fit(X, y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"] == -1, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="a negative factor"):
        search.set_params(error_score="raise").fit(X, y)


def test_a_function_that_scores_sees_the_whole_pipeline(counted):
    X, y = data(60)

    def score(model, X, y):
        return model[0].factor + model.score(X, y)

    check_like_grid_search(counted, {f"{LAST}C": [0.1, 1.0]}, X, y, scoring=score)


@pytest.mark.parametrize("kind", ["sparse", "frame", "otherwise", "supervised", "passthrough"])
def test_what_transformers_give_is_taken_as_it_is(kind):
    pandas = pytest.importorskip("pandas")
    X, y = data(60)
    first = {
        "sparse": FunctionTransformer(sparse.csr_matrix),
        "frame": StandardScaler().set_output(transform="pandas"),
        "otherwise": OtherwiseOnTraining(),
        "supervised": SelectKBest(k=2),
        "passthrough": "passthrough",
    }[kind]
    model = make_pipeline(first, UniformMKLClassifier("rbf", **EXACT))
    X = pandas.DataFrame(X, columns=list("abc")) if kind == "frame" else X
    check_like_grid_search(model, {f"{LAST}C": [0.1, 1.0, 10.0]}, X, y, cv=3)


def test_weights_by_routing():
    X, y = data(60)
    weight = np.random.RandomState(0).uniform(0.1, 3, size=60)
    with sklearn.config_context(enable_metadata_routing=True):
        model = UniformMKLClassifier("rbf", **EXACT).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        check_like_grid_search(model, {"C": [0.1, 1.0]}, X, y, fit={"sample_weight": weight}, cv=3)


def test_sparse_samples_and_data_frames():
    pandas = pytest.importorskip("pandas")
    X, y = data(60)
    model = LpMKLClassifier(["rbf", "linear"], **EXACT)
    plain = KernelSearchCV(model, {"C": [0.1, 1.0]}).fit(X, y)
    for kind in (sparse.csr_matrix, lambda rows: pandas.DataFrame(rows, columns=list("abc"))):
        search = check_like_grid_search(model, {"C": [0.1, 1.0]}, kind(X), y)
        np.testing.assert_allclose(
            search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
        )
    assert list(search.feature_names_in_) == ["a", "b", "c"]


def test_a_regressor_whose_line_breaks_in_the_middle_goes_on():
    X, y = targets(40)
    grid = {"C": [0.1, 1.0, 10.0], "epsilon": [0.1, -1.0]}
    with (
        pytest.warns(FitFailedWarning, match="9 fits failed out of a total of 18"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        check_like_grid_search(UniformMKLRegressor("rbf", **EXACT), grid, X, y, cv=3)
