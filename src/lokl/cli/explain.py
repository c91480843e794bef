"""``lokl explain``: the role of each view in the predictions of a model."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from lokl.cli.options import (
    AS_JSON,
    PREDICTION,
    one_line_errors,
    option,
    output_path,
    print_notes,
    takes,
    to_json,
)
from lokl.cli.terminal import stop

# Similar samples that are listed.
_NEIGHBOURS = 3


@takes(
    **PREDICTION,
    sample=option(str, "Id of the sample to explain in the terminal."),
    output=output_path("File for the report about all samples."),
    target=option(str, "Column with the true values, or FILE:COLUMN, for the report."),
    as_json=AS_JSON,
)
def explain(
    model: Path,
    data: list[str],
    sample: str | None,
    output: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Explain predictions by views: predictions of each view, trust or weights, contributions.

    --sample explains one sample in the terminal, --output writes a report about all of them.

    Example: lokl explain ill.lokl blood.csv pulse.csv --sample P017 -o report.html
    """
    if sample is None and output is None:
        stop("nothing to do; pass --sample ID, --output report.html, or both", 2)
    with one_line_errors():
        from lokl._files import check_writable
        from lokl.persistence import load
        from lokl.tables.preparation import schema_of
        from lokl.tables.table import read_new

        if output is not None:
            check_writable(output)
        fitted = load(model)
        table = read_new(data, schema_of(fitted), **given)
        print_notes(table.notes)
        explanation = None if sample is None else explain_sample(fitted, table, sample)
        if output is not None:
            _write_report(fitted, table, model, data, output)
    if explanation is not None:
        typer.echo(to_json(explanation.to_dict()) if as_json else str(explanation))
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
