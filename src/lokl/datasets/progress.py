"""A progress bar for downloads, in terminals only."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Bar:
    """A bar of rich, as pooch moves it."""

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
    """Yield a bar on the terminal of standard error; it shows nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=console,
        transient=True,
        # An error stays one line in a log.
        disable=not console.is_terminal,
    ) as progress:
        yield Bar(progress, name)
