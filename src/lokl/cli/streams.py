"""Standard output of any encoding, on a disk that may be full, to a reader that may have left."""

import codecs
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

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
