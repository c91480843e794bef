"""The experiments of "A Unified View of Localized Kernel Learning", recomputed."""

from lokl.paper.cells import Cell, run_cell
from lokl.paper.experiment import RecordFile, environment, overhead, run
from lokl.paper.methods import READINGS
from lokl.paper.plan import TABLES, make_cells, recorded_cells
from lokl.paper.published import PUBLISHED, SETS, Value
from lokl.paper.tables import ResultTable, make_table

__all__ = [
    "PUBLISHED",
    "READINGS",
    "SETS",
    "TABLES",
    "Cell",
    "RecordFile",
    "ResultTable",
    "Value",
    "environment",
    "make_cells",
    "make_table",
    "overhead",
    "recorded_cells",
    "run",
    "run_cell",
]
