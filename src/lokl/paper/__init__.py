"""The experiments of "A Unified View of Localized Kernel Learning", recomputed."""

from lokl.paper.cells import TABLES, Cell, RecordFile, make_cells, recorded_cells, run_cell
from lokl.paper.methods import READINGS
from lokl.paper.published import PUBLISHED, SETS, PublishedValue
from lokl.paper.reproduction import Reproduction, environment, overhead, run
from lokl.paper.tables import PaperTable, make_table

__all__ = [
    "PUBLISHED",
    "READINGS",
    "SETS",
    "TABLES",
    "Cell",
    "PaperTable",
    "PublishedValue",
    "RecordFile",
    "Reproduction",
    "environment",
    "make_cells",
    "make_table",
    "overhead",
    "recorded_cells",
    "run",
    "run_cell",
]
