"""Options that several commands share, settings from options, and errors in one line."""

import warnings
from collections.abc import Iterable, Iterator
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
    typer.Option(help="Column of ids, in every file; ids missing from a file lack that view."),
]
Na = Annotated[
    list[str] | None,
    typer.Option(help="Another word for a missing value, besides the empty cell, NA and NaN."),
]
Delimiter = Annotated[
    str, typer.Option(help="Character between cells, if the file name does not determine it.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Target = Annotated[
    str | None,
    typer.Option(help="Column to predict, or FILE:COLUMN. LIBSVM text and .npz contain it."),
]
Groups = Annotated[
    str | None,
    typer.Option(help="Column, or FILE:COLUMN, of groups that are kept together in one fold."),
]
View = Annotated[
    list[str] | None,
    typer.Option(help="View of one file, NAME=PATTERN[,PATTERN]; repeat the option for each view."),
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", "--types", help="COLUMN=numeric or COLUMN=categorical, if inferred wrongly."
    ),
]
Task = Annotated[
    str | None, typer.Option(help="classification or regression; inferred if not given.")
]
Positive = Annotated[str | None, typer.Option(help="Positive class; all others become one class.")]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Seed of all random choices; 0 if not given.")
]
Jobs = Annotated[int, typer.Option(help="Number of processes or threads, -1 for all cores.")]
TimeLimit = Annotated[
    float | None, typer.Option(help="Seconds after which nothing new is started.", min=0.001)
]


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors and warnings into single lines on standard error, and errors into exit codes."""
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
            # Lost output, which is reported in one place for all commands.
            raise
        stop(f"lokl: {_line(reason)}", 2)
    except ValueError as reason:
        stop(f"lokl: the model cannot be fitted or used: {_line(reason)}", 1)
    except KeyboardInterrupt:
        stop("lokl: interrupted", 130)


def _line(reason: BaseException) -> str:
    if isinstance(reason, OSError) and reason.filename is not None:
        return f"{reason.filename}: {reason.strerror}"
    return " ".join(str(reason).split())


def read_settings(
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
    """Return settings from tables and options, or from a settings file and options.

    Returns
    -------
    settings : Settings
    folder : Path or None
        Folder of a comparison, if its settings file was given.
    chosen : str or None
        Candidate that was chosen there.
    """
    from lokl.study.settings import CONFIG, Settings, is_config, load_settings

    given = {
        "target": target,
        "on": on,
        "views": _parse_pairs(view, "--view"),
        "groups": groups,
        "kinds": _parse_pairs(kind, "--kind"),
        "task": task,
        "positive": positive,
        "na": tuple(na or ()),
        "delimiter": delimiter,
    }
    if len(data) == 1 and is_config(data[0]):
        settings, chosen = load_settings(data[0])
        path = Path(data[0])
        return settings.updated(**given), path.parent if path.name == CONFIG else None, chosen
    return Settings(tuple(data)).updated(**given), None, None


def _parse_pairs(values: list[str] | None, option: str) -> dict[str, str]:
    """Return values of the form ``NAME=VALUE`` as a mapping."""
    pairs = {}
    for text in values or ():
        name, _, value = text.partition("=")
        if not (name and value):
            stop(f"lokl: {option} {text}: write {option} NAME=VALUE", 2)
        pairs[name] = value
    return pairs


def print_notes(notes: Iterable[str]) -> None:
    """Print on standard error what was read and inferred."""
    for note in notes:
        typer.echo(f" {note}", err=True)
