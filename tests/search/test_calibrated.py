"""Models with probabilities, and scikit-learn's checks of them."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from lokl import LDMKLClassifier, LpMKLClassifier, UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF, Linear
from lokl.search import CalibratedMKLClassifier, calibrated, expected_calibration_error, held_out
from lokl.search.cross_validation import make_folds

TIGHT = 1e-10


@pytest.mark.slow
@parametrize_with_checks(
    [
        CalibratedMKLClassifier(UniformMKLClassifier()),
        CalibratedMKLClassifier(LpMKLClassifier(["rbf", "linear"], tol=1e-9, learn_tol=1e-9), cv=3),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def noisy(n=300, n_classes=2, seed=0):
    return make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=0.2, random_state=seed
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "settings", [{}, {"loss": "squared_hinge"}, {"solver": "libsvm"}, {"class_weight": {0: 3.0}}]
)
def test_one_matrix_with_masks_is_a_fit_for_each_fold(n_classes, settings):
    X, y = noisy(n_classes=n_classes)
    model = UniformMKLClassifier([RBF(0.1), Linear()], tol=TIGHT, **settings)
    splits = list(StratifiedKFold(4).split(X, y))
    ours = held_out(model, X, y, splits)
    theirs = cross_val_predict(model, X, y, cv=splits, method="decision_function")
    np.testing.assert_allclose(ours, theirs.reshape(len(y), -1), atol=1e-5)


def test_regressors_and_pipelines_have_held_out_predictions():
    X, y = noisy()
    target = X @ np.arange(1, 7.0)
    splits = list(StratifiedKFold(3).split(X, y))
    for model in (
        UniformMKLRegressor([RBF(0.1)], tol=TIGHT),
        make_pipeline(StandardScaler(), UniformMKLRegressor([RBF(0.1)])),
    ):
        ours = held_out(model, X, target, splits)
        np.testing.assert_allclose(
            ours[:, 0], cross_val_predict(model, X, target, cv=splits), atol=1e-5
        )
    both = np.column_stack([target, X[:, 0]])
    assert held_out(make_pipeline(UniformMKLRegressor(["rbf"])), X, both, splits).shape == (300, 2)


@pytest.mark.parametrize("wrap", [lambda model: model, make_pipeline], ids=["matrix", "fits"])
def test_a_class_that_a_fold_lacks_is_decided_against(wrap):
    X, y = make_blobs(40, centers=3, random_state=0)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    first = y == 0
    splits = [(np.flatnonzero(~first), np.flatnonzero(first)), (first, ~first)]
    decisions = held_out(wrap(UniformMKLClassifier([RBF(0.1)])), X, y, splits)
    np.testing.assert_allclose(decisions[first][:, 0], -1.0)
    # The second fold knows one class alone.
    np.testing.assert_allclose(decisions[~first], np.tile([1.0, -1.0, -1.0], ((~first).sum(), 1)))


@pytest.mark.parametrize("wrap", [lambda model: model, make_pipeline], ids=["matrix", "fits"])
def test_samples_without_weight_are_no_samples(wrap):
    X, y = noisy(120)
    weight = np.where(np.arange(120) % 3 == 0, 0.0, 2.0)
    counted = weight > 0
    model = wrap(UniformMKLClassifier([RBF(0.1)], tol=TIGHT))
    fold = np.arange(120) % 4
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(4)]
    decisions = held_out(model, X, y, splits, weight)
    assert (decisions[~counted] == 0).all()
    fewer = [((fold != k)[counted], (fold == k)[counted]) for k in range(4)]
    again = held_out(model, X[counted], y[counted], fewer, weight[counted])
    np.testing.assert_allclose(decisions[counted], again, atol=1e-6)


@pytest.mark.parametrize("kind", [UniformMKLClassifier, LpMKLClassifier])
def test_folds_that_learn_from_nothing_are_named(kind):
    X, y = noisy(40)
    weight = np.where(np.arange(40) < 20, 1.0, 0.0)
    with pytest.raises(ValueError, match="leaves out 20 samples"):
        held_out(kind(["rbf"]), X, y, [(np.arange(20, 40), np.arange(20))], weight)


@pytest.mark.parametrize("kind", [UniformMKLClassifier, LpMKLClassifier])
def test_splits_that_leave_nothing_out_are_named(kind):
    X, y = noisy(40)
    with pytest.raises(ValueError, match="no fold leaves out a sample"):
        held_out(kind(["rbf"]), X, y, [(np.arange(40), [])])


@pytest.mark.parametrize("counts", [[20, 20], [30, 1, 1], [1, 1, 1], [9, 4, 7, 2]])
@pytest.mark.parametrize("n_folds", [2, 5])
def test_folds_spread_every_class_as_far_as_it_goes(counts, n_folds):
    y = np.repeat(np.arange(len(counts)), counts)
    splits = make_folds(n_folds, y, classification=True)
    left = np.concatenate([left for _, left in splits])
    np.testing.assert_array_equal(np.sort(left), np.arange(len(y)))
    for kept, left in splits:
        assert len(kept)
        assert not set(kept) & set(left)
        own = np.bincount(y[left], minlength=len(counts))
        assert (own <= np.ceil(np.array(counts) / n_folds)).all()


def test_groups_stay_together():
    y = np.arange(60) % 2
    groups = np.repeat(np.arange(12), 5)
    for cv in (4, GroupKFold(3)):
        for kept, left in make_folds(cv, y, classification=True, groups=groups):
            assert not set(groups[kept]) & set(groups[left])
    with pytest.raises(ValueError, match="1 group"):
        make_folds(3, y, classification=True, groups=np.zeros(60))
    with pytest.raises(ValueError, match=r"cv .*got 1"):
        make_folds(1, y, classification=True)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [UniformMKLClassifier, LDMKLClassifier])
def test_probabilities_are_better_than_none_and_calibrated(kind, n_classes):
    X, y = noisy(900, n_classes)
    train, test = slice(0, 450), slice(450, 900)
    model = make_pipeline(StandardScaler(), kind(["rbf", "linear"], C=10.0, random_state=0))
    fitted = calibrated(model.fit(X[train], y[train]), X[train], y[train])
    chance = fitted.predict_proba(X[test])
    base = np.bincount(y[train]) / 450
    assert log_loss(y[test], chance) < 0.85 * log_loss(y[test], np.tile(base, (450, 1)))
    assert expected_calibration_error(y[test], chance) < 0.08


def test_calibrated_leaves_the_model_alone_and_is_the_fitted_class():
    X, y = noisy(n_classes=3)
    model = UniformMKLClassifier(["rbf"]).fit(X, y)
    fitted = calibrated(model, X, y, cv=3)
    assert fitted.estimator_ is model
    for name in ("predict", "decision_function", "weights", "contributions"):
        np.testing.assert_array_equal(getattr(fitted, name)(X), getattr(model, name)(X))
    whole = CalibratedMKLClassifier(UniformMKLClassifier(["rbf"]), cv=3).fit(X, y)
    np.testing.assert_array_equal(whole.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(
        np.exp(whole.predict_log_proba(X)).round(9), whole.predict_proba(X).round(9)
    )
    with pytest.raises(NotFittedError):
        clone(fitted).predict_proba(X)


def test_predict_is_the_models_also_where_another_class_is_more_likely():
    X, y = make_classification(400, 5, weights=[0.9], flip_y=0.1, random_state=0)
    model = UniformMKLClassifier(["linear"], class_weight="balanced").fit(X, y)
    fitted = calibrated(model, X, y)
    likely = fitted.classes_[fitted.predict_proba(X).argmax(axis=1)]
    np.testing.assert_array_equal(fitted.predict(X), model.predict(X))
    assert (likely != model.predict(X)).any()
    # Probabilities are those of the data, whatever the weights of the classes.
    assert fitted.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.03)


def test_rare_classes_frames_labels_and_sparse_samples():
    X, y = make_blobs(60, centers=3, random_state=0)
    y = np.array(["rare", "few", "many"], dtype=object)[
        np.where(np.arange(60) == 0, 0, 1 + (y > 0))
    ]
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = CalibratedMKLClassifier(UniformMKLClassifier([RBF(0.5).on("a"), Linear().on("b")]))
    chance = model.fit(frame, pd.Series(y)).predict_proba(frame)
    assert list(model.classes_) == ["few", "many", "rare"]
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    assert chance[:, 2].max() < 0.5
    dense, thin = (
        CalibratedMKLClassifier(UniformMKLClassifier([RBF(0.5)], tol=TIGHT)).fit(Z, y)
        for Z in (X, sparse.csr_matrix(X))
    )
    np.testing.assert_allclose(
        thin.predict_proba(sparse.csr_matrix(X)), dense.predict_proba(X), atol=1e-6
    )


def test_views_that_samples_lack_and_splits_that_judge_some():
    X, y = noisy(150)
    X[:40, :3] = np.nan
    kernels = {"left": RBF(0.2).on([0, 1, 2]), "right": RBF(0.2).on([3, 4, 5])}
    model = CalibratedMKLClassifier(
        UniformMKLClassifier(kernels), cv=ShuffleSplit(2, test_size=0.3, random_state=0)
    ).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert (model.held_out_ == 0).any()
    assert (model.weights(X)[:40, 0] == 0).all()


def test_weights_reach_the_last_step_of_a_pipeline():
    X, y = noisy(100)
    weight = np.random.RandomState(0).randint(1, 4, size=100).astype(float)
    cv = [(np.arange(50), np.arange(50, 100)), (np.arange(50, 100), np.arange(50))]
    plain = CalibratedMKLClassifier(UniformMKLClassifier([RBF(0.1)], tol=TIGHT), cv)
    piped = CalibratedMKLClassifier(make_pipeline(UniformMKLClassifier([RBF(0.1)], tol=TIGHT)), cv)
    np.testing.assert_allclose(
        piped.fit(X, y, weight).predict_proba(X),
        plain.fit(X, y, weight).predict_proba(X),
        atol=1e-6,
    )
    np.testing.assert_array_equal(piped.weights(X), plain.weights(X))


def test_errors_say_what_to_do():
    X, y = noisy(60, 3)
    with pytest.raises(ValueError, match=r"estimator .*got None"):
        CalibratedMKLClassifier().fit(X, y)
    with pytest.raises(NotFittedError, match=r"UniformMKLClassifier .*CalibratedMKLClassifier"):
        calibrated(UniformMKLClassifier(), X, y)
    model = UniformMKLClassifier(["rbf"]).fit(X, y)
    with pytest.raises(ValueError, match=r"label 7 .*: 0, 1, 2"):
        calibrated(model, X, np.where(y == 1, 7, y))
    with pytest.raises(ValueError, match=r"class .*2"):
        calibrated(model, X[y < 2], y[y < 2])


def test_a_fit_that_fails_leaves_the_probabilities_of_the_last():
    X, y = noisy(60)
    model = CalibratedMKLClassifier(UniformMKLClassifier(["rbf"])).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="one class"):
        model.fit(X[:, :2], np.zeros(60))
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_help_tells_every_setting_and_every_attribute():
    X, y = noisy(60)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = CalibratedMKLClassifier(UniformMKLClassifier(["rbf"])).fit(frame, y)
    text = CalibratedMKLClassifier.__doc__
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    for name in [*model.get_params(deep=False), *fitted]:
        assert f"\n{name} : " in text


def test_searches_and_copies_keep_probabilities():
    X, y = noisy(150, 3)
    model = CalibratedMKLClassifier(UniformMKLClassifier(["rbf"]), cv=3)
    search = GridSearchCV(model, {"estimator__C": [1e-3, 1.0]}, scoring="neg_log_loss", cv=3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the SVM is saturated")
        search.fit(X, y)
    assert search.best_params_ == {"estimator__C": 1.0}
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict_proba(X), search.predict_proba(X))
