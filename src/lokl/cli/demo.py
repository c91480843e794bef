"""``lokl demo``: a comparison on generated tables, some of them wrong or missing in part."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lokl.cli.compare import run_comparison, show_results
from lokl.cli.options import AsJson, Jobs, one_line_errors
from lokl.cli.terminal import wrapped

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
    with one_line_errors():
        from lokl.study.demo import demo_tables

        summaries = [_run(example, jobs, quiet=as_json) for example in demo_tables(output, seed)]
    if as_json:
        typer.echo(json.dumps(summaries, indent=1))


def _run(example: Any, jobs: int, *, quiet: bool) -> Any:
    """Run one comparison, show it and explain one of its samples."""
    from lokl.cli.explain import explain_sample
    from lokl.study import Comparison
    from lokl.study.candidates import VOTE, fit_candidate

    if not quiet:
        for text in (example.title, example.command):
            typer.echo("\n".join(wrapped(text)))
        typer.echo()
    outputs = run_comparison(Comparison(example.settings, example.folder), jobs, None)
    if quiet:
        return outputs.to_dict()
    show_results(outputs)
    table = outputs.results.table
    sample = (outputs.results.disagreeing() or table.ids)[0]
    typer.echo(f"\n one sample, explained by the {VOTE}")
    model = fit_candidate(table, VOTE, example.settings.seed)
    for line in str(explain_sample(model, table, sample)).splitlines():
        typer.echo(f" {line}")
    typer.echo(f"\n report: {outputs.files['report.html']}\n")
    return None
