"""Public names imported on first use: ``import lokl`` alone imports nothing heavy."""

import importlib
import sys
from collections.abc import Callable
from typing import Any


def lazy_exports(package: str, names: dict[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """Return ``__getattr__`` and ``__all__`` for a package that imports names on first use.

    Parameters
    ----------
    package : str
    names : dict of str to str
        Module that defines each public name.
    """

    def import_name(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(names[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return import_name, sorted(names)
