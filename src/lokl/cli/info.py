"""``lokl info``: what the file of a model contains."""

import json
from textwrap import fill
from typing import Any

import typer

from lokl.cli.given import AsJson, ModelFile, explained

# Columns of a view, and classes, that are shown.
_MOST = 6


def info(model: ModelFile, as_json: AsJson = False) -> None:
    """Show what the file of a model contains, without loading the model.

    Example: lokl info ill.lokl
    """
    with explained():
        from lokl.files import info as about

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
