"""Sphinx settings. The build reads this checkout only and never the network."""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import lokl
from lokl._methods import METHODS

project = "lokl"
author = "lokl developers"
copyright = "2026, lokl developers"
version = release = lokl.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
# Results are included by the page that discusses them.
exclude_patterns = ["_build", "results"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"lokl {release}"

myst_heading_anchors = 3

# The template lists the members; numpydoc would list them a second time.
numpydoc_show_class_members = False
# The types stand in the numpydoc sections, with shapes.
autodoc_typehints = "none"
autodoc_member_order = "bysource"

# Two pages whose names differ by case only are one file on some systems.
autosummary_filename_map = {"lokl.kernels.precomputed": "lokl.kernels.precomputed-function"}


def skip_foreign(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool:
    """Leave out what scikit-learn documents: its texts link to its own pages."""
    return skip or (getattr(obj, "__module__", None) or "").startswith("sklearn.")


def setup(app: Sphinx) -> None:
    app.connect("autodoc-skip-member", skip_foreign)


def estimators_page() -> str:
    """Return the page of all estimators, out of the list of methods."""
    lines = ["Estimators", "==========", "", ".. currentmodule:: lokl", ""]
    for method in METHODS:
        title = f"{method.name}: {method.summary}"
        lines += [title, "-" * len(title), "", ".. autosummary::", "   :toctree:", ""]
        lines += [*(f"   {name}" for name in method.classes), ""]
    return "\n".join(lines)


# Written before Sphinx looks for pages, so that autosummary finds the names.
generated = Path(__file__).parent / "generated"
generated.mkdir(exist_ok=True)
(generated / "estimators.rst").write_text(estimators_page())
