"""The results that the documentation shows are those of the records beside it."""

import gzip
import json
from pathlib import Path

import pytest

from lokl.paper import make_table

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def records():
    with gzip.open(DOCS / "results" / "small_sets.jsonl.gz", "rt") as stream:
        return [json.loads(line) for line in stream]


@pytest.mark.parametrize(("table", "methods"), [("table2", 4), ("table4", 8)])
def test_every_row_of_the_page_follows_from_the_records(records, table, methods):
    page = (DOCS / "paper.md").read_text()
    local = ("LMKL", "SwMKL", "LD-MKL", "C-LMKL")
    chosen = [r for r in records if methods == 8 or r["method"] in local]
    rows = [line for line in make_table(table, chosen).markdown().splitlines() if line[0:1] == "|"]
    assert len(rows) == 2 + 4 * methods
    shown = {tuple(cell.strip() for cell in line.split("|")) for line in page.splitlines()}
    for row in rows:
        cells = [cell.strip() for cell in row.split("|")]
        # Times are rounded in the stored records.
        assert any(
            list(other[:6]) + list(other[7:]) == cells[:6] + cells[7:]
            for other in shown
            if len(other) == len(cells)
        ), row
