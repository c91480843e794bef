"""Files as collections."""

from typing import Any


def read(path: Any) -> Any:
    """Read."""
    raise NotImplementedError
