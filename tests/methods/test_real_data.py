"""Real data sets, where LOKL_DATA names a folder of them."""

import numpy as np
import pytest
from method_cases import CLASSIFIERS, make
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from lokl.datasets import MissingDatasetError, load
from lokl.kernels import RBF, Polynomial, per_view

pytestmark = pytest.mark.slow


@pytest.fixture
def read(lokl_data):
    def samples(name):
        try:
            bunch = load(name, download=False, sparse=False)
        except MissingDatasetError:
            pytest.skip(f"LOKL_DATA has no {name}")
        return bunch.data, bunch.target

    return samples


@pytest.mark.parametrize("name", ["heart_scale", "breast-cancer_scale", "diabetes_scale"])
def test_one_kernel_is_libsvm(read, name):
    X, y = read(name)
    model = make("UniformMKLClassifier", [RBF(0.1)]).fit(X, y)
    theirs = SVC(gamma=0.1, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_method_learns_more_than_the_majority(read, name):
    X, y = read("diabetes_scale")
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    model = make(name, tol=1e-3).fit(X, y)
    assert model.score(X_test, y_test) > (y_test == 1).mean() + 0.04


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_patients_without_the_protein_view(lokl_data, name):
    """TCGA breast cancer: proteins were measured for the training part only."""
    try:
        bunch = load("breast_tcga", download=False)
    except MissingDatasetError:
        pytest.skip("LOKL_DATA has no multiview/breast_tcga")
    X, y, views = bunch.data, bunch.target, bunch.views
    fresh, truth = bunch.data_test, bunch.target_test
    assert np.isnan(fresh[:, views["protein"]]).all()
    scale = StandardScaler().fit(X)
    model = make(name, per_view(RBF("scale"), views), C=10.0, tol=1e-3).fit(scale.transform(X), y)
    trust = model.weights(scale.transform(fresh))
    assert (trust[:, 2] == 0).all()
    assert model.score(scale.transform(fresh), truth) > 0.8


@pytest.mark.parametrize("name", ["diabetes_scale", "german.numer_scale", "liver-disorders_scale"])
def test_the_published_uniform_mix_is_saturated(read, name):
    """Trace-normalised kernels at C = 1: the larger class for everybody, and as many support
    points as in the paper's last table, twice the share of the smaller class."""
    X, y = read(name)
    kernels = [Polynomial(2).normalized("trace"), RBF(0.25).normalized("trace")]
    with pytest.warns(UserWarning, match="the SVM is saturated"):
        model = make("UniformMKLClassifier", kernels, tol=1e-3).fit(X, y)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    assert len(np.unique(model.predict(X))) == 1
    assert model.score(X, y) == pytest.approx(shares.max())
    assert model.support_fraction_ == pytest.approx(2 * shares.min(), abs=0.06)
    sane = [kernel.kernel.normalized("mean_diag") for kernel in kernels]
    assert make("UniformMKLClassifier", sane, tol=1e-3).fit(X, y).score(X, y) > shares.max() + 0.04
