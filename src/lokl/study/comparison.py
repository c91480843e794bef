"""A comparison in a folder: its settings, its cells, and their records."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lokl._deadline import Deadline
from lokl._files import check_writable, replace_file
from lokl.study.candidates import StudyCandidate, all_samples, candidates_for, make_folds
from lokl.study.experiment import CandidateSplit, Experiment, PredictionTarget
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
        return CandidateSplit(record["candidate"], record["split"]).key


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
        self.candidates: list[StudyCandidate] = candidates_for(self.table, settings.methods)
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
    def experiment(self) -> Experiment:
        """Samples, splits and candidates that all cells share."""
        settings = self.settings
        return make_experiment(
            self.table, self.candidates, settings.folds, settings.repeats, settings.seed
        )

    @property
    def cells(self) -> list[CandidateSplit]:
        """All cells, split by split, so that finished splits can be compared at any time."""
        splits = range(len(self.experiment.splits))
        return [CandidateSplit(own.name, split) for split in splits for own in self.candidates]

    @property
    def missing(self) -> list[CandidateSplit]:
        """Cells that are not finished."""
        return [cell for cell in self.cells if cell not in self.records]

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep other runs out of the folder; a run without any record leaves nothing behind."""
        config = self.folder / CONFIG
        with open_run_folder(self.folder):
            new = not config.exists()
            if new:
                replace_file(config, self.settings.to_toml(self.folder).encode())
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
            self.experiment.run,
            jobs=jobs,
            on_record=on_record,
            deadline=limit,
        )

    def results(self) -> Results:
        """Return the results of all finished splits."""
        return Results.of(self.experiment, self.table, self.records.of(self.cells))


def make_experiment(
    table: Table, candidates: Sequence[StudyCandidate], folds: int, repeats: int, seed: int
) -> Experiment:
    """Return the experiment of candidates on random splits of a table."""
    samples = all_samples(table, seed)
    target = PredictionTarget([])
    if not samples.is_regression:
        classes = np.unique(samples.y).tolist()
        positive = None if table.positive is None else [*map(str, classes)].index(table.positive)
        target = PredictionTarget(classes, positive)
    splits, labels = [], []
    for repeat in range(repeats):
        repeat_seed = seed + _SEED_STEP * repeat
        found = make_folds(samples.y, samples.groups, samples.is_regression, folds, repeat_seed)
        splits += found
        labels += [(repeat, fold) for fold in range(len(found))]
    return Experiment(samples, target, splits, labels, {own.name: own for own in candidates})


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
