"""Warnings of a fit: each kind once, with its count, at the line that called the library.

One fit solves many machines, and what one of them has to tell, most others have, too. While a fit
is under way, warnings are collected and the last of each kind is issued at its end; outside a fit
they are issued at once. A fit that fails tells its error alone.
"""

import logging
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

logger = logging.getLogger("lokl")

_PACKAGE = str(Path(__file__).parent)


@dataclass
class Notice:
    """The last warning of a kind, and how many there were."""

    text: str
    category: type[Warning]
    count: int = 1


@dataclass
class Collected:
    """``with Collected():`` holds warnings back; in another collection it leaves them to that."""

    notices: dict[str, Notice] = field(default_factory=dict)
    _token: Token[Any] | None = None

    def __enter__(self) -> "Collected":
        if _current.get() is None:
            self._token = _current.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is None:
            return
        _current.reset(self._token)
        if kind is None:
            for notice in self.notices.values():
                _issue(notice)

    def add(self, kind: str, notice: Notice) -> None:
        """Note a warning in the place of an earlier one of its kind."""
        if kind in self.notices:
            notice.count += self.notices[kind].count
        self.notices[kind] = notice


_current: ContextVar[Collected | None] = ContextVar("warnings of the fit under way", default=None)


def tell(kind: str, text: str, category: type[Warning] = UserWarning) -> None:
    """Warn the user, at once or at the end of the fit that is under way."""
    _add(kind, Notice(text, category))


def _add(kind: str, notice: Notice) -> None:
    collected = _current.get()
    if collected is None:
        _issue(notice)
    else:
        logger.debug("%s", notice.text)
        collected.add(kind, notice)


def apart(function: Callable[..., Any], *arguments: Any) -> tuple[Any, dict[str, Notice]]:
    """Call a function in a thread or process of its own; its warnings come back with its result.

    :func:`together` takes both where the call was made.
    """
    collected = Collected()
    token = _current.set(collected)
    try:
        return function(*arguments), collected.notices
    finally:
        _current.reset(token)


def together(returned: tuple[Any, dict[str, Notice]]) -> Any:
    """Return what a function gave that was called apart, and pass its warnings on."""
    result, notices = returned
    for kind, notice in notices.items():
        _add(kind, notice)
    return result


def _issue(notice: Notice) -> None:
    text = notice.text
    if notice.count > 1:
        text += f" (the last of {notice.count} such warnings in this fit)"
    warnings.warn(text, notice.category, stacklevel=_outside())


def _outside() -> int:
    """Stack level, for the function that calls this one, of the line that called the library."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
