"""Rendering of a report as one HTML file that loads nothing from the network."""

import base64
import hashlib
import json
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._exports import need
from lokl._files import replace_file
from lokl.explain.explanation import DISAGREE, FAMILIAR, Explanation, class_codes
from lokl.report import figures, formatting, sections
from lokl.report.content import Report, SampleMap
from lokl.report.formatting import Formatter
from lokl.report.reliability import reliability

_STYLES = ("page.css", "tables.css", "pictures.css")
_SCRIPTS = ("data.js", "tables.js", "choice.js", "maps.js", "card.js", "save.js")
_DIGITS = np.array(list("0123456789abcdefghijklmnopqrstuvwxyz"))
# Steps of packed shares, and of packed values over their range.
_SHARE_STEPS, _VALUE_STEPS = 1000, 40_000
# Functions and constants of the templates.
_TEMPLATE_NAMES = {
    "any_text": formatting.format_any,
    "colour_of": figures.colour_of,
    "count": formatting.count,
    "isfinite": isfinite,
    "map_width": figures.MAP_WIDTH,
    "percent": formatting.format_percent,
    "probability": formatting.format_probability,
    "seconds": formatting.format_seconds,
    "short": formatting.short,
    "strip_width": figures.STRIP_WIDTH,
    "symbol": figures.symbol,
    "symbols": figures.SYMBOLS,
}
# Neighbours of a sample that are listed.
_NEIGHBOURS = 3


def render(report: Report) -> str:
    """Return the page as text.

    Parameters
    ----------
    report : Report
        An explanation without samples is left out.

    Returns
    -------
    html : str
        A complete document with its style, script and data. It loads nothing from the network.
    """
    formatter, explanation = Formatter.of(report), report.explanation
    if explanation is not None and not len(explanation):
        explanation = None
    found = None if explanation is None else reliability(explanation)
    samples: dict[str, Any] = {}
    if explanation is not None:
        samples = sections.samples_section(report, explanation, formatter)
    script = '"use strict";(()=>{' + "".join(map(_template_file, _SCRIPTS)) + "})();"
    # The page allows its own script, by this checksum, and no other.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            formatter=formatter,
            explanation=explanation,
            samples=samples,
            verdict=sections.verdict(report, formatter, found),
            tiles=list(sections.headline_values(report, formatter, found)),
            leaderboard=sections.leaderboard_section(report, formatter),
            views=sections.views_section(report, formatter),
            reliability=sections.reliability_section(report, found),
            style="".join(map(_template_file, _STYLES)) + figures.class_styles(len(report.classes)),
            script=script,
            digest=digest,
            data=_safe_json(_page_data(report, explanation, formatter, samples)),
        )
    )


def write(report: Report, path: str | Path) -> Path:
    """Write the page; an existing file is replaced only by a complete one.

    Parameters
    ----------
    report : Report
    path : str or Path

    Returns
    -------
    path : Path
    """
    path = Path(path)
    replace_file(path, render(report).encode("utf-8"))
    return path


