"""Names and optional packages, imported on first use: ``import lokl`` imports nothing heavy."""

import ast
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

# Extra of lokl that installs each optional package.
_EXTRAS = {
    "anndata": "omics",
    "cloudpickle": "dask",
    "dask": "dask",
    "h5py": "omics",
    "jinja2": "report",
    "matplotlib": "plot",
    "mudata": "omics",
    "openpyxl": "excel",
    "pandas": "data",
    "pooch": "data",
    "pyarrow": "data",
    "skops": "files",
}


def lazy_exports(
    package: str, more: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], list[str]]:
    """Return ``__getattr__`` and ``__all__`` for a package that imports names on first use.

    The public names are read from imports of the form ``from module import name as name`` in the
    source of the package, which type checkers need anyway; they stand under ``if TYPE_CHECKING``.
    The names are also listed by ``dir(package)``.

    Parameters
    ----------
    package : str
    more : mapping of str to str, optional
        Modules of further public names, by name.

    Returns
    -------
    import_name : callable
    names : list of str
    """
    module = sys.modules[package]
    nodes = ast.walk(ast.parse(inspect.getsource(module)))
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
    modules = {n.name: str(node.module) for node in imports for n in node.names if n.asname}
    modules.update(more or {})
    defined = vars(module)
    defined["__dir__"] = lambda: sorted({*defined, *modules})

    def import_name(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(modules[name]), name)
        defined[name] = value
        return value

    return import_name, sorted(modules)


def need(module: str, user: str) -> Any:
    """Return a module of an optional package.

    Raises ImportError that names the `user` of the package and the extra to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{user} needs {package}; install it with: pip install 'lokl[{_EXTRAS[package]}]'"
        ) from error
