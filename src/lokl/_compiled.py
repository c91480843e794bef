"""Modules of compiled loops: options, import at the first call, and notes about compilation."""

import importlib
import logging
import sys
import time
from functools import cache
from threading import RLock
from types import ModuleType
from typing import Any, NamedTuple

logger = logging.getLogger("lokl")

# Options of numba's `njit` for loops, and for functions that only loops call. Nothing is compiled
# to be called from C, and the latter not from Python either.
LOOP = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
INNER = {**LOOP, "no_cpython_wrapper": True}

# Held during imports: two threads that import numba at the same time can wait for each other
# forever, one for numba's import lock, the other for llvmlite's lock.
_importing = RLock()


class CompiledModule:
    """Placeholder of a module of compiled loops, imported (with numba) at the first call.

    ``PURPOSES`` of the module describes its loops to users. Loops that compile quickly are not in
    it.
    """

    def __init__(self, name: str):
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            with _importing:
                _log_compilation()
                self._module = importlib.import_module(self._name)
        function = getattr(self._module, attribute)
        setattr(self, attribute, function)
        return function


class Compilation(NamedTuple):
    """Name and cost of a loop that was compiled, including the functions it calls."""

    name: str
    seconds: float
    cpu_seconds: float


# Logged before the first loop of a process is compiled.
FIRST_USE = "lokl compiles its loops at their first use; later runs read them from disk"

# Loops that this process compiled, in order.
compilations: list[Compilation] = []


@cache
def _log_compilation() -> None:
    """Log loops that are compiled rather than read from numba's cache on disk."""
    from numba.core import event

    class Log(event.Listener):
        """Logs the purpose and the duration of each compilation."""

        def __init__(self) -> None:
            self.depth = 0
            self.started = (0.0, 0.0)
            self.messages: set[str] = set()

        def on_start(self, event: Any) -> None:
            loop = event.data["dispatcher"]
            if not loop.__module__.startswith("lokl."):
                return
            self.depth += 1
            if self.depth > 1:
                return
            self.started = (time.perf_counter(), time.process_time())
            precision = "single" if "float32" in str(event.data["args"]) else "double"
            message = compilation_message(sys.modules[loop.__module__], loop.__name__, precision)
            if message is None or message in self.messages:
                return
            # Logged as warnings, because users see those without configuring a logger.
            if not self.messages:
                logger.warning(FIRST_USE)
            self.messages.add(message)
            logger.warning("%s", message)

        def on_end(self, event: Any) -> None:
            loop = event.data["dispatcher"]
            if not loop.__module__.startswith("lokl."):
                return
            self.depth -= 1
            if self.depth == 0:
                wall, processor = self.started
                seconds = time.perf_counter() - wall
                done = Compilation(loop.__name__, seconds, time.process_time() - processor)
                compilations.append(done)
                logger.info("compiled %s in %.1f s", done.name, done.seconds)

    event.register("numba:compile", Log())  # type: ignore[no-untyped-call]


def compilation_message(module: Any, loop: str, precision: str) -> str | None:
    """Return the log line about a loop in one precision; None if it compiles quickly."""
    purpose = module.PURPOSES.get(loop)
    return f"compiling loops: {purpose} ({precision} precision)" if purpose else None
