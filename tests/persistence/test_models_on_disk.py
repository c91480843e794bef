"""Models come back as they were, whatever is around them."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from file_cases import samples, saved
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.gaussian_process.kernels import Matern
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

import lokl
from lokl import AutoMKLClassifier, RegionClassifier, UniformMKLClassifier
from lokl._methods import METHODS
from lokl.kernels import (
    RBF,
    AnisotropicRBF,
    Callable,
    Chi2,
    Cosine,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
    per_view,
    precomputed,
    standard,
)
from lokl.persistence import ModelFileError, info
from lokl.search import CalibratedMKLClassifier, KernelSearchCV
from lokl.solvers import MWU, Exact, LibSVM, Primal

NAMES = [name for method in METHODS for name in method.classes]
QUESTIONS = ("decision_function", "predict", "predict_proba", "weights", "contributions", "trust")


def answers(model, X):
    """Everything a model says about samples."""
    found = {}
    for question in QUESTIONS:
        try:
            ask = getattr(model, question)
        except AttributeError:
            continue
        found[question] = ask(X)
    return found


def check_same_after_load(model, X, folder):
    path = saved(folder, model)
    again = lokl.load(path)
    assert type(again) is type(model)
    before, after = answers(model, X), answers(again, X)
    assert before.keys() == after.keys()
    assert "predict" in before
    for question, said in before.items():
        np.testing.assert_array_equal(after[question], said, err_msg=question)
    return again


@pytest.mark.parametrize("name", NAMES)
def test_every_method_decides_the_same_to_the_last_bit(name, tmp_path):
    X, y = samples()
    if not name.endswith("Classifier"):
        y = X @ [1, 0, 1, -1]
    if name.endswith("Survival"):
        y = lokl.survival_target(np.arange(len(y)) % 4 > 0, np.exp(-y))
    model = getattr(lokl, name)(random_state=0).fit(X, y)
    again = check_same_after_load(model, X, tmp_path)
    assert repr(again) == repr(model)
    assert vars(again).keys() == vars(model).keys()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_what_everything_was_chosen_for_comes_back(kind, tmp_path):
    X, y = samples()
    y = X @ [1, 0, 1, -1] if kind == "Regressor" else y
    views = {"left": [0, 1], "right": [2, 3]}
    auto = getattr(lokl, f"AutoMKL{kind}")(views, random_state=0)
    again = check_same_after_load(auto.fit(X, y), X, tmp_path)
    assert again.leaderboard_.equals(auto.leaderboard_)


@pytest.mark.parametrize("name", [n for n in NAMES if n.endswith("Classifier")])
def test_views_some_of_them_missing_and_several_classes(name, tmp_path):
    X, _ = samples()
    y = np.digitize(X[:, 0] + X[:, 2], [-0.5, 0.5])
    frame = pd.DataFrame(X, columns=list("abcd"))
    views = {"left": ["a", "b"], "right": ["c", "d"]}
    frame.loc[:5, ["a", "b"]] = np.nan
    model = getattr(lokl, name)(per_view(RBF(), views), random_state=0)
    try:
        model.fit(frame, y)
    except ValueError:
        model.fit(frame.iloc[6:], y[6:])
        frame = frame.iloc[6:]
    check_same_after_load(model, frame, tmp_path)
    about = info(tmp_path / "model.lokl")
    assert about["input"]["columns"] == list("abcd")
    assert about["input"]["views"] == views
    assert about["target"]["classes"] == [0, 1, 2]


KERNELS = {
    "dot": [Linear(), Polynomial(3, "scale"), RBF("median"), Cosine(), Sigmoid(0.1)],
    "distances": [Laplacian(), AnisotropicRBF(np.array([1.0, 0.5, 2.0, 1.0]))],
    "normalised": [k.normalized(how) for k in standard() for how in ("unit_diag", "trace")],
    "combined": [Linear() + RBF(), (Linear() * RBF()).on([0, 2]), Cosine().normalized()],
    "process": [Matern(nu=1.5)],
    "words": ["poly2", "rbf"],
    "named": {"near": RBF(4.0), "far": RBF(0.1).on(slice(0, 2))},
}


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
def test_every_kind_of_kernel(kernels, tmp_path):
    X, y = samples()
    check_same_after_load(UniformMKLClassifier(kernels).fit(X, y), X, tmp_path)


def test_kernels_of_counts_and_those_that_are_known_by_name(tmp_path):
    X, y = samples()
    X = np.abs(X)
    model = UniformMKLClassifier([Chi2(), "additive_chi2"]).fit(X, y)
    check_same_after_load(model, X, tmp_path)


def test_stored_matrices(tmp_path):
    X, y = samples()
    kernels, rows = precomputed([X @ X.T, (X @ X.T + 1) ** 2])
    check_same_after_load(UniformMKLClassifier(kernels).fit(rows, y), rows, tmp_path)


def around():
    mix = UniformMKLClassifier([Linear(), RBF(0.5)])
    costs = {"C": [0.1, 1.0]}
    named = {"uniformmklclassifier__C": [0.1, 1.0]}
    columns = make_column_transformer(
        (MinMaxScaler(), [0, 1]), (StandardScaler(), [2]), remainder="passthrough"
    )
    scaled = make_pipeline(StandardScaler(), mix)
    return {
        "pipeline": scaled,
        "columns": make_pipeline(columns, mix),
        "grid": GridSearchCV(scaled, named, cv=StratifiedKFold(3), scoring="balanced_accuracy"),
        "several scores": GridSearchCV(mix, costs, cv=3, scoring=["f1_macro"], refit="f1_macro"),
        "kernel search": KernelSearchCV(mix, costs, cv=3),
        "search in a pipeline": make_pipeline(StandardScaler(), KernelSearchCV(mix, costs, cv=3)),
        "calibrated": CalibratedClassifierCV(mix, cv=3),
        "isotonic": CalibratedClassifierCV(scaled, cv=3, method="isotonic"),
        "calibrated by lokl": CalibratedMKLClassifier(mix),
        "regions": RegionClassifier(mix, max_region_size=20, random_state=0),
        "everything chosen": AutoMKLClassifier(methods=["UniformMKL"], random_state=0),
        "one against the rest": OneVsRestClassifier(mix),
        "numpy's functions": make_pipeline(FunctionTransformer(np.tanh), mix),
        "a generator": UniformMKLClassifier(random_state=np.random.RandomState(3)),
        "exact": UniformMKLClassifier(solver=Exact(tol=1e-5)),
        "libsvm": UniformMKLClassifier(solver=LibSVM()),
        "mwu": UniformMKLClassifier(solver=MWU()),
        "low rank": UniformMKLClassifier(solver=Primal(10)),
        "waves": UniformMKLClassifier([RBF(0.5)], solver=Primal(10, features="fourier")),
    }


@pytest.mark.parametrize("kind", around())
def test_estimators_around_a_model(kind, tmp_path):
    X, y = samples()
    model = around()[kind].fit(X, y)
    check_same_after_load(model, X, tmp_path)
    about = info(tmp_path / "model.lokl")
    assert about["model"][0] == type(model).__name__
    assert about["model"][-1] == "UniformMKLClassifier"
    assert about["target"]["classes"] == ["no", "yes"]


def test_a_transformed_target(tmp_path):
    X, _ = samples()
    model = TransformedTargetRegressor(lokl.UniformMKLRegressor(), func=np.exp, inverse_func=np.log)
    check_same_after_load(model.fit(X, X[:, 0]), X, tmp_path)


def test_sparse_samples(tmp_path):
    from scipy import sparse

    X, y = samples()
    X = sparse.csr_matrix(X * (np.abs(X) > 0.7))
    check_same_after_load(UniformMKLClassifier().fit(X, y), X, tmp_path)


def my_kernel(X, Z):
    return X @ Z.T


@pytest.mark.parametrize("function", [my_kernel, lambda X, Z: X @ Z.T])
def test_functions_cannot_be_saved(function, tmp_path):
    model = UniformMKLClassifier([RBF(), Callable(function)]).fit(*samples())
    with pytest.raises(ModelFileError, match=r"my_kernel|lambda|no code"):
        saved(tmp_path, model)
    assert not list(tmp_path.iterdir())


class Own(RBF):
    """A kernel that somebody wrote."""


def test_classes_of_others_cannot_be_saved(tmp_path):
    model = UniformMKLClassifier([Own()]).fit(*samples())
    with pytest.raises(ModelFileError, match=r"test_models_on_disk\.Own"):
        saved(tmp_path, model)


@pytest.mark.parametrize(
    ("thing", "fact"),
    [
        (UniformMKLClassifier(), "fit of UniformMKLClassifier"),
        ({"a": 1}, "only estimators can be saved, got dict"),
        (UniformMKLClassifier, "only estimators can be saved, got"),
    ],
)
def test_what_is_no_fitted_model_cannot_be_saved(thing, fact, tmp_path):
    with pytest.raises(ModelFileError, match=fact):
        lokl.save(thing, tmp_path / "model.lokl")


def test_a_file_stays_as_it_was_where_saving_fails(tmp_path):
    path = saved(tmp_path)
    before = path.read_bytes()
    with pytest.raises(ModelFileError):
        lokl.save(UniformMKLClassifier([Own()]).fit(*samples()), path)
    assert path.read_bytes() == before
    (tmp_path / "model.lokl.part").mkdir()
    with pytest.raises(OSError, match="part"):
        saved(tmp_path)
    assert path.read_bytes() == before


def test_a_file_tells_about_its_model_without_skops(tmp_path, monkeypatch):
    path = saved(
        tmp_path, make_pipeline(StandardScaler(), UniformMKLClassifier(C=3.5)).fit(*samples())
    )
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    about = info(path)
    assert about["format"] == 1
    assert about["lokl"] == lokl.__version__
    assert about["model"] == ["Pipeline", "StandardScaler", "UniformMKLClassifier"]
    assert about["settings"]["C"] == "3.5"
    assert about["input"]["n_features"] == 4
    assert {"python", "numpy", "scikit-learn", "skops", "system"} <= about["environment"].keys()
    json.dumps(about)
    for what, call in (("save", lambda: saved(tmp_path)), ("load", lambda: lokl.load(path))):
        with pytest.raises(ImportError, match=rf"lokl.{what} needs skops; .*lokl\[files\]"):
            call()


@pytest.mark.slow
def test_another_process_reads_the_same_decisions(tmp_path):
    X, y = samples()
    model = lokl.TrustedVoteClassifier(random_state=0).fit(X, y)
    path = saved(tmp_path, model)
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy, lokl\n"
        "model = lokl.load(sys.argv[1])\n"
        "sys.stdout.write(model.decision_function(numpy.load(sys.argv[2])).tobytes().hex())"
    )
    arguments = [sys.executable, "-c", code, str(path), str(tmp_path / "X.npy")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout == model.decision_function(X).tobytes().hex()
