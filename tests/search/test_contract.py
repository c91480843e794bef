"""The search is a scikit-learn estimator like any other, with GridSearchCV's contract."""

import inspect
import pickle
import threading

import joblib
import numpy as np
import pytest
from search_cases import COSTS, check_like_grid_search, data
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from lokl import LpMKLClassifier, UniformMKLClassifier, UniformMKLRegressor
from lokl._warnings import warn_once
from lokl.kernels import RBF
from lokl.search import KernelSearchCV
from lokl.search import lockstep as side_by_side
from lokl.solvers.cost_path import StoredCostPath

X, y = data(60)

# Not what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:the best .* of the grid")


def checked(estimator, grid=None, **settings):
    # As scikit-learn checks its own searches: bad data is an error, not a failed candidate.
    grid = grid or {"C": [1.0, 10.0]}
    return KernelSearchCV(estimator, grid, cv=2, error_score="raise", **settings)


@pytest.mark.slow
@parametrize_with_checks(
    [
        checked(UniformMKLClassifier(["rbf"])),
        checked(UniformMKLRegressor(["rbf"])),
        checked(UniformMKLClassifier(["rbf"]), adaptive=True, rule="one_se", time_limit=1e9),
        checked(
            make_pipeline(StandardScaler(), UniformMKLClassifier(["rbf"])),
            {"uniformmklclassifier__C": [1.0, 10.0]},
        ),
        checked(LogisticRegression()),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("return_train_score", [False, True])
def test_columns_and_cells_are_those_of_grid_search(n_jobs, return_train_score):
    grid = [COSTS, {"kernels": ["linear", ["rbf", "linear"]], "class_weight": [None, "balanced"]}]
    check_like_grid_search(
        UniformMKLClassifier("rbf"),
        grid,
        X,
        y,
        n_jobs=n_jobs,
        return_train_score=return_train_score,
    )


@pytest.mark.parametrize(
    ("scoring", "refit"),
    [
        ("balanced_accuracy", True),
        ("neg_log_loss_of_nobody", None),
        (make_scorer(accuracy_score), True),
        (["accuracy", "f1"], "f1"),
        ({"a": "accuracy", "b": make_scorer(accuracy_score, greater_is_better=False)}, "b"),
        (("accuracy", "roc_auc"), False),
        (lambda model, X, y: model.score(X, y) / 2, True),
        (lambda model, X, y: {"half": model.score(X, y) / 2, "size": len(y)}, "half"),
        (lambda model, X, y: {"half": model.score(X, y) / 2, "size": len(y)}, False),
        (None, False),
        (None, lambda results: 2),
        (["accuracy", "f1"], lambda results: int(results["rank_test_f1"].argmax())),
    ],
)
def test_every_way_to_score(scoring, refit):
    if refit is None:
        with pytest.raises(ValueError, match="neg_log_loss_of_nobody"):
            KernelSearchCV(UniformMKLClassifier("rbf"), COSTS, scoring=scoring).fit(X, y)
        return
    model = UniformMKLClassifier("rbf")
    check_like_grid_search(model, COSTS, X, y, scoring=scoring, refit=refit, cv=3)


@pytest.mark.parametrize("refit", [True, "precision", None, 7])
def test_several_scores_need_a_name_that_decides(refit):
    search = KernelSearchCV(
        UniformMKLClassifier("rbf"), COSTS, scoring=["accuracy", "f1"], refit=refit
    )
    with pytest.raises(ValueError, match="refit"):
        search.fit(X, y)


@pytest.mark.parametrize(
    "cv",
    [
        2,
        StratifiedKFold(3, shuffle=True, random_state=0),
        ShuffleSplit(2, random_state=1),
        [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))],
    ],
)
def test_any_splitter(cv):
    check_like_grid_search(UniformMKLClassifier("rbf"), COSTS, X, y, cv=cv)


def test_masks_are_splits_too():
    test = np.arange(60) % 3 == 0
    rows = [(np.flatnonzero(~test), np.flatnonzero(test))]
    by_mask = KernelSearchCV(UniformMKLClassifier("rbf"), COSTS, cv=[(~test, test)]).fit(X, y)
    by_row = KernelSearchCV(UniformMKLClassifier("rbf"), COSTS, cv=rows).fit(X, y)
    np.testing.assert_array_equal(
        by_mask.cv_results_["mean_test_score"], by_row.cv_results_["mean_test_score"]
    )


