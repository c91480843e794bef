"""Cells, done in parallel and never twice."""

from collections.abc import Callable, Sequence
from typing import Any

import joblib

from lokl.paper.cells import Cell, run_cell
from lokl.paper.records import RecordFile


def run(
    cells: Sequence[Cell],
    records: RecordFile,
    *,
    jobs: int | None = None,
    on_record: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Do the cells that have no record yet, and return the records of all.

    Every record is written when its cell is done: an interrupted run loses only the cells that
    were at work.

    Parameters
    ----------
    cells : sequence of Cell
    records : RecordFile
    jobs : int or None, default=None
        Processes; None is one, -1 all cores.
    on_record : callable, optional
        Called with every new record.
    """
    # Cells of one data set follow each other, so that a worker reads it once.
    missing = sorted((c for c in dict.fromkeys(cells) if c not in records), key=lambda c: c.data)
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size="auto")
    for record in parallel(joblib.delayed(run_cell)(cell) for cell in missing):
        records.add(record)
        if on_record is not None:
            on_record(record)
    by_key = {Cell.of(record).key: record for record in records}
    return [by_key[cell.key] for cell in dict.fromkeys(cells)]
