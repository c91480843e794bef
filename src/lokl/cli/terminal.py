"""Standard output of any encoding, on a disk that may be full, to a reader that may have left.

How results and errors look in a terminal.
"""

import codecs
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Single characters, so that columns stay where they are. Lines of tables are rich's concern.
_PLAIN = {"†": "+", "‡": "#", "…": "~", "●": "o", "─": "-", "←": "<", "·": ".", "▏": "|"}
_PLAINLY = "lokl.plainly"


def print_what_can_be_printed() -> None:
    """Replace what the encoding of a stream lacks by something readable, instead of failing."""
    codecs.register_error(_PLAINLY, _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_PLAINLY)


def _plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeEncodeError) and error.object[error.start] in _PLAIN:
        return _PLAIN[error.object[error.start]], error.start + 1
    return codecs.backslashreplace_errors(error)


@contextmanager
def explain_lost_output() -> Iterator[None]:
    """Say in one line why output was lost. A reader that left, such as ``head``, knows why."""
    try:
        yield
    except OSError as reason:
        _discard_the_rest()
        # Standard error may be lost in the same way.
        with suppress(OSError):
            if not isinstance(reason, BrokenPipeError):
                sys.stderr.write(f"{_why(reason)}\n")
        sys.exit(1)


def _why(reason: OSError) -> str:
    # Errors of files bring their name, those that lokl raises a whole sentence.
    if reason.filename is not None or reason.errno is None:
        return str(reason)
    return f"cannot write the output: {reason.strerror}"


def _discard_the_rest() -> None:
    """Send what is still in buffers nowhere: the interpreter would fail on it when it ends."""
    if sys.stdout is None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


# Columns that are always shown, and others in the order in which they are added if there is room.
_NEEDED = ("set", "method", "reading", "ours", "published", "difference", "gamma")
_WELCOME = ("splits", "each expert", "fit s", "kernels", "published s", "fit MB")
# Characters of a line in a file or a pipe, which have no width of their own.
_UNLIMITED = 160
# Characters of the two edges of a table.
_EDGES = 2


def stop(reason: object, code: int) -> NoReturn:
    """Say why on standard error, and exit."""
    typer.echo(str(reason), err=True)
    raise typer.Exit(code) from None


def show_table(table: Any) -> None:
    """Print a table of the paper with as many columns as the terminal has room for."""
    from lokl.paper.tables import COLUMNS, LEGEND

    console = Console()
    if not console.is_terminal:
        console = Console(width=_UNLIMITED)
    texts = [{name: _text(shown) for name, shown in row.items()} for row in table.rows()]
    width = {name: max(len(name), *(len(row[name]) for row in texts)) + 2 for name in COLUMNS}
    names, room = set(_NEEDED), console.width - _EDGES
    for name in _WELCOME:
        if sum(width[own] for own in names) + width[name] <= room:
            names.add(name)
    shown = Table(title=table.title, caption=LEGEND, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in COLUMNS:
        if name in names:
            left = name in ("set", "method", "reading", "kernels")
            shown.add_column(name, justify="left" if left else "right", no_wrap=True)
    before = None
    for row in texts:
        same = row["set"] == before
        if before is not None and not same:
            shown.add_section()
        before = row["set"]
        cells = {**row, "set": Text()} if same else row
        shown.add_row(*(cells[name] for name in COLUMNS if name in names))
    console.print(shown)
    for own in table.agreement():
        console.print(str(own), highlight=False)


def _text(shown: Any) -> Text:
    text = Text(shown.text, style="bold" if shown.bold else "")
    return text.append(f" {shown.mark}", style="not bold") if shown.mark else text
