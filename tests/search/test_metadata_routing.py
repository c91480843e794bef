"""Weights and groups reach our estimators through scikit-learn's metadata routing."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import AutoMKLClassifier, RegionClassifier, UniformMKLClassifier
from lokl.search import CalibratedMKLClassifier, KernelSearchCV

pytestmark = pytest.mark.filterwarnings("ignore:the best .* of the grid")
RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)
GROUPS = np.repeat(np.arange(10), 6)
# Weights that change the model a lot.
WEIGHT = np.where(X[:, 1] > 0, 5.0, 0.2)
ROUTED = {"sample_weight": WEIGHT, "groups": GROUPS}


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def asking(model, **requests):
    """The model, which asks for weights, and for groups if `requests` say so."""
    return model.set_fit_request(sample_weight=True, **requests).set_score_request(
        sample_weight=True
    )


def scaler():
    return StandardScaler().set_fit_request(sample_weight=False)


AUTOS = {
    "leave-one-out": AutoMKLClassifier(),
    "folds": AutoMKLClassifier(cv=GroupKFold(3)),
    "methods": AutoMKLClassifier(methods=["UniformMKL"], cv=GroupKFold(3), random_state=0),
    "views": AutoMKLClassifier(views={"a": [0, 1], "b": [2]}, cv=GroupKFold(3)),
}


@pytest.mark.parametrize("kind", AUTOS)
def test_auto_in_a_pipeline_learns_what_it_learns_alone(kind):
    Z = StandardScaler().fit_transform(X)
    alone = sklearn.clone(AUTOS[kind]).fit(Z, Y, **ROUTED)
    unweighted = sklearn.clone(AUTOS[kind]).fit(Z, Y, groups=GROUPS)
    with sklearn.config_context(enable_metadata_routing=True):
        model = asking(sklearn.clone(AUTOS[kind]), groups=True)
        piped = make_pipeline(scaler(), model).fit(X, Y, **ROUTED)
    expected = alone.predict_proba(Z)
    assert_allclose(piped.predict_proba(X), expected, atol=1e-12)
    assert np.abs(unweighted.predict_proba(Z) - expected).max() > 1e-3


@pytest.mark.usefixtures("routing")
def test_auto_in_searches_and_cross_validation():
    model = asking(AutoMKLClassifier(), groups=True)
    cv = GroupKFold(2)
    scores = cross_validate(model, X, Y, cv=cv, params=ROUTED, error_score="raise")["test_score"]
    search = GridSearchCV(model, {"random_state": [0]}, cv=cv, error_score="raise")
    found = search.fit(X, Y, **ROUTED)
    assert_allclose(found.best_score_, scores.mean(), atol=1e-12)
    calibrated = CalibratedClassifierCV(asking(AutoMKLClassifier(), groups=False), cv=2)
    assert calibrated.fit(X, Y, sample_weight=WEIGHT).predict_proba(X).shape == (60, 2)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("piped", [False, True])
def test_the_search_routes_as_that_of_scikit_learn(piped):
    model = asking(UniformMKLClassifier(["rbf"]))
    grid = {"C": [0.1, 1]}
    if piped:
        model, grid = make_pipeline(scaler(), model), {"uniformmklclassifier__C": [0.1, 1]}
    found, expected = (
        make_pipeline(scaler(), search(model, grid, cv=GroupKFold(3))).fit(X, Y, **ROUTED)[-1]
        for search in (KernelSearchCV, GridSearchCV)
    )
    for column in ("mean_test_score", "std_test_score"):
        assert_allclose(found.cv_results_[column], expected.cv_results_[column], atol=1e-12)


@pytest.mark.parametrize(
    "meta",
    [RegionClassifier(max_region_size=30, random_state=0), CalibratedMKLClassifier()],
    ids=lambda meta: type(meta).__name__,
)
def test_pipelines_inside_of_our_estimators(meta):
    def fitted(step):
        model = make_pipeline(step, UniformMKLClassifier(["rbf"]))
        return sklearn.clone(meta).set_params(estimator=model).fit(X, Y, sample_weight=WEIGHT)

    expected = fitted(StandardScaler()).decision_function(X)
    with sklearn.config_context(enable_metadata_routing=True):
        found = fitted(StandardScaler()).decision_function(X)
        declined = fitted(scaler()).decision_function(X)
    np.testing.assert_array_equal(found, expected)
    assert np.abs(declined - expected).max() > 1e-6
