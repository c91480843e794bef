"""Tables and figures of the paper, recomputed in one folder from records of finished cells."""

import io
import json
import math
import os
import platform
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lokl._deadline import Deadline
from lokl._environment import system, versions
from lokl._files import replace_file
from lokl._threads import effective_jobs
from lokl.datasets import DatasetError, load
from lokl.datasets.loader import fetch_missing
from lokl.explain.displays import pyplot
from lokl.paper.cells import (
    FULL_RUN,
    TABLES,
    Cell,
    RecordFile,
    make_cells,
    named_readings,
    nearest,
    paper_names,
    recorded_cells,
    run_cell,
)
from lokl.paper.figures import agreement_figure, figure1, figure2, measure_memory
from lokl.paper.published import SETS
from lokl.paper.tables import TIES, PaperTable, make_table
from lokl.study.run_folder import Record, Work, open_run_folder, run_cells

# The figure "agreement" is an addition to the paper: all results against the published ones.
_FIGURES = ("figure1", "figure2", "agreement")
# Seconds; a shorter run spends much of its time on starting processes.
_LONG_RUN = 60.0


def environment() -> dict[str, object]:
    """Return machine, versions and command as plain values.

    Returns
    -------
    environment : dict of str to object
        Machine, versions and command.

    See Also
    --------
    lokl.paper.Reproduction : Writes it next to the tables.

    Examples
    --------
    >>> from lokl.paper import environment
    >>> sorted(environment())[:3]
    ['command', 'cores', 'joblib']
    """
    return {
        "command": shlex.join(["lokl", *sys.argv[1:]]),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": system(),
        **versions(),
    }


def _processor() -> str:
    """Return the model name of the processor."""
    path = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", path.read_text()) if path.exists() else []
    return names[0] if names else platform.processor()


def run(
    cells: Sequence[Cell], records: RecordFile, *, work: Work = run_cell, **settings: Any
) -> list[Record]:
    """Run the unfinished cells, and return all records of the cells.

    Parameters
    ----------
    cells : sequence of Cell
        Fits to run.
    records : RecordFile
        File that receives the records.
    work : callable, default=run_cell
        Takes a cell and returns its record.
    **settings
        ``jobs`` (number of processes: None is one, -1 all cores or all workers of a cluster),
        ``backend`` ("processes" of this machine, "dask" for a Dask cluster on this machine, or the
        address of a Dask scheduler, whose workers need lokl and the data), ``on_record`` (called
        with every new record) and ``deadline`` (no cell is started after it).

    Returns
    -------
    records : list of dict
        In the order of the cells, failed ones included.

    See Also
    --------
    lokl.paper.make_cells : All cells of a table.
    lokl.paper.make_table : Summarises records.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lokl.paper import Cell, RecordFile, run
    >>> cells = [Cell("wine", "UNIFORM", "quadratic, Gaussian", 0.25)]
    >>> with TemporaryDirectory() as folder:
    ...     records = run(cells, RecordFile(Path(folder) / "records.jsonl"))
    >>> [(record["data"], record["method"]) for record in records]
    [('wine', 'UNIFORM')]
    """
    # The cells of one split of a data set are consecutive, because a worker caches the last split.
    by_split = sorted(cells, key=lambda cell: (cell.data, cell.split))
    run_cells(by_split, records, work, **settings)
    return records.of(cells)


def overhead(records: Sequence[Record], seconds: float, jobs: int) -> float:
    """Return the time of processes outside fits and predictions, relative to the latter.

    Parameters
    ----------
    records : sequence of dict
        Of all cells that were run.
    seconds : float
        Time of the run.
    jobs : int
        Number of processes.

    Returns
    -------
    overhead : float
        0 if all time went into fits and predictions; NaN without any.

    See Also
    --------
    lokl.paper.run : Runs cells.

    Examples
    --------
    >>> from lokl.paper import overhead
    >>> overhead([{"error": None, "fit_seconds": 8.0}], seconds=10.0, jobs=1)
    0.25
    """
    parts = ("select_seconds", "fit_seconds", "predict_seconds")
    busy = math.fsum(r.get(part, 0.0) for r in records if not r["error"] for part in parts)
    return jobs * seconds / busy - 1.0 if busy else math.nan


def _write_figure(folder: Path, name: str, figure: Any) -> list[str]:
    """Write a figure as PNG and SVG, and return the paths."""
    paths = [folder / f"{name}.{ending}" for ending in ("png", "svg")]
    for path in paths:
        stream = io.BytesIO()
        figure.savefig(stream, format=path.suffix[1:], dpi=110)
        replace_file(path, stream.getvalue())
    return [str(path) for path in paths]