def _environment() -> Any:
    jinja2 = need("jinja2", "a report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= _TEMPLATE_NAMES
    return environment


def _template_file(name: str) -> str:
    return files("lokl.report").joinpath("templates", name).read_text(encoding="utf-8")


def _page_data(
    report: Report,
    explanation: Explanation | None,
    formatter: Formatter,
    samples: dict[str, Any],
) -> dict[str, Any]:
    """Return the data of the script; each column of numbers is packed into a string."""
    data: dict[str, Any] = {
        "classes": report.classes,
        "views": [view.name for view in report.views],
        "score": report.score_name,
        "ids": [],
    }
    if explanation is None or report.sample_map is None:
        return data
    support, classes = report.sample_map.support, explanation.classes
    return {
        **data,
        "ids": explanation.ids,
        "weightName": samples["trust_name"],
        "valuePlaces": formatter.value_places,
        "contributionPlaces": formatter.contribution_places,
        "levels": figures.LEVELS,
        "colours": figures.COLOURS,
        "symbols": len(figures.SYMBOLS),
        "mostRows": figures.MOST_ROWS,
        "disagree": DISAGREE,
        "familiar": FAMILIAR,
        "columns": _packed_columns(explanation, report.sample_map, samples),
        "support": support
        and {"ids": support.ids, "truth": _pack_outcomes(support.truth, classes)},
    }


def _packed_columns(
    explanation: Explanation, similar: SampleMap, samples: dict[str, Any]
) -> dict[str, Any]:
    """Return packed columns of values by sample, by sample and view, or by sample and class."""
    classes, support = explanation.classes, similar.support
    truth = np.full(len(explanation), None) if explanation.truth is None else explanation.truth
    outcomes = {"truth": truth, "prediction": explanation.predictions, "alone": explanation.alone}
    if explanation.runner_up is not None:
        outcomes["runnerUp"] = explanation.runner_up
    shares = {
        "probabilities": explanation.probabilities,
        "trust": explanation.trust_or_weights,
        "aloneProbability": explanation.alone_probabilities,
        "disagreement": explanation.disagreement,
        "familiarity": explanation.familiarity,
        "similarity": None if support is None else _padded(support.similarities, np.nan),
    }
    values = {
        "contributions": explanation.contributions,
        "baseValue": explanation.base_values,
        "x": samples["at"][:, 0],
        "y": samples["at"][:, 1],
    }
    counts = {
        "absent": np.flatnonzero(~explanation.presence),
        "order": samples["order"],
        "rows": samples["trust"]["rows"] if samples["trust"] else np.empty(0),
        "drawn": samples["drawn"],
        "similar": _padded(similar.neighbours, -1),
    }
    return {
        **{name: _pack_outcomes(labels, classes) for name, labels in outcomes.items()},
        **{
            name: None if own is None or not np.isfinite(own).any() else pack_shares(own)
            for name, own in shares.items()
        },
        **{name: pack_values(own) for name, own in values.items()},
        **{name: pack_counts(own) for name, own in counts.items()},
    }


def _pack_outcomes(labels: Any, classes: Array | None) -> dict[str, Any]:
    """Pack class labels as positions in `classes`, or targets as values."""
    codes = class_codes(labels, classes)
    return pack_values(codes) if classes is None else pack_counts(codes)


def _padded(rows: list[list[Any]], blank: float) -> Array:
    n = _NEIGHBOURS
    return np.array([[*row[:n], *[blank] * (n - len(row))] for row in rows], dtype=float)


def pack(codes: Any, width: int) -> str:
    """Return whole numbers as text of fixed width to the base 36, so that any of them can be found.

    NaN and negative numbers become the largest value, which means unknown.
    """
    largest = 36**width - 1
    codes = np.asarray(codes, dtype=float).ravel()
    known = np.isfinite(codes) & (codes >= 0)
    whole = np.where(known, codes, largest).astype(np.int64)
    if known.any() and whole[known].max() >= largest:
        raise ValueError(f"{whole[known].max()} needs more than {width} digits to the base 36")
    digits = [whole // 36**power % 36 for power in range(width - 1, -1, -1)]
    return "".join(_DIGITS[np.column_stack(digits)].ravel().tolist())


def pack_counts(codes: Any) -> dict[str, Any]:
    """Pack whole numbers, -1 for unknown, with as few digits as they need.

    Parameters
    ----------
    codes : array of int

    Returns
    -------
    column : dict
        "text", see :func:`pack`, "width" of a number in it, and "per", the units of 1.
    """
    codes = np.asarray(codes)
    top = float(codes.max()) if codes.size else 0.0
    width = 1
    while 36**width - 1 <= top:
        width += 1
    return {"width": width, "per": 1, "text": pack(codes, width)}


def pack_shares(values: Any) -> dict[str, Any]:
    """Pack numbers between 0 and 1, in thousandths."""
    steps = np.round(_SHARE_STEPS * np.clip(np.asarray(values, dtype=float), 0.0, 1.0))
    return {"width": 2, "per": _SHARE_STEPS, "text": pack(steps, 2)}


def pack_values(values: Any) -> dict[str, Any]:
    """Pack any numbers, in steps of a forty-thousandth of their range.

    Returns
    -------
    column : dict
        "text", see :func:`pack`, "width" of a number in it, "step", the value of one unit, and
        "from", the lowest value.
    """
    values = np.asarray(values, dtype=float)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    step = (high - low) / _VALUE_STEPS or 1.0
    text = pack(np.round((values - low) / step), 3)
    return {"width": 3, "step": step, "from": low, "text": text}


def _safe_json(data: Any) -> str:
    """Return JSON that cannot end the script element that contains it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
