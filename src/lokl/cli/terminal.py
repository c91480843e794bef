"""Output to terminals, files and pipes: any encoding, full disks, readers that have left."""

import codecs
import io
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from textwrap import wrap
from typing import NoReturn

import typer
from rich.console import Console
from rich.text import Text

# Columns of a terminal, and of a wide one that are used.
WIDTH, _WIDEST = 80, 120
# Single characters, so that columns stay aligned. rich replaces lines of tables itself.
_REPLACEMENTS = {"†": "+", "‡": "#", "…": "~", "●": "o", "─": "-", "·": ".", "█": "#", "−": "-"}
_REPLACEMENTS |= {"━": "=", "◀": "<", "▶": ">"}
_HANDLER = "lokl.replace"
# Characters of the word before a note.
_WORD = 8


def end_like_interrupt() -> None:
    """Let SIGTERM and SIGHUP end the command as Ctrl-C does: workers end and records are kept."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # nohup ignores SIGHUP, which stays so.
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def replace_unprintable() -> None:
    """Replace characters that the encoding of a stream lacks, instead of failing."""
    codecs.register_error(_HANDLER, _replacement)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def _replacement(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return the replacement of a character and the position after it, as codecs expect.

    Parameters
    ----------
    error : UnicodeError
        Characters without a replacement become escape sequences.
    """
    if isinstance(error, UnicodeEncodeError) and error.object[error.start] in _REPLACEMENTS:
        return _REPLACEMENTS[error.object[error.start]], error.start + 1
    return codecs.backslashreplace_errors(error)


@contextmanager
def report_lost_output() -> Iterator[None]:
    """Print in one line why output was lost; nothing if the reader left, such as ``head``."""
    try:
        yield
    except OSError as reason:
        _discard_buffers()
        # Standard error may be lost in the same way.
        with suppress(OSError):
            if not isinstance(reason, BrokenPipeError):
                # Errors of files have their name; errors of lokl have a whole sentence.
                whole = reason.filename is not None or reason.errno is None
                text = reason if whole else f"cannot write the output: {reason.strerror}"
                sys.stderr.write(f"{text}\n")
        sys.exit(1)


def _discard_buffers() -> None:
    """Discard what is still in buffers: the interpreter would fail on it when it exits."""
    if sys.stdout is None:
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def stop(reason: object, code: int) -> NoReturn:
    """Print a reason on standard error, and exit.

    Parameters
    ----------
    reason : object
        Text, or an error.
    code : int
        1 if the command failed, 2 for bad input, 130 after an interruption.
    """
    typer.echo(f"lokl: {reason}", err=True)
    raise typer.Exit(code) from None


def print_notes(notes: Iterable[tuple[str, str]]) -> None:
    """Print on standard error what was read and inferred.

    Parameters
    ----------
    notes : iterable of (str, str)
        A word, and the text after it.
    """
    for word, note in notes:
        lines = wrapped(note, f" {word:<{_WORD}}", " " * (_WORD + 1))
        typer.echo("\n".join(lines), err=True)


def terminal_width() -> int:
    """Return the columns of the terminal that are used: 80 in a file or a pipe, at most 120."""
    return min(Console().width, _WIDEST)


def print_wrapped(text: str, style: str = "") -> None:
    """Print a text in lines that fit; nothing without a text."""
    if text:
        console = Console(highlight=False, soft_wrap=True)
        for line in wrapped(text):
            console.print(Text(line, style))


def wrapped(text: str, first: str = " ", others: str = "   ") -> list[str]:
    """Return a text in lines that fit, without breaks in paths.

    Parameters
    ----------
    text : str
    first, others : str
        Indentation of the first line, and of the other lines.
    """
    return wrap(
        text,
        terminal_width(),
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
        break_long_words=False,
    )
