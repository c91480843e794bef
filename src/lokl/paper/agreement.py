"""A figure of all results against the published ones."""

from collections.abc import Sequence
from typing import Any

from lokl.inspection.plotting import pyplot
from lokl.paper.readings import READINGS
from lokl.paper.tables import Entry, ResultTable

# Shapes of methods, in the order in which they are met.
_SHAPES = "osD^vPX*<>"
# Half the width of a point, in pixels, and places for a name around it, the near ones first.
_HALF = 4.0
_AROUND = [
    (far * x, far * y)
    for far in (4.0, 9.0, 15.0)
    for x, y in ((1, -1), (1, 1), (-1, 1), (-1, -1), (1.4, 0), (-1.4, 0), (0, 1.4), (0, -1.4))
]


def agreement_figure(tables: Sequence[ResultTable]) -> Any:
    """Our means against the published ones, with both deviations; a panel for each table.

    Colours are readings and shapes methods. Only the method that stands for a published number is
    drawn, not variants beside it; a result that is farther off than two published deviations has
    the name of its set.
    """
    plt = pyplot()
    # Two panels in a row; a last one that is alone takes both places.
    last = len(tables) - 1
    rows = [[k, min(k + 1, last)] for k in range(0, len(tables), 2)]
    figure, panels = plt.subplot_mosaic(
        rows, figsize=(10.0, 5.0 * len(rows) + 0.5), layout="constrained"
    )
    shapes: dict[str, str] = {}
    shown = [[e for e in table.entries if e.counted and e.mean is not None] for table in tables]
    for k, (table, drawn) in enumerate(zip(tables, shown, strict=True)):
        axes = panels[k]
        for entry in drawn:
            shape = shapes.setdefault(_name(entry), _SHAPES[len(shapes) % len(_SHAPES)])
            _draw(axes, entry, shape)
        axes.set(title=table.title, xlabel="published", ylabel="ours")
        if drawn:
            equal = drawn[0].published
            axes.axline((equal, equal), slope=1.0, color="0.7", zorder=0)
            # Room for a name beside the last point.
            axes.margins(x=0.1)
    _explain(figure, plt, shapes)
    # Where names have room is known once everything else has its place.
    figure.draw_without_rendering()
    for k, drawn in enumerate(shown):
        _name_sets(panels[k], drawn)
    return figure


def _name(entry: Entry) -> str:
    """The method as the paper has it; what follows a comma is how it was read."""
    return entry.method.partition(",")[0]


def _colour(entry: Entry) -> str:
    return f"C{list(READINGS).index(entry.reading)}"


def _draw(axes: Any, entry: Entry, shape: str) -> None:
    axes.errorbar(
        [entry.published],
        [entry.mean],
        xerr=[entry.published_spread],
        yerr=[entry.spread],
        fmt=shape,
        markersize=5,
        elinewidth=0.7,
        alpha=0.75,
        color=_colour(entry),
    )


def _name_sets(axes: Any, drawn: Sequence[Entry]) -> None:
    """Name the sets of far-off results, each where it hides least of points and other names."""
    points = axes.transData.transform([(e.published, e.mean) for e in drawn]) if drawn else []
    taken = [(x - _HALF, y - _HALF, x + _HALF, y + _HALF) for x, y in points]
    inside = axes.bbox.extents
    for entry in drawn:
        if entry.within != 3:
            continue
        name = axes.annotate(
            entry.set,
            (entry.published, entry.mean),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=8,
            color=_colour(entry),
        )
        name.set_in_layout(False)
        choices = []
        for k, (x, y) in enumerate(_AROUND):
            _put(name, x, y)
            box = tuple(name.get_window_extent().extents)
            outside = _shared(box, box) - _shared(box, inside)
            choices.append((outside + sum(_shared(box, other) for other in taken), k, box))
        _, best, box = min(choices)
        _put(name, *_AROUND[best])
        taken.append(box)


def _put(name: Any, x: float, y: float) -> None:
    """Move a name to one side of its point, in points of the page."""
    name.xyann = (x, y)
    name.set(
        ha="left" if x > 0 else "right" if x < 0 else "center",
        va="bottom" if y > 0 else "top" if y < 0 else "center",
    )


def _shared(a: Sequence[float], b: Sequence[float]) -> float:
    """Area of the overlap of two boxes, each from left and bottom to right and top."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)


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
    # In two rows.
    columns = (len(keys) + 1) // 2
    figure.legend(handles=keys, loc="outside lower center", ncols=columns, frameon=False)
