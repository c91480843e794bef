"""Figures: drawn from real fits and real measurements."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from lokl.cli.app import app
from lokl.paper.figures import figure1, figure2, least_memory, measure_memory

pytestmark = pytest.mark.slow

runner = CliRunner()


def test_two_regions_are_drawn_with_counts():
    titles = [axes.get_title() for axes in figure1().axes]
    assert len(titles) == 3
    counts = {}
    for title in titles:
        name, rest = title.split(": ")
        points, right = rest.split(" support vectors, ")
        counts[name] = (int(points), float(right.split()[0]))
    # Kernels of trace one have many support vectors and predict little but the larger class.
    assert counts["UNIFORM, trace one"][0] > 3 * counts["LD-MKL"][0]
    assert counts["UNIFORM, trace one"][1] < 70
    assert counts["LD-MKL"][1] > 95
    assert counts["UNIFORM"][1] > 95


def test_the_least_memory_is_the_papers_formula():
    # 8 n^2 bytes of a matrix: 537 million for 8,192 samples.
    assert least_memory("libsvm", 8192) * 2**20 == pytest.approx(8 * 8192**2)
    assert least_memory("mwu", 1000) * 2**20 == pytest.approx(8 * 6 * 1000)
    curve = least_memory("libsvm", np.array([100.0, 200.0]))
    assert curve[1] == pytest.approx(4 * curve[0])


def test_memory_is_measured_in_fresh_processes(lokl_data):
    measured = measure_memory(["german"], ("libsvm", "mwu"))
    assert [(m["set"], m["rows"], m["solver"]) for m in measured] == [
        ("German", 1000, "libsvm"),
        ("German", 1000, "mwu"),
    ]
    assert measured[0]["peak"] >= 0.8 * float(least_memory("libsvm", 1000))


def test_measurements_are_drawn_on_logarithmic_axes():
    liver = {"set": "Liver", "rows": 345, "solver": "mwu", "peak": 1.0}
    adult = {"set": "Adult", "rows": 32561, "solver": "exact", "peak": 500.0}
    figure = figure2([liver, adult])
    (axes,) = figure.axes
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert {text.get_text() for text in axes.get_legend().get_texts()} >= {
        "LibSVM, least",
        "MWU, cache 16 MB, measured",
        "exact, cache 512 MB, measured",
    }


def test_the_command_draws(tmp_path, lokl_data):
    result = runner.invoke(app, ["reproduce", "figure1", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert {path.name for path in tmp_path.iterdir()} == {"figure1.png", "figure1.svg"}
    arguments = ["reproduce", "figure2", "--datasets", "Liver", "-o", str(tmp_path)]
    result = runner.invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert shown["files"] == [str(tmp_path / f"figure2.{ending}") for ending in ("png", "svg")]
    rows = json.loads((tmp_path / "figure2.json").read_text())
    assert [row["solver"] for row in rows] == ["libsvm", "mwu", "exact"]
    assert rows == shown["measured"]
    assert (tmp_path / "figure2.svg").exists()
