"""Columns of numbers as short strings: a page of ten thousand samples stays small.

A number is written with a fixed count of digits to the base 36, so that the script of the page
finds any of them without reading the others. The largest value of a width means "not known".

What the script of the page reads: every number once, packed.
"""

import json
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.explain.answers import DISAGREE
from lokl.report.content import Cases, Report
from lokl.report.figures import COLOURS, LEVELS, MOST_ROWS, SYMBOLS, Places
from lokl.report.formatting import FAMILIAR, Words

_DIGITS = np.array(list("0123456789abcdefghijklmnopqrstuvwxyz"))
# Steps of shares and of places in a picture, which have two digits.
STEPS = 1000


def packed(codes: Array, width: int) -> str:
    """Return whole numbers from 0 on as text, NaN and negative ones as the largest value."""
    largest = 36**width - 1
    codes = np.asarray(codes, dtype=float).ravel()
    known = np.isfinite(codes) & (codes >= 0)
    numbers = np.where(known, codes, largest).astype(np.int64)
    if known.any() and numbers[known].max() >= largest:
        raise ValueError(f"{numbers[known].max()} needs more than {width} digits to the base 36")
    digits = [numbers // 36**power % 36 for power in range(width - 1, -1, -1)]
    return "".join(_DIGITS[np.column_stack(digits)].ravel().tolist())


def counts(codes: Array) -> dict[str, Any]:
    """Return whole numbers, -1 where not known, with as few digits as they need."""
    codes = np.asarray(codes)
    top = float(codes.max()) if codes.size else 0.0
    width = 1
    while 36**width - 1 <= top:
        width += 1
    return {"width": width, "per": 1, "text": packed(codes, width)}


def shares(values: Array) -> dict[str, Any]:
    """Return numbers between 0 and 1, in thousandths."""
    steps = np.round(STEPS * np.clip(np.asarray(values, dtype=float), 0.0, 1.0))
    return {"width": 2, "per": STEPS, "text": packed(steps, 2)}


def numbers(values: Array) -> dict[str, Any]:
    """Return any numbers, in steps of a forty-thousandth of their range."""
    values = np.asarray(values, dtype=float)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    step = (high - low) / 40_000 or 1.0
    return {
        "width": 3,
        "step": step,
        "from": low,
        "text": packed(np.round((values - low) / step), 3),
    }


def unpacked(column: dict[str, Any]) -> Array:
    """Return the numbers of a column; what the script of the page does, too."""
    width, text = column["width"], column["text"]
    codes = np.array([int(text[k : k + width], 36) for k in range(0, len(text), width)], float)
    codes[codes == 36**width - 1] = np.nan
    if "per" in column:
        return np.asarray(codes / column["per"])
    return np.asarray(column["from"] + column["step"] * codes)


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
