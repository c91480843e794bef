"""Folder of a long run: one run at a time, records that survive it, and worker processes.

A run is a list of cells, each of which yields one record. Comparisons (`lokl.study`) and the
experiments of the paper (`lokl.paper`) share everything here.
"""

import gzip
import json
import logging
import math
import os
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from io import FileIO
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar, Self, get_args, get_type_hints

import joblib

from lokl._deadline import Deadline
from lokl._exports import need
from lokl._files import missing_folder
from lokl._threads import effective_jobs, single_threaded
from lokl._warnings import capture_warnings

Record = dict[str, Any]
Work = Callable[[Any], Record]

logger = logging.getLogger("lokl")


@dataclass(frozen=True)
class RunCell:
    """Inputs of one piece of work; equal cells give equal results.

    Subclasses are frozen dataclasses of plain values, which are also in the record of the cell.
    """

    @classmethod
    def of(cls, record: Record) -> Self:
        """Return the cell that a record belongs to."""
        return cls(**{name: record[name] for name in cls.__dataclass_fields__})

    def measured(self, measure: Callable[[Any], Record]) -> Record:
        """Return the record of the cell: its values, and what `measure` returns for it.

        Everything runs in one thread. Names of warnings are recorded. If `measure` raises, the
        record has the error instead of measured values.

        Parameters
        ----------
        measure : callable
            Takes the cell and returns measured values by name.
        """
        try:
            with single_threaded(), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                values, deferred = capture_warnings(measure, self)
        except Exception as reason:
            return self.failed(f"{type(reason).__name__}: {' '.join(str(reason).split())}")
        names = sorted({*deferred, *(type(warning.message).__name__ for warning in caught)})
        return {**vars(self), **values, "warnings": names, "error": None}

    def failed(self, reason: str) -> Record:
        """Return the record of the cell if it failed."""
        return {**vars(self), "error": reason}

    def crashed(self, reason: BaseException) -> Record:
        """Return the record of the cell if its process ended."""
        return self.failed(f"the process died, perhaps for lack of memory ({reason})")


class BusyError(OSError):
    """Another run is writing to the folder."""


def _lock(stream: FileIO, *, wait: bool) -> None:
    """Lock an open file until it is closed.

    With `wait`, block until the lock is free, or go on without a lock on systems that have none.
    Otherwise raise at once if another process has the lock.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        if not wait:
            import msvcrt

            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


@contextmanager
def open_run_folder(folder: Path, *, lock: bool = True) -> Iterator[None]:
    """Create a folder if necessary, but no folder above it, and keep other runs out of it.

    A folder that was created here and is empty in the end is removed.

    Parameters
    ----------
    folder : Path
    lock : bool, default=True
        False lets other runs use the folder at the same time.

    Raises
    ------
    OSError
        If the folder cannot be written.
    BusyError
        If another run is active in the folder.
    """
    created = not folder.exists()
    try:
        if not folder.absolute().parent.is_dir():
            raise missing_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as reason:
        raise OSError(
            f"cannot write to {folder}: {reason.strerror or reason}; name another folder with "
            "--output"
        ) from reason
    try:
        with only_run(folder) if lock else nullcontext():
            yield
    finally:
        if created:
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder, or raise a `BusyError` if one is active there.

    The operating system locks the file ``running.lock``. The lock ends with the process, however
    that ends, and is not inherited by processes that the run starts. No package is needed for it:
    `filelock` would replace `_lock`, but neither the removal of the file nor the messages.
    """
    path = folder / "running.lock"
    while True:
        with path.open("ab", buffering=0) as stream:
            try:
                _lock(stream, wait=False)
            except (BlockingIOError, PermissionError) as reason:
                raise BusyError(
                    f"another run is active in {folder}; wait until it ends, or name another "
                    "folder with --output"
                ) from reason
            except OSError as reason:
                logger.warning(
                    "files in %s cannot be locked (%s): do not start a second run there",
                    folder,
                    reason.strerror or reason,
                )
            # Another run may have removed the file between opening and locking.
            if not os.fstat(stream.fileno()).st_nlink:
                continue
            try:
                yield
            finally:
                # Windows does not remove an open file; an empty file does no harm.
                with suppress(OSError):
                    path.unlink()
            return


# Seconds between forced writes to the disk: a killed process loses no line, a power failure loses
# the lines of the last second.
_SYNC_INTERVAL = 1.0
# Seconds between two looks of a worker at its parent process.
_WATCH_INTERVAL = 0.5


