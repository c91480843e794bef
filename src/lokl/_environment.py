"""Versions, the machine, and the peak memory of a block of code."""

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
    """Return the versions of Python and of lokl's numerical packages, None if not installed."""
    return {"python": platform.python_version(), **{name: version_of(name) for name in _PACKAGES}}


def system() -> str:
    """Return the operating system and the processor architecture."""
    return f"{platform.system()} {platform.machine()}"


def version_of(name: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


_MEGABYTE = 2**20


class Peak:
    """Peak resident memory inside a with block, relative to its start.

    On Linux the peak is reset for every block. Elsewhere it is the growth of the peak of the whole
    process, which is too small if an earlier block needed more memory.

    Parameters
    ----------
    tidy : bool, default=False
        Whether to return freed memory to the system first, which would hide a part of the increase.
        This takes a tenth of a second.

    Attributes
    ----------
    increase : float or None
        In MB, set at the end of the block; None if the system does not report it.
    """

    def __init__(self, *, tidy: bool = False):
        self.tidy = tidy
        self.increase: float | None = None
        self._before: float | None = None
        self._read: Callable[[], float | None] = _process_peak

    def __enter__(self) -> "Peak":
        if self.tidy:
            gc.collect()
            with contextlib.suppress(AttributeError, OSError, TypeError):
                ctypes.CDLL(None).malloc_trim(0)
        try:
            _reset_peak()
            self._before = _status(b"VmRSS:")
            self._read = _linux_peak
        except (OSError, ValueError):
            self._before = _process_peak()
        return self

    def __exit__(self, *error: Any) -> None:
        peak = self._read()
        if peak is not None and self._before is not None:
            self.increase = peak - self._before


# System calls are faster than file objects, and some fits take only milliseconds.
def _reset_peak() -> None:
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


def _process_peak() -> float | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    # Kilobytes, but bytes on a Mac.
    unit = _MEGABYTE if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / unit
