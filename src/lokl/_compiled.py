"""Modules of compiled loops, imported (and numba with them) when a loop is first called."""

import importlib
import logging
import time
from types import ModuleType
from typing import Any

logger = logging.getLogger("lokl")


class CompiledModule:
    """Stands for a module of compiled loops until one of them is called."""

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


_announced = False


def _announce_compilation() -> None:
    """Tell once when loops are compiled rather than read from numba's cache on disk."""
    global _announced
    if _announced:
        return
    _announced = True
    from numba.core import event

    class Notice(event.Listener):
        """Logs the first compilation of this process and sums up the time of all."""

        def __init__(self) -> None:
            self.depth = 0
            self.begun = 0.0
            self.told = False

        def on_start(self, event: Any) -> None:
            if not str(event.data["dispatcher"].__module__).startswith("lokl."):
                return
            if not self.told:
                self.told = True
                # Logged as a warning, because users see those without configuring a logger.
                logger.warning(
                    "compiling inner loops; this happens once, later runs read them from disk"
                )
            if self.depth == 0:
                self.begun = time.perf_counter()
            self.depth += 1

        def on_end(self, event: Any) -> None:
            if not str(event.data["dispatcher"].__module__).startswith("lokl."):
                return
            self.depth -= 1
            if self.depth == 0:
                elapsed = time.perf_counter() - self.begun
                compile_seconds.append(elapsed)
                logger.info("compiled %s in %.1f s", event.data["dispatcher"].__name__, elapsed)

    event.register("numba:compile", Notice())  # type: ignore[no-untyped-call]


compile_seconds: list[float] = []
