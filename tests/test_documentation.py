"""What the documents show must run."""

import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
import sys
from pathlib import Path
from weakref import WeakValueDictionary

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate
from typer.main import get_command
from typer.testing import CliRunner

import lokl
from lokl._methods import METHODS
from lokl.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in (
            "index",
            "coming_from",
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


PACKAGES = [
    "lokl.kernels",
    "lokl.gates",
    "lokl.gram",
    "lokl.optimizers",
    "lokl.methods.clusters",
    "lokl.datasets",
    "lokl.explain",
    "lokl.solvers",
    "lokl.base.model",
    "lokl.metrics",
    "lokl.search",
    "lokl.persistence",
    "lokl.tables",
    "lokl.study",
    "lokl.regions",
    "lokl.report",
    "lokl.distributed",
    "lokl.paper",
]
PUBLIC = [
    f"{package}.{name}"
    for package in PACKAGES
    for name in importlib.import_module(package).__all__
    if callable(getattr(importlib.import_module(package), name))
] + [f"lokl.{name}" for method in METHODS for name in method.classes]
# Of numpydoc: order of sections, a summary, parameters that exist and have a meaning, results,
# related names with a reason, an example.
CODES = {"GL07", "GL08", "SS01", "PR02", "PR05", "PR07", "RT01", "RT03", "YD01"}
CODES |= {"SA01", "SA02", "SA03", "SA04", "EX01"}

# Machines differ in the last digits of sums, and then in a sample or two.
NEAR = 0.02
NUMBER = r"[-+]?\d+\.\d*(?:e[-+]?\d+)?"


def agree(shown, printed):
    """Whether words are equal to the letter, and numbers nearly."""
    if re.sub(NUMBER, "#", shown).split() != re.sub(NUMBER, "#", printed).split():
        return False
    pairs = zip(re.findall(NUMBER, shown), re.findall(NUMBER, printed), strict=True)
    return all(abs(float(a) - float(b)) <= NEAR * max(1, abs(float(a))) for a, b in pairs)


def check_told(shown, printed, page):
    for line, own in zip(shown.splitlines(), printed.splitlines(), strict=True):
        assert agree(line, own), (page, line, own)


class NearlyEqual(doctest.OutputChecker):
    """Accepts numbers that differ in their last digits."""

    def check_output(self, want, got, optionflags):
        return super().check_output(want, got, optionflags) or agree(want, got)


@pytest.fixture
def no_cluster(monkeypatch):
    """Hide clients that workers inside of this process have made in other tests.

    Who reads a page has none, and Dask would run everything on a cluster of another test.
    """
    client = sys.modules.get("distributed.client")
    if client is not None:
        monkeypatch.setattr(client, "_global_clients", WeakValueDictionary())


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/command.md", "docs/survival.md"])
def test_commands_and_python_blocks_of_their_page_run_one_after_the_other(
    page, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text()
    names: dict[str, object] = {}
    told = None
    for kind, block in re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL):
        if kind == "python":
            exec(compile(block, page, "exec"), names)
            # The other test compares what it prints.
            told = None
        elif kind == "":
            done = CliRunner().invoke(app, shlex.split(block)[1:])
            assert done.exit_code == 0, done.output
            told = done.output
        elif told is not None and not block.startswith("lokl "):
            # Output of the last command; numbers differ in their last digits.
            for line in block.splitlines():
                begin = re.split(r"\b\d+\.\d", line)[0].rstrip()
                assert line == "..." or any(own.startswith(begin) for own in told.splitlines())


def option_names(command):
    """Return the options of a command and of its subcommands."""
    own = {name for item in command.params for name in (*item.opts, *item.secondary_opts)}
    return own.union(*map(option_names, getattr(command, "commands", {}).values()))


def test_options_of_the_command_that_pages_name_exist():
    known = option_names(get_command(app)) | {"--help"}
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/start").glob("*.md")]
    for page in pages:
        text = page.read_text()
        spans = [*re.findall(r"`([^`\n]+)`", text), *re.findall(r"^lokl .*", text, re.MULTILINE)]
        for span in spans:
            if span.startswith(("lokl ", "--")):
                assert {*re.findall(r"(?<![\w-])--[a-z][a-z-]*", span)} <= known, (page.name, span)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.usefixtures("no_cluster")
def test_docstring_examples_give_what_they_show(name):
    runner = doctest.DocTestRunner(NearlyEqual(), optionflags=doctest.ELLIPSIS)
    for example in doctest.DocTestFinder().find(importlib.import_module(name)):
        runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_meaning_results_example_and_related_names(name):
    errors = [error for error in validate(name)["errors"] if error[0] in CODES]
    assert not errors
    package, _, own = name.rpartition(".")
    found = getattr(importlib.import_module(package), own)
    text = NumpyDocString(inspect.getdoc(found))
    shown = [line for line in text["Examples"] if line.strip()]
    assert any(not line.startswith((">>>", "...")) for line in shown), "an example shows output"
    if not (inspect.isclass(found) and issubclass(found, Exception)):
        # Frozen dataclasses describe their parameters as attributes.
        described = [*text["Parameters"], *text["Attributes"]]
        names = {one.strip(" *") for item in described for one in item.name.split(",")}
        names |= {one.strip(" *") for item in described for one in item.type.split(",")}
        assert {*inspect.signature(found).parameters} <= names


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.stem)
def test_every_method_states_who_published_it(method):
    page = (ROOT / "docs/methods.md").read_text()
    for name in method.classes:
        assert name.endswith("Survival") or f"~lokl.{name}`" in page
        # The trusted vote is this library's own.
        if method.stem != "TrustedVote":
            references = "\n".join(NumpyDocString(getattr(lokl, name).__doc__)["References"])
            assert re.search(r"\b(19|20)\d\d\b", references), name


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs/api.md").read_text()
    for name in PUBLIC:
        package, _, own = name.rpartition(".")
        if package != "lokl":
            assert re.search(rf"^   {own}$", text, flags=re.MULTILINE), name
