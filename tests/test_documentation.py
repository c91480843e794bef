"""What the documents show must run."""

import doctest
import importlib
import pkgutil
import re
import shlex
import sys
from pathlib import Path
from weakref import WeakValueDictionary

import pytest
from typer.testing import CliRunner

import lokl
from lokl.cli.app import app

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in (
            "index",
            "start/python",
            "user_guide",
            "choosing",
            "kernels",
            "tables",
            "wrong_views",
            "localized",
            "tuning",
            "probabilities",
            "views",
            "columns",
            "sets",
            "survival",
            "solvers",
            "scale",
            "dask",
            "data_sets",
            "report",
        )
    ),
]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(lokl.__path__, "lokl.")
    if not module.name.startswith("lokl.cli")
]


# Machines differ in the last digits of sums, and then in a sample or two.
NEAR = 0.02


def check_told(shown, printed, page):
    """What a page shows is what was printed: words to the letter, numbers nearly."""
    number = r"[-+]?\d+\.\d+"
    for line, own in zip(shown.splitlines(), printed.splitlines(), strict=True):
        assert re.sub(number, "#", line).split() == re.sub(number, "#", own).split(), page
        pairs = zip(re.findall(number, line), re.findall(number, own), strict=True)
        assert all(abs(float(a) - float(b)) <= NEAR * max(1, abs(float(a))) for a, b in pairs), own


@pytest.fixture
def no_cluster(monkeypatch):
    """Hide clients that workers inside of this process have made in other tests.

    Who reads a page has none, and Dask would run everything on a cluster of another test.
    """
    client = sys.modules.get("distributed.client")
    if client is not None:
        monkeypatch.setattr(client, "_global_clients", WeakValueDictionary())


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("no_cluster")
def test_python_blocks_run_one_after_the_other_and_print_what_is_shown(
    page, capsys, tmp_path, monkeypatch
):
    text = (ROOT / page).read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", text, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = None
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, page, "exec"), names)
            printed = capsys.readouterr().out
        elif printed:
            check_told(block, printed, page)
            printed = None
    assert names


def test_commands_and_python_blocks_of_their_page_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/command.md").read_text()
    names: dict[str, object] = {}
    told = ""
    for kind, block in re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL):
        if kind == "python":
            exec(compile(block, "command.md", "exec"), names)
        elif kind == "":
            done = CliRunner().invoke(app, shlex.split(block)[1:])
            assert done.exit_code == 0, done.output
            told = done.output
        else:
            # What the command before told; numbers differ in their last digits.
            for line in block.splitlines():
                begin = re.split(r"\b\d+\.\d", line)[0].rstrip()
                assert line == "..." or any(own.startswith(begin) for own in told.splitlines())


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_give_what_they_show(name):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.failed == 0


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs/api.md").read_text()
    for package in (
        "lokl.kernels",
        "lokl.gates",
        "lokl.gram",
        "lokl.optimizers",
        "lokl.methods.clusters",
        "lokl.datasets",
        "lokl.explain",
        "lokl.solvers",
        "lokl.base.model",
        "lokl.search",
        "lokl.persistence",
        "lokl.tables",
        "lokl.study",
        "lokl.search",
        "lokl.regions",
        "lokl.report",
        "lokl.distributed",
    ):
        for name in importlib.import_module(package).__all__:
            if not name.startswith("_"):
                assert re.search(rf"^   {name}$", text, flags=re.MULTILINE), name
