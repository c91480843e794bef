"""Tables as text: aligned columns for terminals, and CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any


def shortened(text: str, width: int) -> str:
    """Return at most `width` characters of a text, with an ellipsis for the rest."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def shorten_list(names: Sequence[Any], most: int = 5) -> str:
    """Return the first names, and the number of the others."""
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one line for each row; cells of a column begin at the same position."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (zip(row, widths, strict=True) for row in rows)
    return ["  ".join(cell.ljust(width) for cell, width in line).rstrip() for line in lines]


def csv_text(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as CSV: floats have six significant digits, None and NaN are empty cells."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        cells = (None if value != value else value for value in row)
        writer.writerow(f"{cell:.6g}" if isinstance(cell, float) else cell for cell in cells)
    return stream.getvalue()
