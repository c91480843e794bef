"""The results that the documentation shows are those of the records beside it."""

from pathlib import Path

import pytest

from lokl.paper import RecordFile, make_table, recorded_cells
from lokl.paper.readings import READINGS

# Of the splits behind the pages.
SEED = 0
DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "results"


@pytest.fixture(scope="module")
def records():
    return RecordFile(RESULTS / "records.jsonl")


@pytest.mark.parametrize("name", ["table2", "table2-nested", "table3", "table4"])
def test_tables_follow_from_the_records(records, name):
    table, _, selection = name.partition("-")
    settings = {"readings": list(READINGS), "selection": selection or "paper", "seed": SEED}
    cells = recorded_cells(table, records, **settings)
    made = make_table(table, [records.of(cell) for cell in cells])
    assert (RESULTS / f"{name}.md").read_text() == made.markdown()
    assert (RESULTS / f"{name}.csv").read_text() == made.csv()
    assert {entry.failures for entry in made.entries} == {0}
    assert f"results/{name}.md" in (DOCS / "paper.md").read_text()


def test_every_result_is_shown_and_there():
    page = (DOCS / "paper.md").read_text()
    for figure in ("figure1", "figure2", "agreement"):
        assert f"results/{figure}.svg" in page
        for ending in ("png", "svg"):
            assert (RESULTS / f"{figure}.{ending}").stat().st_size > 0
