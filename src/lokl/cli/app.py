"""The command and its options that come before a subcommand."""

import typer

from lokl import __version__
from lokl.cli.compare import compare, demo
from lokl.cli.datasets import datasets
from lokl.cli.models import explain, fit, info, predict
from lokl.cli.options import GroupedCommand, flag, takes
from lokl.cli.reproduce import reproduce

app = typer.Typer(
    name="lokl",
    help="Localized kernel learning: which kernel to trust where.",
    no_args_is_help=True,
    add_completion=False,
    # Plain help: boxes leave a third of 80 columns for the sentences.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    """Print the version and exit, if wanted."""
    if wanted:
        typer.echo(f"lokl {__version__}")
        raise typer.Exit


@app.callback()
@takes(
    version=flag("--version", "Show the version and exit.", callback=_show_version, is_eager=True)
)
def options(version: bool) -> None:
    """Localized kernel learning: which kernel to trust where."""


for command in (compare, fit, predict, explain, info, demo):
    app.command(cls=GroupedCommand)(command)
app.add_typer(datasets, name="datasets")
app.command(cls=GroupedCommand)(reproduce)
