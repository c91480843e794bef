"""Modules of compiled loops, imported (and numba with them) when a loop is first called."""

import importlib
import logging
import sys
import time
from types import ModuleType
from typing import Any, NamedTuple

logger = logging.getLogger("lokl")


class CompiledModule:
    """Stands for a module of compiled loops until one of them is called.

    ``PURPOSES`` of the module tells users what its loops are for; loops that compile in no time are
    not in it.
    """

    def __init__(self, name: str):
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            _announce_compilation()
            self._module = importlib.import_module(self._name)
        function = getattr(self._module, attribute)
        setattr(self, attribute, function)
        return function


class Compilation(NamedTuple):
    """One loop that was compiled, with everything in it."""

    name: str
    seconds: float
    cpu_seconds: float


# Told before the first loop of a process that is compiled.
NOTICE = "lokl compiles its loops at their first use; later runs read them from disk"

# Of this process, in order.
compilations: list[Compilation] = []
_announced = False


def _announce_compilation() -> None:
    """Tell when loops are compiled rather than read from numba's cache on disk."""
    global _announced
    if _announced:
        return
    _announced = True
    from numba.core import event

    class Notice(event.Listener):
        """Logs what is compiled, and what it took."""

        def __init__(self) -> None:
            self.depth = 0
            self.begun = (0.0, 0.0)
            self.told: set[str] = set()

        def on_start(self, event: Any) -> None:
            if not _is_ours(event):
                return
            if self.depth == 0:
                self.begun = (time.perf_counter(), time.process_time())
                loop = event.data["dispatcher"]
                precision = "single" if "float32" in str(event.data["args"]) else "double"
                purpose = told_of(sys.modules[loop.__module__], loop.__name__, precision)
                if purpose and purpose not in self.told:
                    # Logged as warnings, because users see those without configuring a logger.
                    if not self.told:
                        logger.warning(NOTICE)
                    self.told.add(purpose)
                    logger.warning("%s", purpose)
            self.depth += 1

        def on_end(self, event: Any) -> None:
            if not _is_ours(event):
                return
            self.depth -= 1
            if self.depth == 0:
                seconds, cpu_seconds = self.begun
                done = Compilation(
                    event.data["dispatcher"].__name__,
                    time.perf_counter() - seconds,
                    time.process_time() - cpu_seconds,
                )
                compilations.append(done)
                logger.info("compiled %s in %.1f s", done.name, done.seconds)

    event.register("numba:compile", Notice())  # type: ignore[no-untyped-call]


def _is_ours(event: Any) -> bool:
    return str(event.data["dispatcher"].__module__).startswith("lokl.")


def told_of(module: Any, loop: str, precision: str) -> str | None:
    """Return what users are told of a loop; each is compiled once for a precision.

    None for loops that compile in no time.
    """
    purpose = module.PURPOSES.get(loop)
    return f"compiling loops: {purpose} ({precision} precision)" if purpose else None
