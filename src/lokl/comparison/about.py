"""The report about one model on samples that were brought."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lokl._environment import system
from lokl.report import Report, Source, about
from lokl.tables import Table
from lokl.tables.schema import places_in_model


def report_about(model: Any, table: Table, name: str, again: str = "") -> Report:
    """Return the content of a page about a fitted model.

    Parameters
    ----------
    model : Pipeline
        Fitted to tables.
    table : Table
        Samples; where its target is known, answers are judged by it.
    name : str
        Of the model.
    again : str
        The command that makes the report again.
    """
    y = None if table.target is None else _labels(table.target)
    report = about(
        model,
        table.frame,
        y,
        ids=table.ids,
        views=places_in_model(model),
        title=f"{name} on {len(table.ids)} samples",
        audit={
            "file": name,
            "samples": len(table.ids),
            "answers": "of the model itself, also about samples that it learned from",
            "system": system(),
        },
    )
    sources = [Source(Path(file).name, *size) for file, size in table.files.items()]
    return replace(report, verdict=_verdict(report), command=again, sources=sources)


def _labels(target: Any) -> Any:
    """Return classes or numbers; None or NaN where nothing is known."""
    return target.to_numpy() if target.dtype.kind == "f" else target.astype(object).to_numpy()


def _verdict(report: Report) -> str:
    """How often the model is right here; empty, so that the page says it, where nobody knows."""
    cases = report.cases
    if cases is None or not cases.known.any():
        return ""
    said, truth = cases.predicted[cases.known], cases.truth[cases.known]
    if report.classes:
        score = f"{100 * float(np.mean(said == truth)):.1f} %"
    else:
        spread = float(((truth - truth.mean()) ** 2).sum())
        score = f"{1 - float(((truth - said) ** 2).sum()) / spread:.3f}" if spread else "unknown"
    return (
        f"The model reaches {report.score_name} {score} on {len(truth)} samples of which the truth "
        "is known. Samples that it learned from look better than new ones."
    )
