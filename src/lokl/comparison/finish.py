"""The end of a comparison: the chosen model, and all files."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lokl._writing import replace_file
from lokl.comparison.files import (
    MODEL,
    PREDICTIONS,
    REPORT,
    RESULTS,
    predictions_csv,
    results_csv,
)
from lokl.comparison.findings import findings
from lokl.comparison.page import report_of
from lokl.comparison.results import Results
from lokl.comparison.run import Comparison
from lokl.comparison.settings import CONFIG, stored_model
from lokl.comparison.winner import fit_candidate
from lokl.files import load, save
from lokl.files.objects import need_skops
from lokl.report import Finding, write
from lokl.report.page import need_jinja
from lokl.tables import TableError


@dataclass(frozen=True, eq=False)
class Finished:
    """What came out, and where it is."""

    results: Results
    findings: list[Finding]
    model: Any
    files: dict[str, Path]


def finish(comparison: Comparison, on_step: Callable[[str], None] | None = None) -> Finished:
    """Fit the chosen candidate to all samples, and write everything.

    Parameters
    ----------
    comparison : Comparison
        At work in its folder.
    on_step : callable, optional
        Called with a word about what is done next.
    """
    tell = on_step or (lambda step: None)
    results, folder = comparison.results(), comparison.folder
    if len(results.splits) < 2:
        raise TableError(
            f"{len(results.splits)} of {len(comparison.bench.splits)} folds are finished, too few "
            "to compare anything; raise --time-limit: the same command goes on"
        )
    chosen, model, made = results.chosen, None, None
    if chosen is not None:
        tell(f"fitting {chosen.name} to all samples")
        model, checksum = _final_model(comparison, chosen.name)
        made = (chosen.name, checksum)
    tell("writing the report")
    found = findings(results)
    replace_file(folder / RESULTS, results_csv(results).encode())
    if chosen is not None:
        replace_file(folder / PREDICTIONS, predictions_csv(results).encode())
    replace_file(folder / CONFIG, comparison.settings.text(folder, made).encode())
    again = f"lokl compare {folder / CONFIG}"
    write(report_of(results, comparison.settings, found, model, again), folder / REPORT)
    there = (REPORT, RESULTS, PREDICTIONS, MODEL, CONFIG)
    files = {name: folder / name for name in there if (folder / name).exists()}
    return Finished(results, found, model, files)


def check_ready() -> None:
    """Raise where a library is missing that is needed at the end, before minutes of work."""
    need_skops("lokl compare")
    need_jinja()


def _final_model(comparison: Comparison, name: str) -> tuple[Any, str]:
    """Return the model in the folder where it is that of the candidate, else fit and save it.

    Also returned is the checksum of its file.
    """
    path = comparison.folder / MODEL
    if path.exists() and stored_model(comparison.folder / CONFIG) == (name, _sha256(path)):
        return load(path), _sha256(path)
    model = fit_candidate(comparison.table, name, comparison.settings.seed)
    save(model, path)
    return model, _sha256(path)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
