"""A figure of all results against the published ones."""

from collections.abc import Sequence
from typing import Any

from lokl.inspection.plotting import pyplot
from lokl.paper.readings import READINGS
from lokl.paper.tables import Entry, ResultTable

# Shapes of methods, in the order in which they are met.
_SHAPES = "osD^vPX*<>"


def agreement_figure(tables: Sequence[ResultTable]) -> Any:
    """Our means against the published ones, with both deviations; a panel for each table.

    Colours are readings and shapes methods. Only the method that stands for a published number is
    drawn, not variants beside it; a result that is farther off than two published deviations has
    the name of its set.
    """
    plt = pyplot()
    figure, panels = plt.subplots(
        1, len(tables), figsize=(5.0 * len(tables), 5.4), squeeze=False, constrained_layout=True
    )
    shapes: dict[str, str] = {}
    for axes, table in zip(panels[0], tables, strict=True):
        drawn = [e for e in table.entries if e.counted and e.mean is not None]
        for entry in drawn:
            shape = shapes.setdefault(_name(entry), _SHAPES[len(shapes) % len(_SHAPES)])
            _draw(axes, entry, f"C{list(READINGS).index(entry.reading)}", shape)
        axes.set(title=table.title, xlabel="published", ylabel="ours")
        if drawn:
            equal = drawn[0].published
            axes.axline((equal, equal), slope=1.0, color="0.7", zorder=0)
            # Room for a name beside the last point.
            axes.margins(x=0.1)
    _explain(figure, plt, shapes)
    return figure


def _name(entry: Entry) -> str:
    """The method as the paper has it; what follows a comma is how it was read."""
    return entry.method.partition(",")[0]


def _draw(axes: Any, entry: Entry, colour: str, shape: str) -> None:
    axes.errorbar(
        [entry.published],
        [entry.mean],
        xerr=[entry.published_spread],
        yerr=[entry.spread],
        fmt=shape,
        markersize=5,
        elinewidth=0.7,
        alpha=0.75,
        color=colour,
    )
    if entry.within == 3:
        axes.annotate(
            entry.set,
            (entry.published, entry.mean),
            xytext=(5, -9),
            textcoords="offset points",
            fontsize=7,
            color=colour,
        )


def _explain(figure: Any, plt: Any, shapes: dict[str, str]) -> None:
    """One legend for all panels, below them."""
    keys = [
        plt.Line2D([], [], marker="s", linestyle="", color=f"C{k}", label=f"reading {reading}")
        for k, reading in enumerate(READINGS)
    ]
    keys += [
        plt.Line2D([], [], marker=shape, linestyle="", color="0.4", label=method)
        for method, shape in shapes.items()
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys), frameon=False)
