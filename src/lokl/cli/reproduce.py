"""``lokl reproduce``: the paper's tables, recomputed alongside the published numbers."""

from contextlib import ExitStack
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lokl.cli.options import (
    JOBS,
    TIME_LIMIT,
    argument,
    flag,
    option,
    output_path,
    print_json,
    resumable,
    takes,
)
from lokl.cli.terminal import stop

# Columns that are always shown, and others in the order in which they are added if they fit.
_NEEDED = ("set", "method", "reading", "ours", "published", "difference", "gamma")
_OPTIONAL = ("splits", "each expert", "fit s", "kernels", "published s", "fit MB")
# Characters of a line in a file or a pipe.
_FILE_WIDTH = 160
# Characters of the two edges of a table.
_EDGES = 2


def _not_empty(values: list[str] | None) -> list[str] | None:
    """Reject an empty list, which comes from an empty shell variable and does not mean all."""
    for value in values or ():
        if not value.replace(",", "").strip():
            raise typer.BadParameter(f"{value!r} names nothing; leave the option out for all")
    return values


@takes(
    table=argument(
        str,
        "table2, table3, table4, figure1, figure2, agreement (a plot of recorded results against "
        "the published ones) or all.",
    ),
    reading=option(
        str,
        "Settings that the paper does not state: 'paper' for the most likely ones (the default), "
        "'lokl' for normalised kernels and repaired methods, or 'both'. --recorded shows both if "
        "not given.",
    ),
    sets=option(
        list[str],
        "Data sets, separated by commas; all of the paper if not given.",
        "--datasets",
        callback=_not_empty,
    ),
    methods=option(
        list[str],
        "Methods, separated by commas; all of the table if not given.",
        callback=_not_empty,
    ),
    dictionaries=option(
        list[str],
        "Set of kernels; that of the reading if not given. Repeat the option to try several; the "
        "most accurate one is shown.",
        "--dictionary",
    ),
    gammas=option(
        list[float],
        "Width of the Gaussian kernel, a power of 2 from 0.0625 to 16. Repeat the option to try "
        "several; all nine if not given.",
        "--gamma",
    ),
    repeats=option(
        int, "Random splits; 100, Mushroom and Gisette 20, Adult 10 if not given.", min=1
    ),
    selection=option(
        str,
        "How gamma is chosen: 'paper' by test accuracy, 'nested' by cross-validation within the "
        "training part. If not given 'paper', and for all also Table 2 nested.",
    ),
    ties=option(
        str, "Which gamma of equal accuracy is shown: smallest or largest.", default="smallest"
    ),
    solver=option(str, "exact, libsvm or mwu; that of the table if not given."),
    quick=flag("--quick", "Use 3 splits, 3 widths and 1,000 rows of a set at most."),
    recorded=flag("--recorded", "Show the fits that are already in OUTPUT; fit nothing."),
    download=option(bool, "Download data sets that are not on this machine.", default=True),
    jobs=JOBS,
    backend=option(
        str, "processes, dask, or the address of a Dask scheduler.", default="processes"
    ),
    seed=option(int, "Seed of the splits and models of tables.", default=2016, min=0),
    time_limit=TIME_LIMIT,
    output=output_path("Folder of records, tables and figures.", "reproduced"),
    as_json=flag("--json", "Print JSON, not tables."),
)
def reproduce(
    table: str,
    jobs: int,
    backend: str,
    time_limit: float | None,
    output: Path,
    as_json: bool,
    **settings: Any,
) -> None:
    """Recompute the tables and figures of the paper.

    The paper is "A Unified View of Localized Kernel Learning" (2016). Finished fits are kept in
    OUTPUT/records.jsonl. After an interruption, the same command resumes.

    Example: lokl reproduce table2 --quick --datasets Diabetes
    """
    from lokl._deadline import Deadline
    from lokl.paper import Reproduction

    with ExitStack() as stack:
        try:
            reproduction = Reproduction(table, output, **settings)
            stack.enter_context(reproduction.open())
        except (ValueError, OSError) as reason:
            stop(reason, 2)
        for data, why in reproduction.unavailable.items():
            typer.echo(f"left out: {data}: {why}", err=True)
        for warning in reproduction.version_warnings():
            typer.echo(f"warning: {warning}", err=True)
        deadline = Deadline(time_limit)
        runs = _make_tables(reproduction, jobs, backend, deadline, quiet=as_json)
        results = [run.table.as_dict() for run in runs if run.table is not None]
        results += _draw_figures(reproduction, deadline, quiet=as_json)
    if not results:
        stop(f"no fit ended within {time_limit:g} s; raise --time-limit", 1)
    if as_json:
        print_json(results if reproduction.name == "all" else results[0])
    fits, failures = sum(run.cells for run in runs), sum(len(run.errors) for run in runs)
    if failures:
        count = f"all {fits}" if failures == fits else f"{failures} of {fits}"
        stop(f"{count} fits failed; the same command tries them again", 1)


