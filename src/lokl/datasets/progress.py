"""The progress bar of fits and downloads, in terminals only."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def progress_bar(*, of_bytes: bool = False) -> Any:
    """Return rich's display of progress on standard error, which must be entered.

    It shows nothing unless standard error is a terminal: a log has no use for it. It counts steps,
    or the bytes of a download.
    """
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    columns: list[Any] = [progress.MofNCompleteColumn(), progress.TimeElapsedColumn()]
    if of_bytes:
        columns = [progress.DownloadColumn(), progress.TransferSpeedColumn()]
    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        *columns,
        progress.TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class Bar:
    """A bar with the methods that pooch calls during a download."""

    def __init__(self, progress: Any, name: str):
        self._progress = progress
        self._name = name
        self._task: Any = None

    @property
    def moved(self) -> bool:
        return self._task is not None

    @property
    def total(self) -> int:
        return 0

    @total.setter
    def total(self, size: int) -> None:
        # Begun here: what needs no download shows no bar. A server may not tell the size.
        self._task = self._progress.add_task(f"downloading {self._name}", total=size or None)

    def update(self, count: int) -> None:
        self._progress.advance(self._task, count)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        self._progress.stop_task(self._task)


@contextmanager
def download_bar(name: str) -> Iterator[Bar]:
    """Yield a bar for the download of a data set."""
    with progress_bar(of_bytes=True) as progress:
        yield Bar(progress, name)
