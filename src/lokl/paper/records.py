"""Records of finished cells, one line each, in a file that only grows."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lokl.paper.cells import Cell


class RecordFile:
    """JSON lines, each written at once and flushed to the disk.

    A run that was killed may have torn the last line; it is cut off when the file is opened, and
    the cell is done again. Any other damage is an error that names the line.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path):
        self.path = Path(path)
        self._records: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            self._repair()
            for number, line in enumerate(self.path.read_bytes().splitlines(), 1):
                try:
                    record = json.loads(line)
                    self._records[Cell.of(record).key] = record
                except (ValueError, KeyError, TypeError) as reason:
                    raise ValueError(
                        f"{self.path}, line {number} is no record ({reason}); delete the line, or "
                        "the file to start anew"
                    ) from reason

    def _repair(self) -> None:
        """Cut off what follows the last end of a line."""
        with self.path.open("r+b") as stream:
            text = stream.read()
            whole = text.rfind(b"\n") + 1
            if whole < len(text):
                stream.truncate(whole)

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._records.values())

    def __contains__(self, cell: Cell) -> bool:
        """Whether a cell is done; one that failed is not, what it lacked may be there now."""
        record = self._records.get(cell.key)
        return record is not None and record["error"] is None

    def add(self, record: dict[str, Any]) -> None:
        """Write one record; it is on the disk when this returns."""
        line = json.dumps(record, sort_keys=True) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as stream:
            stream.write(line.encode())
            stream.flush()
            os.fsync(stream.fileno())
        self._records[Cell.of(record).key] = record
