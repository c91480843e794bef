"""The steps of CONTRIBUTING.md lead a newcomer to a working part."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()

# Names of the part of each section, and what they become.
SECTIONS = {
    "Add a kernel": {"Chi2": "Newcomer", "chi2": "newcomer"},
    "Add a gate": {"SigmoidGate": "NewcomerGate"},
    "Add a method": {"UniformMKL": "NewcomerMKL", "uniformmkl": "newcomermkl", "UNIFORM": "new"},
    "Add a column to the report": {"support": "newcomer"},
}
# Tests of the new part, for the parts that have laws.
LAWS = {
    "Add a kernel": ("tests/kernels/test_kernel_laws.py", "Newcomer or list"),
    "Add a gate": ("tests/gates/test_gates.py", "Newcomer or list"),
    "Add a method": ("tests/methods/test_method_laws.py", "Newcomer and not scikit_learn"),
}


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## )", TEXT, flags=re.DOTALL | re.MULTILINE)[1]


def steps(title):
    """Pairs of a file and a block of code of one section."""
    pattern = r"<!-- in (\S+) -->\n```\w+\n(.*?)\n```"
    return re.findall(pattern, section(title), flags=re.DOTALL)


def occurrences(block, text):
    """Matches of a block in a file; a single line may be indented."""
    pattern = re.escape(block) if "\n" in block else rf"^( *){re.escape(block)}$"
    return list(re.finditer(pattern, text, flags=re.MULTILINE))


@pytest.mark.parametrize("title", SECTIONS)
def test_examples_stand_in_the_files_they_name(title):
    examples = steps(title)
    assert len(examples) >= 2
    for path, block in examples:
        assert occurrences(block, (ROOT / path).read_text()), path


def copy_tree(folder, changed):
    """Copy the tree; packages without changed files are links, and share their compiled loops."""
    skip = shutil.ignore_patterns("_build", "generated", "gallery")
    for name in ("tests", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", folder)
    package = Path("src/lokl")
    (folder / package).mkdir(parents=True)
    touched = {Path(path).relative_to(package).parts[0] for path in changed if "src/" in path}
    for item in (ROOT / package).iterdir():
        target = folder / package / item.name
        if item.is_file():
            shutil.copy2(item, target)
        elif item.name in touched or sys.platform == "win32":
            shutil.copytree(item, target)
        else:
            target.symlink_to(item)


def follow(title, folder):
    """Repeat each block under a new name after the original, in a copy of the tree."""
    copies = re.findall(r"<!-- copy (\S+) to (\S+) -->", section(title))
    copy_tree(folder, [path for path, _ in steps(title) + copies])
    names = SECTIONS[title]

    def renamed(text):
        # Names of classes are the beginnings of names of estimators.
        return re.sub(rf"\b({'|'.join(names)})(?=\b|[A-Z])", lambda m: names[m[1]], text)

    for source, target in copies:
        (folder / target).write_text(renamed((folder / source).read_text()))
    for path, block in steps(title):
        file = folder / path
        text = file.read_text()
        match = occurrences(block, text)[0]
        text = f"{text[: match.end()]}\n{renamed(match[0])}{text[match.end() :]}"
        for old, new in names.items():
            # The name is imported where the original is.
            text = re.sub(rf"^(from .*\b){old}\b(?!.* as )", rf"\1{old}, {new}", text, flags=re.M)
            text = re.sub(rf"^    {old},$", f"    {old},\n    {new},", text, flags=re.M)
        file.write_text(text)


def run(folder, *command):
    """Run a module in a copy of the tree; return its output."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("title", LAWS)
def test_the_steps_with_another_name_give_a_part_that_obeys_the_laws(title, tmp_path):
    follow(title, tmp_path)
    laws, chosen = LAWS[title]
    output = run(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", laws, "-k", chosen)
    assert int(re.search(r"(\d+) passed", output)[1]) > 5


@pytest.mark.slow
def test_the_steps_with_another_name_give_a_column_of_the_report(tmp_path):
    follow("Add a column to the report", tmp_path)
    options = ["--methods", "uniform mix", "--folds", "2", "--repeats", "1", "-o", "run"]
    run(tmp_path, "lokl", "compare", "wine", *options)
    page = (tmp_path / "run/report.html").read_text()
    values = re.findall(r'data-label="(support|newcomer) %" data-value="([^"]*)"', page)
    assert {name for name, _ in values} == {"support", "newcomer"}
    assert [v for n, v in values if n == "support"] == [v for n, v in values if n == "newcomer"]
    assert any(value for _, value in values)
