"""A comparison in a folder: its settings, its cells, and their records."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lokl._deadline import Deadline
from lokl._files import check_writable, replace_file
from lokl.study.candidates import Candidate, candidates_for, divided, everything
from lokl.study.experiment import Bench, Cell, Question
from lokl.study.results import Results
from lokl.study.run_folder import Record, Records, open_run_folder, run_cells
from lokl.study.settings import CONFIG, Settings, stored_identity
from lokl.tables import Table, TableError
from lokl.tables.learning import groups_of, target_of

CELLS = "cells.jsonl"
# Distance of the seeds of repeats, so that comparisons with neighbouring seeds share no split.
_SEED_STEP = 1_000


class CellRecords(Records):
    """Records of the cells of a comparison."""

    required: ClassVar[Mapping[str, tuple[type, ...]]] = {
        "candidate": (str,),
        "split": (int,),
        "error": (str, type(None)),
    }
    measured: ClassVar[Mapping[str, tuple[type, ...]]] = {
        "score": (float, int),
        "seconds": (float, int),
        "predicted": (list,),
    }

    def key_of(self, record: Record) -> str:
        return Cell(record["candidate"], record["split"]).key


class Comparison:
    """Candidates on the same splits of the same table.

    Parameters
    ----------
    settings : Settings
    folder : Path
        For records and results. A comparison with the same settings that is there is resumed. Other
        files or other settings raise a `TableError`.
    """

    def __init__(self, settings: Settings, folder: Path):
        self.settings = settings
        self.folder = folder
        self._check_folder()
        check_writable(folder / CONFIG)
        self.table: Table = settings.read()
        self.candidates: list[Candidate] = candidates_for(self.table, settings.methods)
        self.question = _question(self.table)
        self._check_sizes()
        self.records = self._read_records()

    def _check_folder(self) -> None:
        """Raise unless the folder is new, empty, or contains this comparison."""
        config = self.folder / CONFIG
        if not config.exists():
            if self.folder.is_dir() and any(self.folder.iterdir()):
                raise TableError(
                    f"{self.folder} contains other files; name a new folder with --output"
                )
            return
        stored = stored_identity(config)
        for name, value in self.settings.identity().items():
            if stored.get(name) != value:
                raise TableError(
                    f"{self.folder} contains a comparison with other settings ({name}: "
                    f"{_shown(stored.get(name))} there, {_shown(value)} here); name another folder "
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
                f"--folds {settings.folds} --repeats {settings.repeats}: at least two folds and "
                "one repeat are needed"
            )
        groups = groups_of(self.table)
        if groups is not None and len(np.unique(groups)) < settings.folds:
            raise TableError(
                f"--groups {self.table.groups.name} has {len(np.unique(groups))} groups, fewer "
                f"than the {settings.folds} folds; see --folds"
            )
        if len(y) < 2 * settings.folds:
            raise TableError(
                f"{len(y)} samples are too few for {settings.folds} folds; see --folds"
            )

    @cached_property
    def bench(self) -> Bench:
        """Samples, splits and candidates that all cells share."""
        y, groups = target_of(self.table), groups_of(self.table)
        numbers = self.table.task == "numbers"
        seed, settings = self.settings.seed, self.settings
        splits, labels = [], []
        for repeat in range(settings.repeats):
            found = divided(y, groups, numbers, settings.folds, seed + _SEED_STEP * repeat)
            splits += found
            labels += [(repeat, fold) for fold in range(len(found))]
        candidates = {one.name: one for one in self.candidates}
        part = everything(self.table, seed)
        return Bench(part, self.question, splits, labels, candidates)

    @property
    def cells(self) -> list[Cell]:
        """All cells, split by split, so that finished splits can be compared at any time."""
        splits = range(len(self.bench.splits))
        return [Cell(one.name, split) for split in splits for one in self.candidates]

    @property
    def missing(self) -> list[Cell]:
        """Cells that are not finished."""
        return [cell for cell in self.cells if cell not in self.records]

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep other runs out of the folder; a run without any record leaves nothing behind."""
        config = self.folder / CONFIG
        with open_run_folder(self.folder):
            new = not config.exists()
            if new:
                replace_file(config, self.settings.text(self.folder).encode())
            else:
                # Again: a run that has just ended may have written here.
                self._check_folder()
            self.records = self._read_records()
            try:
                yield
            finally:
                if new and not (self.folder / CELLS).exists():
                    with suppress(OSError):
                        config.unlink(missing_ok=True)

    def run(
        self,
        jobs: int,
        on_record: Callable[[Record], None] | None = None,
        time_limit: float | None = None,
    ) -> None:
        """Run the cells that are not finished yet.

        Parameters
        ----------
        jobs : int
            Processes, -1 for all cores.
        on_record : callable, optional
            Called with every new record.
        time_limit : float, optional
            Seconds after which no cell is started.
        """
        limit = Deadline(time_limit)
        run_cells(
            self.cells,
            self.records,
            self.bench.work,
            jobs=jobs,
            on_record=on_record,
            deadline=limit,
        )

    def results(self) -> Results:
        """Return the results of all finished splits."""
        return Results.of(self.bench, self.table, self.records.of(self.cells))


def _question(table: Table) -> Question:
    if table.task == "numbers":
        return Question([])
    classes = np.unique(target_of(table)).tolist()
    positive = None if table.positive is None else [*map(str, classes)].index(table.positive)
    return Question(classes, positive)


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