@dataclass(frozen=True)
class TableRun:
    """A table and the fits that were made for it now.

    Attributes
    ----------
    table : PaperTable or None
        None if nothing is recorded yet.
    cells : int
        Number of cells with a record.
    left : int
        Number of cells without a record, for lack of time.
    fits : int
        Number of cells that had no record before.
    seconds : float
    overhead : float or None
        Time outside the fits, relative to theirs. None for short runs and for clusters elsewhere,
        whose workers are not counted.
    errors : list of str
        Of all failed cells.
    """

    table: PaperTable | None
    cells: int
    left: int
    fits: int
    seconds: float
    overhead: float | None
    errors: list[str]


class Reproduction:
    """One table or figure of the paper, or all of them, in a folder.

    Fits and files are made inside ``with reproduction.open():``.

    Parameters
    ----------
    name : str
        A table, a figure, or "all".
    folder : Path
        Contains ``records.jsonl`` and receives all files.
    recorded : bool, default=False
        Show the existing records instead of running all cells.
    download : bool, default=True
        Whether to download data sets that are not on this machine.
    repeats : int, optional
        Number of splits, see :func:`make_cells`.
    reading : str, optional
        A reading, or "both". By default a run has the reading "paper", and existing records are
        shown in all readings.
    selection : str, optional
        How the width is chosen. By default as in the paper; "all" also makes Table 2 with nested
        selection.
    ties : {"smallest", "largest"}, default="smallest"
        Which gamma of equal accuracy is shown.
    **settings
        Further settings of :func:`make_cells`.

    See Also
    --------
    lokl.paper.run : Runs cells.
    lokl.paper.make_table : Makes a table.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lokl.paper import Reproduction
    >>> with TemporaryDirectory() as folder:
    ...     reproduction = Reproduction("figure1", Path(folder))
    >>> reproduction.name
    'figure1'
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        recorded: bool = False,
        download: bool = True,
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
        self.unavailable: dict[str, str] = {}
        self._ties = nearest("choice of ties", ties, TIES)
        self._shown_readings = named_readings(reading or "both")
        self._settings = settings
        self._recorded_only = recorded
        self._download = download
        restricted = reading is not None or any(
            settings.get(part) for part in ("sets", "methods", "gammas", "dictionaries")
        )
        self._writes = not (recorded and restricted)
        # Table and selection by the name of the files.
        self._parts = {
            self._file_name(*part): part for part in _tables_and_selections(self.name, selection)
        }
        if recorded:
            self.cells = self._cells_with_records()
            return
        readings = named_readings(reading or "paper")
        settings = {**settings, "readings": readings, "repeats": repeats}
        cells = {
            part: make_cells(table, selection=how, **settings)
            for part, (table, how) in self._parts.items()
        }
        needed = {cell.data for part in cells.values() for cell in part}
        self.unavailable = fetch_missing(needed, download)
        self.cells = {
            part: [cell for cell in own if cell.data not in self.unavailable]
            for part, own in cells.items()
        }

    def _file_name(self, table: str, selection: str) -> str:
        """Name a table after the settings that differ from the paper's."""
        marks = (
            None if selection == "paper" else selection,
            self._settings.get("solver"),
            None if self._ties == TIES[0] else self._ties,
            "quick" if self._settings.get("quick") else None,
        )
        return "-".join([table, *(mark for mark in marks if mark)])

    @contextmanager
    def open(self) -> Iterator[None]:
        """Check that the folder can be written, and keep other runs that fit out of it."""
        fits = bool(self.cells) and not self._recorded_only
        with open_run_folder(self.folder, lock=fits) if self._writes else nullcontext():
            if fits:
                # Read again: a run that has just ended may have added records.
                self.records = RecordFile(self.records.path)
            yield

    def _cells_with_records(self) -> dict[str, list[Cell]]:
        """Return the recorded cells of all parts that have some."""
        cells = {part: self._recorded(*what) for part, what in self._parts.items()}
        cells = {part: found for part, found in cells.items() if found}
        if self._parts and not cells:
            existing = sorted({(r["reading"], r["seed"]) for r in self.records})
            listed = ", ".join(f"{reading} with seed {seed}" for reading, seed in existing)
            raise ValueError(
                f"{self.records.path} has no records of {self.name} with these settings "
                f"(recorded readings: {listed or 'none'}); run it once without --recorded"
            )
        return cells

    def _recorded(self, table: str, selection: str) -> list[Cell]:
        """Return the finished cells of a table with the settings of this reproduction."""
        settings = {"readings": self._shown_readings, "selection": selection, **self._settings}
        finished = [record for record in self.records if record["error"] is None]
        return recorded_cells(table, finished, **settings)

    def version_warnings(self) -> list[str]:
        """Return warnings about data sets that differ from the known versions.

        Warnings of worker processes would only appear in the records.
        """
        cells = [cell for part in self.cells.values() for cell in part]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for name in sorted({cell.data for cell in cells if cell not in self.records}):
                # A set that cannot be read becomes a failed fit with the reason.
                with suppress(DatasetError):
                    load(name, download=False)
        return [str(warning.message) for warning in caught]

    def count_missing(self, part: str) -> int:
        """Return the number of unfinished cells of a table."""
        return len(self.records.missing(self.cells[part]))

    def run(
        self,
        part: str,
        jobs: int,
        backend: str,
        on_record: Callable[[Record], None],
        deadline: Deadline | None = None,
    ) -> TableRun:
        """Run the unfinished cells of a table.

        Parameters
        ----------
        part : str
            A key of `cells`.
        jobs, backend, on_record, deadline
            As for :func:`lokl.paper.run`.
        """
        missing = self.count_missing(part)
        new: list[Record] = []

        def note(record: Record) -> None:
            new.append(record)
            on_record(record)

        settings: dict[str, Any] = {"jobs": jobs, "backend": backend, "deadline": deadline}
        begun = time.perf_counter()
        records = run(self.cells[part], self.records, on_record=note, **settings)
        seconds = time.perf_counter() - begun
        extra = None
        if backend in ("processes", "dask") and seconds >= _LONG_RUN:
            extra = overhead(new, seconds, effective_jobs(jobs))
        return TableRun(
            table=make_table(self._parts[part][0], records, self._ties) if records else None,
            cells=len(records),
            left=missing - len(new),
            fits=len(new),
            seconds=seconds,
            overhead=extra,
            errors=[str(record["error"]) for record in records if record["error"] is not None],
        )

    def write(self, part: str, table: PaperTable) -> None:
        """Write a table as Markdown, CSV and JSON, unless it shows a selection of the records."""
        if not self._writes:
            return
        for ending, text in (
            ("md", table.markdown()),
            ("csv", table.csv()),
            ("json", json.dumps({**table.as_dict(), "environment": environment()}, indent=1)),
        ):
            replace_file(self.folder / f"{part}.{ending}", text.encode())

    def draw(self, figure: str) -> dict[str, Any]:
        """Draw a figure and write its files.

        Parameters
        ----------
        figure : {"figure1", "figure2", "agreement"}

        Returns
        -------
        drawn : dict
            ``name``, ``files`` and the values that the figure shows.
        """
        # Without matplotlib, fail before minutes of measurements rather than after.
        pyplot()
        shown: dict[str, Any] = {}
        if figure == "figure1":
            drawn = figure1()
        elif figure == "figure2":
            sets = paper_names(self._settings.get("sets"))
            unavailable = fetch_missing({SETS[name].name for name in sets}, self._download)
            measured = measure_memory([name for name in sets if SETS[name].name not in unavailable])
            replace_file(self.folder / f"{figure}.json", json.dumps(measured, indent=1).encode())
            shown, drawn = {"measured": measured}, figure2(measured)
        else:
            tables = self._recorded_tables()
            counts = {table.name: [asdict(own) for own in table.agreement()] for table in tables}
            shown, drawn = {"agreement": counts}, agreement_figure(tables)
        return {"name": figure, **shown, "files": _write_figure(self.folder, figure, drawn)}

    def _recorded_tables(self) -> list[PaperTable]:
        """Return all tables that have recorded results."""
        cells = {table: self._recorded(table, "paper") for table in TABLES}
        tables = [
            make_table(table, self.records.of(found), self._ties)
            for table, found in cells.items()
            if found
        ]
        if not tables:
            raise ValueError(
                f"{self.records.path} has no records with these settings to compare with the "
                "published numbers; run a table first"
            )
        return tables


def _tables_and_selections(name: str, selection: str | None) -> list[tuple[str, str]]:
    """Return the tables of a run, and how the width is chosen for each."""
    if selection is None:
        return [part for part in FULL_RUN if name == "all" or part == (name, "paper")]
    return [(table, selection) for table in TABLES if name in (table, "all")]