@contextmanager
def _locked(path: Path) -> Iterator[FileIO]:
    """Open a file for reading and appending, and lock it; the file need not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b", buffering=0) as stream:
        _lock(stream, wait=True)
        yield stream


def _whole_lines(stream: FileIO) -> bytes:
    """Return the lines of a locked file, and cut off an incomplete line at its end."""
    stream.seek(0)
    text = stream.read()
    whole = text.rfind(b"\n") + 1
    if whole < len(text):
        stream.truncate(whole)
    return text[:whole]


class Records:
    """Records of finished cells in a file with one line of JSON each.

    Several processes may add to one file at the same time. A killed run may leave an incomplete
    line at the end. It is cut off when the file is opened or extended, and its cell is run again.
    Any other damage raises an error that names the line. Older records may be in a compressed
    file of the same name with ``.gz`` added, which is read but never written.

    Lines are simpler than a database here: they can be read, compared and archived by any tool.

    Parameters
    ----------
    path : Path or str

    Attributes
    ----------
    cell_type : type
        Class of the cells, whose values are in all records.
    value_types : mapping of str to type
        Measured values, which are in the records of cells that did not fail.
    error_type : type
        Class of the error about a damaged file.
    """

    cell_type: ClassVar[type[RunCell]] = RunCell
    value_types: ClassVar[Mapping[str, Any]] = {}
    error_type: ClassVar[type[ValueError]] = ValueError

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.archive_path = self.path.with_name(self.path.name + ".gz")
        cell_types = {**get_type_hints(self.cell_type), "error": str | None}
        self._cell_types = {name: _json_types(hint) for name, hint in cell_types.items()}
        self._value_types = {name: _json_types(hint) for name, hint in self.value_types.items()}
        # Later records of a cell replace earlier ones.
        self._records: dict[Hashable, Record] = {}
        self._synced = 0.0
        if self.archive_path.exists():
            try:
                self._read(self.archive_path, gzip.decompress(self.archive_path.read_bytes()))
            except (EOFError, gzip.BadGzipFile) as reason:
                raise self.error_type(
                    f"{self.archive_path} is damaged ({reason}); delete it, or fetch it again"
                ) from reason
        if self.path.exists():
            with _locked(self.path) as stream:
                lines = _whole_lines(stream)
            self._read(self.path, lines)

    def key_of(self, record: Record) -> Hashable:
        """Return what identifies the work of a record: its cell."""
        return self.cell_type.of(record)

    def check(self, record: Any) -> None:
        """Raise a ValueError that names a missing or wrong value."""
        if not isinstance(record, dict):
            raise ValueError(f"a record is a JSON object, not {record!r:.40}")
        failed = record.get("error") is not None
        types = self._cell_types if failed else {**self._cell_types, **self._value_types}
        missing = [name for name in types if name not in record]
        if missing:
            raise ValueError(f"missing: {', '.join(missing)}")
        for name, allowed in types.items():
            value = record[name]
            # By type, not by isinstance: True is not a number.
            if type(value) not in allowed or (type(value) is float and not math.isfinite(value)):
                raise ValueError(f"{name} is {value!r:.40}")

    def _read(self, path: Path, text: bytes) -> None:
        """Add the records of a file, or raise an error that names the damaged line."""
        for line_number, line in enumerate(text.splitlines(), 1):
            try:
                record = json.loads(line)
                self.check(record)
            except ValueError as reason:
                raise self.error_type(
                    f"{path}, line {line_number} is not a valid record ({reason}); delete the "
                    "line, or the file to start over"
                ) from reason
            self._records[self.key_of(record)] = record

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def __contains__(self, cell: RunCell) -> bool:
        """Whether a cell is finished; a failed cell is not, so that it is run again."""
        record = self._records.get(cell)
        return record is not None and record["error"] is None

    def of(self, cells: Iterable[RunCell]) -> list[Record]:
        """Return the records of those cells that have one, failed cells included."""
        return [self._records[cell] for cell in dict.fromkeys(cells) if cell in self._records]

    def missing(self, cells: Iterable[RunCell]) -> list[RunCell]:
        """Return the unfinished cells, each of them once."""
        return [cell for cell in dict.fromkeys(cells) if cell not in self]

    def add(self, record: Record) -> None:
        """Append a whole record, or raise and leave the file unchanged."""
        line = (json.dumps(record, sort_keys=True) + "\n").encode()
        # In the form in which it will be read.
        self.check(json.loads(line))
        with _locked(self.path) as stream:
            end = stream.seek(0, os.SEEK_END)
            if end:
                stream.seek(end - 1)
                if stream.read(1) != b"\n":
                    end = len(_whole_lines(stream))
            try:
                if stream.write(line) < len(line):
                    raise OSError(28, "no space left on the disk, or the file is at its limit")
                if time.monotonic() - self._synced > _SYNC_INTERVAL:
                    os.fsync(stream.fileno())
                    self._synced = time.monotonic()
            except OSError:
                # The next record would be appended to an incomplete line.
                stream.truncate(end)
                raise
        self._records[self.key_of(record)] = record


def _json_types(hint: Any) -> tuple[Any, ...]:
    """Return the types that a value may have after reading JSON, from its type hint."""
    types = get_args(hint) or (hint,)
    return (*types, int) if float in types else types


def run_cells(
    cells: Sequence[RunCell],
    records: Records,
    work: Work,
    *,
    jobs: int | None = None,
    backend: str = "processes",
    on_record: Callable[[Record], None] | None = None,
    deadline: Deadline | None = None,
) -> list[Record]:
    """Run the unfinished cells, and return all records of the cells.

    A record is written as soon as its cell is finished: an interrupted run loses only the cells
    that were running. A cell whose process dies, for example for lack of memory, becomes a failed
    cell.

    Parameters
    ----------
    cells : sequence of RunCell
    records : Records
    work : callable
        Takes a cell and returns its record.
    jobs : int or None, default=None
        Number of processes. None is this process only, -1 all cores or all workers of a cluster.
    backend : str, default="processes"
        ``"processes"`` of this machine; ``"dask"``, a Dask cluster on this machine for the time
        of the run; or the address of a Dask scheduler, whose workers need lokl and the data.
    on_record : callable, optional
        Called with every new record.
    deadline : Deadline, optional
        No cell is started after it.

    Returns
    -------
    records : list of dict
        In the order of the cells, failed ones included.
    """
    deadline = deadline or Deadline(None)
    missing = records.missing(cells)
    if missing:
        if backend == "processes":
            finished = _in_processes(missing, jobs, work, deadline)
        else:
            finished = _on_cluster(missing, jobs, backend, work, deadline)
        # Every cell limits itself to one thread; for cells in this process, once is cheaper.
        with single_threaded():
            for record in finished:
                records.add(record)
                if on_record is not None:
                    on_record(record)
    return records.of(cells)


def _in_processes(
    cells: Sequence[RunCell], jobs: int | None, work: Work, deadline: Deadline
) -> Iterator[Record]:
    """Yield records as processes of this machine finish them.

    joblib reports that a process died, but not which cell was running in it. The cells that are
    left are then run one at a time in a separate process until the one that kills it is found.

    Parameters
    ----------
    cells : sequence of RunCell
        Each of them once.
    jobs : int or None
    work : callable
    deadline : Deadline
        As for :func:`run_cells`.
    """
    left = dict.fromkeys(cells)
    while left:
        parallel = joblib.Parallel(
            # Two at least if there are several, so that no cell runs in this process.
            n_jobs=min(effective_jobs(jobs), max(2, len(left))),
            backend="loky",
            return_as="generator_unordered",
            initializer=_end_with_parent,
            initargs=(os.getpid(),),
        )
        started = takewhile(lambda cell: not deadline.passed, list(left))
        try:
            for record in parallel(joblib.delayed(work)(cell) for cell in started):
                del left[cells[0].of(record)]
                yield record
            return
        except BrokenProcessPool:
            for record in _one_by_one(list(left), work):
                del left[cells[0].of(record)]
                yield record


def _end_with_parent(parent: int) -> None:
    """Let this worker end within a second of its parent process, however that ended.

    Workers share the pipes from which they receive cells, so a lost parent does not close them.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_INTERVAL)
        os._exit(1)

    if os.name == "posix":
        threading.Thread(target=watch, name="lokl-parent", daemon=True).start()


