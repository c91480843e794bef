"""Common parts of the benchmarks: data, interleaved timing, quality checks, tables and JSON."""

import argparse
import gc
import importlib.metadata
import json
import operator
import os
import platform
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse
from sklearn.model_selection import train_test_split

from lokl import datasets

# Tables have a fixed width in log files.
console = Console(width=None if sys.stdout.isatty() else 165)

# Seconds of the first run from which a peer counts as slow.
SLOW = 5.0
_COMPARE = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


class MissingDataError(Exception):
    """Data or a program that a benchmark needs is missing on this machine."""


@dataclass
class Options:
    repeats: int = 5
    peer_repeats: int = 3
    rows: int | None = None
    json: Path | None = None
    bare: bool = False


@dataclass
class Timing:
    """Seconds of each run, and seconds of processor in all threads of this process."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, elapsed: float, cpu: float) -> None:
        self.seconds.append(elapsed)
        self.cpu.append(cpu)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        unit, factor = ("s", 1.0) if self.median >= 1 else ("ms", 1e3)
        middle, low, high = (
            f"{factor * value:.3g}" for value in (self.median, min(self.seconds), max(self.seconds))
        )
        return f"{middle} {unit} ({low}-{high}, {len(self.seconds)})"


def race(
    calls: Mapping[str, Callable[[], Any]], options: Options, *, least: int = 3, slow: float = SLOW
) -> tuple[dict[str, Timing], dict[str, Any]]:
    """Time several calls in turn, A B A B ..., after one warm-up each; return times and results.

    The first call is ours. A peer whose first run takes more than `slow` seconds runs
    `peer_repeats` times in all, including the first run: it has nothing to compile, and the first
    touch of its memory hardly counts. Slow peers run after the others: meanwhile a virtual machine
    would reclaim idle memory, which would slow down the next quick fit.
    """
    ours = next(iter(calls))
    times = {name: Timing() for name in calls}
    results: dict[str, Any] = {}
    wanted = dict.fromkeys(calls, max(options.repeats, least))
    for name, call in calls.items():
        elapsed, cpu, results[name] = timed(call)
        if name != ours and elapsed > slow:
            times[name].add(elapsed, cpu)
            wanted[name] = max(options.peer_repeats, 1)
    slow_ones = {name for name in calls if times[name].seconds}
    quick_ones = [name for name in calls if name not in slow_ones]
    if slow_ones:
        for name in quick_ones:
            calls[name]()
    for group in (quick_ones, sorted(slow_ones)):
        while any(len(times[name].seconds) < wanted[name] for name in group):
            for name in group:
                if len(times[name].seconds) < wanted[name]:
                    results[name] = None
                    elapsed, cpu, results[name] = timed(calls[name])
                    times[name].add(elapsed, cpu)
    return times, results


class Ratio(float):
    """Speed-up factor."""

    def __str__(self) -> str:
        return f"{float(self):.2f} x"


def ratio(slower: Timing, faster: Timing) -> Ratio:
    return Ratio(slower.median / faster.median)


def cpu_ratio(slower: Timing, faster: Timing) -> Ratio:
    """Return the ratio of the seconds of processor, which other programs hardly change."""
    return Ratio(statistics.median(slower.cpu) / statistics.median(faster.cpu))


def timed(call: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return the seconds of a call, its seconds of processor, and its result."""
    gc.collect()
    begun, cpu = time.perf_counter(), time.process_time()
    result = call()
    return time.perf_counter() - begun, time.process_time() - cpu, result


def fresh_process(code: str, **environment: str) -> tuple[float, Any]:
    """Run code in a new interpreter; return its seconds and its parsed JSON output."""
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    elapsed = time.perf_counter() - begun
    return elapsed, json.loads(done.stdout) if done.stdout else None


def peer_environment(peer: str, *packages: str) -> Path:
    """Return the interpreter of a peer's own environment, which is created on first use."""
    home = Path(__file__).parents[1] / f".venv-{peer.lower()}"
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = home / "ready"
    if not ready.exists():
        venv.create(home, with_pip=True, clear=True)
        # In one command, so that no package replaces another.
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", *packages], capture_output=True, text=True
        )
        if done.returncode:
            raise MissingDataError(f"{peer} cannot be installed: {done.stderr.strip()[-300:]}")
        ready.touch()
    return python


