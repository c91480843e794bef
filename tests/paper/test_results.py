"""The results that the documentation shows are those of the records beside it."""

import json
from functools import cache
from pathlib import Path

import pytest

from lokl.paper import RecordFile, make_table, recorded_cells
from lokl.paper.methods import READINGS

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "results"


# Tables of each folder with records, and the seed of the splits behind them.
TABLES = {
    "results": (2016, ("table2", "table2-nested", "table3", "table4")),
    "results/adult": (2016, ("table3",)),
}


@cache
def records_in(folder):
    return RecordFile(DOCS / folder / "records.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "name"), [(f, n) for f, (_, own) in TABLES.items() for n in own]
)
def test_tables_follow_from_the_records(folder, name):
    records, (seed, _) = records_in(folder), TABLES[folder]
    table, _, selection = name.partition("-")
    settings = {"readings": list(READINGS), "selection": selection or "paper", "seed": seed}
    cells = recorded_cells(table, records, **settings)
    made = make_table(table, records.of(cells))
    assert (DOCS / folder / f"{name}.md").read_text() == made.markdown()
    assert (DOCS / folder / f"{name}.csv").read_text() == made.csv()
    assert {entry.failures for entry in made.entries} == {0}
    shown = (DOCS / folder / f"{name}.md").relative_to(RESULTS).as_posix()
    assert f"{{include}} {shown}" in (RESULTS / "paper.md").read_text()
    # A reader elsewhere can type it.
    assert (
        " /"
        not in json.loads((DOCS / folder / f"{name}.json").read_text())["environment"]["command"]
    )


def test_every_result_is_shown_and_there():
    page = (DOCS / "paper.md").read_text()
    for figure in ("figure1", "figure2", "agreement"):
        assert f"results/{figure}.svg" in page
        for ending in ("png", "svg"):
            assert (RESULTS / f"{figure}.{ending}").stat().st_size > 0
