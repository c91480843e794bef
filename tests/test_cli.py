import json

import pytest
from typer.testing import CliRunner

from lokl import __version__
from lokl.cli.app import app

runner = CliRunner()


def test_demo_shows_every_kernel_and_the_mix():
    result = runner.invoke(app, ["demo", "--data", "iris", "--repeats", "2"])
    assert result.exit_code == 0, result.output
    for word in ("iris", "linear", "quadratic", "rbf", "uniform mix", "accuracy", "support"):
        assert word in result.stdout


def test_demo_records_are_json_and_repeatable():
    arguments = ["demo", "--data", "iris", "--data", "wine", "--repeats", "2", "--json"]
    first, second = (json.loads(runner.invoke(app, arguments).stdout) for _ in range(2))
    assert [r["data"] for r in first] == ["iris"] * 4 + ["wine"] * 4
    for a, b in zip(first, second, strict=True):
        assert {**a, "fit_seconds": 0} == {**b, "fit_seconds": 0}
        assert a["accuracy"] > 0.85


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