def peer_record(python: Path, worker: Path, *arguments: Any) -> dict[str, Any]:
    """Run a script in a peer's environment; return the last line of its output, parsed as JSON."""
    done = subprocess.run([python, worker, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise MissingDataError(f"{worker.name} failed: {done.stderr.strip()[-300:]}")
    record: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return record


def load_set(name: str, **settings: Any) -> Any:
    """Load a data set from this machine, without a download."""
    try:
        return datasets.load(name, download=False, **settings)
    except datasets.MissingDatasetError as reason:
        raise MissingDataError(str(reason)) from None


def load(name: str, rows: int | None = None, *, dense: bool = True) -> tuple[Any, Any]:
    """Return samples and labels of a LIBSVM file, or a random subset of `rows` rows."""
    found = load_set(name, sparse=True)
    X, y = found.data, found.target
    if rows is not None and rows < X.shape[0]:
        chosen = np.random.RandomState(0).permutation(X.shape[0])[:rows]
        X, y = X[chosen], y[chosen]
    return (X.toarray() if dense else X), y


def load_a9a(rows: int | None) -> tuple[Any, Any, Any, Any]:
    """Return training and test rows of a9a: 24,420 and 8,141, or fewer if `rows` is given."""
    X, y = load("a9a", rows)
    X, X_test, y, y_test = train_test_split(X, y, train_size=0.75, random_state=0)
    return X, X_test, y, y_test


def scale_gamma(X: Any) -> float:
    """Return the value of ``gamma="scale"`` in scikit-learn."""
    squares = X.multiply(X).mean() if sparse.issparse(X) else np.mean(X**2)
    return float(1.0 / (X.shape[1] * (squares - X.mean() ** 2)))


def signs(y: Any) -> Any:
    """Return labels as -1 and 1; the larger label is 1."""
    return np.where(y == np.max(y), 1.0, -1.0)


def dual_objective(
    model: Any, X: Any, target: Any, gamma: float | None, epsilon: float = 0.0
) -> float:
    """Compute ``t'u - epsilon |u|_1 - u'Ku / 2`` of an SVM of any library, in float64.

    The kernel is RBF, or linear if `gamma` is None.
    """
    rows, u = np.asarray(model.support_), coefficients(model)
    S = X[rows].toarray() if sparse.issparse(X) else np.asarray(X[rows], dtype=np.float64)
    norms = np.einsum("ij,ij->i", S, S)
    quadratic = 0.0
    for start in range(0, len(u), 1024):
        part = slice(start, start + 1024)
        products = S[part] @ S.T
        if gamma is not None:
            distances = norms[part, np.newaxis] + norms - 2.0 * products
            products = np.exp(-gamma * np.maximum(distances, 0.0))
        quadratic += u[part] @ (products @ u)
    return float(target[rows] @ u - epsilon * np.abs(u).sum() - 0.5 * quadratic)


def coefficients(model: Any) -> Any:
    """Return signed dual coefficients in float64."""
    u = model.dual_coef_
    return np.asarray(u.toarray() if sparse.issparse(u) else u, dtype=np.float64).ravel()


def infeasibility(model: Any, C: float) -> float:
    """Return the violation of the box constraints and of ``1'u = 0``, relative to ``|u|_1``."""
    u = coefficients(model)
    outside = np.maximum(np.abs(u) - C, 0.0).sum()
    return float((abs(u.sum()) + outside) / np.abs(u).sum())


def difference(a: float, b: float) -> float:
    """Return the relative difference."""
    return abs(a - b) / max(abs(a), abs(b))


def agreement(a: Any, b: Any) -> float:
    """Return the share of equal predictions."""
    return float(np.mean(a == b))


@dataclass
class Check:
    """Comparison of a measured value with a limit: required (quality) or a target (speed)."""

    what: str
    value: float
    relation: str
    limit: float
    required: bool

    @property
    def met(self) -> bool:
        return bool(_COMPARE[self.relation](self.value, self.limit))

    @property
    def verdict(self) -> str:
        if self.met:
            return "[green]yes[/]"
        return "[bold red]FAILS[/]" if self.required else "[yellow]miss[/]"


@dataclass
class Report:
    """Results of one benchmark."""

    name: str
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: str | None = None

    def table(self, title: str, rows: Iterable[dict[str, Any]]) -> None:
        """Print a table; all rows have the same columns."""
        rows = list(rows)
        self.tables[title] = rows
        table = Table(
            title=title,
            title_justify="left",
            title_style="bold",
            caption="times: median (minimum-maximum, runs)",
            caption_justify="left",
        )
        for k, column in enumerate(rows[0]):
            table.add_column(column, justify="left" if k == 0 else "right")
        for row in rows:
            table.add_row(*map(_cell, row.values()))
        console.print(table)

    def quality(self, what: str, value: float, relation: str, limit: float) -> None:
        """Add a requirement; the benchmark fails if it is not met."""
        self.checks.append(Check(what, float(value), relation, limit, True))

    def target(self, what: str, value: float, relation: str, limit: float) -> None:
        """Add a target; a miss is shown, but the benchmark does not fail."""
        self.checks.append(Check(what, float(value), relation, limit, False))

    def note(self, text: str) -> None:
        self.notes.append(text)
        console.print(f"[dim]{text}[/]")

    def finish(self) -> int:
        """Print the checks; return the exit code."""
        # If there are many, only those that are not met.
        shown = [c for c in self.checks if len(self.checks) <= 20 or not c.met]
        if shown:
            table = Table(title="checks", title_justify="left", title_style="bold")
            for column in ("quantity", "measured", "limit", "kind", "met"):
                table.add_column(column, justify="right" if column == "measured" else "left")
            for check in shown:
                table.add_row(
                    check.what,
                    f"{check.value:.4g}",
                    f"{check.relation} {check.limit:g}",
                    "quality" if check.required else "target",
                    check.verdict,
                )
            console.print(table)
        if len(shown) < len(self.checks):
            console.print(f"{len(self.checks) - len(shown)} other checks are met")
        failed = [check for check in self.checks if check.required and not check.met]
        for check in failed:
            console.print(
                f"[bold red]{self.name} fails: {check.what} is {check.value:.6g}, "
                f"required is {check.relation} {check.limit:g}[/]"
            )
        return 1 if failed else 0


def main(
    run: Callable[[Any, Report], None],
    options: Options | None = None,
    more_options: Callable[[argparse.ArgumentParser], None] | None = None,
) -> None:
    """Run one benchmark as a command and exit; `more_options` adds command-line options."""
    name = Path(sys.argv[0]).stem
    about = sys.modules["__main__"].__doc__ or ""
    known = parser(about)
    if more_options is not None:
        more_options(known)
    options = known.parse_args(namespace=Options() if options is None else options)
    report = Report(name)
    if not options.bare:
        show_machine()
    console.rule(f"{name}: {about.splitlines()[0]}", align="left")
    if options.rows:
        report.note(f"at most {options.rows} rows of each data set; targets apply to all rows")
    try:
        run(options, report)
    except MissingDataError as reason:
        report.skipped = str(reason)
        report.note(f"skipped: {reason}")
    code = report.finish()
    if options.json:
        write_json(options.json, {"machine": machine(), "benchmarks": [asdict(report)]})
    sys.exit(code)


def parser(description: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--repeats", type=int, help="runs of each method (5, at least 3)")
    made.add_argument("--peer-repeats", type=int, help="runs of slow peers (3)")
    made.add_argument("--rows", type=int, help="use only this many rows of each data set")
    made.add_argument("--json", type=Path, help="write all results to this file")
    made.add_argument("--bare", action="store_true", help="do not print machine and versions")
    return made


def write_json(path: Path, record: dict[str, Any]) -> None:
    path.write_text(json.dumps(record, indent=1, default=float))


def machine() -> dict[str, Any]:
    """Return processor, cores, load, BLAS and versions."""
    import joblib
    from threadpoolctl import threadpool_info

    names = ("lokl", "numpy", "scipy", "scikit-learn", "numba", "scikit-learn-intelex")
    blas = [i for i in threadpool_info() if i["user_api"] == "blas"]
    return {
        "cpu": _cpu(),
        "cores": joblib.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "blas": sorted(
            {
                f"{i['internal_api']} {i['version']} {i.get('architecture')}, "
                f"{i['num_threads']} threads"
                for i in blas
            }
        ),
        "versions": {name: _version(name) for name in names},
    }


def show_machine() -> None:
    facts = machine()
    load = "" if facts["load"] is None else f", load {facts['load']:.2f}"
    console.print(f"{facts['cpu']}, {facts['cores']} cores{load}; {facts['system']}")
    console.print("; ".join(facts["blas"]))
    versions = ", ".join(f"{name} {v or 'missing'}" for name, v in facts["versions"].items())
    console.print(f"Python {facts['python']}, {versions}")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        if name != "lokl":
            return None
        import lokl

        return lokl.__version__


def _cell(value: Any) -> str:
    if type(value) is not float:
        return str(value)
    return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.6g}"
