"""The machine and the versions that results depend on.

Peak memory of a piece of work in this process.
"""

import contextlib
import ctypes
import gc
import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGES = ("lokl", "numpy", "scipy", "scikit-learn", "numba", "joblib")


def versions() -> dict[str, str | None]:
    """Return the versions of Python and of the packages that compute; None for those not here."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


def system() -> str:
    """Return the operating system and the kind of processor."""
    return f"{platform.system()} {platform.machine()}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


_MEGABYTE = 2**20


class Peak:
    """Largest resident memory inside a with block, over that at its start.

    Linux counts a peak anew for every block. Elsewhere it is the growth of the largest memory of
    the process so far, which a block shows in full only when none before it was larger.

    Parameters
    ----------
    tidy : bool, default=False
        First return freed memory to the system, which otherwise hides a part of the increase.
        Takes a tenth of a second.

    Attributes
    ----------
    increase : float or None
        In MB, known when the block is left; None where the system does not tell.
    """

    def __init__(self, *, tidy: bool = False):
        self.tidy = tidy
        self.increase: float | None = None
        self._before: float | None = None
        self._read: Callable[[], float | None] = _largest_so_far

    def __enter__(self) -> "Peak":
        if self.tidy:
            gc.collect()
            with contextlib.suppress(AttributeError, OSError, TypeError):
                ctypes.CDLL(None).malloc_trim(0)
        try:
            _forget_peak()
            self._before = _status(b"VmRSS:")
            self._read = _linux_peak
        except (OSError, ValueError):
            self._before = _largest_so_far()
        return self

    def __exit__(self, *error: Any) -> None:
        peak = self._read()
        if peak is not None and self._before is not None:
            self.increase = peak - self._before


# System calls, which are faster than file objects: the fits of an experiment take milliseconds.
def _forget_peak() -> None:
    handle = os.open("/proc/self/clear_refs", os.O_WRONLY)
    try:
        os.write(handle, b"5")
    finally:
        os.close(handle)


def _linux_peak() -> float | None:
    return _status(b"VmHWM:")


def _status(key: bytes) -> float:
    handle = os.open("/proc/self/status", os.O_RDONLY)
    try:
        text = os.read(handle, 16384)
    finally:
        os.close(handle)
    begin = text.index(key) + len(key)
    return int(text[begin : text.index(b"kB", begin)]) / 1024


def _largest_so_far() -> float | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    # Kilobytes, but bytes on a Mac.
    unit = _MEGABYTE if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / unit
