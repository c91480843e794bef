"""What results depend on beside their inputs: the machine and the versions.

Records of finished cells.

Files of results, each of them whole or as it was before.

Cells, done in parallel and never twice.

Tables and figures of the paper in one folder: what they need, and what they became.
"""

import io
import json
import math
import os
import platform
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import joblib

from lokl._environment import system, versions
from lokl._files import only_run, replace_file
from lokl._threads import single_threaded
from lokl.datasets import DatasetError, load
from lokl.datasets.download import fetch_missing
from lokl.explain.displays import pyplot
from lokl.paper.cells import Cell, check_record, failed, run_cell, with_reading
from lokl.paper.figures import agreement_figure, figure1, figure2, measure_memory, with_least
from lokl.paper.plan import (
    FULL_RUN,
    TABLES,
    make_cells,
    named_readings,
    nearest,
    paper_names,
    recorded_cells,
)
from lokl.paper.published import SETS
from lokl.paper.tables import TIES, ResultTable, make_table
from lokl.study.records import Records, by_processes


def environment() -> dict[str, object]:
    """Return machine, versions and command as plain values."""
    return {
        "command": shlex.join(["lokl", *sys.argv[1:]]),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": system(),
        **versions(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


class RecordFile(Records):
    """Records of cells as lines of JSON; see :class:`Records`."""

    def key_of(self, record: dict[str, Any]) -> str:
        return Cell.of(record).key

    def check(self, record: Any) -> None:
        check_record(record)

    def as_now(self, record: Any) -> Any:
        return with_reading(record)

    def __contains__(self, cell: Cell) -> bool:
        """Whether a cell is done; one that failed is not, so that it is tried again."""
        record = self.get(cell.key)
        return record is not None and record["error"] is None

    def of(self, cell: Cell) -> dict[str, Any]:
        """Return the record of a cell."""
        record = self.get(cell.key)
        if record is None:
            raise KeyError(cell.key)
        return record


def write_table(folder: Path, name: str, table: ResultTable) -> None:
    """Write a table as Markdown, CSV and JSON; the JSON says what its numbers depend on."""
    for ending, text in (
        ("md", table.markdown()),
        ("csv", table.csv()),
        ("json", json.dumps({**table.as_dict(), "environment": environment()}, indent=1)),
    ):
        replace_file(folder / f"{name}.{ending}", text.encode())


def write_figure(folder: Path, name: str, figure: Any) -> list[str]:
    """Write a figure as PNG and SVG, and return the paths."""
    paths = [folder / f"{name}.{ending}" for ending in ("png", "svg")]
    for path in paths:
        stream = io.BytesIO()
        figure.savefig(stream, format=path.suffix[1:], dpi=110)
        replace_file(path, stream.getvalue())
    return [str(path) for path in paths]


Work = Callable[[Cell], dict[str, Any]]


def run(
    cells: Sequence[Cell],
    records: RecordFile,
    *,
    jobs: int | None = None,
    backend: str = "processes",
    on_record: Callable[[dict[str, Any]], None] | None = None,
    work: Work = run_cell,
    go_on: Callable[[], bool] = lambda: True,
) -> list[dict[str, Any]]:
    """Do the cells that have no record yet, and return the records that there are then.

    Every record is written when its cell is done: an interrupted run loses only the cells that
    were at work. A cell whose process dies, for lack of memory for example, is a failed cell.

    Parameters
    ----------
    cells : sequence of Cell
    records : RecordFile
    jobs : int or None, default=None
        Processes; None is one, -1 all cores, or all workers of a cluster.
    backend : str, default="processes"
        ``"processes"`` of this machine; ``"dask"``, a Dask cluster on this machine for the time
        of the run; or the address of a Dask scheduler, whose workers need lokl and the data.
    on_record : callable, optional
        Called with every new record.
    work : callable, default=run_cell
        Turns a cell into its record.
    go_on : callable, optional
        Asked before each cell; where it says no, no other cell is begun.
    """
    missing = [cell for cell in dict.fromkeys(cells) if cell not in records]
    # Cells of one split of a data set follow each other: a worker keeps the last split.
    missing.sort(key=lambda cell: (cell.data, cell.split))
    by_key = {cell.key: cell for cell in missing}
    done = by_processes(by_key, jobs, work, records.key_of, _dead, go_on)
    if backend != "processes":
        done = _by_dask(missing, jobs, backend, work, go_on)
    # Every cell limits itself to one thread; for cells in this process, once for all is cheaper.
    with single_threaded():
        for record in done if missing else ():
            records.add(record)
            if on_record is not None:
                on_record(record)
    known = (records.get(cell.key) for cell in dict.fromkeys(cells))
    return [record for record in known if record is not None]


def _dead(cell: Cell, reason: Exception) -> dict[str, Any]:
    return failed(cell, f"the process died, perhaps for lack of memory ({reason})")


def _by_dask(
    cells: Sequence[Cell],
    jobs: int | None,
    backend: str,
    work: Work,
    go_on: Callable[[], bool],
) -> Iterator[dict[str, Any]]:
    """Yield records as the workers of a cluster finish them."""
    with _client(backend, jobs) as client:
        from dask.distributed import as_completed

        # Pure calls would bring back the result of a cell that failed before.
        futures = client.map(work, cells, pure=False)
        by_key = {future.key: cell for future, cell in zip(futures, cells, strict=True)}
        for future in as_completed(futures):
            reason = future.exception()
            yield _dead(by_key[future.key], reason) if reason else future.result()
            # The record is on the disk by now, so the scheduler need not keep it.
            future.release()
            if not go_on():
                # What the workers have not begun is not begun any more.
                client.cancel(futures)
                return


@contextmanager
def _client(backend: str, jobs: int | None) -> Iterator[Any]:
    """Connect to a cluster, or to one made for the purpose."""
    try:
        import dask
        from dask.distributed import Client, LocalCluster
    except ImportError as reason:
        raise ImportError(
            f"backend {backend!r} needs Dask; install it with: pip install 'lokl[dask]'"
        ) from reason
    if backend == "dask":
        # One cell at a time for each worker: no other fit disturbs its time and memory, and when a
        # process dies, it is known which cell was at work.
        settings = {
            "distributed.scheduler.allowed-failures": 0,
            "distributed.scheduler.worker-saturation": 1.0,
        }
        count = joblib.effective_n_jobs(jobs)
        with (
            dask.config.set(settings),
            LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(backend, timeout=10)
    except (OSError, ValueError) as reason:
        raise ValueError(
            f"no Dask scheduler answers at {backend!r} ({reason}); backends are 'processes', "
            "'dask' for a cluster on this machine, or an address such as tcp://host:8786"
        ) from reason
    with client:
        yield client


def overhead(records: Sequence[dict[str, Any]], seconds: float, jobs: int) -> float:
    """Return what `jobs` processes spent beside fits and predictions, over the time of those."""
    parts = ("select_seconds", "fit_seconds", "predict_seconds")
    busy = math.fsum(r.get(part, 0.0) for r in records if not r["error"] for part in parts)
    return jobs * seconds / busy - 1.0 if busy else math.nan


# The last one is ours: all results against the published ones.
_FIGURES = ("figure1", "figure2", "agreement")
# Seconds; a shorter run spends much of its time on starting processes.
_LONG = 60.0


@dataclass(frozen=True)
class TableRun:
    """A table and what was done for it now."""

    table: ResultTable | None  # None where nothing is recorded yet
    cells: int  # that have records
    left: int  # that have none, for lack of time
    fits: int  # cells that had no record before
    failures: int  # cells that failed
    seconds: float
    # Time beside the fits, as a share of theirs; None for short runs and for clusters elsewhere,
    # whose workers are not counted.
    overhead: float | None
    errors: list[str]  # why cells failed, each reason once


class Experiment:
    """One table or figure of the paper, or all of them.

    `folder` has ``records.jsonl`` and gets everything that is written. With `recorded`, tables show
    the records that there are, instead of all cells. `repeats` and `settings` are those of
    :func:`make_cells`. With no `reading` ("both" is all of them) and no `selection`, a run has the
    reading "paper" and the paper's choice of widths, that of "all" also chooses them nested for
    Table 2, and what is recorded is shown in all readings. Fits and files are made inside of
    ``with experiment.at_work()``.
    """

    def __init__(
        self,
        name: str,  # a table, a figure, or "all"
        folder: Path,
        *,
        recorded: bool = False,
        download: bool = True,  # data sets that are not on this machine
        repeats: int | None = None,
        reading: str | None = None,
        selection: str | None = None,
        ties: str = "smallest",
        **settings: Any,
    ):
        self.name = nearest("table or figure", name, [*TABLES, *_FIGURES, "all"])
        self.folder = folder
        self.figures = [figure for figure in _FIGURES if self.name in (figure, "all")]
        self.records = RecordFile(folder / "records.jsonl")
        # Data sets that are left out, and why.
        self.lacking: dict[str, str] = {}
        self._ties = nearest("choice of ties", ties, TIES)
        self._shown_readings = named_readings(reading or "both")
        self._settings = dict(settings)
        self._recorded_only = recorded
        self._download = download
        parts = ("sets", "methods", "gammas", "dictionaries")
        chosen = reading is not None or any(settings.get(part) for part in parts)
        self._writes = not (recorded and chosen)
        # By the name of its files: a table and how widths are chosen for it.
        self._parts = dict(self._named(part) for part in _parts_of(self.name, selection))
        if recorded:
            self.cells = self._cells_with_records()
            return
        settings["readings"] = named_readings(reading or "paper")
        cells = {
            part: make_cells(table, selection=how, repeats=repeats, **settings)
            for part, (table, how) in self._parts.items()
        }
        needed = {cell.data for own in cells.values() for cell in own}
        self.lacking = fetch_missing(needed, download)
        self.cells = {
            part: [cell for cell in own if cell.data not in self.lacking]
            for part, own in cells.items()
        }

    def _named(self, part: tuple[str, str]) -> tuple[str, tuple[str, str]]:
        """Name a table after the settings that differ from the paper's."""
        table, selection = part
        marks = (
            None if selection == "paper" else selection,
            self._settings.get("solver"),
            None if self._ties == TIES[0] else self._ties,
            "quick" if self._settings.get("quick") else None,
        )
        return "-".join([table, *(mark for mark in marks if mark)]), part

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Make sure that the folder can be written, and keep other runs that fit out of it."""
        with ExitStack() as stack:
            if self._writes:
                stack.enter_context(_writable(self.folder))
            if self.cells and not self._recorded_only:
                stack.enter_context(only_run(self.folder))
                # Once more: a run that has just ended may have added records.
                self.records = RecordFile(self.records.path)
            yield

    def _cells_with_records(self) -> dict[str, list[Cell]]:
        """Cells of all parts that have records; a table must have some, of all tables one."""
        found = {part: self._recorded(*what) for part, what in self._parts.items()}
        found = {part: cells for part, cells in found.items() if cells}
        if self._parts and not found:
            made = {(r["reading"], r["seed"]) for r in self.records}
            there = ", ".join(f"{reading} of seed {seed}" for reading, seed in sorted(made))
            raise ValueError(
                f"{self.records.path} has no records of {self.name} with these settings "
                f"(readings there: {there or 'none'}); run it once without --recorded"
            )
        return found

    def _recorded(self, table: str, selection: str) -> list[Cell]:
        settings = {"readings": self._shown_readings, "selection": selection, **self._settings}
        cells = recorded_cells(table, self.records, **settings)
        return [cell for cell in cells if cell in self.records]

    def other_versions(self) -> list[str]:
        """Say which data sets of the fits are not the known ones.

        Warnings of the processes that fit become part of records, where nobody reads them.
        """
        cells = [cell for own in self.cells.values() for cell in own]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for name in sorted({cell.data for cell in cells if cell not in self.records}):
                # What cannot be read is a failed fit, which has the reason.
                with suppress(DatasetError):
                    load(name, download=False)
        return [str(warning.message) for warning in caught]

    def count_missing(self, part: str) -> int:
        """Return the number of cells of a table that have no record yet."""
        return sum(cell not in self.records for cell in self.cells[part])

    def run(
        self,
        part: str,
        jobs: int,
        backend: str,
        on_record: Any,
        go_on: Callable[[], bool] = lambda: True,
    ) -> TableRun:
        """Do the cells of a table that have no record yet, as :func:`lokl.paper.run` does."""
        cells, records = self.cells[part], self.records
        missing = sum(cell not in records for cell in dict.fromkeys(cells))
        new: list[dict[str, Any]] = []

        def note(record: dict[str, Any]) -> None:
            new.append(record)
            on_record(record)

        begun = time.perf_counter()
        found = run(cells, records, jobs=jobs, backend=backend, on_record=note, go_on=go_on)
        seconds = time.perf_counter() - begun
        extra = None
        if backend in ("processes", "dask") and seconds >= _LONG:
            extra = overhead(new, seconds, joblib.effective_n_jobs(jobs))
        errors = [str(record["error"]) for record in found if record["error"] is not None]
        return TableRun(
            table=make_table(self._parts[part][0], found, self._ties) if found else None,
            cells=len(found),
            left=missing - len(new),
            fits=len(new),
            failures=len(errors),
            seconds=seconds,
            overhead=extra,
            errors=sorted(set(errors)),
        )

    def write(self, part: str, table: ResultTable) -> None:
        """Write the files of a table, unless it shows a chosen part of the records only."""
        if self._writes:
            write_table(self.folder, part, table)

    def draw(self, figure: str) -> dict[str, Any]:
        """Draw a figure, write its files, and return their paths and what it shows."""
        # Fails without matplotlib before minutes of measurements, not after.
        pyplot()
        if figure == "figure1":
            return {"name": figure, "files": write_figure(self.folder, figure, figure1())}
        if figure == "agreement":
            return self._draw_agreement()
        sets = paper_names(self._settings.get("sets"))
        lacking = fetch_missing({SETS[name].name for name in sets}, self._download)
        measured = measure_memory([name for name in sets if SETS[name].name not in lacking])
        shown = with_least(measured)
        replace_file(self.folder / f"{figure}.json", json.dumps(shown, indent=1).encode())
        files = write_figure(self.folder, figure, figure2(measured))
        return {"name": figure, "measured": shown, "files": files}

    def _draw_agreement(self) -> dict[str, Any]:
        """Draw what is recorded of all tables."""
        cells = {table: self._recorded(table, "paper") for table in TABLES}
        tables = [
            make_table(table, [self.records.of(cell) for cell in own], self._ties)
            for table, own in cells.items()
            if own
        ]
        if not tables:
            raise ValueError(
                f"{self.records.path} has no records with these settings to compare with the "
                "published numbers; run a table first"
            )
        counts = {made.name: [asdict(own) for own in made.agreement()] for made in tables}
        files = write_figure(self.folder, "agreement", agreement_figure(tables))
        return {"name": "agreement", "agreement": counts, "files": files}


def _parts_of(name: str, selection: str | None) -> list[tuple[str, str]]:
    """Tables of an experiment, and how widths are chosen for each."""
    if selection is None:
        return [part for part in FULL_RUN if name == "all" or part == (name, "paper")]
    return [(table, selection) for table in TABLES if name in (table, "all")]


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Raise unless files can be written in a folder, which is made if there is none."""
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as reason:
        raise OSError(
            f"cannot write to {folder}: {reason.strerror or reason}; name another folder with "
            "--output"
        ) from reason
    try:
        yield
    finally:
        if made:
            # A run that came to nothing leaves nothing; a folder with files in it stays.
            with suppress(OSError):
                folder.rmdir()
