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


LIBRARIES = {"numpy", "scipy", "sklearn", "skops", *HEAVY} - {"typer", "rich"}


def imported_by(*words):
    """Return the packages and modules of lokl that a command has imported at its end."""
    done = run(
        f"import sys\nsys.argv = ['lokl', *{words!r}]\nfrom lokl.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "own = {name for name in sys.modules if name.startswith('lokl.')}\n"
        "print()\nprint(*own, *{name.partition('.')[0] for name in sys.modules})"
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.fixture(scope="module")
def command_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("command")
    table, model = folder / "ill.csv", folder / "ill.lokl"
    rows = [f"{k % 7},{k % 5},{'ny'[k % 3 == 0]}" for k in range(40)]
    table.write_text("\n".join(["pulse,blood,ill", *rows]))
    imported_by("fit", str(table), "--target", "ill", "--method", "UniformMKL", "-o", str(model))
    return table, model


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("predict", "--help")])
def test_the_help_of_the_command_needs_no_library(words):
    assert not LIBRARIES & imported_by(*words)


def test_the_description_of_a_model_file_needs_no_library(command_files):
    assert not LIBRARIES & imported_by("info", str(command_files[1]))


def test_predictions_need_no_plots_reports_or_comparisons(command_files):
    table, model = command_files
    found = imported_by("predict", str(model), str(table))
    unused = ("lokl.study", "lokl.report", "lokl.paper", "lokl.regions.")
    assert "matplotlib" not in found
    assert not [name for name in found if name.startswith(unused)]


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
