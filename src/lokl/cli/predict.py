"""``lokl predict``: what a model says about new samples.

``lokl info``: what the file of a model contains.
"""

import csv
import json
import sys
from textwrap import fill
from typing import Any

import typer

from lokl.cli.options import AsJson, Data, Delimiter, ModelFile, Na, On, explained, tell


def predict(
    model: ModelFile,
    data: Data,
    on: On = None,
    na: Na = None,
    delimiter: Delimiter = "",
    as_json: AsJson = False,
) -> None:
    """Predict samples of tables, as CSV on standard output.

    For each sample: id, prediction, the probability of each class, and how far each view is
    trusted. Columns are matched by name; views may be absent.

    Example: lokl predict ill.lokl new_blood.csv > predictions.csv
    """
    with explained():
        from lokl.persistence import load
        from lokl.tables.answers import answers
        from lokl.tables.prediction_input import read_new
        from lokl.tables.preparation import schema_of

        fitted = load(model)
        table = read_new(data, schema_of(fitted), on=on, na=na or (), delimiter=delimiter)
        tell(table.notes)
        records = answers(fitted, table).records()
    if as_json:
        typer.echo(json.dumps(records, indent=1))
        return
    writer = csv.DictWriter(sys.stdout, list(records[0]), lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in record.items()})


# Columns of a view, and classes, that are shown.
_MOST = 6


def info(model: ModelFile, as_json: AsJson = False) -> None:
    """Show what the file of a model contains, without loading the model.

    Example: lokl info ill.lokl
    """
    with explained():
        from lokl.persistence import info as about

        told = about(model)
    if as_json:
        typer.echo(json.dumps(told, indent=1))
        return
    taken, target = told["input"], told["target"]
    rows = {
        "model": " > ".join(told["model"]),
        "target": target["name"] or "",
        "classes": _some(target["classes"]),
        "columns": str(taken["n_features"]),
        **{f"view {name}": _some(own) for name, own in (taken["views"] or {}).items()},
        "settings": ", ".join(f"{k}={v}" for k, v in told["settings"].items() if k != "kernels"),
        "saved": f"{told['saved']} by lokl {told['lokl']}, format {told['format']}",
        "versions": ", ".join(f"{k} {v}" for k, v in told["environment"].items() if v),
    }
    width = max(map(len, rows))
    for name, text in rows.items():
        if text:
            begin = f"{name:<{width}}  "
            typer.echo(fill(begin + text, 80, subsequent_indent=" " * len(begin)))


def _some(values: list[Any] | None) -> str:
    shown = ", ".join(map(str, (values or [])[:_MOST]))
    return f"{shown} and {len(values) - _MOST} more" if values and len(values) > _MOST else shown