def _make_tables(
    reproduction: Any, jobs: int, backend: str, deadline: Any, *, quiet: bool
) -> list[Any]:
    """Run the fits of all tables before the deadline, write the tables, and show them.

    Parameters
    ----------
    reproduction : Reproduction
    jobs : int
    backend : str
        As the options of the command.
    deadline : Deadline
    quiet : bool
        Whether tables are written only.

    Returns
    -------
    runs : list
        One for each table.
    """
    from lokl.datasets.loader import progress_bar

    runs = []
    for name in reproduction.cells:
        with resumable(reproduction, "records", ImportError, ValueError):
            with progress_bar() as progress:
                task = progress.add_task(name, total=reproduction.count_missing(name))
                run = reproduction.run(
                    name, jobs, backend, lambda record, task=task: progress.advance(task), deadline
                )
            if run.table is not None:
                reproduction.write(name, run.table)
        runs.append(run)
        _show_fits(name, run)
        if run.table is not None and not quiet:
            _show_table(run.table)
    return runs


def _draw_figures(reproduction: Any, deadline: Any, *, quiet: bool) -> list[dict[str, Any]]:
    """Draw all figures before the deadline.

    Parameters
    ----------
    reproduction : Reproduction
    deadline : Deadline
    quiet : bool
        Whether the paths of the figures are returned only.

    Returns
    -------
    drawn : list of dict
        Values of each figure, for JSON.
    """
    drawn = []
    for name in reproduction.figures:
        if deadline.passed:
            typer.echo(f"{name}: not drawn, for lack of time", err=True)
            continue
        with (
            resumable(reproduction, "records", ImportError, ValueError),
            Console(stderr=True).status(f"{name}: fitting and drawing"),
        ):
            drawn.append(reproduction.draw(name))
        if not quiet:
            typer.echo(f"{name}: {', '.join(drawn[-1]['files'])}")
    return drawn


def _show_fits(name: str, run: Any) -> None:
    """Print on standard error which fits failed, and how long all of them took.

    Parameters
    ----------
    name : str
        Name of the table.
    run : TableRun
    """
    for error in sorted(set(run.errors)):
        typer.echo(f"failed: {error}", err=True)
    if run.fits:
        text = f"{name}: {run.fits} fits in {timedelta(seconds=round(run.seconds))}"
        if run.overhead is not None:
            text += f"; {100 * run.overhead:.1f} % overhead"
        typer.echo(text, err=True)
    if run.left:
        text = f"{name}: {run.left} fits are left for lack of time; the same command resumes"
        typer.echo(text, err=True)


def _show_table(table: Any) -> None:
    """Print a table of the paper with as many columns as fit into the terminal.

    Parameters
    ----------
    table : PaperTable
    """
    from lokl.paper.tables import COLUMNS, LEGEND

    console = Console()
    if not console.is_terminal:
        console = Console(width=_FILE_WIDTH)
    texts = [{name: _text(shown) for name, shown in row.items()} for row in table.rows()]
    width = {name: max(len(name), *(len(row[name]) for row in texts)) + 2 for name in COLUMNS}
    names, room = set(_NEEDED), console.width - _EDGES
    if sum(width[shown] for shown in names) > room:
        # In a narrow terminal, the name of a set is a line above its methods.
        names.discard("set")
    for name in _OPTIONAL:
        if sum(width[shown] for shown in names) + width[name] <= room:
            names.add(name)
    grid = Table(title=table.title, caption=LEGEND, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in COLUMNS:
        if name in names:
            left = name in ("set", "method", "reading", "kernels")
            grid.add_column(name, justify="left" if left else "right", no_wrap=True)
    for name, group in groupby(texts, key=lambda row: row["set"]):
        if "set" not in names:
            grid.add_row(Text(str(name), "bold"))
        for index, row in enumerate(group):
            cells = {**row, "set": Text()} if index else row
            grid.add_row(*(cells[name] for name in COLUMNS if name in names))
        grid.add_section()
    console.print(grid)
    for agreement in table.agreement():
        console.print(str(agreement), highlight=False)


def _text(shown: Any) -> Text:
    """Return a cell with its style and its mark.

    Parameters
    ----------
    shown : lokl.paper.tables.Shown
    """
    text = Text(shown.text, style="bold" if shown.bold else "")
    return text.append(f" {shown.mark}", style="not bold") if shown.mark else text
