"""A notebook shows pictures and short tables, before and after imports of the library."""

import nbclient
import nbformat
import pytest
from sklearn.datasets import load_iris

from lokl import AutoMKLClassifier, LpMKLClassifier
from lokl.kernels import RBF

CELLS = [
    # Pictures of the user before and after ours.
    ("image/png", "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"),
    (
        "image/png",
        """
from lokl import AutoMKLClassifier, LMKLClassifier
from lokl.datasets import make_views
from lokl.explain import *
from lokl.kernels import Linear, per_view
from lokl.report import report_from_model

X, y, views, _ = make_views(120, 3, random_state=0)
kernels = per_view(Linear(), views)
model = LMKLClassifier(kernels, random_state=0).fit(X[:80], y[:80])
TrustDisplay.from_estimator(model, X[80:], y[80:]);
""",
    ),
    ("image/png", "plt.plot([2, 1]);"),
    ("text/html", "model"),
    ("text/html", "explain(model, X[80:], y[80:])"),
    ("text/html", "value = view_value(model, X, y, cv=3)\nvalue"),
    ("text/html", "weight_stability(model, X, y, cv=3, n_repeats=2)"),
    ("text/html", "report_from_model(model, X[80:], y[80:], value=value)"),
    ("text/html", "AutoMKLClassifier(views=views).fit(X, y).leaderboard_"),
]
# Characters that a notebook shows at most of one result, without scikit-learn's diagram.
LONGEST = 6_000


@pytest.mark.slow
def test_pictures_and_tables_appear():
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for _, source in CELLS]
    )
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    for (kind, source), cell in zip(CELLS, notebook.cells, strict=True):
        assert all(output.output_type != "error" for output in cell.outputs), source
        shown = [output.data for output in cell.outputs if "data" in output]
        (found,) = [data[kind] for data in shown if kind in data]
        assert found, source
        if kind == "text/html" and source != "model":
            assert "<table" in found
            assert len(found) < LONGEST, (source, len(found))


@pytest.mark.parametrize("estimator", [LpMKLClassifier(["linear", "rbf"]), AutoMKLClassifier()])
def test_an_estimator_links_its_page(estimator):
    shown = estimator._repr_mimebundle_()["text/html"]
    assert f"/generated/lokl.{type(estimator).__name__}.html" in shown
    assert "sk-estimator" in shown


def test_weights_are_bars_below_the_diagram():
    X, y = load_iris(return_X_y=True)
    model = LpMKLClassifier({"a < b": "linear", "c": "rbf"})
    plain = model._repr_mimebundle_()["text/html"]
    fitted = model.fit(X, y)._repr_mimebundle_()["text/html"]
    table = fitted[fitted.rindex("<table") :]
    share = model.weights_ / model.weights_.sum()
    assert "a &lt; b" in table
    assert all(f"{value:.2f}" in table for value in share)
    assert "kernel</th><th>weight" not in plain
    model = LpMKLClassifier([RBF(1.0), RBF(1.0)]).fit(X, y)
    assert "All 2 kernels count equally." in model._repr_mimebundle_()["text/html"]
