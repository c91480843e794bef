"""``lokl demo``: tables of which some are wrong or missing, and what lokl makes of them."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lokl.cli.options import AsJson, Jobs, explained

Methods = Annotated[
    bool,
    typer.Option("--methods", help="Show all methods on data sets of scikit-learn instead."),
]
DataSets = Annotated[
    list[str] | None,
    typer.Option(
        help="With --methods: breast_cancer, digits, wine or iris. Give it again for several; the "
        "first three if not given."
    ),
]
Repeats = Annotated[int, typer.Option(min=1, help="With --methods: number of random 75/25 splits.")]
Figure = Annotated[
    Path,
    typer.Option(
        help="With --methods: file for a figure of which kernel is trusted where; needs matplotlib."
    ),
]
Draw = Annotated[
    bool, typer.Option("--figure-too/--no-figure", help="Whether to draw that figure.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of data and splits.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for tables and reports.")]


def demo(
    methods: Methods = False,
    data: DataSets = None,
    repeats: Repeats = 5,
    seed: Seed = 0,
    jobs: Jobs = -1,
    figure: Figure = Path("lokl_demo.png"),
    draw: Draw = True,
    output: Output = Path("lokl_demo"),
    as_json: AsJson = False,
) -> None:
    """Compare models on tables of which some are wrong or missing, and explain one sample.

    Writes the tables to OUTPUT, compares a trusted vote with a uniform mix, single views and a
    random forest, as `lokl compare` does, and says where the reports are.

    Example: lokl demo -o lokl_demo
    """
    if methods or data:
        from lokl.cli.demo_methods import SETS, demo_methods

        demo_methods(data or list(SETS[:3]), repeats, seed, as_json, figure, draw)
        return
    told = []
    with explained():
        from lokl.study.demo import demo_tables

        for example in demo_tables(output, seed):
            told.append(_shown(example, jobs, quiet=as_json))
    if as_json:
        typer.echo(json.dumps(told, indent=1))


def _shown(example: Any, jobs: int, *, quiet: bool) -> Any:
    """Run one comparison, show it and one of its samples."""
    from lokl.cli.compare import run_comparison, show_results, wrapped
    from lokl.cli.explain import story_lines
    from lokl.study.candidates import VOTE, fit_candidate
    from lokl.study.outputs import as_dict, disagreeing
    from lokl.study.run import Comparison
    from lokl.tables.answers import story

    if not quiet:
        for text in (example.title, example.command):
            typer.echo("\n".join(wrapped(text)))
        typer.echo()
    finished = run_comparison(Comparison(example.settings, example.folder), jobs, None)
    if quiet:
        return as_dict(finished)
    show_results(finished)
    table = finished.results.table
    name = (disagreeing(finished.results) or table.ids)[0]
    typer.echo(f"\n what the {VOTE} has to say about one sample")
    voting = fit_candidate(table, VOTE, example.settings.seed)
    for line in story_lines(story(voting, table, name)):
        typer.echo(f" {line}")
    typer.echo(f"\n the report: {finished.files['report.html']}\n")
    return None
