"""Figures 1 and 2 of the paper: two regions, and memory against the number of samples."""

import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lokl._memory import Peak
from lokl.datasets import MissingDatasetError, load, make_two_regions
from lokl.inspection import plot_regions
from lokl.inspection.plotting import pyplot
from lokl.kernels import RBF, Polynomial
from lokl.paper.plan import paper_names
from lokl.paper.published import SETS

_MEGABYTE = 2**20
# Largest number of samples whose whole matrix is stored and measured.
_MOST_STORED = 9000
# Megabytes for rows of the matrix, where not the usual 512: multiplicative weights need few rows.
_CACHE = {"mwu": 16}


def figure1(seed: int = 0, C: float = 10.0) -> Any:
    """Two regions that need different kernels: the uniform mix, twice, and LD-MKL.

    The uniform mix is drawn with the kernels as they are, and with kernels of trace one, whose
    machine is saturated: it has several times the support points and hardly tells the classes
    apart. LD-MKL predicts where a kernel succeeds with the Gaussian kernel: a quadratic cannot
    follow two regions.
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
        # The figure is meant to show a saturated machine.
        warnings.filterwarnings("ignore", message="the machine is saturated")
        fitted = {name: model.fit(X, y) for name, model in models.items()}
    return plot_regions(fitted, X, y)


@dataclass(frozen=True)
class Memory:
    """Peak memory of one fit over that of the process before it, in MB."""

    set: str
    rows: int
    solver: str
    peak: float


def least_memory(solver: str, n: Any, m: int = 2) -> Any:
    """MB that n samples and m kernels need at least: a stored matrix, or vectors of weights."""
    n = np.asarray(n, dtype=float)
    return (8.0 * n**2 if solver == "libsvm" else 8.0 * (m + 4) * n) / _MEGABYTE


def measure_memory(
    sets: Sequence[str] | None = None, solvers: Sequence[str] = ("libsvm", "mwu", "exact")
) -> list[Memory]:
    """Fit the uniform mix on every set that is here, each in a fresh process."""
    found = []
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
            found.append(Memory(name, rows, solver, json.loads(done.stdout)))
    return found


def _report_peak(name: str, solver: str) -> None:
    """Fit once and write the peak memory to standard output, for `measure_memory`."""
    from lokl import UniformMKLClassifier

    bunch = load(SETS[name].name, download=False, sparse=False)
    X, y = bunch.data, bunch.target
    kernels = [Polynomial(2).normalized("mean_diag"), RBF(0.25)]
    model = UniformMKLClassifier(kernels, solver=solver, cache_size=_CACHE.get(solver, 512))
    # Memory for compiled loops and buffers of libraries, taken once, is not the fit's.
    model.fit(X[:300], y[:300])
    with Peak(tidy=True) as peak:
        model.fit(X, y)
    sys.stdout.write(json.dumps(peak.increase or 0.0))


def figure2(measured: Sequence[Memory]) -> Any:
    """Least and measured memory against the number of samples, on logarithmic axes."""
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
        own = [m for m in measured if m.solver == solver and m.peak > 0]
        rows, peaks = [m.rows for m in own], [m.peak for m in own]
        axes.loglog(rows, peaks, marker, color=colour, label=f"{label}, measured")
    bottom = axes.get_ylim()[0]
    for name, n_samples in {(m.set, m.rows) for m in measured}:
        axes.annotate(name, (n_samples, bottom), rotation=90, ha="right", va="bottom", alpha=0.6)
    axes.set(xlabel="samples", ylabel="MB")
    axes.legend()
    return figure


def with_least(measured: Sequence[Memory]) -> list[dict[str, Any]]:
    """Return measurements as plain values, with the least memory beside them."""
    shown = [asdict(m) for m in measured]
    for row in shown:
        if row["solver"] != "exact":
            row["least"] = float(least_memory(row["solver"], row["rows"]))
    return shown
