"""``lokl predict``: predictions for new samples. ``lokl info``: contents of a model file."""

from pathlib import Path
from typing import Any

import typer

from lokl.cli.options import (
    AS_JSON,
    MODEL_FILE,
    PREDICTION,
    one_line_errors,
    print_notes,
    takes,
    to_json,
)
from lokl.cli.terminal import wrapped

# Columns of a view, and classes, that are shown.
_SHOWN = 6


@takes(**PREDICTION, as_json=AS_JSON)
def predict(model: Path, data: list[str], as_json: bool, **given: Any) -> None:
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
        from lokl.tables.preparation import schema_of
        from lokl.tables.table import read_new

        fitted = load(model)
        table = read_new(data, schema_of(fitted), **given)
        print_notes(table.notes)
        explained = explain(fitted, table.frame, ids=table.ids).table(details=False)
    columns = {"id": table.ids, **{name: values.tolist() for name, values in explained.items()}}
    rows = list(zip(*columns.values(), strict=True))
    if as_json:
        typer.echo(to_json([dict(zip(columns, row, strict=True)) for row in rows]))
        return
    typer.echo(csv_text(columns, rows), nl=False)


@takes(model=MODEL_FILE, as_json=AS_JSON)
def info(model: Path, as_json: bool) -> None:
    """Show what the file of a model contains, without loading the model.

    Example: lokl info ill.lokl
    """
    with one_line_errors():
        from lokl._text import shorten_list
        from lokl.persistence import info as model_info

        stored = model_info(model)
    if as_json:
        typer.echo(to_json(stored))
        return
    accepted, target = stored["input"], stored["target"]
    views = accepted["views"] or {}
    rows = {
        "model": " > ".join(stored["model"]),
        "target": target["name"] or "",
        "classes": shorten_list(target["classes"] or [], _SHOWN),
        "columns": str(accepted["n_features"]),
        **{f"view {view}": shorten_list(names, _SHOWN) for view, names in views.items()},
        "settings": ", ".join(f"{k}={v}" for k, v in stored["settings"].items() if k != "kernels"),
        "saved": f"{stored['saved']} by lokl {stored['lokl']}, format {stored['format']}",
        "versions": ", ".join(f"{k} {v}" for k, v in stored["environment"].items() if v),
    }
    width = max(map(len, rows))
    for name, text in rows.items():
        if text:
            typer.echo("\n".join(wrapped(text, f"{name:<{width}}  ", " " * (width + 2))))
