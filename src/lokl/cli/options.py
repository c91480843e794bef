"""Declarations of options, settings from options, and errors in one line."""

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

from lokl.cli.terminal import stop

Command = TypeVar("Command", bound=Callable[..., None])


def option(kind: Any, text: str, *names: str, default: Any = None, **more: Any) -> Parameter:
    """Return the declaration of an option of a command.

    Parameters
    ----------
    kind : type
        Type of the value. Without a default, the default is None.
    text : str
        Sentence of the help.
    *names : str
        Names with dashes; made from the name of the parameter by default.
    default : object, optional
    **more
        Other settings of `typer.Option`, such as ``min`` and ``callback``.
    """
    declared = typer.Option(default, *names, help=text, **more)
    kind = kind | None if default is None else kind
    return Parameter("option", Parameter.KEYWORD_ONLY, default=declared, annotation=kind)


def flag(name: str, text: str, **more: Any) -> Parameter:
    """Return the declaration of an option without a value.

    Parameters
    ----------
    name : str
        Name with dashes.
    text : str
        Sentence of the help.
    **more
        Other settings of `typer.Option`.
    """
    return option(bool, text, name, default=False, **more)


def output_path(text: str, default: str | None = None) -> Parameter:
    """Return the declaration of the file or folder that a command writes.

    Parameters
    ----------
    text : str
        Sentence of the help.
    default : str, optional
        Path without the option.
    """
    path = None if default is None else Path(default)
    return option(Path, text, "--output", "-o", default=path)


def argument(kind: Any, text: str, *, required: bool = True) -> Parameter:
    """Return the declaration of an argument of a command.

    Parameters
    ----------
    kind : type
        Type of the value; a list takes all words that are left.
    text : str
        Sentence of the help.
    required : bool, default=True
        Without it the value may be None.
    """
    kind, default = (kind, ...) if required else (kind | None, None)
    declared = typer.Argument(default, help=text, show_default=False)
    return Parameter("argument", Parameter.KEYWORD_ONLY, default=declared, annotation=kind)


# Words for values in the help.
_METAVARS = {
    "data": "FILE...",
    "model": "MODEL",
    "names": "NAME...",
    "table": "TABLE",
    "sample": "ID",
    "views": "NAME=PATTERN",
    "kinds": "COLUMN=KIND",
    "positive": "CLASS",
    "na": "WORD",
    "delimiter": "CHARACTER",
    "methods": "NAME,...",
    "method": "NAME",
    "cost": "NUMBER",
    "coverage": "SHARE",
    "time_limit": "SECONDS",
    "output": "PATH",
    "gammas": "NUMBER",
    "solver": "NAME",
    **dict.fromkeys(("target", "time", "event", "on", "groups"), "COLUMN"),
    **dict.fromkeys(("cohort", "leave_one_group_out"), "COLUMN"),
    **dict.fromkeys(("test", "gene_sets"), "FILE"),
    "gene_sets_rest": "NAME",
    "covariates": "COLUMN,...",
    **dict.fromkeys(
        ("task", "score", "goal", "covariates_as", "reading", "selection", "ties"), "NAME"
    ),
    **dict.fromkeys(("folds", "repeats", "permutations", "seed", "jobs", "gene_sets_size"), "N"),
    **dict.fromkeys(("sets", "dictionaries", "backend"), "NAME"),
}
# Groups of options in the help, in their order.
_GROUPS = {
    "Tables": (
        *("target", "time", "event", "on", "views", "groups", "cohort", "test", "covariates"),
        *("covariates_as", "kinds", "task", "positive", "na", "delimiter"),
        *("gene_sets", "gene_sets_size", "gene_sets_rest"),
    ),
    "Models and scores": ("methods", "method", "cost", "score", "goal"),
    "Cross-validation": ("folds", "repeats", "leave_one_group_out", "permutations"),
    "Output": ("output", "overwrite", "as_json", "sample", "coverage"),
}
_OTHER = "Other options"
# Characters that the first sentence of every command is below.
_SENTENCE = 200