def test_groups_stay_together():
    groups = np.arange(60) // 6
    check_like_grid_search(
        UniformMKLClassifier("rbf"), COSTS, X, y, fit={"groups": groups}, cv=GroupKFold(3)
    )


def test_a_splitter_that_gives_nothing_is_an_error():
    with pytest.raises(ValueError, match="gives no splits"):
        KernelSearchCV(UniformMKLClassifier("rbf"), COSTS, cv=[]).fit(X, y)
    with pytest.raises(ValueError, match="n_splits=5 cannot be greater"):
        KernelSearchCV(UniformMKLClassifier("rbf"), COSTS).fit(X[:6], [0, 1] * 3)


@pytest.mark.parametrize("name", ["own", "pipeline"])
@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_weights_are_divided_among_the_folds(name, scoring):
    weight = np.random.RandomState(0).uniform(0.1, 3, size=60)
    model, prefix = UniformMKLClassifier("rbf"), ""
    if name == "pipeline":
        model, prefix = make_pipeline(StandardScaler(), model), "uniformmklclassifier__"
    check_like_grid_search(
        model,
        {f"{prefix}C": [0.1, 1.0]},
        X,
        y,
        fit={f"{prefix}sample_weight": weight},
        scoring=scoring,
    )


def test_an_unknown_parameter_and_an_unknown_fit_parameter_are_errors():
    with pytest.raises(ValueError, match="Invalid parameter 'D'"):
        KernelSearchCV(UniformMKLClassifier("rbf"), {"D": [1]}).fit(X, y)
    with pytest.raises(ValueError, match="unexpected keyword argument 'weights'"):
        KernelSearchCV(UniformMKLClassifier("rbf"), COSTS).fit(X, y, weights=y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rule": "median"}, "rule must be one of 'best', 'one_se', got 'median'"),
        ({"time_limit": 0}, "time_limit"),
        ({"error_score": "ignore"}, "error_score must be a number or 'raise', got 'ignore'"),
        ({"refit": 3}, "refit must be True, False, the name of a score"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"callback": 3}, "callback must be a function"),
        ({"estimator": "svm"}, "estimator must be an estimator, .* got 'svm'"),
        ({"estimator": UniformMKLClassifier}, "estimator must be an estimator"),
        ({"param_grid": []}, "has no candidates"),
        ({"param_grid": {"C": []}}, "empty"),
    ],
)
def test_a_wrong_setting_is_named(settings, message):
    known = {"estimator": UniformMKLClassifier("rbf"), "param_grid": COSTS}
    with pytest.raises(ValueError, match=message):
        KernelSearchCV(**{**known, **settings}).fit(X, y)