def _one_by_one(cells: Sequence[RunCell], work: Work) -> Iterator[Record]:
    """Run cells one at a time in a separate process, until one of them kills it."""
    from joblib.externals.loky import ProcessPoolExecutor

    with ProcessPoolExecutor(1, initializer=_end_with_parent, initargs=(os.getpid(),)) as pool:
        for cell in cells:
            try:
                record = pool.submit(work, cell).result()
            except BrokenProcessPool as reason:
                yield cell.crashed(reason)
                return
            yield record


def _on_cluster(
    cells: Sequence[RunCell], jobs: int | None, backend: str, work: Work, deadline: Deadline
) -> Iterator[Record]:
    """Yield records as the workers of a Dask cluster finish them."""
    with _client(backend, jobs) as client:
        from dask.distributed import as_completed

        # Pure calls would return the stored result of a cell that failed before.
        futures = client.map(work, cells, pure=False)
        by_key = {future.key: cell for future, cell in zip(futures, cells, strict=True)}
        for future in as_completed(futures):
            reason = future.exception()
            yield by_key[future.key].crashed(reason) if reason else future.result()
            # The record is on the disk, so the scheduler need not keep it.
            future.release()
            if deadline.passed:
                # Cells that no worker has started are dropped.
                client.cancel(futures)
                return


@contextmanager
def _client(backend: str, jobs: int | None) -> Iterator[Any]:
    """Connect to the scheduler at an address, or to a new cluster on this machine.

    Parameters
    ----------
    backend : str
        "dask" for a new cluster, which ends with the run, or an address.
    jobs : int or None
        Number of workers of a new cluster.
    """
    distributed = need("dask.distributed", f"backend {backend!r}")
    import dask

    # One cell at a time for each worker: no other fit affects its time and memory, and if a
    # process dies, the cell that was running is known. A scheduler elsewhere has its own settings.
    settings = {
        "distributed.scheduler.allowed-failures": 0,
        "distributed.scheduler.worker-saturation": 1.0,
    }
    options: dict[str, Any] = {"address": backend, "timeout": 10}
    if backend == "dask":
        count = effective_jobs(jobs)
        options = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
    with dask.config.set(settings):
        try:
            client = distributed.Client(**options)
        except (OSError, ValueError) as reason:
            raise ValueError(
                f"no Dask scheduler at {backend!r} ({reason}); backends are 'processes', 'dask' "
                "for a cluster on this machine, or an address such as tcp://host:8786"
            ) from reason
        with client:
            yield client