class GroupedCommand(TyperCommand):
    """A command whose help lists options in groups, with words for their values."""

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the whole first sentence: the list of commands wraps it."""
        return super().get_short_help_str(max(limit, _SENTENCE))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the groups of options."""
        sections: dict[str, list[tuple[str, str]]] = {
            title: [] for title in ("Arguments", *_GROUPS, _OTHER)
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            title = next((t for t, names in _GROUPS.items() if parameter.name in names), _OTHER)
            if parameter.param_type_name == "argument":
                # Without the type after the word.
                title, record = "Arguments", (record[0].partition(" <")[0], record[1])
            sections[title].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def takes(**declared: Parameter) -> Callable[[Command], Command]:
    """Declare the parameters of a command in the order of its help.

    The function may collect some of them with ``**``, which an ordinary signature does not allow.
    """

    def decorate(command: Command) -> Command:
        parameters = [parameter.replace(name=name) for name, parameter in declared.items()]
        for parameter in parameters:
            parameter.default.metavar = _METAVARS.get(parameter.name)
        command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return command

    return decorate


DATA = argument(
    list[str],
    "CSV, TSV, LIBSVM text (also .gz, .bz2), Excel, Parquet, Feather, .npz, .h5ad, .h5mu, or the "
    "name of a data set. Several files, or sheets of a workbook, are several views; "
    "BOOK.xlsx:SHEET is one of them.",
)
ON = option(str, "Column of ids, in every file; ids missing from a file lack that view.")
NA = option(list[str], "Another word for a missing value, besides the empty cell, NA and NaN.")
DELIMITER = option(
    str, "Character between cells, if the file name does not determine it.", default=""
)
JOBS = option(int, "Number of processes or threads, -1 for all cores.", default=-1)
TIME_LIMIT = option(float, "Seconds after which nothing new is started.", min=0.001)
AS_JSON = flag("--json", "Print JSON.")
MODEL_FILE = argument(Path, "File that `lokl fit` wrote.")
# A model and tables of new samples.
PREDICTION = {"model": MODEL_FILE, "data": DATA, "on": ON, "na": NA, "delimiter": DELIMITER}
# How models are fitted.
FITTING = {
    "seed": option(int, "Seed of all random choices; 0 if not given.", min=0),
    "jobs": JOBS,
    "time_limit": TIME_LIMIT,
}
# Tables of training samples; the names are those of settings.
TABLES = {
    "data": DATA,
    "target": option(
        str,
        "Column to predict, FILE:COLUMN or BOOK.xlsx:SHEET:COLUMN. LIBSVM text and .npz have it.",
    ),
    "time": option(
        str,
        "Column, or FILE:COLUMN, of survival times, instead of --target: until the event, or until "
        "the last observation.",
    ),
    "event": option(
        str, "Column, or FILE:COLUMN, with 1 for an observed event, 0 for a censored sample."
    ),
    "on": ON,
    "views": option(
        list[str],
        "View of one file, NAME=PATTERN[,PATTERN]; repeat the option for each view.",
        "--view",
    ),
    "groups": option(str, "Column, or FILE:COLUMN, of groups that are kept together in one fold."),
    "cohort": option(
        str,
        "Column, or FILE:COLUMN, of a test cohort, whose samples have test, yes, true or 1. No "
        "model learns from them, and nothing is chosen on them.",
        "--test-column",
    ),
    "covariates": option(
        list[str],
        "Columns, or FILE:COLUMN, separated by commas, such as age, sex and batch.",
    ),
    "covariates_as": option(
        str,
        "adjust (the default) removes the linear effect of covariates from all columns, as "
        "estimated from training samples; view makes them a view of their own.",
    ),
    "kinds": option(
        list[str],
        "COLUMN=numeric or COLUMN=categorical, if inferred wrongly.",
        "--kind",
        "--types",
    ),
    "task": option(str, "classification or regression; inferred if not given."),
    "positive": option(str, "Positive class; all others become one class."),
    "na": NA,
    "delimiter": DELIMITER,
    "gene_sets": option(str, "GMT file of sets of columns: every set gets a kernel of its own."),
    "gene_sets_size": option(int, "Columns that a set needs to be used; 5 if not given.", min=1),
    "gene_sets_rest": option(
        str, "Name of a further set, of the columns that are in no set; not used if not given."
    ),
}


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors and warnings into single lines on standard error, and errors into exit codes.

    Errors of input exit with 2, a model that cannot be fitted or used with 1, and an interruption
    with 130.
    """
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            finally:
                for text in dict.fromkeys(" ".join(str(w.message).split()) for w in caught):
                    typer.echo(f"warning: {text}", err=True)
    except (OSError, ImportError) as reason:
        if isinstance(reason, OSError) and reason.filename is None:
            # Lost output, which is reported in one place for all commands.
            raise
        stop(_line(reason), 2)
    except MemoryError as reason:
        stop(f"not enough memory ({_line(reason)}); use fewer samples or columns", 1)
    except ValueError as reason:
        # Imported only now, because some commands need neither models nor tables.
        from lokl.persistence import ModelFileError
        from lokl.tables import TableError

        if isinstance(reason, TableError | ModelFileError):
            stop(_line(reason), 2)
        stop(f"the model cannot be fitted or used: {_line(reason)}", 1)
    except KeyboardInterrupt:
        stop("interrupted", 130)


def _line(reason: BaseException) -> str:
    """Return an error in one line; errors of the operating system begin with the file.

    Parameters
    ----------
    reason : exception
    """
    if isinstance(reason, OSError) and reason.filename is not None:
        return f"{reason.filename}: {reason.strerror}"
    return " ".join(str(reason).split())


@contextmanager
def resumable(run: Any, unit: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn interruptions of a run, and errors of its folder, into one line that names the folder.

    Parameters
    ----------
    run : Comparison or Reproduction
        A run with a `folder` and `records`.
    unit : str
        Name of the records.
    *errors
        Errors of the user, for which records do not matter.
    """
    from lokl.datasets import DatasetError
    from lokl.study.run_folder import BusyError

    usage_errors: tuple[type[Exception], ...] = (BusyError, DatasetError, *errors)
    try:
        yield
        return
    except usage_errors as reason:
        stop(reason, 2)
    except KeyboardInterrupt:
        why, code = "interrupted", 130
    except OSError as reason:
        why, code = f"cannot write to {run.folder}: {reason.strerror or reason}", 1
    # A comparison reads its records when it opens the folder.
    kept = f"{len(getattr(run, 'records', ()))} {unit} are in {run.folder}"
    stop(f"{why}; {kept}, and the same command resumes from them", code)


def read_settings(
    data: list[str], views: list[str] | None, kinds: list[str] | None, **given: Any
) -> tuple[Any, Path | None, str | None]:
    """Return settings from tables and options, or from a settings file and options.

    Parameters
    ----------
    data : list of str
        Tables, or one settings file.
    views, kinds : list of str or None
        Values of the form ``NAME=VALUE``.
    **given
        Other settings by name; None and empty values change nothing.

    Returns
    -------
    settings : Settings
    folder : Path or None
        Folder of a comparison, if its settings file was given.
    chosen : str or None
        Candidate that was chosen there.
    """
    from lokl.study.settings import CONFIG, Settings, load_settings

    values = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
    # One column each, because each may name a file.
    parts = (part.strip() for text in given.get("covariates") or () for part in text.split(","))
    values["covariates"] = tuple(part for part in parts if part)
    values |= {"views": _as_pairs(views, "--view"), "kinds": _as_pairs(kinds, "--kind")}
    if len(data) == 1 and data[0].endswith(".toml"):
        stored, path = load_settings(data[0]), Path(data[0])
        folder = path.parent if path.name == CONFIG else None
        return stored.settings.updated(**values), folder, stored.model.get("candidate")
    return Settings(tuple(data)).updated(**values), None, None


def _as_pairs(values: list[str] | None, name: str) -> dict[str, str]:
    """Return values of the form ``NAME=VALUE`` as a mapping.

    Parameters
    ----------
    values : list of str or None
    name : str
        Name of the option, for the error.
    """
    pairs = [text.partition("=") for text in values or ()]
    for key, sign, value in pairs:
        if not (key and value):
            stop(f"{name} {key}{sign}{value}: write {name} NAME=VALUE", 2)
    return {key: value for key, _, value in pairs}


def print_json(values: Any) -> None:
    """Print plain values as indented JSON."""
    typer.echo(json.dumps(values, indent=1))