def test_a_candidate_that_fails_has_the_error_score_and_others_go_on():
    grid = {"C": [0.1, -1.0, 1.0]}
    with (
        pytest.warns(FitFailedWarning, match="5 fits failed out of a total of 15"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        check_like_grid_search(UniformMKLClassifier("rbf"), grid, X, y)
    with pytest.warns(FitFailedWarning, match="C must be"):
        search = KernelSearchCV(UniformMKLClassifier("rbf"), grid, error_score=-3.0).fit(X, y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"] == -3, [0, 1, 0])
    with pytest.raises(ValueError, match="C must be"):
        KernelSearchCV(UniformMKLClassifier("rbf"), grid, error_score="raise").fit(X, y)
    several = KernelSearchCV(
        UniformMKLClassifier("rbf"), grid, error_score=0.0, scoring=["accuracy"], refit="accuracy"
    )
    with pytest.warns(FitFailedWarning, match="5 fits failed"):
        assert several.fit(X, y).cv_results_["mean_test_accuracy"][1] == 0


@pytest.mark.parametrize("model", [UniformMKLClassifier("rbf"), LogisticRegression()])
def test_all_that_fail_are_an_error(model):
    with pytest.raises(ValueError, match="All the 10 fits failed"):
        KernelSearchCV(model, {"C": [-1.0, -2.0]}).fit(X, y)


def test_it_is_what_its_estimator_is_and_has_what_that_has():
    search = KernelSearchCV(UniformMKLClassifier("rbf"), COSTS)
    assert is_classifier(search)
    assert is_regressor(KernelSearchCV(UniformMKLRegressor("rbf"), COSTS))
    assert hasattr(search, "decision_function")
    assert not hasattr(search, "predict_proba")
    with pytest.raises(NotFittedError):
        search.predict(X)
    search.fit(X, y)
    np.testing.assert_array_equal(search.classes_, [0, 1])
    assert search.n_features_in_ == 3
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))
    assert not hasattr(KernelSearchCV(search.estimator, COSTS, refit=False).fit(X, y), "predict")


def test_clone_pickle_and_nesting():
    search = KernelSearchCV(UniformMKLClassifier("rbf"), COSTS, cv=3, rule="one_se")
    again = pickle.loads(pickle.dumps(search.fit(X, y)))
    np.testing.assert_array_equal(again.decision_function(X), search.decision_function(X))
    fresh = clone(search)
    assert not hasattr(fresh, "best_params_")
    assert fresh.rule == "one_se"
    assert cross_val_score(fresh, X, y, cv=2, error_score="raise").shape == (2,)
    outer = KernelSearchCV(fresh, {"estimator__kernels": ["rbf", "linear"]}, cv=2).fit(X, y)
    assert outer.best_estimator_.best_params_["C"] in COSTS["C"]


@pytest.mark.slow
def test_other_estimators_are_searched_as_ever():
    grid = {"max_depth": [1, 2, None], "criterion": ["gini", "entropy"]}
    for n_jobs in (None, 2):
        check_like_grid_search(
            DecisionTreeClassifier(random_state=0), grid, X, y, n_jobs=n_jobs, scoring="roc_auc"
        )


# From Python 3.12 on, forks of a process with threads.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
@pytest.mark.parametrize("model", [UniformMKLClassifier("rbf"), LogisticRegression()])
def test_callers_may_choose_how_jobs_are_run(backend, model):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        search = KernelSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    plain = KernelSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )


def test_different_estimators_in_one_grid():
    pipe = make_pipeline(StandardScaler(), UniformMKLClassifier("rbf"))
    last = [
        UniformMKLClassifier("linear"),
        LpMKLClassifier(["rbf", "linear"]),
        LogisticRegression(),
    ]
    check_like_grid_search(pipe, {"uniformmklclassifier": last}, X, y)


def test_labels_may_be_words_and_numbers_typed_as_objects():
    words = np.array(["no", "yes"])[y]
    model = UniformMKLClassifier("rbf")
    by_word = KernelSearchCV(model, COSTS).fit(X, words)
    by_object = KernelSearchCV(model, COSTS).fit(X, y.astype(object))
    plain = KernelSearchCV(model, COSTS).fit(X, y)
    np.testing.assert_array_equal(by_word.predict(X), np.array(["no", "yes"])[plain.predict(X)])
    np.testing.assert_array_equal(by_object.predict(X), plain.predict(X))


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_labels_in_one_column_are_labels():
    model = UniformMKLClassifier("rbf")
    flat, column = (KernelSearchCV(model, COSTS).fit(X, own) for own in (y, y[:, np.newaxis]))
    np.testing.assert_array_equal(
        flat.cv_results_["mean_test_score"], column.cv_results_["mean_test_score"]
    )


def test_a_search_that_fails_leaves_what_was_there():
    search = KernelSearchCV(UniformMKLClassifier("rbf"), COSTS).fit(X, y)
    before = dict(vars(search))

    def interrupt(progress):
        raise KeyboardInterrupt

    search.callback = interrupt
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, 1 - y)
    search.callback = None
    assert vars(search) == before
    fresh = KernelSearchCV(UniformMKLClassifier("rbf"), COSTS, callback=interrupt, n_jobs=2)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    assert not [name for name in vars(fresh) if name.endswith("_")]


