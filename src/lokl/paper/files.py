"""Files of results, each of them whole or as it was before."""

import io
import json
from pathlib import Path
from typing import Any

from lokl._writing import replace_file
from lokl.paper.environment import environment
from lokl.paper.tables import ResultTable


def write_table(folder: Path, name: str, table: ResultTable) -> None:
    """Write a table as Markdown, CSV and JSON; the JSON says what its numbers depend on."""
    for ending, text in (
        ("md", table.markdown()),
        ("csv", table.csv()),
        ("json", json.dumps({**table.as_dict(), "environment": environment()}, indent=1)),
    ):
        replace_file(folder / f"{name}.{ending}", text.encode())


def write_figure(folder: Path, name: str, figure: Any) -> list[str]:
    """Write a figure as PNG and SVG, and return the paths."""
    paths = [folder / f"{name}.{ending}" for ending in ("png", "svg")]
    for path in paths:
        stream = io.BytesIO()
        figure.savefig(stream, format=path.suffix[1:], dpi=110)
        replace_file(path, stream.getvalue())
    return [str(path) for path in paths]
