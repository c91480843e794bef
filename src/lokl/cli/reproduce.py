"""``lokl reproduce``: the paper's tables, recomputed beside the published numbers."""

import io
import json
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, NoReturn

import joblib
import typer
from rich.box import SIMPLE_HEAD
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
# Seconds of a run whose overhead is worth a word.
_LONG = 60.0


def reproduce(
    table: Annotated[str, typer.Argument(help="table2, table3, table4, figure1, figure2 or all.")],
    datasets: Annotated[
        list[str] | None,
        typer.Option("--datasets", help="Of the paper, with commas.", show_default=False),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", help="With commas, or again.", show_default=False),
    ] = None,
    dictionary: Annotated[
        list[str] | None,
        typer.Option(help="Kernels, again for more; the best is shown.", show_default=False),
    ] = None,
    gamma: Annotated[
        list[float] | None,
        typer.Option(help="Width to try, again for more; nine without.", show_default=False),
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
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Show what OUTPUT has of a table, fit nothing.")
    ] = False,
    download: Annotated[
        bool, typer.Option(help="Fetch data sets that are not on this machine.")
    ] = True,
    jobs: Annotated[int, typer.Option(help="Processes, -1 for all cores.")] = -1,
    backend: Annotated[
        str, typer.Option(help="processes, dask, or the address of a Dask scheduler.")
    ] = "processes",
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
    from lokl.paper import SETS, TABLES, RecordFile, make_cells
    from lokl.paper.methods import method_names
    from lokl.paper.plan import nearest

    try:
        chosen = nearest("table or figure", table, [*TABLES, *_FIGURES, "all"])
        records = RecordFile(output / "records.jsonl")
        names = [name for name in TABLES if chosen in (name, "all")]
        common: dict[str, Any] = {
            "sets": _apart(datasets, [*SETS, *(known.name for known in SETS.values())]),
            "methods": _apart(methods, method_names()),
            "dictionaries": dictionary or ("quadratic, Gaussian",),
            "gammas": gamma,
            "selection": selection,
            "solver": solver,
            "seed": seed,
            "quick": quick,
        }
        lacking: dict[str, str] = {}
        if recorded:
            wanted = {name: _recorded(name, records, common) for name in names}
        else:
            wanted = {name: make_cells(name, repeats=repeats, **common) for name in names}
            named = {cell.data for cells in wanted.values() for cell in cells}
            lacking = _lacking(named, download)
    except (ValueError, OSError) as reason:
        _stop(str(reason), 2)
    console = Console(stderr=True)
    for data, why in lacking.items():
        typer.echo(f"left out: {data}: {why}", err=True)
    results: list[dict[str, Any]] = []
    for name, cells in wanted.items():
        here = [cell for cell in cells if cell.data not in lacking]
        with _clear_errors(output, records):
            made = _make(name, here, records, jobs, backend, console)
            # A look at some of the records leaves the files of all of them alone.
            if not (recorded and (datasets or methods or gamma or dictionary)):
                marks = [selection if selection != "paper" else None, solver]
                _write(output, made, [*marks, "quick" if quick else None])
        results.append(made.as_dict())
        if not as_json:
            _show(made)
    for name in _FIGURES:
        if chosen in (name, "all"):
            with _clear_errors(output, records):
                results.append(_draw(name, output, common["sets"], seed, download, console))
            if not as_json:
                typer.echo(f"{name}: {', '.join(results[-1]['files'])}")
    if as_json:
        typer.echo(json.dumps(results if chosen == "all" else results[0], indent=1))


def _apart(values: list[str] | None, known: Iterable[str]) -> list[str] | None:
    """Take lists with commas apart; some names have a comma themselves."""
    if values is None:
        return None
    names = {name.casefold() for name in known}
    parts: list[str] = []
    for value in values:
        whole = value.casefold() in names
        parts += [value] if whole else [part.strip() for part in value.split(",") if part.strip()]
    return parts


def _recorded(name: str, records: Any, settings: dict[str, Any]) -> list[Any]:
    """Return the cells of a table that have a record; none is an error."""
    from lokl.paper import recorded_cells

    found = [cell for cell in recorded_cells(name, records, **settings) if cell in records]
    if not found:
        raise ValueError(f"{records.path} has no records of {name}; leave out --recorded")
    return found


def _present(sets: list[str] | None, download: bool) -> list[str]:
    """Return the sets of the paper that are on this machine; none is an error."""
    from lokl.paper import SETS
    from lokl.paper.plan import paper_names

    names = paper_names(sets)
    lacking = _lacking({SETS[name].name for name in names}, download)
    return [name for name in names if SETS[name].name not in lacking]


def _lacking(named: set[str], download: bool) -> dict[str, str]:
    """Return why sets are not on this machine; all of them is an error."""
    from lokl.datasets import DatasetError, fetch

    lacking = {}
    for data in sorted(data for data in named if not _is_here(data)):
        why = f"not on this machine; see `lokl datasets fetch {data}`"
        if download:
            try:
                fetch(data)
                continue
            except (DatasetError, ImportError) as reason:
                why = str(reason)
        lacking[data] = why
    if named and len(lacking) == len(named):
        raise ValueError(
            f"{', '.join(lacking)}: not on this machine ({next(iter(lacking.values()))}); name a "
            f"folder of the files in LOKL_DATA, or run `lokl datasets fetch {' '.join(lacking)}`"
        )
    return lacking


def _stop(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code) from None


@contextmanager
def _clear_errors(output: Path, records: Any) -> Iterator[None]:
    """Turn what can go wrong outside of fits into one line; records stay what they are."""
    from lokl.datasets import DatasetError

    try:
        yield
    except (ImportError, ValueError, DatasetError) as reason:
        _stop(str(reason), 2)
    except OSError as reason:
        _stop(
            f"cannot write to {output}: {reason.strerror or reason}; {len(records)} records there "
            "are whole, and the same command goes on from them",
            1,
        )
    except KeyboardInterrupt:
        _stop(
            f"interrupted; {len(records)} records are in {output}, and the same command goes on "
            "from them",
            130,
        )


def _make(
    name: str,
    cells: list[Any],
    records: Any,
    jobs: int,
    backend: str,
    console: Console,
) -> Any:
    """Do a table's cells and return the table."""
    from lokl.paper import make_table, overhead, run

    new: list[dict[str, Any]] = []
    with _progress(console) as progress:
        task = progress.add_task(name, total=sum(cell not in records for cell in cells))

        def advance(record: dict[str, Any]) -> None:
            new.append(record)
            progress.advance(task)

        begun = time.perf_counter()
        found = run(cells, records, jobs=jobs, backend=backend, on_record=advance)
        seconds = time.perf_counter() - begun
    for error in sorted({str(record["error"]) for record in found if record["error"]}):
        typer.echo(f"failed: {error}", err=True)
    if new:
        text = f"{name}: {len(new)} fits in {timedelta(seconds=round(seconds))}"
        # Workers of a cluster elsewhere are not counted here; a short run only starts processes.
        if backend in ("processes", "dask") and seconds >= _LONG:
            extra = overhead(new, seconds, joblib.effective_n_jobs(jobs))
            text += f"; {100 * extra:.1f} % beside the fits themselves"
        typer.echo(text, err=True)
    return make_table(name, found)


def _is_here(data: str) -> bool:
    """Whether the files of a data set are on this machine."""
    from lokl.datasets import info
    from lokl.datasets.storage import locate

    record = info(data)
    return record.format == "scikit-learn" or bool(locate(record)[1])


def _draw(
    name: str,
    folder: Path,
    sets: list[str] | None,
    seed: int,
    download: bool,
    console: Console,
) -> dict[str, Any]:
    """Draw a figure as PNG and SVG, and return what it shows."""
    from lokl.inspection.plotting import pyplot
    from lokl.paper.figures import figure1, figure2, measure_memory, with_least

    # Told before minutes of measurements, not after.
    pyplot()
    shown: dict[str, Any] = {"name": name}
    if name == "figure1":
        figure = figure1(seed)
    else:
        here = _present(sets, download)
        with console.status("measuring memory, each fit in its own process"):
            measured = measure_memory(here)
        shown["measured"] = with_least(measured)
        figure = figure2(measured)
    folder.mkdir(parents=True, exist_ok=True)
    if "measured" in shown:
        _replace(folder / f"{name}.json", json.dumps(shown["measured"], indent=1).encode())
    for ending in ("png", "svg"):
        stream = io.BytesIO()
        figure.savefig(stream, format=ending, dpi=110)
        _replace(folder / f"{name}.{ending}", stream.getvalue())
    return {**shown, "files": [str(folder / f"{name}.{ending}") for ending in ("png", "svg")]}


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


def _write(folder: Path, table: Any, marks: list[str | None]) -> None:
    """Write all forms of a table, and what its numbers depend on.

    Marks tell the files of other settings from those of the paper's.
    """
    from lokl.paper import environment

    folder.mkdir(parents=True, exist_ok=True)
    name = "-".join([table.name, *(mark for mark in marks if mark)])
    for ending, text in (
        ("md", table.markdown()),
        ("csv", table.csv()),
        ("json", json.dumps({**table.as_dict(), "environment": environment()}, indent=1)),
    ):
        _replace(folder / f"{name}.{ending}", text.encode())


def _replace(place: Path, content: bytes) -> None:
    """Write a file that is whole or as it was before."""
    temporary = place.with_name(place.name + ".part")
    try:
        temporary.write_bytes(content)
        temporary.replace(place)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


# Columns that every terminal has room for, and others in the order in which they are added.
_NEEDED = ("set", "method", "ours", "published", "difference", "gamma")
_WELCOME = ("fit s", "splits", "published s", "fit MB", "kernels")
# Of a file or a pipe.
_UNLIMITED = 160


def _show(table: Any) -> None:
    """Print a table that fits the terminal."""
    from lokl.paper.tables import COLUMNS, LEGEND, cells_of

    console = Console()
    rows = [dict(zip(COLUMNS, cells_of(entry), strict=True)) for entry in table.entries]
    width = {name: max(len(name), *(len(row[name]) for row in rows)) + 2 for name in COLUMNS}
    room = console.width if console.is_terminal else _UNLIMITED
    names = set(_NEEDED)
    for name in _WELCOME:
        if sum(width[own] for own in names) + width[name] <= room:
            names.add(name)
    shown = Table(title=table.title, caption=LEGEND, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in COLUMNS:
        if name in names:
            left = name in ("set", "method", "kernels")
            shown.add_column(name, justify="left" if left else "right", no_wrap=True)
    before = None
    for row in rows:
        if before is not None and row["set"] != before:
            shown.add_section()
        texts = {**row, "set": "" if row["set"] == before else row["set"]}
        before = row["set"]
        shown.add_row(
            *(
                re.sub(r"\*\*(.*)\*\*", r"[bold]\1[/bold]", texts[name])
                for name in COLUMNS
                if name in names
            )
        )
    if not console.is_terminal:
        console = Console(width=_UNLIMITED)
    console.print(shown)
