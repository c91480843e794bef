"""``lokl demo``: a comparison on generated tables, some of them wrong or missing in part."""

from pathlib import Path
from typing import Any

import typer

from lokl.cli.compare import run_comparison, show_results
from lokl.cli.options import AS_JSON, JOBS, one_line_errors, option, output_path, takes, to_json
from lokl.cli.terminal import wrapped


@takes(
    seed=option(int, "Seed of data and splits.", default=0, min=0),
    jobs=JOBS,
    output=output_path("Folder for tables and reports.", "lokl_demo"),
    as_json=AS_JSON,
)
def demo(seed: int, jobs: int, output: Path, as_json: bool) -> None:
    """Compare models on tables with wrong or missing parts, and explain one sample.

    Writes the tables to OUTPUT and compares a trusted vote with a uniform mix, single views and a
    random forest, as `lokl compare` does. Each comparison ends with a report.

    Example: lokl demo -o lokl_demo
    """
    with one_line_errors():
        from lokl.study.demo import demo_tables

        summaries = [_run(example, jobs, quiet=as_json) for example in demo_tables(output, seed)]
    if as_json:
        typer.echo(to_json(summaries))


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
