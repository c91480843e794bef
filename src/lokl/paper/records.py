"""Records of finished cells."""

from typing import Any

from lokl._records import Records
from lokl.paper.cells import Cell, check_record, with_reading


class RecordFile(Records):
    """Records of cells as lines of JSON; see :class:`Records`."""

    def key_of(self, record: dict[str, Any]) -> str:
        return Cell.of(record).key

    def check(self, record: Any) -> None:
        check_record(record)

    def as_now(self, record: Any) -> Any:
        return with_reading(record)

    def __contains__(self, cell: Cell) -> bool:
        """Whether a cell is done; one that failed is not, so that it is tried again."""
        record = self.get(cell.key)
        return record is not None and record["error"] is None

    def of(self, cell: Cell) -> dict[str, Any]:
        """Return the record of a cell."""
        record = self.get(cell.key)
        if record is None:
            raise KeyError(cell.key)
        return record
