"""Results depend on the data, the settings and the seed only."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from method_cases import RECORDS, make, tolerances

import lokl
from lokl.kernels import RBF, Laplacian, Linear

# One column has outliers of 1e5 times its usual size; six classes.
RNG = np.random.RandomState(0)
X = RNG.normal(size=(110, 4))
X[:, 0] = RNG.standard_cauchy(110) ** 3
RANK = np.argsort(np.argsort(X[:, 1] + 0.3 * X[:, 2]))
KERNELS = {
    "a": RBF().on([0, 1]),
    "b": Laplacian(0.5).on([1, 2]),
    "c": Linear().normalized("unit_diag").on([3]),
}
AUTO = ["AutoMKLClassifier", "AutoMKLRegressor"]
NAMES = [*RECORDS, *AUTO]


def targets(name, n_classes=3):
    return RANK * n_classes // len(RANK) if name.endswith("Classifier") else RANK / 50.0


def built(name, **settings):
    if name in AUTO:
        return getattr(lokl, name)(random_state=0, **settings)
    return make(name, KERNELS, **settings)


def decisions(model, samples):
    decide = "decision_function" if hasattr(model, "decision_function") else "predict"
    return getattr(model, decide)(samples)


@pytest.mark.parametrize("name", NAMES)
def test_rows_one_by_one_are_decided_as_all_at_once(name):
    y = targets(name, n_classes=6)
    model = built(name).fit(X, y)
    one_by_one = np.concatenate([decisions(model, X[[row]]) for row in range(len(X))])
    np.testing.assert_allclose(decisions(model, X), one_by_one, rtol=1e-9, atol=1e-9)
    singly = np.concatenate([model.predict(X[[row]]) for row in range(0, len(X), 5)])
    np.testing.assert_allclose(model.predict(X)[::5], singly, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_rows_does_not_matter(name):
    if RECORDS.get(name) and RECORDS[name].can("ordered"):
        pytest.skip("starts from clusters or folds that follow the order of samples")
    order, y = np.random.RandomState(1).permutation(len(X)), targets(name)
    found = decisions(built(name).fit(X[order], y[order]), X)
    reach = 1e-6 if name in AUTO else 10 * tolerances(name).rounding
    np.testing.assert_allclose(found, decisions(built(name).fit(X, y), X), rtol=0, atol=reach)


@pytest.mark.parametrize("name", NAMES)
def test_the_global_state_of_numpy_is_neither_read_nor_changed(name):
    y = targets(name)
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()  # noqa: NPY002
    first = decisions(built(name).fit(X, y), X)
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    np.random.seed(2)  # noqa: NPY002
    np.testing.assert_array_equal(decisions(built(name).fit(X, y), X), first)


@pytest.mark.parametrize("name", NAMES)
def test_any_number_of_jobs_gives_the_same_bits(name):
    y = targets(name)
    alone = decisions(built(name, n_jobs=1).fit(X, y), X)
    np.testing.assert_array_equal(decisions(built(name, n_jobs=3).fit(X, y), X), alone)


def test_estimators_fit_and_predict_in_several_threads():
    def work(name):
        return decisions(built(name).fit(X, targets(name)), X)

    names = ["UniformMKLClassifier", "LMKLClassifier", "TrustedVoteClassifier", "LpMKLRegressor"]
    expected = [work(name) for name in names]
    with ThreadPoolExecutor(8) as pool:
        for found, alone in zip(pool.map(work, names * 4), expected * 4, strict=True):
            np.testing.assert_array_equal(found, alone)
        model = built("TrustedVoteClassifier").fit(X, targets("Classifier"))
        alone = model.predict_proba(X)
        for found in pool.map(lambda _: model.predict_proba(X), range(16)):
            np.testing.assert_array_equal(found, alone)


@pytest.mark.slow
def test_another_process_gives_the_same_bits(tmp_path):
    script = (
        "import sys, numpy as np; sys.path.insert(0, sys.argv[1]);"
        "import test_determinism as t;"
        "np.save(sys.argv[2], t.decisions("
        "t.built('TrustedVoteClassifier').fit(t.X, t.targets('Classifier')), t.X))"
    )
    found = []
    for hashes in ("1", "2"):
        path = tmp_path / f"{hashes}.npy"
        subprocess.run(
            [sys.executable, "-c", script, os.path.dirname(__file__), str(path)],
            env={**os.environ, "PYTHONHASHSEED": hashes},
            check=True,
        )
        found.append(np.load(path))
    np.testing.assert_array_equal(*found)
