"""Versions, the machine, and the peak memory of a block of code."""

import contextlib
import ctypes
import gc
import platform
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path
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


def documentation_page(name: str) -> str:
    """Return the address of the page about a public class; empty if it is unknown.

    The package states the address of the documentation.
    """
    try:
        urls = metadata("lokl").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    stated = dict(url.split(", ", 1) for url in urls).get("Documentation", "")
    package = "lokl" if name in sys.modules["lokl"].__all__ else "lokl.search"
    return f"{stated.rstrip('/')}/generated/{package}.{name}.html" if stated else ""


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
            Path("/proc/self/clear_refs").write_text("5")
            self._before, self._read = _status("VmRSS"), partial(_status, "VmHWM")
        except (OSError, LookupError):
            self._before = _process_peak()
        return self

    def __exit__(self, *error: Any) -> None:
        peak = self._read()
        if peak is not None and self._before is not None:
            self.increase = peak - self._before


def _status(key: str) -> float:
    """Return an amount of memory of this process in MB, as Linux reports it."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition(f"{key}:")[2].split(maxsplit=1)[0]) / 1024


def _process_peak() -> float | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    # Kilobytes, but bytes on a Mac.
    unit = 2**20 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / unit
