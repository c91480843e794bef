"""Print the lower bounds of pyproject.toml as constraints of pip.

An environment with the oldest admitted versions:

    python .ci/minimum.py > minimum.txt
    python -m pip install --constraint minimum.txt --editable '.[all]' --group test
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def main():
    declared = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    project = declared["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    groups.append(declared["dependency-groups"]["test"])
    bounds = {}
    for requirement in (entry for group in groups for entry in group):
        found = re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", requirement)
        if found is None:
            if requirement.startswith("lokl["):
                continue
            raise SystemExit(f"{requirement!r} has no lower bound")
        name, bound = found.groups()
        if bounds.setdefault(name, bound) != bound:
            raise SystemExit(f"{name} has two lower bounds, {bounds[name]} and {bound}")
    for name, bound in sorted(bounds.items()):
        print(f"{name}=={bound}")


if __name__ == "__main__":
    main()
