"""All packages that lokl needs may be used with its licence."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
# As packages spell the permissive licences, and the weak copyleft of certificates.
PERMITTED = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|CC0|MPL|OSI Approved|Unlicense"
)


def licence_of(package):
    about = metadata.metadata(package)
    kinds = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier", []) if "License" in c]
    return about.get("License-Expression") or "; ".join(kinds) or about.get("License") or ""


def needed():
    """Names of the installed packages that lokl needs, with all extras."""
    waiting = [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]
    found = {"lokl"}
    while waiting:
        requirement = Requirement(waiting.pop())
        name = requirement.name.lower().replace("_", "-")
        if name in found or (requirement.marker and not requirement.marker.evaluate()):
            continue
        try:
            waiting += metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        found.add(name)
    return sorted(found)


@pytest.mark.parametrize("package", needed())
def test_licences_are_permissive(package):
    licence = licence_of(package)
    assert PERMITTED.search(licence), licence
    assert "GPL" not in licence
