"""``lokl reproduce``: the paper's tables, recomputed beside the published numbers."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

_FIGURES = ("figure1", "figure2")


def reproduce(
    table: Annotated[str, typer.Argument(help="table2, table3, table4, figure1, figure2 or all.")],
    datasets: Annotated[
        list[str] | None,
        typer.Option("--datasets", help="Of the paper, again for more.", show_default=False),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", help="Method, again for more.", show_default=False),
    ] = None,
    dictionary: Annotated[
        list[str] | None,
        typer.Option(help="Kernels, again for more; the best is shown.", show_default=False),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="Random splits; the paper's number without.", show_default=False),
    ] = None,
    selection: Annotated[
        str, typer.Option(help="Of gamma: paper (by test accuracy) or nested.")
    ] = "paper",
    solver: Annotated[
        str | None, typer.Option(help="exact, libsvm or mwu.", show_default=False)
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Three splits and widths, 1,000 rows.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Processes, -1 for all cores.")] = -1,
    seed: Annotated[int, typer.Option(min=0, help="Decides everything.")] = 0,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of records and tables.")
    ] = Path("reproduced"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not tables.")] = False,
) -> None:
    """Recompute tables and figures of "A Unified View of Localized Kernel Learning".

    Finished fits are kept in OUTPUT/records.jsonl: a run that was interrupted goes on where it
    stopped.

    Example: lokl reproduce table2 --quick --datasets Diabetes
    """
    from lokl.paper import TABLES, RecordFile, make_cells, make_table, run
    from lokl.paper.tables import nearest

    try:
        wanted_name = nearest("table or figure", table, [*TABLES, *_FIGURES, "all"])
        names = list(TABLES) if wanted_name == "all" else [wanted_name]
        names = [name for name in names if name in TABLES]
        wanted = {
            name: make_cells(
                name,
                sets=datasets,
                methods=methods,
                repeats=repeats,
                dictionaries=dictionary or ("quadratic, Gaussian",),
                selection=selection,
                solver=solver,
                seed=seed,
                quick=quick,
            )
            for name in names
        }
        records = RecordFile(output / "records.jsonl")
        named = {cell.data for cells in wanted.values() for cell in cells}
        lacking = {data for data in named if not _is_here(data)}
        if named and named == lacking:
            raise ValueError(
                f"{', '.join(sorted(named))}: not on this machine; name a folder of the files in "
                "LOKL_DATA, or see `lokl datasets fetch`"
            )
    except (ValueError, OSError) as reason:
        typer.echo(str(reason), err=True)
        raise typer.Exit(2) from None
    console = Console(stderr=True)
    for data in sorted(lacking):
        typer.echo(
            f"left out: {data} is not on this machine; see `lokl datasets fetch {data}`", err=True
        )
    for name, all_cells in wanted.items():
        cells = [cell for cell in all_cells if cell.data not in lacking]
        missing = sum(cell not in records for cell in cells)
        try:
            with _progress(console) as progress:
                task = progress.add_task(name, total=missing)
                found = run(cells, records, jobs=jobs, on_record=partial(_advance, progress, task))
            made = make_table(name, found)
            _write(output, made)
        except OSError as reason:
            typer.echo(f"cannot write to {output}: {reason.strerror or reason}", err=True)
            raise typer.Exit(1) from None
        if as_json:
            typer.echo(made.json())
        else:
            _show(made)
        for error in sorted({str(record["error"]) for record in found if record["error"]}):
            typer.echo(f"failed: {error}", err=True)
    for name in _FIGURES if wanted_name == "all" else [wanted_name]:
        if name in _FIGURES:
            _draw(name, output, datasets, seed, console)


def _is_here(data: str) -> bool:
    """Whether the files of a data set are on this machine."""
    from lokl.datasets import info
    from lokl.datasets.storage import locate

    record = info(data)
    return record.format == "scikit-learn" or bool(locate(record)[1])


def _draw(name: str, folder: Path, sets: list[str] | None, seed: int, console: Console) -> None:
    """Draw a figure as PNG and SVG."""
    from lokl.paper.figures import figure1, figure2, measure_memory, records_of

    try:
        folder.mkdir(parents=True, exist_ok=True)
        if name == "figure1":
            figure = figure1(seed)
        else:
            with console.status("measuring memory, each fit in its own process"):
                measured = measure_memory(sets)
            (folder / "figure2.json").write_text(records_of(measured))
            figure = figure2(measured)
        for ending in ("png", "svg"):
            figure.savefig(folder / f"{name}.{ending}", dpi=150)
    except ImportError as reason:
        typer.echo(f"no {name}: {reason}", err=True)
        raise typer.Exit(2) from None
    except OSError as reason:
        typer.echo(f"cannot write to {folder}: {reason.strerror or reason}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{name}: {folder / name}.png and .svg")


def _advance(progress: Progress, task: Any, record: dict[str, Any]) -> None:
    progress.advance(task)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def _write(folder: Path, table: Any) -> None:
    """Write all forms of a table; each file is whole or not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for ending, text in (
        ("md", table.markdown()),
        ("csv", table.csv()),
        ("json", table.json()),
    ):
        place = folder / f"{table.name}.{ending}"
        temporary = place.with_suffix(f".{ending}.part")
        temporary.write_text(text)
        temporary.replace(place)


def _show(table: Any) -> None:
    from lokl.paper.tables import LEGEND, cells_of

    shown = Table(title=table.title, caption=LEGEND)
    for column in ("set", "method"):
        shown.add_column(column)
    for column in ("ours", "published", "difference", "fit s"):
        shown.add_column(column, justify="right")
    for column in ("kernels", "splits"):
        shown.add_column(column)
    for entry in table.entries:
        cells = cells_of(entry)
        cells[2] = cells[2].replace("**", "[bold]", 1).replace("**", "[/bold]", 1)
        shown.add_row(*cells)
    Console().print(shown)
