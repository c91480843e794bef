"""``lokl explain``: the role of each view in the predictions of a model."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from lokl.cli.options import (
    AsJson,
    Data,
    Delimiter,
    ModelFile,
    Na,
    On,
    one_line_errors,
    print_notes,
)
from lokl.cli.terminal import stop

# Similar samples that are listed.
_NEIGHBOURS = 3

Sample = Annotated[str | None, typer.Option(help="Id of the sample to explain in the terminal.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="File for the report about all samples.")
]
Target = Annotated[
    str | None,
    typer.Option(help="Column with the true values, or FILE:COLUMN, for the report."),
]


def explain(
    model: ModelFile,
    data: Data,
    sample: Sample = None,
    output: Output = None,
    target: Target = None,
    on: On = None,
    na: Na = None,
    delimiter: Delimiter = "",
    as_json: AsJson = False,
) -> None:
    """Explain predictions by views: predictions of each view, trust or weights, contributions.

    --sample explains one sample in the terminal, --output writes a report about all of them.

    Example: lokl explain ill.lokl blood.csv pulse.csv --sample P017 -o report.html
    """
    if sample is None and output is None:
        stop("lokl: nothing to do; pass --sample ID, --output report.html, or both", 2)
    with one_line_errors():
        from lokl._files import check_writable
        from lokl.persistence import load
        from lokl.tables.prediction_input import read_new
        from lokl.tables.preparation import schema_of

        if output is not None:
            check_writable(output)
        fitted = load(model)
        options: dict[str, Any] = {"on": on, "na": na or (), "delimiter": delimiter}
        table = read_new(data, schema_of(fitted), target=target, **options)
        print_notes(table.notes)
        explanation = None if sample is None else explain_sample(fitted, table, sample)
        if output is not None:
            _write_report(fitted, table, model, data, output)
    if explanation is not None:
        text = json.dumps(explanation.to_dict(), indent=1) if as_json else str(explanation)
        typer.echo(text)
    if output is not None and not as_json:
        typer.echo(str(output))


def explain_sample(model: Any, table: Any, name: str) -> Any:
    """Return the explanation of one sample of a table, with its most similar samples."""
    from lokl.explain import explain, nearest_samples
    from lokl.explain.explanation import Neighbour
    from lokl.tables import TableError

    if name not in table.ids:
        raise TableError(f"no sample {name!r}; the first are {', '.join(table.ids[:3])}")
    row = table.ids.index(name)
    near = nearest_samples(model, table.frame, row, _NEIGHBOURS)
    rows = [k for k, _ in near]
    predicted = model.predict(table.frame.iloc[rows]).tolist() if rows else []
    neighbours = tuple(
        Neighbour(table.ids[k], prediction, similarity)
        for (k, similarity), prediction in zip(near, predicted, strict=True)
    )
    explanation = explain(model, table.frame.iloc[[row]], ids=[name])
    return replace(explanation.sample(name), neighbours=neighbours)


def _write_report(fitted: Any, table: Any, model: Path, data: list[str], output: Path) -> None:
    from lokl.report import write
    from lokl.study.outputs import model_report

    again = shlex.join(["lokl", "explain", str(model), *data, "-o", str(output)])
    write(model_report(fitted, table, model.name, again), output)
