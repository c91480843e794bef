"""Figures 1 and 2 of the paper, and a figure of all results against the published ones."""

import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from lokl._environment import Peak
from lokl.datasets import MissingDatasetError, load, make_two_regions
from lokl.explain import BoundaryDisplay
from lokl.explain.displays import pyplot
from lokl.kernels import RBF, Polynomial
from lokl.paper.cells import paper_names
from lokl.paper.methods import READINGS
from lokl.paper.published import SETS
from lokl.paper.tables import Entry, PaperTable

_MEGABYTE = 2**20
# Largest number of samples for which a whole stored matrix is measured.
_MOST_STORED = 9000
# Megabytes for rows of the matrix if not the default of 512: multiplicative weights need few rows.
_CACHE = {"mwu": 16}


def figure1(seed: int = 0, C: float = 10.0) -> Any:
    """Draw two regions that need different kernels: two uniform mixes, and LD-MKL.

    The first mix has the kernels as they are. The second has kernels of trace one, whose SVM is
    saturated: it has several times the support points and hardly separates the classes. LD-MKL
    predicts the success of a kernel with the Gaussian kernel, because a quadratic kernel cannot
    separate two regions.

    Parameters
    ----------
    seed : int
        Seed of samples and models.
    C : float

    Returns
    -------
    figure : matplotlib figure
        With one panel for each model.
    """
    from lokl import LDMKLClassifier, UniformMKLClassifier

    X, y = make_two_regions(random_state=seed)
    kernels = {"quadratic": Polynomial(2), "Gaussian": RBF(0.5)}
    traced = {name: kernel.normalized("trace") for name, kernel in kernels.items()}
    models = {
        "UNIFORM": UniformMKLClassifier(kernels, C),
        "UNIFORM, trace one": UniformMKLClassifier(traced, C),
        "LD-MKL": LDMKLClassifier(
            kernels, C, temperature=0.1, success_kernel=RBF(0.5), random_state=seed
        ),
    }
    with warnings.catch_warnings():
        # The figure is meant to show a saturated SVM.
        warnings.filterwarnings("ignore", message="the SVM is saturated")
        fitted = {name: model.fit(X, y) for name, model in models.items()}
    figure, panels = pyplot().subplots(1, 3, figsize=(16.5, 4.6), layout="constrained")
    for panel, (name, model) in zip(panels, fitted.items(), strict=True):
        BoundaryDisplay.from_estimator(model, X, y, ax=panel)
        panel.set_title(f"{name}: {panel.get_title()}")
    return figure


def least_memory(solver: str, n: Any, m: int = 2) -> Any:
    """Return the least memory of a solver: a stored matrix, or vectors of weights.

    Parameters
    ----------
    solver : str
        "libsvm" stores the matrix; others store vectors.
    n : int or array of int
        Number of samples.
    m : int
        Number of kernels.

    Returns
    -------
    megabytes : float or array, of the shape of `n`
    """
    n = np.asarray(n, dtype=float)
    return (8.0 * n**2 if solver == "libsvm" else 8.0 * (m + 4) * n) / _MEGABYTE


def measure_memory(
    sets: Sequence[str] | None = None, solvers: Sequence[str] = ("libsvm", "mwu", "exact")
) -> list[dict[str, Any]]:
    """Fit the uniform mix on every available set, each in a fresh process.

    Parameters
    ----------
    sets : sequence of str, optional
        Names of data sets; all of the paper if not given.
    solvers : sequence of str

    Returns
    -------
    measured : list of dict
        ``set``, ``rows`` and ``solver``; ``peak``, the increase of the peak memory of the process
        in MB; and ``least``, the least memory in MB, except for the exact solver.
    """
    measured = []
    for name in paper_names(sets):
        try:
            rows = load(SETS[name].name, download=False).data.shape[0]
        except MissingDatasetError:
            continue
        for solver in solvers:
            if solver == "libsvm" and rows > _MOST_STORED:
                continue
            code = f"from lokl.paper.figures import _report_peak as r; r({name!r}, {solver!r})"
            command = [sys.executable, "-c", code]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            row = {"set": name, "rows": rows, "solver": solver, "peak": json.loads(done.stdout)}
            if solver != "exact":
                row["least"] = float(least_memory(solver, rows))
            measured.append(row)
    return measured


