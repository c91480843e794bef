"""Options that the commands about tables share, and what they do about bad input."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lokl.cli.terminal import stop

Data = Annotated[
    list[str],
    typer.Argument(
        help="CSV, TSV, Parquet, LIBSVM text (also .gz, .bz2), .npz, or a data set's name. Several "
        "files are several views.",
        show_default=False,
    ),
]
ModelFile = Annotated[Path, typer.Argument(help="File that `lokl fit` wrote.", show_default=False)]
On = Annotated[
    str | None,
    typer.Option(help="Column of ids, in every file; who lacks a file lacks that view."),
]
Na = Annotated[
    list[str] | None,
    typer.Option(help="Word for a missing value, beside the empty cell, NA and NaN."),
]
Delimiter = Annotated[
    str, typer.Option(help="Between cells, where the ending of a file does not tell.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@contextmanager
def explained() -> Iterator[None]:
    """Turn what can go wrong into one line on standard error and an exit code."""
    from lokl.files import ModelFileError
    from lokl.tables import TableError

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            finally:
                for text in dict.fromkeys(" ".join(str(w.message).split()) for w in caught):
                    typer.echo(f"warning: {text}", err=True)
    except (TableError, ModelFileError, OSError, ImportError) as reason:
        if isinstance(reason, OSError) and reason.filename is None:
            # Lost output, which all commands explain alike.
            raise
        stop(f"lokl: {_line(reason)}", 2)
    except ValueError as reason:
        stop(f"lokl: the model cannot be fitted or asked: {_line(reason)}", 1)
    except KeyboardInterrupt:
        stop("lokl: interrupted", 130)


def _line(reason: BaseException) -> str:
    if isinstance(reason, OSError) and reason.filename is not None:
        return f"{reason.filename}: {reason.strerror}"
    return " ".join(str(reason).split())


def pairs(values: list[str] | None, option: str) -> dict[str, str]:
    """Return ``name=value`` words as a mapping."""
    found = {}
    for value in values or ():
        name, sign, rest = value.partition("=")
        if not (name and sign and rest):
            stop(f"lokl: {option} {value}: write {option} NAME=VALUE", 2)
        found[name] = rest
    return found


def tell(notes: tuple[str, ...]) -> None:
    """Show on standard error what was read and guessed."""
    for note in notes:
        typer.echo(f" {note}", err=True)
