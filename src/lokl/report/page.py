"""From the content of a report to one HTML file that asks nobody for anything."""

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from lokl._files import replace_file
from lokl.report import figures as svg
from lokl.report import sections
from lokl.report.content import Cases, Report
from lokl.report.data import as_json, page_data
from lokl.report.figures import (
    MOST_SYMBOLS,
    Places,
    class_styles,
    colour_of,
    in_order,
    leading,
    spread,
    trust_map,
    where_map,
)
from lokl.report.formatting import Words, attention, count, short
from lokl.report.reliability import reliability
from lokl.report.sections import card, tiles, verdict

_STYLES = ("page.css", "tables.css", "pictures.css")
_SCRIPTS = ("data.js", "tables.js", "choice.js", "maps.js", "card.js", "save.js")


def render(report: Report) -> str:
    """Return the page as text."""
    check(report)
    words = Words.of(report)
    cases = report.cases if report.cases is not None and len(report.cases.ids) else None
    found = None if cases is None else reliability(cases, report.classes)
    pictures = {} if cases is None else _pictures(report, cases)
    names = [view.name for view in report.views]
    script = '"use strict";(()=>{' + "".join(map(_file, _SCRIPTS)) + "})();"
    return _environment().get_template("report.html.j2").render(
        report=report,
        words=words,
        verdict=verdict(report, words, found),
        tiles=tiles(report, words, found),
        board=sections.board(report, words) if report.leaderboard else None,
        worth=sections.worth(report, words) if report.views else None,
        cases=cases,
        pictures=pictures,
        looks=_looks(report, cases, found is not None),
        card=None if cases is None else card(cases, words, names, int(attention(cases)[0][0])),
        listed=[] if cases is None else sections.listed(cases, words),
        belief=None if found is None else sections.belief(report, words, found),
        alignment=sections.aligned(report.alignment, names),
        audit=sections.audited(report.audit),
        style="".join(map(_file, _STYLES)) + class_styles(len(report.classes)),
        script=script,
        digest=_digest(script),
        data=as_json(page_data(report, words, pictures)),
        colour_of=colour_of,
        symbol=svg.symbol,
        short=short,
        count=count,
    )  # fmt: skip


def write(report: Report, path: str | Path) -> Path:
    """Write the page; an existing file stays as it was unless all of the new one is there."""
    path = Path(path)
    replace_file(path, render(report).encode("utf-8"))
    return path


def check(report: Report) -> None:
    """Raise where the parts of a report do not fit each other."""
    cases = report.cases
    if cases is None:
        return
    n, m = len(cases.ids), len(report.views)
    for name in ("trust", "parts", "says", "sure", "present"):
        shape = np.shape(getattr(cases, name))
        if shape != (n, m):
            raise ValueError(
                f"the report has {n} samples and {m} views, but cases.{name} has shape {shape}; "
                "give one ViewWorth for each view of the model, see lokl.report.view_names"
            )
    for name in ("truth", "predicted", "start", "disagreement", "near"):
        if len(getattr(cases, name)) != n:
            raise ValueError(
                f"the report has {n} samples, but cases.{name} is about {len(getattr(cases, name))}"
            )
    if cases.probabilities is not None and np.shape(cases.probabilities) != (
        n,
        len(report.classes),
    ):
        raise ValueError(
            f"the report has {n} samples and {len(report.classes)} classes, but "
            f"cases.probabilities has shape {np.shape(cases.probabilities)}"
        )


def need_jinja() -> Any:
    """Return Jinja2, or say how to get it."""
    try:
        import jinja2
    except ImportError as reason:
        raise ImportError(
            "reports need Jinja2; install it with: pip install 'lokl[report]'"
        ) from reason
    return jinja2


def _environment() -> Any:
    jinja2 = need_jinja()
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _file(name: str) -> str:
    return files("lokl.report").joinpath("templates", name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """Return the checksum by which the page allows its own script and no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _looks(report: Report, cases: Cases | None, judged: bool) -> str:
    """Return what makes samples worth a look."""
    kinds = []
    if judged:
        kinds.append("sure and wrong" if report.classes else "far off")
    if cases is not None and np.isfinite(cases.disagreement).any() and len(report.views) > 1:
        kinds.append("with views that disagree")
    return ", or ".join(kinds) or "the first samples"


def _pictures(report: Report, cases: Cases) -> dict[str, Any]:
    """Return what is drawn of all samples."""
    places = Places.of(np.asarray(cases.place, dtype=float))
    drawn = spread(len(cases.ids), MOST_SYMBOLS)
    grouped = bool(report.classes) and bool(cases.known.any())
    shapes = np.zeros(len(cases.ids))
    if report.classes:
        shapes = np.where(cases.known, cases.truth, -1) if grouped else cases.predicted
    lead = leading(cases)
    label = f"{len(drawn)} samples; those that the model finds alike lie together."
    return {
        "places": places,
        "drawn": drawn,
        "grouped": grouped,
        "order": in_order(cases, grouped),
        "trust": trust_map(cases, report.classes),
        "divided": cases.divided,
        "uniform": len(cases.ids) > 1 and cases.uniform,
        "trusts": bool(np.isfinite(cases.trust).any()),
        "where": where_map(places, drawn, shapes, [colour_of(int(view)) for view in lead], label),
        "seen": [int(count) for count in cases.present.sum(axis=0)],
        "led": [int((lead == view).sum()) for view in range(len(report.views))],
        "classed": [int((shapes == code).sum()) for code in range(len(report.classes))],
    }
