"""The steps of CONTRIBUTING.md lead a newcomer to a working kernel and a working gate."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def steps(title):
    """Pairs of a file and a block of code of one section."""
    section = re.search(rf"^## {title}\n(.*?)(?=^## )", TEXT, flags=re.DOTALL | re.MULTILINE)[1]
    pattern = r"<!-- in (\S+) -->\n```\w+\n(.*?)```"
    return [(path, block.strip()) for path, block in re.findall(pattern, section, flags=re.DOTALL)]


SECTIONS = {
    "Add a kernel": ("Chi2", "Newcomer", "tests/kernels/test_kernel_laws.py"),
    "Add a gate": ("SigmoidGate", "NewcomerGate", "tests/gates/test_gates.py"),
}


def occurrences(block, text):
    """Matches of a block in a file; a single line may be indented."""
    pattern = re.escape(block) if "\n" in block else rf"^( *){re.escape(block)}$"
    return list(re.finditer(pattern, text, flags=re.MULTILINE))


@pytest.mark.parametrize("title", SECTIONS)
def test_examples_stand_in_the_files_they_name(title):
    examples = steps(title)
    assert len(examples) == 4
    for path, block in examples:
        assert occurrences(block, (ROOT / path).read_text()), path


@pytest.mark.slow
@pytest.mark.parametrize("title", SECTIONS)
def test_the_steps_with_another_name_give_a_part_that_obeys_the_laws(title, tmp_path):
    """Each block is repeated under a new name after the original, as a newcomer would do it."""
    skip = shutil.ignore_patterns("__pycache__", "_build", "generated")
    for name in ("src", "tests", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    old, new, laws = SECTIONS[title]
    for path, block in steps(title):
        file = tmp_path / path
        text = file.read_text()
        match = occurrences(block, text)[0]
        copy = re.sub(rf"\b{old}\b", new, match[0]).replace('"chi2"', '"newcomer"')
        text = f"{text[: match.end()]}\n{copy}{text[match.end() :]}"
        # The name is imported where the original is.
        text = re.sub(rf"^(from .*\b){old}\b", rf"\1{old}, {new}", text, flags=re.MULTILINE)
        text = re.sub(rf"^    {old},$", f"    {old},\n    {new},", text, flags=re.MULTILINE)
        file.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", laws]
    done = subprocess.run(
        [*command, "-k", "Newcomer or list"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 5
