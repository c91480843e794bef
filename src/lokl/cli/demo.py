"""``lokl demo``: a comparison on generated tables, some of them wrong or missing in part."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lokl.cli.options import AsJson, Jobs, explained

Seed = Annotated[int, typer.Option(min=0, help="Seed of data and splits.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for tables and reports.")]


def demo(
    seed: Seed = 0,
    jobs: Jobs = -1,
    output: Output = Path("lokl_demo"),
    as_json: AsJson = False,
) -> None:
    """Compare models on tables with wrong or missing parts, and explain one sample.

    Writes the tables to OUTPUT and compares a trusted vote with a uniform mix, single views and a
    random forest, as `lokl compare` does. Each comparison ends with a report.

    Example: lokl demo -o lokl_demo
    """
    with explained():
        from lokl.study.demo import demo_tables

        summaries = [_run(example, jobs, quiet=as_json) for example in demo_tables(output, seed)]
    if as_json:
        typer.echo(json.dumps(summaries, indent=1))


def _run(example: Any, jobs: int, *, quiet: bool) -> Any:
    """Run one comparison, show it and one of its samples."""
    from lokl.cli.compare import run_comparison, show_results, wrapped
    from lokl.cli.explain import explain_sample
    from lokl.study.candidates import VOTE, fit_candidate
    from lokl.study.outputs import as_dict, disagreeing
    from lokl.study.run import Comparison

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
    typer.echo(f"\n one sample, explained by the {VOTE}")
    model = fit_candidate(table, VOTE, example.settings.seed)
    for line in str(explain_sample(model, table, name)).splitlines():
        typer.echo(f" {line}")
    typer.echo(f"\n report: {finished.files['report.html']}\n")
    return None
