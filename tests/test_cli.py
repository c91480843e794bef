import subprocess
import sys

import pytest
from typer.testing import CliRunner

from lokl import __version__
from lokl.cli.app import app

runner = CliRunner()


@pytest.mark.parametrize(
    "arguments",
    [["demo", "--seed", "-1"], ["reproduce", "table2", "--repeats", "0"], ["walk"]],
)
def test_bad_input_exits_with_2(arguments):
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stderr


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


def test_the_list_of_commands_has_whole_sentences():
    shown = CliRunner().invoke(app, ["--help"]).stdout.partition("Commands:")[2]
    assert "..." not in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("command", ["compare", "fit", "predict", "explain", "info", "reproduce"])
def test_help_has_words_for_values_and_groups(command):
    shown = CliRunner().invoke(app, [command, "--help"]).stdout
    assert "<" not in shown
    assert "Other options:" in shown
    assert max(map(len, shown.splitlines())) <= 80
    if command in ("compare", "fit"):
        titles = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
        assert titles[:3] == ["Arguments:", "Tables:", "Models and scores:"]
        assert "--target COLUMN" in shown
