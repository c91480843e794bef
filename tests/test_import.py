"""Importing the library is cheap and silent."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lokl

HEAVY = {"numba", "matplotlib", "pandas", "typer", "rich", "pooch", "dask", "pyarrow"}


def run(code):
    environment = {**os.environ, "PYTHONPATH": str(Path(lokl.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )


def test_import_is_silent_and_brings_no_heavy_module():
    done = run(f"import sys, lokl\nassert not {HEAVY} & sys.modules.keys()")
    assert done.stdout == done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "from lokl import *",
        "import lokl.kernels, lokl.gates, lokl.gram, lokl.solvers, lokl.methods",
        "import lokl; lokl.UniformMKLClassifier(['rbf']).get_params()",
        "import lokl.search; lokl.search.KernelSearchCV",
        "import lokl.datasets; lokl.datasets.info('a9a'); lokl.datasets.make_views()",
    ],
)
def test_all_of_the_core_brings_no_heavy_module_but_those_of_scikit_learn(code):
    # scikit-learn itself looks for pandas and rich.
    theirs = "import sys, sklearn.svm, sklearn.metrics, sklearn.utils.validation"
    check = f"assert not {HEAVY} & (sys.modules.keys() - before)"
    done = run(f"{theirs}\nbefore = set(sys.modules)\n{code}\n{check}")
    assert done.stdout == done.stderr == ""


def test_import_alone_brings_no_scientific_library():
    run("import sys, lokl; assert not {'numpy', 'scipy', 'sklearn'} & sys.modules.keys()")


def test_every_public_name_is_there_and_listed():
    assert set(lokl.__all__) <= set(dir(lokl))
    for name in lokl.__all__:
        assert getattr(lokl, name) is not None
    assert lokl.__version__.count(".") == 2


def test_estimators_are_the_same_object_by_every_way():
    from lokl import methods as estimators

    for name in estimators.__all__:
        assert getattr(lokl, name) is getattr(estimators, name)
        assert name in lokl.__all__


@pytest.mark.parametrize("name", ["NoSuchThing", "numpy_", "UniformMKL"])
def test_an_unknown_name_is_an_attribute_error(name):
    with pytest.raises(AttributeError, match=f"module 'lokl' has no attribute '{name}'"):
        getattr(lokl, name)
    with pytest.raises(ImportError, match=name):
        exec(f"from lokl import {name}", {})
