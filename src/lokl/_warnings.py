"""Warnings of a fit: each kind once, with its count, at the line that called the library.

One fit solves many problems, and most of them raise the same warnings. While a fit is running,
warnings are collected, and the last of each kind is issued at its end. Outside a fit they are
issued at once. A fit that fails raises its error only.
"""

import logging
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

logger = logging.getLogger("lokl")

_PACKAGE = str(Path(__file__).parent)


@dataclass(frozen=True)
class CountedWarning:
    """The last warning of a kind, and how many there were."""

    text: str
    category: type[Warning]
    count: int = 1


# Warnings of the fit that is running, by kind.
Deferred = dict[str, CountedWarning]
_current: ContextVar[Deferred | None] = ContextVar("warnings of this fit", default=None)


class DeferredWarnings:
    """Context manager that holds warnings back until its end.

    Inside another one it does nothing: warnings are left to the outer block.
    """

    def __enter__(self) -> None:
        self._token = _current.set({}) if _current.get() is None else None

    def __exit__(self, error: type[BaseException] | None, *details: object) -> None:
        if self._token is None:
            return
        deferred = _current.get() or {}
        _current.reset(self._token)
        if error is None:
            for warning in deferred.values():
                _issue(warning)


def warn_once(kind: str, text: str, category: type[Warning] = UserWarning) -> None:
    """Warn now, or once per kind at the end of the fit that is running."""
    _add(kind, CountedWarning(text, category))


def _add(kind: str, warning: CountedWarning) -> None:
    deferred = _current.get()
    if deferred is None:
        _issue(warning)
    else:
        logger.debug("%s", warning.text)
        earlier = deferred[kind].count if kind in deferred else 0
        deferred[kind] = replace(warning, count=warning.count + earlier)


def capture_warnings(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Deferred]:
    """Call a function, and return its result together with its warnings by kind.

    For calls in other threads or processes; :func:`reissue` takes the pair in the caller's thread.
    """
    deferred: Deferred = {}
    token = _current.set(deferred)
    try:
        return function(*arguments), deferred
    finally:
        _current.reset(token)


def reissue(captured: tuple[Any, Deferred]) -> Any:
    """Issue warnings from :func:`capture_warnings` here, and return the result."""
    result, by_kind = captured
    for kind, warning in by_kind.items():
        _add(kind, warning)
    return result


def _issue(warning: CountedWarning) -> None:
    text = warning.text
    if warning.count > 1:
        text += f" (the last of {warning.count} such warnings in this fit)"
    warnings.warn(text, warning.category, stacklevel=_caller_level())


def _caller_level() -> int:
    """Stack level, for the function that calls this one, of the line that called the library."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
