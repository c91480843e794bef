"""A figure of all results against the published ones."""

from collections.abc import Sequence
from typing import Any

from lokl.inspection.plotting import pyplot
from lokl.paper.readings import READINGS
from lokl.paper.tables import Entry, ResultTable


def agreement_figure(tables: Sequence[ResultTable]) -> Any:
    """Our means against the published ones, with both deviations; a panel for each table.

    Only the method that stands for a published number is drawn, not variants beside it.
    """
    plt = pyplot()
    figure, panels = plt.subplots(
        1, len(tables), figsize=(5.0 * len(tables), 5.0), squeeze=False, constrained_layout=True
    )
    for axes, table in zip(panels[0], tables, strict=True):
        drawn = [e for e in table.entries if e.counted and e.mean is not None]
        for k, reading in enumerate(READINGS):
            own = [entry for entry in drawn if entry.reading == reading]
            if own:
                _draw(axes, own, f"C{k}", reading)
        axes.set(title=table.title, xlabel="published", ylabel="ours")
        if drawn:
            equal = drawn[0].published
            axes.axline((equal, equal), slope=1.0, color="0.7", zorder=0)
            axes.legend(title="reading")
    return figure


def _draw(axes: Any, entries: Sequence[Entry], colour: str, label: str) -> None:
    axes.errorbar(
        [entry.published for entry in entries],
        [entry.mean for entry in entries],
        xerr=[entry.published_spread for entry in entries],
        yerr=[entry.spread for entry in entries],
        fmt="o",
        markersize=4,
        elinewidth=0.8,
        alpha=0.8,
        color=colour,
        label=label,
    )
