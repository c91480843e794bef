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

# Seconds between two times that lines are forced onto the disk: a process that dies loses no
# line, a machine that loses power the last second.
_FORCED_EVERY = 1.0


@contextmanager
def _alone(stream: Any) -> Iterator[None]:
    """Keep other runs that share a file from it; what one is writing is not torn for another."""
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
    """JSON lines, each handed to the system at once.

    A run that was killed may have torn the last line; it is cut off when the file is opened, and
    the cell is done again. Any other damage is an error that names the line. Records of earlier
    runs may lie in an archive beside the file, of the same name with ``.gz`` added, which is read
    and left alone.

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
        """Whether a cell is done; one that failed is not, what it lacked may be there now."""
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
                # Half a line would spoil the next one.
                stream.truncate(begin)
                raise
        self._records[Cell.of(record).key] = record

    def archive(self) -> None:
        """Move all records into the compressed archive."""
        lines = [json.dumps(record, sort_keys=True) for record in self]
        text = "".join(f"{line}\n" for line in sorted(lines))
        temporary = self.archive_path.with_name(self.archive_path.name + ".part")
        # No date inside: equal records give equal bytes.
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0))
        temporary.replace(self.archive_path)
        self.path.unlink(missing_ok=True)
