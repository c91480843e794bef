"""``lokl predict``: predictions for new samples. ``lokl info``: contents of a model file."""

import json
from textwrap import fill
from typing import Any

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


def predict(
    model: ModelFile,
    data: Data,
    on: On = None,
    na: Na = None,
    delimiter: Delimiter = "",
    as_json: AsJson = False,
) -> None:
    """Predict samples of tables, as CSV on standard output.

    Columns: id, prediction, probability of each class and, for several views, trust (trusted vote)
    or weight of each view, disagreement and status. Columns of the tables are matched by name;
    views may be absent.

    Example: lokl predict ill.lokl new_blood.csv > predictions.csv
    """
    with one_line_errors():
        from lokl._text import csv_text
        from lokl.explain import explain
        from lokl.persistence import load
        from lokl.tables.prediction_input import read_new
        from lokl.tables.preparation import schema_of

        fitted = load(model)
        table = read_new(data, schema_of(fitted), on=on, na=na or (), delimiter=delimiter)
        print_notes(table.notes)
        found = explain(fitted, table.frame, ids=table.ids).table(details=False)
    columns = {"id": table.ids, **{name: values.tolist() for name, values in found.items()}}
    rows = list(zip(*columns.values(), strict=True))
    if as_json:
        typer.echo(json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1))
        return
    typer.echo(csv_text(columns, rows), nl=False)


# Columns of a view, and classes, that are shown.
_MOST = 6


def info(model: ModelFile, as_json: AsJson = False) -> None:
    """Show what the file of a model contains, without loading the model.

    Example: lokl info ill.lokl
    """
    with one_line_errors():
        from lokl.persistence import info as model_info

        stored = model_info(model)
    if as_json:
        typer.echo(json.dumps(stored, indent=1))
        return
    accepted, target = stored["input"], stored["target"]
    rows = {
        "model": " > ".join(stored["model"]),
        "target": target["name"] or "",
        "classes": _some(target["classes"]),
        "columns": str(accepted["n_features"]),
        **{f"view {name}": _some(columns) for name, columns in (accepted["views"] or {}).items()},
        "settings": ", ".join(f"{k}={v}" for k, v in stored["settings"].items() if k != "kernels"),
        "saved": f"{stored['saved']} by lokl {stored['lokl']}, format {stored['format']}",
        "versions": ", ".join(f"{k} {v}" for k, v in stored["environment"].items() if v),
    }
    width = max(map(len, rows))
    for name, text in rows.items():
        if text:
            begin = f"{name:<{width}}  "
            typer.echo(fill(begin + text, 80, subsequent_indent=" " * len(begin)))


def _some(values: list[Any] | None) -> str:
    shown = ", ".join(map(str, (values or [])[:_MOST]))
    return f"{shown} and {len(values) - _MOST} more" if values and len(values) > _MOST else shown
