"""Facts about the project that several files state."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import lokl

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, TOOLS = PYPROJECT["project"], PYPROJECT["tool"]
REQUIREMENTS = [
    Requirement(text)
    for group in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    for text in group
    if not text.startswith("lokl[")
]
PERMISSIVE = re.compile(
    r"MIT|BSD|0BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|CC0|Unlicense|LLVM-exception"
)
# Licences that their metadata does not state, or that are not permissive.
READ = {
    # Of the extra omics, which the environment of the tests need not have.
    "legacy-api-wrap": "MPL-2.0: imported by anndata, unchanged",
    "session-info2": "MPL-2.0: imported by anndata, unchanged",
    "certifi": "MPL-2.0: a list of certificates, neither changed nor linked",
    "skops": "MIT: in its LICENSE only",
}


def installed(requirements):
    """Distributions that requirements need, with those that these need, by name."""
    found = {}
    waiting = [(one, "") for one in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        key = (canonicalize_name(requirement.name), *sorted(requirement.extras))
        if key not in found:
            found[key] = metadata.distribution(requirement.name)
            needed = [Requirement(text) for text in found[key].requires or []]
            waiting += [(one, own) for one in needed for own in ("", *requirement.extras)]
    return {key[0]: distribution for key, distribution in found.items()}


def licences(distribution):
    """Names of all licences that metadata state; each must be permissive."""
    stated = distribution.metadata
    if expression := stated.get("License-Expression"):
        return re.findall(r"[\w.-]+", re.sub(r"\b(AND|OR|WITH)\b", " ", expression))
    classifiers = [text for text in stated.get_all("Classifier") or [] if "License ::" in text]
    # Some state the whole text; its first line names it.
    return classifiers or [(stated.get("License") or "unknown").splitlines()[0]]


def test_all_dependencies_have_a_permissive_licence():
    # anndata admits pandas before 3 only, so the tests run without it in most environments.
    absent = {n for n in ("anndata", "mudata", "h5py") if importlib.util.find_spec(n) is None}
    needed = [one for one in REQUIREMENTS if one.name not in absent]
    distributions = installed(needed)
    assert {canonicalize_name(one.name) for one in needed} <= distributions.keys()
    others = {
        name: licences(distribution)
        for name, distribution in distributions.items()
        if not all(PERMISSIVE.search(licence) for licence in licences(distribution))
    }
    assert others.keys() <= READ.keys(), others


def test_a_licence_that_is_not_permissive_is_found():
    assert not PERMISSIVE.search("GPL-3.0-or-later")
    assert not PERMISSIVE.search("License :: OSI Approved :: GNU General Public License v2 (GPLv2)")
    assert not PERMISSIVE.search("unknown")


def test_all_files_name_the_owner_that_pyproject_states():
    source = PROJECT["urls"]["Source"]
    owner, name = source.split("/")[-2:]
    allowed = (source, f"https://{owner}.github.io/{name}/")
    assert all(url.startswith(allowed) for url in PROJECT["urls"].values())
    tracked = subprocess.run(
        ["git", "ls-files", "*.md", "*.cff", "*.yaml", "*.yml", "*.toml", "*.py", "*.j2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if tracked.returncode:
        pytest.skip("not a checkout")
    for path in tracked.stdout.splitlines():
        text = (ROOT / path).read_text(encoding="utf-8")
        for url in re.findall(r"https://[\w.-]*github\.(?:com|io)/[\w./-]*", text):
            if re.search(rf"/{name}(/|$)", url):
                assert url.startswith(allowed), f"{path}: {url}"


def test_citation_and_recipe_state_version_licence_and_links():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert str(citation["version"]) == lokl.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Source"]
    assert citation["url"] == PROJECT["urls"]["Documentation"]
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    assert recipe["context"]["version"] == lokl.__version__
    assert recipe["about"]["homepage"] == PROJECT["urls"]["Homepage"]
    assert recipe["about"]["license"] == PROJECT["license"]


def test_the_recipe_has_the_bounds_of_pyproject():
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    requirements = recipe["requirements"]
    bounds = dict(
        one.split(" ", 1) for one in requirements["run"] + requirements["run_constraints"]
    )
    assert bounds.pop("python") == ">=${{ python_min }}"
    assert PROJECT["requires-python"] == f">={recipe['context']['python_min']}"
    bounds["matplotlib"] = bounds.pop("matplotlib-base")
    assert bounds == {one.name: str(one.specifier) for one in REQUIREMENTS}


def test_minimum_versions_are_the_lower_bounds():
    printed = subprocess.run(
        [sys.executable, ROOT / ".ci/minimum.py"], capture_output=True, text=True, check=True
    ).stdout
    for requirement in REQUIREMENTS:
        (bound,) = requirement.specifier
        assert f"{requirement.name}=={bound.version}" in printed.splitlines()


def test_workflows_run_scripts_and_targets_that_exist():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        jobs = yaml.safe_load(path.read_text())["jobs"].values()
        for step in (step.get("run", "") for job in jobs for step in job["steps"]):
            assert all((ROOT / script).exists() for script in re.findall(r"\.ci/\S+", step)), step
            for made in re.findall(r"^make ((?:[a-z]+ ?)+)", step, flags=re.MULTILINE):
                assert {*made.split()} <= {*targets}, step


def test_fragments_of_the_changelog_have_a_known_kind():
    kinds = TOOLS["towncrier"]["type"]
    for path in (ROOT / TOOLS["towncrier"]["directory"]).glob("*.md"):
        if path.name != "README.md":
            _, kind, _ = path.name.rsplit(".", 2)
            assert kind in {one["directory"] for one in kinds}, path.name
            assert len(path.read_text().splitlines()) == 1, path.name


def test_every_action_of_a_workflow_is_pinned_and_permissions_are_stated():
    workflows = list((ROOT / ".github/workflows").glob("*.yml"))
    assert workflows
    for path in workflows:
        text = path.read_text()
        assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
        for used in re.findall(r"uses: (.*)", text):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", used), used
