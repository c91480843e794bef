"""What the script of the page reads: every number once, packed."""

import json
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.inspection.answers import DISAGREE
from lokl.report.content import Cases, Report
from lokl.report.maps import COLOURS, LEVELS, MOST_ROWS, Places
from lokl.report.packing import counts, numbers, shares
from lokl.report.svg import SYMBOLS
from lokl.report.words import FAMILIAR, Words

# Neighbours of a sample that are told.
_NEAR = 3


def page_data(report: Report, words: Words, pictures: dict[str, Any]) -> dict[str, Any]:
    """Return everything that the script needs."""
    found: dict[str, Any] = {
        "classes": report.classes,
        "views": [view.name for view in report.views],
        "score": report.score_name,
        "ids": [],
    }
    if report.cases is None or not len(report.cases.ids):
        return found
    return {
        **found,
        "ids": report.cases.ids,
        "valuePlaces": words.value_places,
        "partPlaces": words.part_places,
        "levels": LEVELS,
        "colours": COLOURS,
        "symbols": len(SYMBOLS),
        "mostRows": MOST_ROWS,
        "disagree": DISAGREE,
        "familiar": FAMILIAR,
        "columns": _columns(report.cases, pictures),
        "support": None
        if report.cases.support is None
        else {
            "ids": report.cases.support.ids,
            "truth": _outcomes(report.cases, report.cases.support.truth),
        },
    }


def _columns(cases: Cases, pictures: dict[str, Any]) -> dict[str, Any]:
    places: Places = pictures["places"]
    support = cases.support
    near = cases.near if support is None else support.near
    return {
        "truth": _outcomes(cases, cases.truth),
        "predicted": _outcomes(cases, cases.predicted),
        "says": _outcomes(cases, cases.says),
        "chances": _known(cases.probabilities, shares),
        "trust": _known(cases.trust, shares),
        "sure": _known(cases.sure, shares),
        "disagreement": _known(cases.disagreement, shares),
        "familiar": _known(cases.familiar, shares),
        "parts": numbers(cases.parts),
        "start": numbers(cases.start),
        "absent": counts(np.flatnonzero(~cases.present)),
        "x": numbers(places.x),
        "y": numbers(places.y),
        "order": counts(pictures["order"]),
        "rows": counts(pictures["trust"].rows),
        "drawn": counts(pictures["drawn"]),
        "near": counts(_padded(near, -1)),
        "alike": None if support is None else shares(_padded(support.alike, np.nan)),
    }


def _outcomes(cases: Cases, values: Array) -> dict[str, Any]:
    return counts(values) if cases.classifies else numbers(values)


def _known(values: Any, pack: Any) -> dict[str, Any] | None:
    """Return numbers, None where there is not one."""
    if values is None or not np.isfinite(np.asarray(values, dtype=float)).any():
        return None
    return dict(pack(values))


def _padded(rows: list[list[Any]], blank: float) -> Array:
    return np.array([[*row[:_NEAR], *[blank] * (_NEAR - len(row))] for row in rows], dtype=float)


def as_json(data: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
