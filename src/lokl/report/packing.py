"""Columns of numbers as short strings: a page of ten thousand samples stays small.

A number is written with a fixed count of digits to the base 36, so that the script of the page
finds any of them without reading the others. The largest value of a width means "not known".
"""

from typing import Any

import numpy as np

from lokl._arrays import Array

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
