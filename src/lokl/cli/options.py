"""Options that the commands about tables share, and what they do about bad input."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

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
Target = Annotated[
    str | None,
    typer.Option(help="Column to predict, or FILE:COLUMN. LIBSVM text and .npz bring their own."),
]
Groups = Annotated[
    str | None,
    typer.Option(help="Column, or FILE:COLUMN, of groups that stay together when data is divided."),
]
View = Annotated[
    list[str] | None,
    typer.Option(help="View of one file, NAME=PATTERN[,PATTERN]; give it again for each view."),
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", "--types", help="COLUMN=numeric or COLUMN=categorical, where the guess is wrong."
    ),
]
Task = Annotated[
    str | None, typer.Option(help="classes or numbers: what the target holds; guessed if not told.")
]
Positive = Annotated[
    str | None, typer.Option(help="Class that is told from all others, which become one.")
]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Decides every random choice; 0 if not given.")
]
Jobs = Annotated[int, typer.Option(help="Number of processes or threads, -1 for all cores.")]
TimeLimit = Annotated[
    float | None, typer.Option(help="Seconds after which nothing else is begun.", min=0.001)
]


@contextmanager
def explained() -> Iterator[None]:
    """Turn what can go wrong into one line on standard error and an exit code."""
    from lokl.persistence import ModelFileError
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


def asked(
    data: list[str],
    target: str | None,
    on: str | None,
    view: list[str] | None,
    groups: str | None,
    kind: list[str] | None,
    task: str | None,
    positive: str | None,
    na: list[str] | None,
    delimiter: str,
) -> tuple[Any, Path | None, str | None]:
    """Return the settings that tables and options, or a file of settings, ask for.

    Also returned are the folder of that file, where it is one of results, and the candidate that
    was chosen there.
    """
    from lokl.study.settings import CONFIG, Settings, is_config, load_settings

    given = {
        "target": target,
        "on": on,
        "views": pairs(view, "--view"),
        "groups": groups,
        "kinds": pairs(kind, "--kind"),
        "task": task,
        "positive": positive,
        "na": tuple(na or ()),
        "delimiter": delimiter,
    }
    if len(data) == 1 and is_config(data[0]):
        settings, chosen = load_settings(data[0])
        path = Path(data[0])
        return settings.changed(**given), path.parent if path.name == CONFIG else None, chosen
    return Settings(tuple(data)).changed(**given), None, None


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
