"""From the content of a report to one HTML file that asks nobody for anything."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._writing import replace_file
from lokl.report import svg
from lokl.report.content import Candidate, Cases, Interval, Report
from lokl.report.reliability import Reliability, reliability

# Rows of the map of trust and symbols of the picture of all samples.
_ROWS, _SYMBOLS = 400, 1500


def render(report: Report) -> str:
    """Return the page as text."""
    jinja2 = need_jinja()
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=_percent, seconds=_seconds, span=_span)
    page = environment.get_template("report.html.j2")
    return page.render(
        report=report,
        style=_template("style.css"),
        script=_template("script.js"),
        data=_json(_data(report)),
        best=dict(_dots(report.leaderboard)),
        **_pictures(report),
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


def _template(name: str) -> str:
    return files("lokl.report").joinpath("templates", name).read_text(encoding="utf-8")


def _json(data: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _pictures(report: Report) -> dict[str, Any]:
    """Return what is drawn of the cases, empty where there are none."""
    cases = report.cases
    if cases is None or not len(cases.ids):
        return {"trust_map": "", "where_map": "", "shown": 0, "reliability": None, "curve": ""}
    names = [view.name for view in report.views]
    rows = by_class(cases)
    rows = rows[_spread(len(rows), _ROWS)]
    groups = [class_name(report.classes, cases.truth[row]) for row in rows]
    points = _spread(len(cases.ids), _SYMBOLS)
    lead = leading(cases)
    symbol = np.where(cases.truth >= 0, cases.truth, 0) if report.classes else np.zeros(len(lead))
    found = reliability(cases, report.classes)
    return {
        "trust_map": svg.trust_map(cases.trust[rows], cases.present[rows], names, groups),
        "where_map": svg.scatter(cases.place[points], symbol[points], lead[points], names),
        "shown": len(rows),
        "reliability": found,
        "curve": _curve(found),
    }


def _curve(found: Reliability) -> str:
    if not found.calibration:
        return ""
    label = "How often predictions of a probability are right"
    return svg.curve(found.calibration, label, "stated probability", "share that is right")


def _dots(rows: list[Candidate]) -> Iterator[tuple[str, str]]:
    """Draw the score of each candidate on one common line."""
    known = [row.score for row in rows if row.score is not None]
    low, high = limits(known)
    for row in rows:
        if row.score is not None:
            css = "chosen" if row.chosen else ""
            yield row.name, svg.interval(row.score, low, high, _span(row.score), css)


def limits(scores: list[Interval]) -> tuple[float, float]:
    """Return the ends of a line that all scores and their intervals fit on."""
    ends = [end for s in scores for end in (s.mean, s.low, s.high) if end is not None]
    return (min(ends), max(ends)) if ends else (0.0, 1.0)


def leading(cases: Cases) -> Array:
    """Number of the view whose part in the decision is largest, for each sample."""
    return np.asarray(np.where(cases.present, cases.parts, -np.inf).argmax(axis=1))


def by_class(cases: Cases) -> Array:
    """Order of samples in which classes stand together, least trusted samples first."""
    least = np.where(cases.present, cases.trust, np.inf).min(axis=1)
    return np.lexsort([least, cases.truth])


def class_name(classes: list[str], code: float) -> str:
    """Return the name of a class, or nothing for regressions and samples without a label."""
    return classes[int(code)] if classes and code >= 0 else ""


def _spread(n: int, most: int) -> Array:
    """Positions of at most so many of n things, evenly spread."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.intp)


def _data(report: Report) -> dict[str, Any]:
    """Return what the script of the page needs, most of it as whole hundredths."""
    cases = report.cases
    found: dict[str, Any] = {
        "classes": report.classes,
        "views": [view.name for view in report.views],
        "score": report.score_name,
        "ids": [],
    }
    if cases is None:
        return found
    rows = by_class(cases)
    chances = cases.probabilities
    return {
        **found,
        "ids": cases.ids,
        "truth": _numbers(cases.truth, digits=4),
        "predicted": _numbers(cases.predicted, digits=4),
        "says": _numbers(cases.says, digits=4),
        "probabilities": None if chances is None else _numbers(100 * chances),
        "trust": _numbers(100 * cases.trust),
        "parts": _numbers(100 * cases.parts),
        "start": _numbers(100 * cases.start),
        "sure": _numbers(100 * cases.sure),
        "disagreement": _numbers(100 * cases.disagreement),
        "absent": np.argwhere(~cases.present).tolist(),
        "near": cases.near,
        "rows": rows[_spread(len(rows), _ROWS)].tolist(),
        "points": _spread(len(cases.ids), _SYMBOLS).tolist(),
        "lead": leading(cases).tolist(),
    }


def _numbers(values: Array, digits: int = 0) -> Any:
    """Return nested lists of rounded numbers, None for NaN, integers without a point."""

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(part) for part in value]
        if not np.isfinite(value):
            return None
        return int(value) if value == int(value) else value

    return plain(np.round(np.asarray(values, dtype=float), digits).tolist())


def _percent(value: float | None) -> str:
    return "" if value is None or not np.isfinite(value) else f"{100 * value:.1f}"


def _seconds(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _span(value: Interval | None) -> str:
    if value is None or not np.isfinite(value.mean):
        return ""
    if value.low is None or value.high is None:
        return _percent(value.mean)
    return f"{_percent(value.mean)} ({_percent(value.low)} to {_percent(value.high)})"


def write(report: Report, path: str | Path) -> Path:
    """Write the page; an existing file stays as it was unless all of the new one is there."""
    path = Path(path)
    replace_file(path, render(report).encode("utf-8"))
    return path
