"""The shape of the source: short functions, shallow classes, one list of methods."""

import ast
import inspect
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import lokl
from lokl import methods as estimators
from lokl._methods import ABILITIES, METHODS, method_of

SOURCE = Path(lokl.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
NAMES = [name for method in METHODS for name in method.classes]


def outcome(name, score):
    """Targets that an estimator accepts: numbers, classes, or events and times."""
    if name.endswith("Survival"):
        return lokl.survival_target(score < np.quantile(score, 0.8), np.exp(-score))
    return score if name.endswith("Regressor") else score > 0


AUTO = ["AutoMKLClassifier", "AutoMKLRegressor", "AutoMKLSurvival"]
every_estimator = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_functions_are_short(path):
    """Docstrings do not count."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            doc = node.body[0] if ast.get_docstring(node) else None
            lines = node.end_lineno - node.lineno
            lines -= 0 if doc is None else doc.end_lineno - doc.lineno + 1
            assert lines < 60, node.name


def test_a_class_name_stands_once():
    places = {}
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    repeated = {name: files for name, files in places.items() if len(files) > 1}
    assert not repeated


@every_estimator
def test_classes_are_shallow(name):
    """Mixins, which add methods but no state, do not count."""
    mro = getattr(lokl, name).__mro__
    classes = mro[: mro.index(BaseEstimator) + 1]
    assert len([kind for kind in classes if not kind.__name__.endswith("Mixin")]) <= 6


def test_every_method_is_listed_where_types_are_checked():
    text = inspect.getsource(estimators)
    assert set(re.findall(r"import (\w+) as \1$", text, flags=re.MULTILINE)) == set(NAMES)
    assert set(estimators.__all__) == set(NAMES)
    more = {
        "KernelSearchCV",
        "join_views",
        "load",
        "save",
        "survival_target",
        "RegionClassifier",
        "RegionRegressor",
        "RegionSurvival",
        "__version__",
    }
    assert set(lokl.__all__) == {*NAMES, *AUTO, *more}
    for method in METHODS:
        assert set(filter(None, method.abilities.split(", "))) <= ABILITIES.keys()
        assert method.learns == "nothing" or not method.can("fixed kernel")
        for name in method.classes:
            kind = getattr(lokl, name)
            assert kind.__module__ == method.module
            assert method_of(kind()) is method
            assert method_of(type(name, (kind,), {})()) is None


def sections(doc):
    """Names in each section of a numpydoc text."""
    found, title = {}, None
    lines = doc.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and set(below) == {"-"}:
            title = line
            found[title] = []
        elif title and re.match(r"[\w, ]+ : ", line):
            found[title] += [name.strip() for name in line.split(" : ")[0].split(",")]
    return found


@every_estimator
def test_help_tells_every_setting_and_every_attribute(name):
    kind = getattr(lokl, name)
    told = sections(kind.__doc__)
    assert sorted(told["Parameters"]) == sorted(inspect.signature(kind).parameters)
    X = np.random.RandomState(0).normal(size=(30, 3))
    y = outcome(name, X[:, 0])
    model = kind(["linear", "rbf"]).fit(X, y)
    fitted = {own for own in vars(model) if own.endswith("_") and not own.startswith("_")}
    only_some = {"feature_names_in_"}
    only_some |= {"loo_decision_"} if method_of(model).can("squared loss") else set()
    assert set(told["Attributes"]) == fitted | only_some
    assert "Examples" in told


@every_estimator
def test_a_wrong_value_of_any_checked_setting_is_named(name):
    kind = getattr(lokl, name)
    X = np.random.RandomState(0).normal(size=(10, 2))
    y = outcome(name, X[:, 0])
    checked = [known for known in fields(kind) if known.metadata["rule"].check]
    assert len(checked) >= 5
    for known in checked:
        with pytest.raises(ValueError, match=rf"{known.name}|seed"):
            kind(**{known.name: "nonsense"}).fit(X, y)
