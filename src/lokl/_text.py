"""Tables as text: aligned columns for terminals, CSV, and HTML for notebooks."""

import csv
import difflib
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_LONGEST_LINE = 1000


def shortened(text: str, width: int) -> str:
    """Return at most `width` characters of a text, with an ellipsis for the rest."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def one_safe_line(text: str) -> str:
    """Return the text of an error that may quote a file: control characters escaped, not too long.

    Otherwise a cell could clear the terminal, or fill it.
    """
    safe = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    if len(safe) <= _LONGEST_LINE:
        return safe
    half = _LONGEST_LINE // 2
    return f"{safe[:half]}…{safe[-half:]}"


def shorten_list(names: Sequence[Any], most: int = 5) -> str:
    """Return the first names, and the number of the others."""
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def suggestion(name: str, known: Iterable[Any]) -> str:
    """Return "; did you mean ...?" with the known names that resemble a name, or nothing.

    Upper case, spaces and punctuation do not count.
    """
    plain = {plain_name(str(one)): str(one) for one in known}
    wanted = plain_name(name)
    close = difflib.get_close_matches(wanted, plain, n=2, cutoff=0.7)
    if not close:
        # The beginning of a longer name.
        close = [one for one in plain if len(wanted) > 2 and one.startswith(wanted)][:2]
    return f"; did you mean {' or '.join(plain[one] for one in close)}?" if close else ""


def plain_name(name: str) -> str:
    """Return a name in lower case, without spaces and punctuation."""
    return "".join(character for character in name.lower() if character.isalnum())


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


def html_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table for notebooks, with a sentence above it.

    Parameters
    ----------
    title : str
    heads : sequence of str
        Names of the columns.
    rows : iterable of sequence of str
        Cells of each row.
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<p>{escape(title)}</p>{table}"
