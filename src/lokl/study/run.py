"""A comparison in a folder: what is to do, what is done, and what it became."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lokl._files import check_writable, only_run, replace_file
from lokl.study.candidates import Candidate, candidates_for, divided, everything
from lokl.study.experiment import Bench, Cell, Question, died, key_of
from lokl.study.records import Records, by_processes, until
from lokl.study.results import Results
from lokl.study.settings import CONFIG, Settings, stored_identity
from lokl.tables import Table, TableError
from lokl.tables.learning import groups_of, target_of

CELLS = "cells.jsonl"
# Seeds of repeats are so far apart that those of neighbouring comparisons do not meet.
_STEP = 1_000


class CellRecords(Records):
    """Records of cells as lines of JSON."""

    def key_of(self, record: dict[str, Any]) -> str:
        return key_of(record)

    def check(self, record: Any) -> None:
        if not isinstance(record, dict):
            raise ValueError(f"a record is a JSON object, not {record!r:.40}")
        needed: dict[str, Any] = {"candidate": str, "split": int, "error": str | None}
        if record.get("error", "") is None:
            needed |= {"score": float | int, "seconds": float | int, "predicted": list}
        for name, kind in needed.items():
            if name not in record:
                raise ValueError(f"it lacks {name}")
            if not isinstance(record[name], kind):
                raise ValueError(f"its {name} is {record[name]!r:.40}")

    def done(self, cell: Cell) -> bool:
        """Whether a cell is done; one that failed is not, so that it is tried again."""
        record = self.get(cell.key)
        return record is not None and record["error"] is None


class Comparison:
    """Candidates on the same splits of the same table.

    Parameters
    ----------
    settings : Settings
    folder : Path
        For records and results. A folder that holds a comparison with the same settings is gone on
        with, one with other settings is refused.
    """

    def __init__(self, settings: Settings, folder: Path):
        self.settings = settings
        self.folder = folder
        self._refuse_other_runs()
        check_writable(folder / CONFIG)
        self.table: Table = settings.read()
        self.candidates: list[Candidate] = candidates_for(self.table, settings.methods)
        self.question = _question(self.table)
        self._check_sizes()
        self.records = self._read_records()

    def _refuse_other_runs(self) -> None:
        config = self.folder / CONFIG
        if not config.exists():
            if self.folder.is_dir() and any(self.folder.iterdir()):
                raise TableError(
                    f"{self.folder} holds other files; name a new folder with --output"
                )
            return
        there, here = stored_identity(config), self.settings.identity()
        for name, value in here.items():
            if there.get(name) != value:
                raise TableError(
                    f"{self.folder} holds a comparison with other settings ({name}: "
                    f"{_shown(there.get(name))} there, {_shown(value)} here); name another folder "
                    "with --output, or remove this one"
                )

    def _read_records(self) -> CellRecords:
        try:
            return CellRecords(self.folder / CELLS)
        except ValueError as reason:
            raise TableError(str(reason)) from reason

    def _check_sizes(self) -> None:
        settings, y = self.settings, target_of(self.table)
        if settings.folds < 2 or settings.repeats < 1:
            raise TableError(
                f"--folds {settings.folds} --repeats {settings.repeats}: there must be two folds "
                "or more, and one repeat"
            )
        groups = groups_of(self.table)
        if groups is not None and len(np.unique(groups)) < settings.folds:
            raise TableError(
                f"--groups {self.table.groups.name} names {len(np.unique(groups))} groups, fewer "
                f"than the {settings.folds} folds that they are divided into; see --folds"
            )
        if len(y) < 2 * settings.folds:
            raise TableError(
                f"{len(y)} samples are too few for {settings.folds} folds; see --folds"
            )

    @cached_property
    def bench(self) -> Bench:
        """What all cells share."""
        y, groups = target_of(self.table), groups_of(self.table)
        numbers = self.table.task == "numbers"
        seed, settings = self.settings.seed, self.settings
        splits, labels = [], []
        for repeat in range(settings.repeats):
            found = divided(y, groups, numbers, settings.folds, seed + _STEP * repeat)
            splits += found
            labels += [(repeat, fold) for fold in range(len(found))]
        candidates = {one.name: one for one in self.candidates}
        part = everything(self.table, seed)
        return Bench(part, self.question, splits, labels, candidates)

    @property
    def cells(self) -> list[Cell]:
        """All cells, split by split, so that what is done at any time can be compared."""
        splits = range(len(self.bench.splits))
        return [Cell(one.name, split) for split in splits for one in self.candidates]

    @property
    def missing(self) -> list[Cell]:
        """Cells that are still to be done."""
        return [cell for cell in self.cells if not self.records.done(cell)]

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Keep other runs out of the folder; one that came to nothing is removed again."""
        made = not self.folder.exists()
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            if made:
                stack.callback(self._remove_if_empty)
            stack.enter_context(only_run(self.folder))
            # Once more: a run that has just ended may have added records.
            self._refuse_other_runs_here()
            self.records = self._read_records()
            yield

    def _refuse_other_runs_here(self) -> None:
        if (self.folder / CONFIG).exists():
            self._refuse_other_runs()
        else:
            replace_file(self.folder / CONFIG, self.settings.text(self.folder).encode())

    def _remove_if_empty(self) -> None:
        if not (self.folder / CELLS).exists():
            with suppress(OSError):
                (self.folder / CONFIG).unlink(missing_ok=True)
                self.folder.rmdir()

    def run(
        self,
        jobs: int,
        on_record: Callable[[dict[str, Any]], None] | None = None,
        time_limit: float | None = None,
    ) -> None:
        """Do the cells that have no record yet.

        Parameters
        ----------
        jobs : int
            Processes, -1 for all cores.
        on_record : callable, optional
            Called with every new record.
        time_limit : float, optional
            Seconds after which no other cell is begun.
        """
        missing = {cell.key: cell for cell in self.missing}
        work = by_processes(missing, jobs, self.bench.work, key_of, died, until(time_limit))
        for record in work if missing else ():
            self.records.add(record)
            if on_record is not None:
                on_record(record)

    def results(self) -> Results:
        """Return what is known so far."""
        found = [self.records.get(cell.key) for cell in self.cells]
        records = [record for record in found if record is not None]
        return Results.of(self.bench, self.table, records)


def _question(table: Table) -> Question:
    if table.task == "numbers":
        return Question([])
    classes = np.unique(target_of(table)).tolist()
    positive = None if table.positive is None else [*map(str, classes)].index(table.positive)
    return Question(classes, positive)


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