def interrupt_callback(monkeypatch, search):
    def interrupt(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(search, "callback", interrupt)


def interrupt_line(monkeypatch, search):
    """Raise in a thread that computes a line."""
    plain = StoredCostPath.solve

    def solve(path, problem, ratio):
        if ratio > 1:
            raise KeyboardInterrupt
        return plain(path, problem, ratio)

    monkeypatch.setattr(StoredCostPath, "solve", solve)


def interrupt_wait(monkeypatch, search):
    """Press Ctrl-C while the caller waits for lines that run in threads."""
    plain, times = side_by_side.wait, []

    def wait(*given, **how):
        times.append(1)
        if len(times) == 3:
            raise KeyboardInterrupt
        return plain(*given, **how)

    monkeypatch.setattr(side_by_side, "wait", wait)


def interrupt_start(monkeypatch, search):
    """Press Ctrl-C while a thread is started: it runs, and its pool does not know it."""
    plain, pressed = threading.Thread.start, []

    def start(thread):
        plain(thread)
        if thread.name.startswith("lokl-search") and not pressed:
            pressed.append(True)
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start)


WAYS = [interrupt_callback, interrupt_line, interrupt_wait, interrupt_start]


@pytest.mark.parametrize("interrupt", WAYS)
@pytest.mark.parametrize("adaptive", [False, True])
def test_an_interrupted_search_is_as_it_was_and_computes_no_more(interrupt, adaptive, monkeypatch):
    grid = {"C": [0.1, 1.0, 10.0], "kernels": [[RBF(4.0**k)] for k in range(-4, 3)]}
    search = KernelSearchCV(UniformMKLClassifier(), grid, n_jobs=2, adaptive=adaptive).fit(X, y)
    before = dict(vars(search))
    with monkeypatch.context() as patched:
        interrupt(patched, search)
        solved = []
        solve = StoredCostPath.solve
        patched.setattr(StoredCostPath, "solve", lambda *given: solved.append(1) or solve(*given))
        with pytest.raises(KeyboardInterrupt):
            search.fit(X, 1 - y)
        so_far = len(solved)
        for thread in threading.enumerate():
            if thread.name.startswith("lokl-search"):
                thread.join(60)
                assert not thread.is_alive()
        assert len(solved) == so_far
    assert vars(search) == before
    # Warnings are not held back any more, and another search is as good as ever.
    again = KernelSearchCV(UniformMKLClassifier(), grid, n_jobs=2, adaptive=adaptive).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    with pytest.warns(match="told at once"):
        warn_once("any", "told at once")


def test_a_refit_leaves_nothing_of_the_fit_before():
    search = KernelSearchCV(UniformMKLClassifier("rbf"), COSTS).fit(X, y)
    search.refit = False
    search.fit(X, y)
    assert not hasattr(search, "best_estimator_")
    assert hasattr(search, "best_params_")


def test_nothing_that_was_given_is_changed(read_only):
    model, kernels = UniformMKLClassifier("rbf"), [["rbf"], ["linear", "rbf"]]
    before = repr(model)
    KernelSearchCV(model, {"kernels": kernels, **COSTS}).fit(read_only(X.copy()), y)
    assert repr(model) == before
    assert kernels == [["rbf"], ["linear", "rbf"]]
    assert not hasattr(model, "classes_")


def test_help_tells_every_setting_and_every_attribute():
    doc = KernelSearchCV.__doc__
    for name, parameter in inspect.signature(KernelSearchCV).parameters.items():
        assert f"\n{name} : " in doc
        required = parameter.default is inspect.Parameter.empty
        assert required == (name in ("estimator", "param_grid"))
    assert "\nestimator : estimator\n" in doc
    assert "\ncv : int, splitter or iterable of splits, default=5\n" in doc
    search = KernelSearchCV(UniformMKLClassifier("rbf"), COSTS).fit(X, y)
    fitted = [own for own in vars(search) if own.endswith("_") and not own.startswith("_")]
    for name in (*fitted, "classes_", "n_features_in_", "feature_names_in_"):
        assert f"\n{name} : " in doc


def test_warnings_of_many_fits_are_one():
    search = KernelSearchCV(LpMKLClassifier(["rbf", "linear"], max_iter=1), {"C": [1.0, 2.0]}, cv=2)
    with pytest.warns(match="such warnings in this fit") as told:
        search.fit(X, y)
    assert len(told) == 1


def test_without_a_refit_there_are_no_probabilities():
    search = KernelSearchCV(UniformMKLClassifier(["rbf"]), {"C": [0.1, 1]}, refit=False)
    assert not hasattr(search, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba") as caught:
        search.predict_proba  # noqa: B018
    assert "refit=True" in str(caught.value.__cause__)
