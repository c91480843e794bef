"""UCI tables with published folds: AutoMKL compared with SVM, forest, boosting and xRFM.

58 classification tables in the folder ``uci`` of LOKL_DATA, with the folds of Fernandez-Delgado et
al., "Do we need hundreds of classifiers to solve real world classification problems?", JMLR 15
(2014). The result of a method on a set is its mean test accuracy over the four published folds;
everything else is chosen inside the training part of a fold. `uci_peers.py` and `uci_xrfm.py`
define how peers are tuned. Every fit runs in one thread, and ``--jobs`` of them at the same time.
With ``--records`` every finished fit is a line of a file, from which an interrupted run resumes.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.common import MissingDataError, Options, Report, console, main
from benchmarks.uci_folds import XRFM, FoldCell, FoldRecords, finish, row_counts, xrfm_environment
from benchmarks.uci_peers import PEERS
from benchmarks.uci_tables import OURS, show
from lokl.study import run_folder

METHODS = (OURS, *PEERS, XRFM)
FOLDS = 4
# The SVC and xRFM need many hours for all sets.
MAX_ROWS = 1000


@dataclass
class UciOptions(Options):
    sets: str | None = None
    methods: str = ",".join(METHODS)
    folds: int = FOLDS
    max_rows: int = MAX_ROWS
    jobs: int = 1
    records: Path | None = None
    recorded: bool = False


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", help="data sets, separated by commas (all)")
    parser.add_argument("--methods", help=f"methods, separated by commas ({','.join(METHODS)})")
    parser.add_argument("--folds", type=int, help=f"number of published folds ({FOLDS})")
    parser.add_argument(
        "--max-rows", type=int, help=f"skip sets with more rows, 0 for none ({MAX_ROWS})"
    )
    parser.add_argument("--jobs", type=int, help="fits at the same time, one thread each (1)")
    parser.add_argument(
        "--records", type=Path, help="file of finished work, from which the run resumes"
    )
    parser.add_argument(
        "--recorded", action="store_true", help="only show the tables of the records"
    )


def print_progress(record: dict[str, Any]) -> None:
    about = f"{record['set']}, fold {record['fold'] + 1}, {record['method']}"
    if record["error"] is not None:
        console.print(f"[dim]{about}: {record['error']}[/]")
        return
    console.print(f"[dim]{about}: {record['accuracy']:.2f} %, {record['seconds']:.1f} s[/]")


@contextmanager
def record_file(path: Path | None) -> Iterator[FoldRecords]:
    """Open the records; without a path they are removed after the run."""
    if path is not None:
        yield FoldRecords(path)
        return
    with TemporaryDirectory() as temporary:
        yield FoldRecords(Path(temporary) / "records.jsonl")


def chosen_sets(options: UciOptions, rows: dict[str, int]) -> list[str]:
    named = None if options.sets is None else options.sets.split(",")
    unknown = set(named or ()) - set(rows)
    if unknown:
        raise MissingDataError(f"no such set: {', '.join(sorted(unknown))}")
    limit = options.max_rows or max(rows.values())
    return [name for name in rows if rows[name] <= limit and (named is None or name in named)]


def finish_cells(
    options: UciOptions, report: Report, records: FoldRecords, methods: Sequence[str]
) -> list[dict[str, Any]]:
    """Run everything that is not recorded yet, set by set, and return all records."""
    cells = [
        FoldCell(name, number, method)
        for name in chosen_sets(options, row_counts())
        for number in range(options.folds)
        for method in methods
    ]
    if any(cell.method == XRFM for cell in records.missing(cells)):
        try:
            xrfm_environment()
        except MissingDataError as reason:
            report.note(f"without xRFM: {reason}")
            cells = [cell for cell in cells if cell.method != XRFM or cell in records]
    return run_folder.run_cells(cells, records, finish, jobs=options.jobs, on_record=print_progress)


def recorded(
    options: UciOptions, records: FoldRecords, methods: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the records of the chosen sets, folds and methods."""
    named = None if options.sets is None else options.sets.split(",")
    return [
        record
        for record in records
        if record["method"] in methods
        and record["fold"] < options.folds
        and (named is None or record["set"] in named)
        and not (options.max_rows and record.get("rows", 0) > options.max_rows)
    ]


def run(options: UciOptions, report: Report) -> None:
    methods = options.methods.split(",")
    unknown = set(methods) - set(METHODS)
    if unknown:
        raise ValueError(f"unknown method {', '.join(sorted(unknown))}; known: {METHODS}")
    with record_file(options.records) as records:
        if options.recorded:
            found = recorded(options, records, methods)
        else:
            found = finish_cells(options, report, records, methods)
    if not found:
        raise MissingDataError("there are no records")
    show(report, found, methods)


if __name__ == "__main__":
    main(run, UciOptions(), more_options)
