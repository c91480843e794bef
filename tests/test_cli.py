import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from lokl import __version__
from lokl._methods import METHODS
from lokl.cli.app import app

runner = CliRunner()


def test_demo_shows_every_kernel_and_method():
    result = runner.invoke(
        app, ["demo", "--methods", "--data", "iris", "--repeats", "2", "--no-figure"]
    )
    assert result.exit_code == 0, result.output
    for word in ("iris", "linear", "quadratic", "rbf", "uniform mix", "accuracy", "support"):
        assert word in result.stdout
    for method in (
        "LMKL",
        "C-LMKL",
        "SwMKL",
        "SAMKL",
        "LD-MKL",
        "GS-MKL",
        "PCK-LMKL",
        "SimpleMKL",
        "EasyMKL",
    ):
        assert method in result.stdout
    told = " ".join(result.stdout.split())
    assert "over 2 random 75/25 splits; median time of a fit, with the cross-validation" in told


def test_demo_draws_which_kernel_rules_where(tmp_path):
    path = tmp_path / "regions.png"
    arguments = ["demo", "--methods", "--data", "iris", "--repeats", "1", "--figure", str(path)]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert path.read_bytes().startswith(b"\x89PNG")


def test_demo_without_a_place_for_the_figure(tmp_path):
    path = tmp_path / "nowhere" / "regions.png"
    arguments = ["demo", "--methods", "--data", "iris", "--repeats", "1", "--figure", str(path)]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert "cannot write" in result.stderr


def test_demo_without_matplotlib_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = runner.invoke(app, ["demo", "--data", "iris", "--repeats", "1"])
    assert result.exit_code == 0, result.output
    assert "lokl[plot]" in result.stdout


def test_demo_records_are_json_and_repeatable():
    arguments = ["demo", "--data", "iris", "--data", "wine", "--repeats", "2", "--json"]
    first, second = (json.loads(runner.invoke(app, arguments).stdout) for _ in range(2))
    count = 3 + len(METHODS)  # single kernels, and all methods
    assert [r["data"] for r in first] == ["iris"] * count + ["wine"] * count
    for a, b in zip(first, second, strict=True):
        assert {**a, "fit_seconds": 0} == {**b, "fit_seconds": 0}
        assert a["accuracy"] > 0.8


@pytest.mark.parametrize(
    "arguments",
    [["demo", "--data", "nothing"], ["demo", "--repeats", "0"], ["demo", "--seed", "-1"], ["walk"]],
)
def test_bad_input_exits_with_2(arguments):
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stderr


def test_an_unknown_data_set_names_the_known_ones():
    assert "breast_cancer" in runner.invoke(app, ["demo", "--data", "nothing"]).stderr


def test_version():
    assert runner.invoke(app, ["--version"]).stdout.strip() == f"lokl {__version__}"


COMMANDS = ("compare", "fit", "predict", "explain", "info", "demo", "reproduce", "datasets")


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_imports_no_scientific_library(command):
    code = (
        "import atexit, sys\n"
        "from lokl.cli import main\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'joblib', 'numba', 'pandas', 'skops'}\n"
        "atexit.register(lambda: print('heavy:', sorted(heavy & sys.modules.keys())))\n"
        "main()"
    )
    arguments = [sys.executable, "-c", code, *command, "--help"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert "Usage: " in done.stdout
    assert done.stdout.splitlines()[-1] == "heavy: []"


def test_the_package_is_the_command_too():
    done = subprocess.run(
        [sys.executable, "-m", "lokl", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("lokl ")