def _report_peak(name: str, solver: str) -> None:
    """Fit once and write the peak memory to standard output, for `measure_memory`."""
    from lokl import UniformMKLClassifier

    bunch = load(SETS[name].name, download=False, sparse=False)
    X, y = bunch.data, bunch.target
    kernels = [Polynomial(2).normalized("mean_diag"), RBF(0.25)]
    model = UniformMKLClassifier(kernels, solver=solver, cache_size=_CACHE.get(solver, 512))
    # Compiled loops and buffers of libraries are allocated once and not counted.
    model.fit(X[:300], y[:300])
    with Peak(tidy=True) as peak:
        model.fit(X, y)
    sys.stdout.write(json.dumps(peak.increase or 0.0))


def figure2(measured: Sequence[dict[str, Any]]) -> Any:
    """Draw least and measured memory against the number of samples, on logarithmic axes.

    Parameters
    ----------
    measured : sequence of dict
        From :func:`measure_memory`.

    Returns
    -------
    figure : matplotlib figure
    """
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
    n = np.geomspace(300, 40_000, 50)
    styles = {
        "libsvm": ("o", "LibSVM"),
        "mwu": ("s", f"MWU, cache {_CACHE['mwu']} MB"),
        "exact": ("^", "exact, cache 512 MB"),
    }
    for k, (solver, (marker, label)) in enumerate(styles.items()):
        colour = f"C{k}"
        if solver != "exact":
            axes.loglog(n, least_memory(solver, n), color=colour, label=f"{label}, least")
        shown = [m for m in measured if m["solver"] == solver and m["peak"] > 0]
        rows, peaks = ([m[name] for m in shown] for name in ("rows", "peak"))
        axes.loglog(rows, peaks, marker, color=colour, label=f"{label}, measured")
    bottom = axes.get_ylim()[0]
    for name, n_samples in {(m["set"], m["rows"]) for m in measured}:
        axes.annotate(name, (n_samples, bottom), rotation=90, ha="right", va="bottom", alpha=0.6)
    axes.set(xlabel="samples", ylabel="MB")
    axes.legend()
    return figure


# Markers of methods, in order of appearance.
_SHAPES = "osD^vPX*<>"
# Half the width of a point in pixels, and positions of a name around it, nearest first.
_HALF = 4.0
_AROUND = [
    (far * x, far * y)
    for far in (4.0, 9.0, 15.0)
    for x, y in ((1, -1), (1, 1), (-1, 1), (-1, -1), (1.4, 0), (-1.4, 0), (0, 1.4), (0, -1.4))
]


def agreement_figure(tables: Sequence[PaperTable]) -> Any:
    """Draw our means against the published ones, with both deviations; a panel for each table.

    Colours are readings and markers are methods. Only the method that stands for a published number
    is drawn, not its variants. A result that differs by more than two published deviations is
    labelled with the name of its set.

    Parameters
    ----------
    tables : sequence of PaperTable

    Returns
    -------
    figure : matplotlib figure
    """
    plt = pyplot()
    # Two panels in a row; a single last panel takes the whole row.
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
            # A variant is named after a comma.
            name = entry.method.partition(",")[0]
            axes.errorbar(
                [entry.published],
                [entry.mean],
                xerr=[entry.published_spread],
                yerr=[entry.spread],
                fmt=shapes.setdefault(name, _SHAPES[len(shapes) % len(_SHAPES)]),
                markersize=5,
                elinewidth=0.7,
                alpha=0.75,
                color=_colour(entry),
            )
        axes.set(title=table.title, xlabel="published", ylabel="ours")
        if drawn:
            equal = drawn[0].published
            axes.axline((equal, equal), slope=1.0, color="0.7", zorder=0)
            # Room for a name next to the last point.
            axes.margins(x=0.1)
    _add_legend(figure, plt, shapes)
    # Names are placed last, when the positions of everything else are known.
    figure.draw_without_rendering()
    for k, drawn in enumerate(shown):
        _name_sets(panels[k], drawn)
    return figure


def _colour(entry: Entry) -> str:
    """Return the colour of an entry's reading."""
    return f"C{list(READINGS).index(entry.reading)}"


def _name_sets(axes: Any, drawn: Sequence[Entry]) -> None:
    """Label far-off results with their sets, so that labels hide least of points and labels.

    Parameters
    ----------
    axes : matplotlib axes
        Drawn, so that positions in pixels are final.
    drawn : sequence of Entry
        All entries that are in the panel as points.
    """
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
    """Move a label to one side of its point; offsets are in points."""
    name.xyann = (x, y)
    name.set(
        ha="left" if x > 0 else "right" if x < 0 else "center",
        va="bottom" if y > 0 else "top" if y < 0 else "center",
    )


def _shared(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the area shared by two boxes (left, bottom, right, top)."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)


def _add_legend(figure: Any, plt: Any, shapes: dict[str, str]) -> None:
    """Add one legend for all panels, below them."""
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
