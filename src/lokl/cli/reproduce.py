"""``lokl reproduce``: the paper's tables, recomputed beside the published numbers."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from lokl.cli.options import Jobs, TimeLimit
from lokl.cli.terminal import show_table, stop


def _each_names_something(values: list[str] | None) -> list[str] | None:
    """Refuse an empty list: it comes from an empty variable of a shell, and does not mean all."""
    for value in values or ():
        if not value.replace(",", "").strip():
            raise typer.BadParameter(f"{value!r} names nothing; leave the option out for all")
    return values


Table = Annotated[
    str,
    typer.Argument(
        help="table2, table3, table4, figure1, figure2, agreement (a plot of recorded results "
        "against the published ones) or all."
    ),
]
Names = list[str] | None
Datasets = Annotated[
    Names,
    typer.Option(
        callback=_each_names_something,
        help="Data sets, separated by commas; all of the paper if not given.",
    ),
]
Methods = Annotated[
    Names,
    typer.Option(
        callback=_each_names_something,
        help="Methods, separated by commas; all of the table if not given.",
    ),
]
ReadingOption = Annotated[
    str | None,
    typer.Option(
        help="What the paper leaves unsaid: 'paper' as it most likely was (the default), 'lokl' "
        "with normalised kernels and repaired methods, or 'both' side by side. What is recorded "
        "is shown in both if not given."
    ),
]
Dictionary = Annotated[
    Names,
    typer.Option(
        help="Kernels that are combined, those of the reading if not given. Give it again to "
        "try several sets of kernels; the most accurate one is shown."
    ),
]
Gamma = Annotated[
    list[float] | None,
    typer.Option(
        help="Width of the Gaussian kernel, a power of 2 from 0.0625 to 16. Give it again to "
        "try several; all nine if not given."
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(min=1, help="Random splits; 100, Mushroom and Gisette 20, Adult 10 if not given."),
]
Selection = Annotated[
    str | None,
    typer.Option(
        help="How gamma is chosen: 'paper' by test accuracy, 'nested' by cross-validation "
        "within the training part. If not given 'paper', and for all also Table 2 nested."
    ),
]
Ties = Annotated[
    str, typer.Option(help="Which gamma of equal accuracy is shown: smallest or largest.")
]
Solver = Annotated[
    str | None, typer.Option(help="exact, libsvm or mwu; that of the table if not given.")
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Use 3 splits, 3 widths and 1,000 rows of a set at most.")
]
Recorded = Annotated[
    bool, typer.Option("--recorded", help="Show the fits that OUTPUT already has; fit nothing.")
]
Download = Annotated[bool, typer.Option(help="Download data sets that are not on this machine.")]
Backend = Annotated[str, typer.Option(help="processes, dask, or the address of a Dask scheduler.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the splits and models of tables.")]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="Folder of records, tables and figures.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, not tables.")]


def reproduce(
    table: Table,
    reading: ReadingOption = None,
    datasets: Datasets = None,
    methods: Methods = None,
    dictionary: Dictionary = None,
    gamma: Gamma = None,
    repeats: Repeats = None,
    selection: Selection = None,
    ties: Ties = "smallest",
    solver: Solver = None,
    quick: Quick = False,
    recorded: Recorded = False,
    download: Download = True,
    jobs: Jobs = -1,
    backend: Backend = "processes",
    seed: Seed = 2016,
    time_limit: TimeLimit = None,
    output: Output = Path("reproduced"),
    as_json: AsJson = False,
) -> None:
    """Recompute the tables and figures of the paper.

    The paper is "A Unified View of Localized Kernel Learning" (2016). Finished fits are kept in
    OUTPUT/records.jsonl: after an interruption, the same command goes on where it stopped.

    Example: lokl reproduce table2 --quick --datasets Diabetes
    """
    from lokl.paper.experiment import Experiment

    with ExitStack() as stack:
        try:
            experiment = Experiment(
                table,
                output,
                recorded=recorded,
                download=download,
                repeats=repeats,
                reading=reading,
                ties=ties,
                sets=datasets,
                methods=methods,
                dictionaries=dictionary,
                gammas=gamma,
                selection=selection,
                solver=solver,
                seed=seed,
                quick=quick,
            )
            stack.enter_context(experiment.at_work())
        except (ValueError, OSError) as reason:
            stop(reason, 2)
        _warn(experiment)
        results, fits, failures = _finish(experiment, jobs, backend, time_limit, quiet=as_json)
    if not results:
        stop(f"no fit ended within {time_limit:g} s; give it more time", 1)
    if as_json:
        typer.echo(json.dumps(results if experiment.name == "all" else results[0], indent=1))
    if failures:
        stop(_told_failures(failures, fits), 1)


def _told_failures(failures: int, fits: int) -> str:
    share = f"all {fits}" if failures == fits else f"{failures} of {fits}"
    return f"{share} fits failed; the same command tries them again"


def _warn(experiment: Any) -> None:
    """Say which data sets are left out, and which are not the known ones."""
    for data, why in experiment.lacking.items():
        typer.echo(f"left out: {data}: {why}", err=True)
    for warning in experiment.other_versions():
        typer.echo(f"warning: {warning}", err=True)


def _finish(
    experiment: Any, jobs: int, backend: str, time_limit: float | None, *, quiet: bool
) -> tuple[list[dict[str, Any]], int, int]:
    """Make all tables and figures, as far as there is time, and show them unless quiet.

    Returns what they contain, and how many fits the tables stand on, failed ones included, and how
    many of those failed.
    """
    from lokl.study.records import until

    results: list[dict[str, Any]] = []
    fits = failures = 0
    go_on = until(time_limit)
    for name in experiment.cells:
        with _explained(experiment):
            done = _run(experiment, name, jobs, backend, go_on)
            if done.table is not None:
                experiment.write(name, done.table)
        fits, failures = fits + done.cells, failures + done.failures
        _tell(name, done)
        if done.table is None:
            continue
        results.append(done.table.as_dict())
        if not quiet:
            show_table(done.table)
    for name in experiment.figures:
        if not go_on():
            typer.echo(f"{name}: not drawn, for lack of time", err=True)
            continue
        with _explained(experiment), Console(stderr=True).status(f"{name}: fitting and drawing"):
            results.append(experiment.draw(name))
        if not quiet:
            typer.echo(f"{name}: {', '.join(results[-1]['files'])}")
    return results, fits, failures


@contextmanager
def _explained(experiment: Any) -> Iterator[None]:
    """Turn what can go wrong outside of fits into one line and an exit code."""
    from lokl.datasets import DatasetError

    goes_on = "the same command goes on from them"
    try:
        yield
    except (ImportError, ValueError, DatasetError) as reason:
        stop(reason, 2)
    except OSError as reason:
        why = f"cannot write to {experiment.folder}: {reason.strerror or reason}"
        stop(f"{why}; {len(experiment.records)} records there are whole, and {goes_on}", 1)
    except KeyboardInterrupt:
        kept = f"{len(experiment.records)} records are in {experiment.folder}"
        stop(f"interrupted; {kept}, and {goes_on}", 130)


def _run(experiment: Any, name: str, jobs: int, backend: str, go_on: Any) -> Any:
    """Do the fits of a table behind a progress bar."""
    from lokl.datasets.download import progress_bar

    with progress_bar() as progress:
        task = progress.add_task(name, total=experiment.count_missing(name))
        return experiment.run(name, jobs, backend, lambda record: progress.advance(task), go_on)


def _tell(name: str, done: Any) -> None:
    """Say on standard error which fits failed, and how long all of them took."""
    for error in done.errors:
        typer.echo(f"failed: {error}", err=True)
    if done.fits:
        text = f"{name}: {done.fits} fits in {timedelta(seconds=round(done.seconds))}"
        if done.overhead is not None:
            text += f"; {100 * done.overhead:.1f} % beside the fits themselves"
        typer.echo(text, err=True)
    if done.left:
        text = f"{name}: {done.left} fits are left for lack of time; the same command goes on"
        typer.echo(text, err=True)
