"""What the documents show must run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import lokl

ROOT = Path(__file__).parents[1]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(lokl.__path__, "lokl.")
    if not module.name.startswith("lokl.cli")
]


@pytest.mark.parametrize(
    "page", ["README.md", "docs/user_guide.md", "docs/tuning.md", "docs/scale.md"]
)
def test_python_blocks_run_one_after_the_other(page):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


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
        "lokl.clustering",
        "lokl.datasets",
        "lokl.inspection",
        "lokl.solvers",
        "lokl.models",
        "lokl.selection",
        "lokl.regions",
    ):
        for name in importlib.import_module(package).__all__:
            if not name.startswith("_"):
                assert re.search(rf"^   {name}$", text, flags=re.MULTILINE), name
