"""Sphinx settings. The build reads this checkout only and never the network."""

import sys
from pathlib import Path
from pydoc import locate
from typing import Any

import numpy as np
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sklearn.datasets import load_wine
from sphinx.application import Sphinx

import lokl
from lokl import TrustedVoteClassifier
from lokl._methods import METHODS
from lokl.explain import view_value
from lokl.kernels import RBF, per_view
from lokl.report import report_from_model, write

HERE = Path(__file__).parent
# The style of the gallery's figures; workers of the gallery import it by name.
sys.path.insert(0, str(HERE))
from charts import draw_all  # noqa: E402

project = "lokl"
author = "lokl developers"
copyright = "2026, lokl developers"
version = release = lokl.__version__

# No intersphinx: its inventories come from the network, and their packages do not contain them.
# Names of other libraries on these pages are plain text, except for links that are written out.
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
# Results are included by the page that discusses them.
exclude_patterns = ["_build", "results/table*.md", "results/adult"]
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = f"lokl {release}"
html_static_path = ["_static"]
html_css_files = ["lokl.css"]
# The report of the first page, written below.
html_extra_path = ["generated/site"]
# Browsers render MathML themselves: no script from another host, and none at all.
html_math_renderer = "mathml"
html_show_sourcelink = False
# Without it the theme logs an error at the first visit.
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": html_title},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "changelog": [], "contributing": []}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# The template lists the members; numpydoc would list them a second time.
numpydoc_show_class_members = False
# The types stand in the numpydoc sections, with shapes.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# Names of members alone fit into the table of contents of a page.
toc_object_entries_show_parents = "hide"

# Two pages whose names differ by case only are one file on some systems.
autosummary_filename_map = {"lokl.kernels.precomputed": "lokl.kernels.precomputed-function"}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    # A failing example fails the build.
    "only_warn_on_example_error": False,
    "parallel": 2,
    "doc_module": ("lokl",),
    "backreferences_dir": "generated/backreferences",
    "reference_url": {"lokl": None},
    "reset_modules": ("gallery_style.reset",),
    "remove_config_comments": True,
    "show_memory": False,
    # Would be a file next to the pages.
    "write_computation_times": False,
    "download_all_examples": False,
    # Within a section, the default order is from the shortest script to the longest.
    "subsection_order": [
        f"../examples/{section}" for section in ("views", "one_table", "methods", "trust", "scale")
    ],
}


def skip_foreign(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool:
    """Leave out what scikit-learn documents: its texts link to its own pages."""
    return skip or (getattr(obj, "__module__", None) or "").startswith("sklearn.")


def visit_math(translator: Any, node: nodes.Element) -> None:
    """Write a formula as MathML."""
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_displaymath(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.connect("autodoc-skip-member", skip_foreign)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))


def write_report(path: Path) -> None:
    """Write the report that the first page shows: two views of wines, one of them with gaps."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = (X - X.mean()) / X.std()
    X.index = [f"wine {row}" for row in X.index]
    views = {"acids": list(X.columns[:5]), "colours": list(X.columns[5:])}
    X.loc[X.index[::9], views["acids"]] = np.nan
    model = TrustedVoteClassifier(per_view(RBF("scale"), views), C=10, random_state=0)
    new, rest = X[1::2], X[::2]
    model.fit(rest, y[::2])
    report = report_from_model(
        model,
        new,
        y[1::2],
        title="Three kinds of wine",
        training=(rest, y[::2]),
        value=view_value(model, rest, y[::2]),
        columns=True,
    )
    write(report, path)


def estimators_page() -> str:
    """Return the page of all estimators, out of the list of methods."""
    lines = ["Estimators", "==========", "", ".. currentmodule:: lokl", ""]
    for method in METHODS:
        title = f"{method.name}: {method.summary}"
        lines += [title, "-" * len(title), "", ".. autosummary::", "   :toctree:", ""]
        lines += [*(f"   {name}" for name in method.classes), ""]
    return "\n".join(lines)


# Written before Sphinx looks for pages, so that autosummary finds the names.
generated = HERE / "generated"
generated.mkdir(exist_ok=True)
# Pages of names that are gone, left by an earlier build.
for page in generated.glob("lokl.*.rst"):
    if locate(page.stem) is None:
        page.unlink()
(generated / "estimators.rst").write_text(estimators_page())
draw_all(generated)
(generated / "site").mkdir(exist_ok=True)
write_report(generated / "site" / "wine_report.html")
