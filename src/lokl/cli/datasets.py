"""``lokl datasets``: list data sets and download them."""

import typer

from lokl._text import aligned
from lokl.cli.options import GroupedCommand, argument, flag, print_json, takes
from lokl.cli.terminal import stop

datasets = typer.Typer(
    help="List data sets and download them into the cache.", no_args_is_help=True
)


@datasets.command("list", cls=GroupedCommand)
@takes(as_json=flag("--json", "Print JSON, not a table."))
def list_sets(as_json: bool) -> None:
    """Show all data sets and their locations.

    Example: lokl datasets list --json
    """
    from lokl.datasets import DatasetError, available, info
    from lokl.datasets.loader import locate

    rows = []
    for name in available():
        record = info(name)
        try:
            location = locate(record)[0] or ("download" if record.url else "not available")
        except DatasetError as reason:
            stop(reason, 2)
        size = {"rows": record.n, "columns": record.d, "classes": len(record.classes)}
        others = {key: getattr(record, key) for key in ("source", "licence", "url", "sha256")}
        rows.append({"name": record.name, **size, "where": location, **others})
    if as_json:
        print_json(rows)
        return
    columns = ("name", "rows", "columns", "classes", "where")
    for line in aligned([columns, *([str(row[column]) for column in columns] for row in rows)]):
        typer.echo(line)
    typer.echo("\nlokl datasets fetch NAME downloads; LOKL_DATA names a folder of files")


@datasets.command("fetch", cls=GroupedCommand)
@takes(names=argument(list[str], "Names of data sets."))
def fetch_sets(names: list[str]) -> None:
    """Download data sets into the cache, unless they are on this machine already.

    Example: lokl datasets fetch a9a w8a
    """
    from lokl.datasets import DatasetError, fetch, info
    from lokl.datasets.loader import DownloadBar, progress_bar

    try:
        # All names first: a misspelt last one is reported before the first download.
        records = [info(name) for name in names]
    except ValueError as reason:
        stop(reason, 2)
    for record in records:
        try:
            with progress_bar(of_bytes=True) as progress:
                bar = DownloadBar(progress, record.name)
                paths = fetch(record.name, progress=bar)
        except (DatasetError, ImportError) as reason:
            stop(reason, 1)
        if not paths:
            typer.echo(f"{record.name}: part of scikit-learn, nothing to download")
            continue
        verb = "already at" if bar.task is None else "downloaded to"
        typer.echo(f"{record.name}: {verb} {paths[0]}")
