"""``lokl datasets``: which data sets are known, where they are, and downloads."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

datasets = typer.Typer(
    help="List data sets and download them into the cache.", no_args_is_help=True
)


@datasets.command("list", epilog="Example: `lokl datasets list --json`")
def list_sets(
    as_json: Annotated[bool, typer.Option("--json", help="Print records, not a table.")] = False,
) -> None:
    """Show all data sets and where they are.

    Example: lokl datasets list --json
    """
    from lokl.datasets import DatasetError, available, info

    try:
        places = {name: _place(name) for name in available()}
    except DatasetError as reason:
        _fail(reason, 2)
    records = [(info(name), place) for name, place in places.items()]
    if as_json:
        rows = [
            {
                "name": record.name,
                "rows": record.n,
                "columns": record.d,
                "classes": len(record.classes),
                "where": place,
                "source": record.source,
                "licence": record.licence,
                "url": record.url,
                "sha256": record.sha256,
            }
            for record, place in records
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(caption="lokl datasets fetch NAME downloads; LOKL_DATA names a folder of files")
    table.add_column("name", no_wrap=True)
    for column in ("rows", "columns", "classes"):
        table.add_column(column, justify="right")
    table.add_column("where")
    for record, place in records:
        table.add_row(record.name, str(record.n), str(record.d), str(len(record.classes)), place)
    Console().print(table)


@datasets.command("fetch", epilog="Example: `lokl datasets fetch a9a w8a`")
def fetch_sets(
    names: Annotated[list[str], typer.Argument(help="Names of data sets.", show_default=False)],
) -> None:
    """Download data sets into the cache, where they are not on this machine yet.

    Example: lokl datasets fetch a9a w8a
    """
    from lokl.datasets import DatasetError, fetch, info
    from lokl.datasets.progress import download_bar

    try:
        # A misspelt last name is told before the first download.
        records = [info(name) for name in names]
    except ValueError as reason:
        _fail(reason, 2)
    for record in records:
        try:
            with download_bar(record.name) as bar:
                paths = fetch(record.name, progress=bar)
        except (DatasetError, ImportError) as reason:
            _fail(reason, 1)
        if not paths:
            typer.echo(f"{record.name}: part of scikit-learn, nothing to download")
            continue
        verb = "downloaded to" if bar.moved else "here already,"
        typer.echo(f"{record.name}: {verb} {paths[0]}")


def _place(name: str) -> str:
    from lokl.datasets import info
    from lokl.datasets.storage import locate

    record = info(name)
    if record.format == "scikit-learn":
        return "scikit-learn"
    return locate(record)[0] or ("download" if record.url else "not available")


def _fail(reason: Exception, code: int) -> Any:
    typer.echo(str(reason), err=True)
    raise typer.Exit(code) from None
