"""Records of finished cells, one line each, in a file that only grows."""

import gzip
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lokl.paper.cells import Cell
from lokl.paper.files import replace_file

# Seconds after which lines are forced onto the disk: a process that is killed loses no line, a
# machine that loses power those of the last second.
_FORCED_EVERY = 1.0


@contextmanager
def _alone(stream: Any) -> Iterator[None]:
    """Wait until no other run reads or writes the file, and keep others out meanwhile."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    fcntl.flock(stream, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(stream, fcntl.LOCK_UN)


class RecordFile:
    """Records as lines of JSON; several runs may add to one file at the same time.

    A run that was killed may have left half a line at the end. It is cut off when the file is
    opened, and that cell is done again. Any other damage is an error that names the line. Records
    of earlier runs may lie in an archive beside the file, of the same name with ``.gz`` added,
    which is read and not changed.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.archive_path = self.path.with_name(self.path.name + ".gz")
        self._records: dict[str, dict[str, Any]] = {}
        self._forced = 0.0
        if self.archive_path.exists():
            try:
                self._read(self.archive_path, gzip.decompress(self.archive_path.read_bytes()))
            except (EOFError, gzip.BadGzipFile) as reason:
                raise ValueError(
                    f"{self.archive_path} is damaged ({reason}); delete it, or fetch it again"
                ) from reason
        if self.path.exists():
            # Cut and read in one: between the two another run could begin a line.
            with self.path.open("r+b") as stream, _alone(stream):
                text = stream.read()
                whole = text.rfind(b"\n") + 1
                if whole < len(text):
                    stream.truncate(whole)
            self._read(self.path, text[:whole])

    def _read(self, path: Path, text: bytes) -> None:
        for number, line in enumerate(text.splitlines(), 1):
            try:
                record = json.loads(line)
                self._records[Cell.of(record).key] = record
            except (ValueError, KeyError, TypeError) as reason:
                raise ValueError(
                    f"{path}, line {number} is no record ({reason}); delete the line, or "
                    "the file to start anew"
                ) from reason

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._records.values())

    def __contains__(self, cell: Cell) -> bool:
        """Whether a cell is done; one that failed is not, so that it is tried again."""
        record = self._records.get(cell.key)
        return record is not None and record["error"] is None

    def of(self, cell: Cell) -> dict[str, Any]:
        """Return the record of a cell."""
        return self._records[cell.key]

    def add(self, record: dict[str, Any]) -> None:
        """Write one record whole, or raise and leave the file as it was."""
        line = json.dumps(record, sort_keys=True) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab", buffering=0) as stream, _alone(stream):
            begin = stream.seek(0, os.SEEK_END)
            try:
                if stream.write(line.encode()) < len(line.encode()):
                    raise OSError(28, "no space left on the disk, or the file is at its limit")
                if time.monotonic() - self._forced > _FORCED_EVERY:
                    os.fsync(stream.fileno())
                    self._forced = time.monotonic()
            except OSError:
                # The next record would be appended to half a line.
                stream.truncate(begin)
                raise
        self._records[Cell.of(record).key] = record

    def archive(self) -> None:
        """Move all records into the compressed archive."""
        lines = [json.dumps(record, sort_keys=True) for record in self]
        text = "".join(f"{line}\n" for line in sorted(lines))
        # No date inside: equal records give equal bytes.
        replace_file(self.archive_path, gzip.compress(text.encode(), mtime=0))
        self.path.unlink(missing_ok=True)
