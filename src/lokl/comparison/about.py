"""The report about one model on samples that were brought."""

from typing import Any

import numpy as np

from lokl._environment import system, versions
from lokl.report import Report, ViewWorth, cases_of
from lokl.report.content import Cases
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
    cases = cases_of(model, table.frame, y, table.ids, places_in_model(model))
    classes = [str(label) for label in getattr(model, "classes_", ())]
    score_name = "accuracy" if classes else "R squared"
    kept = {package: value for package, value in versions().items() if value}
    return Report(
        title=f"{name} on {len(cases.ids)} samples",
        verdict=_verdict(cases, classes, score_name),
        score_name=score_name,
        classes=classes,
        views=_views(cases, table),
        cases=cases,
        audit={
            "model": name,
            "samples": str(len(cases.ids)),
            "answers": "of the model itself, also about samples that it learned from",
            "versions": ", ".join(f"{package} {value}" for package, value in kept.items()),
            "system": system(),
        },
        command=again,
    )


def _labels(target: Any) -> Any:
    """Return classes or numbers; None or NaN where nothing is known."""
    return target.to_numpy() if target.dtype.kind == "f" else target.astype(object).to_numpy()


def _verdict(cases: Cases, classes: list[str], score_name: str) -> str:
    known = cases.truth >= 0 if classes else np.isfinite(cases.truth)
    if not known.any():
        return "What the model says about samples of which the truth is not known here."
    said, truth = cases.predicted[known], cases.truth[known]
    if classes:
        score = f"{100 * float(np.mean(said == truth)):.1f} %"
    else:
        spread = float(((truth - truth.mean()) ** 2).sum())
        score = f"{1 - float(((truth - said) ** 2).sum()) / spread:.3f}" if spread else "unknown"
    count = int(known.sum())
    return (
        f"The model reaches {score_name} {score} on {count} samples of which the truth is known. "
        "Samples that it learned from look better than new ones."
    )


def _views(cases: Cases, table: Table) -> list[ViewWorth]:
    found = []
    for place, (view, columns) in enumerate(table.views.items()):
        has = cases.present[:, place]
        part = float(np.abs(cases.parts[has, place]).mean()) if has.any() else 0.0
        trust = float(cases.trust[has, place].mean()) if has.any() else 0.0
        missing = 1.0 - float(has.mean())
        found.append(ViewWorth(view, len(columns), None, None, part, trust, missing))
    return found
