"""Overhead of recorded experiments compared with a plain loop over the same fits."""

import tempfile
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.common import MissingDataError, Options, Report, Timing, main
from lokl._threads import single_threaded
from lokl.datasets import MissingDatasetError, load
from lokl.paper import Cell, RecordFile, make_cells, overhead, run
from lokl.paper.methods import build

SETS, REPEATS = ("Diabetes", "Liver"), 20
MOST = 0.05


@lru_cache(maxsize=1)
def split(name: str, number: int) -> Any:
    bunch = load(name, download=False)
    return train_test_split(bunch.data, bunch.target, test_size=0.25, random_state=number)


def plain(cell: Cell) -> float:
    """Split, fit and score in one thread, as a plain script would do."""
    X, X_test, y, y_test = split(cell.data, cell.split)
    model = build(cell.method, cell.dictionary, cell.gamma, cell.C, cell.solver, cell.seed)
    return float(np.mean(model.fit(X, y).predict(X_test) == y_test))


def recorded(cells: list[Cell], jobs: int) -> tuple[float, float, list[dict[str, Any]]]:
    """Return total seconds, seconds after the first record (without start-up), and records."""
    arrived: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        found = run(
            cells,
            RecordFile(Path(folder, "records.jsonl")),
            jobs=jobs,
            on_record=lambda _: arrived.append(time.perf_counter()),
        )
        ended = time.perf_counter()
    return ended - begun, ended - arrived[0], found


def run_benchmark(options: Options, report: Report) -> None:
    try:
        cells = make_cells("table2", sets=SETS, repeats=REPEATS, readings=["lokl"], seed=0)
        plain(cells[0])
    except MissingDatasetError as reason:
        raise MissingDataError(str(reason)) from reason
    cells.sort(key=lambda cell: (cell.data, cell.split))
    for method in dict.fromkeys(cell.method for cell in cells):
        plain(next(cell for cell in cells if cell.method == method))
    rows, least = [], {}
    for repeat in range(max(options.peer_repeats, 1)):
        begun = time.perf_counter()
        with single_threaded():
            accuracies = [plain(cell) for cell in cells]
        seconds = time.perf_counter() - begun
        rows.append({"": f"plain loop, run {repeat + 1}", "all": Timing([seconds])})
        for jobs in dict.fromkeys((1, joblib.cpu_count())):
            whole, after, found = recorded(cells, jobs)
            extra = overhead(found, after, jobs)
            least[jobs] = min(extra, least.get(jobs, extra))
            rows.append(
                {
                    "": f"runner, {jobs} processes, run {repeat + 1}",
                    "all": Timing([whole]),
                    "overhead": f"{100 * overhead(found, whole, jobs):.1f} %",
                    "overhead after the first record": f"{100 * extra:.1f} %",
                }
            )
            worst = max(abs(r["accuracy"] - a) for r, a in zip(found, accuracies, strict=True))
            report.quality(f"{jobs} processes: accuracy, largest difference", worst, "<=", 0.0)
    report.table(f"{len(cells)} fits of {', '.join(SETS)}, {REPEATS} splits", rows)
    for jobs, extra in least.items():
        report.target(f"{jobs} processes: overhead", extra, "<=", MOST)


if __name__ == "__main__":
    main(run_benchmark)
