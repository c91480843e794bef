"""Public names imported on first use: ``import lokl`` alone imports nothing heavy."""

import ast
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any


def lazy_exports(
    package: str, names: dict[str, str] | None = None
) -> tuple[Callable[[str], Any], list[str]]:
    """Return ``__getattr__`` and ``__all__`` for a package that imports names on first use.

    Parameters
    ----------
    package : str
    names : dict of str to str, optional
        Module that defines each public name. The default reads them from the imports of the form
        ``from module import name as name`` in the source of the package, which type checkers need
        anyway; they stand under ``if TYPE_CHECKING``.
    """
    modules = _reexports(package) if names is None else names

    def import_name(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return import_name, sorted(modules)


def _reexports(package: str) -> dict[str, str]:
    nodes = ast.walk(ast.parse(inspect.getsource(sys.modules[package])))
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
    return {name.name: str(node.module) for node in imports for name in node.names if name.asname}
