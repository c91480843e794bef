"""Tables that people bring, from files to samples that a model can learn from."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.tables.adjustment import CovariateAdjustment as CovariateAdjustment
    from lokl.tables.preparation import TablePreparation as TablePreparation
    from lokl.tables.sources import TableError as TableError
    from lokl.tables.table import Table as Table
    from lokl.tables.table import read_table as read_table

__getattr__, __all__ = lazy_exports(__name__)
