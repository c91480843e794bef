"""Work that is done in processes, whatever happens to them.

Records of finished work, one line each, in a file that only grows.
"""

import gzip
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from io import FileIO
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

import joblib

from lokl._files import replace_file

T = TypeVar("T")
Record = dict[str, Any]


def until(seconds: float | None) -> Callable[[], bool]:
    """Return a question that is answered with yes for so many seconds from now, None for ever."""
    begun = time.monotonic()
    return lambda: seconds is None or time.monotonic() - begun < seconds


def by_processes(
    cells: Mapping[str, T],
    jobs: int | None,
    work: Callable[[T], Record],
    key_of: Callable[[Record], str],
    died: Callable[[T, Exception], Record],
    go_on: Callable[[], bool] = lambda: True,
) -> Iterator[Record]:
    """Yield records of cells as they come.

    Parameters
    ----------
    cells : mapping of key to cell
    jobs : int or None
        Processes; None is one, which is this process, -1 all cores.
    work : callable
        Turns a cell into its record.
    key_of : callable
        Key of the cell that a record belongs to.
    died : callable
        Makes the record of a cell whose process died.
    go_on : callable
        Asked before each cell; where it says no, no other cell is begun.
    """
    left = dict(cells)
    while left:
        parallel = joblib.Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered")
        begun = takewhile(lambda cell: go_on(), list(left.values()))
        try:
            for record in parallel(joblib.delayed(work)(cell) for cell in begun):
                del left[key_of(record)]
                yield record
            return
        except BrokenProcessPool:
            # One of the cells at work killed a process, and which one is not known: one at a
            # time until it is found.
            for record in _one_by_one(list(left.values()), work, died):
                del left[key_of(record)]
                yield record


def _one_by_one(
    cells: list[T], work: Callable[[T], Record], died: Callable[[T, Exception], Record]
) -> Iterator[Record]:
    """Do cells one at a time in a separate process, until one of them kills it."""
    from joblib.externals.loky import ProcessPoolExecutor

    with ProcessPoolExecutor(1) as pool:
        for cell in cells:
            try:
                record = pool.submit(work, cell).result()
            except BrokenProcessPool as reason:
                yield died(cell, reason)
                return
            yield record


# Seconds after which lines are forced onto the disk: a process that is killed loses no line, a
# machine that loses power those of the last second.
_FORCED_EVERY = 1.0


@contextmanager
def _alone(stream: FileIO) -> Iterator[None]:
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


@contextmanager
def _locked(path: Path) -> Iterator[FileIO]:
    """Open a file, which need not exist, to read and to append to while no other run does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("a+b", buffering=0) as stream, _alone(stream):
            # A run that archived the records while this one waited has removed the file.
            if os.fstat(stream.fileno()).st_nlink:
                yield stream
                return


def _whole_lines(stream: FileIO) -> bytes:
    """Return the lines of a locked file; half a line of a run that was killed is cut off."""
    stream.seek(0)
    text = stream.read()
    whole = text.rfind(b"\n") + 1
    if whole < len(text):
        stream.truncate(whole)
    return text[:whole]


class Records(ABC):
    """Records as lines of JSON; several runs may add to one file at the same time.

    A run that was killed may have left half a line at the end. It is cut off when the file is
    opened or added to, and that work is done again. Any other damage is an error that names the
    line. Records of earlier runs may lie in an archive beside the file, of the same name with
    ``.gz`` added, which only :meth:`archive` changes.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.archive_path = self.path.with_name(self.path.name + ".gz")
        self._records: dict[str, dict[str, Any]] = {}
        self._forced = 0.0
        lines = b""
        # The file before the archive, where another run may move its records meanwhile.
        if self.path.exists():
            with _locked(self.path) as stream:
                lines = _whole_lines(stream)
        self._read_both(lines)

    @abstractmethod
    def key_of(self, record: dict[str, Any]) -> str:
        """Text that is equal for records of the same work; later ones replace earlier ones."""

    @abstractmethod
    def check(self, record: Any) -> None:
        """Raise a ValueError that says what a record lacks, or which value is wrong."""

    def as_now(self, record: Any) -> Any:
        """Return a record of an earlier version as those of this one are."""
        return record

    def _read_both(self, lines: bytes) -> None:
        """Take the records of the archive, then those of lines of the file, which are newer."""
        if self.archive_path.exists():
            try:
                self._read(self.archive_path, gzip.decompress(self.archive_path.read_bytes()))
            except (EOFError, gzip.BadGzipFile) as reason:
                raise ValueError(
                    f"{self.archive_path} is damaged ({reason}); delete it, or fetch it again"
                ) from reason
        self._read(self.path, lines)

    def _read(self, path: Path, text: bytes) -> None:
        for number, line in enumerate(text.splitlines(), 1):
            try:
                record = self.as_now(json.loads(line))
                self.check(record)
            except ValueError as reason:
                raise ValueError(
                    f"{path}, line {number} is no record ({reason}); delete the line, or "
                    "the file to start anew"
                ) from reason
            self._records[self.key_of(record)] = record

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._records.values())

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the record of some work, None where there is none."""
        return self._records.get(key)

    def add(self, record: dict[str, Any]) -> None:
        """Write one record whole, or raise and leave the file as it was."""
        line = (json.dumps(record, sort_keys=True) + "\n").encode()
        # As it would be read again.
        self.check(json.loads(line))
        with _locked(self.path) as stream:
            begin = stream.seek(0, os.SEEK_END)
            if begin:
                # The last byte tells whether a run was killed in the middle of a line.
                stream.seek(begin - 1)
                if stream.read(1) != b"\n":
                    begin = len(_whole_lines(stream))
            try:
                if stream.write(line) < len(line):
                    raise OSError(28, "no space left on the disk, or the file is at its limit")
                if time.monotonic() - self._forced > _FORCED_EVERY:
                    os.fsync(stream.fileno())
                    self._forced = time.monotonic()
            except OSError:
                # The next record would be appended to half a line.
                stream.truncate(begin)
                raise
        self._records[self.key_of(record)] = record

    def archive(self) -> None:
        """Move all records into the compressed archive, those of other runs included."""
        with _locked(self.path) as stream:
            self._read_both(_whole_lines(stream))
            lines = [json.dumps(record, sort_keys=True) for record in self]
            text = "".join(f"{line}\n" for line in sorted(lines))
            # No date inside: equal records give equal bytes.
            replace_file(self.archive_path, gzip.compress(text.encode(), mtime=0))
            # Emptied first: Windows does not remove a file that is open.
            stream.truncate(0)
            with suppress(PermissionError):
                self.path.unlink()
