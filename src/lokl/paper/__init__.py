"""The experiments of "A Unified View of Localized Kernel Learning", recomputed."""

from lokl.paper.cells import Cell, run_cell
from lokl.paper.published import PUBLISHED, SETS, Value
from lokl.paper.records import RecordFile
from lokl.paper.runner import run
from lokl.paper.tables import TABLES, ResultTable, make_cells, make_table

__all__ = [
    "PUBLISHED",
    "SETS",
    "TABLES",
    "Cell",
    "RecordFile",
    "ResultTable",
    "Value",
    "make_cells",
    "make_table",
    "run",
    "run_cell",
]
