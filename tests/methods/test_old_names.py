"""Settings that were renamed work under both names for a while."""

import pickle

import numpy as np
import pytest
from estimator_cases import FRESH, X, labels, score
from method_cases import RECORDS, make
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from lokl.kernels import RBF

# Estimator, old name, new name, a value.
RENAMED = [
    ("SwMKLClassifier", "regressor", "success_kernel", RBF(1.0)),
    ("SwMKLRegressor", "regressor", "success_kernel", RBF(1.0)),
    ("LDMKLClassifier", "regressor", "success_kernel", RBF(1.0)),
    ("LDMKLRegressor", "regressor", "success_kernel", RBF(1.0)),
    ("SAMKLClassifier", "k_min", "min_kernels", 1),
]
renamed = pytest.mark.parametrize(("name", "old", "new", "value"), RENAMED)


def goal(name):
    return score(X) if name.endswith("Regressor") else labels(X)


def test_every_old_name_is_in_the_list():
    found = {
        (name, own, known.metadata["new_name"])
        for name in RECORDS
        for own, known in type(make(name)).__dataclass_fields__.items()
        if "new_name" in known.metadata
    }
    assert found == {entry[:3] for entry in RENAMED}


@renamed
def test_the_old_name_warns_and_means_the_new(name, old, new, value):
    y = goal(name)
    usual = make(name).fit(X, y)
    expected = make(name, **{new: value}).fit(X, y)
    with pytest.warns(FutureWarning, match=f"{old} is now called {new}") as warned:
        found = make(name, **{old: value}).fit(X, y)
    assert [own.filename for own in warned] == [__file__]
    np.testing.assert_array_equal(found.weights(FRESH), expected.weights(FRESH))
    assert np.abs(found.weights(FRESH) - usual.weights(FRESH)).max() > 1e-3


@renamed
def test_both_names_are_an_error(name, old, new, value):
    with pytest.raises(ValueError, match=f"{old}=.* and {new}=.* are two names of one setting"):
        make(name, **{old: value, new: value}).fit(X, goal(name))


@renamed
def test_a_wrong_value_is_named_as_it_was_given(name, old, new, value):
    model = make(name, **{old: "nonsense"})
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match=f"{old} must be"):
        model.fit(X, goal(name))


@renamed
def test_copies_keep_the_name_that_was_used(name, old, new, value):
    model = make(name, **{old: value})
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        shown = copy.get_params(deep=False)
        assert shown[new] == make(name).get_params()[new]
        assert repr(shown[old]) == repr(value)
    assert make(name).set_params(**{old: value}).get_params()[old] is value
    assert f"{old}=" in repr(model)
    assert f"{old}=" not in repr(make(name))


@pytest.mark.filterwarnings("ignore:the setting:FutureWarning")
@renamed
def test_grids_take_both_names(name, old, new, value):
    for own in (old, new):
        search = GridSearchCV(make(name, tol=1e-3), {own: [value]}, cv=2).fit(X, goal(name))
        assert search.best_params_ == {own: value}
