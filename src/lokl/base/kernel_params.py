"""Kernels as nested parameters: ``kernels__rbf__gamma`` by name, ``kernels__0__gamma`` by position.

Kernels may be held by several estimators and by the caller: to change one is to put a changed copy
in its place, in a copy of the list or mapping.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sklearn.base import clone

from lokl.kernels.dictionaries import WORDS, as_kernel, is_one_kernel, named_kernels

PREFIX = "kernels__"


def nested_parameters(kernels: Any) -> dict[str, Any]:
    """Return all kernels of a list or mapping, and their parameters, by their full names."""
    named = _standard() if kernels is None else _entries(kernels)
    by_position = {str(i): entry for i, entry in enumerate(named.values())}
    entries = {**by_position, **named}
    found = {}
    for name, entry in entries.items():
        found[f"{PREFIX}{name}"] = entry
        kernel = as_kernel(entry) if _is_word(entry) else entry
        if _has_parameters(kernel):
            for own, value in kernel.get_params(deep=True).items():
                found[f"{PREFIX}{name}__{own}"] = value
    return found


def with_parameters(kernels: Any, changes: Mapping[str, Any]) -> Any:
    """Return kernels with other parameters, or with other kernels in some places.

    Parameters
    ----------
    kernels : object
        As an estimator takes them. They stay as they are.
    changes : mapping
        Values by full name. A kernel is called by its name or position, and a list with words or
        None becomes a mapping: names then stay when parameters change.
    """
    changes = {name.removeprefix(PREFIX): value for name, value in changes.items()}
    if is_one_kernel(kernels) and not _is_word(kernels):
        return _changed(kernels, changes)
    entries = _entries(kernels)
    replaced: dict[str, Any] = {}
    inside: dict[str, dict[str, Any]] = {}
    for path, value in changes.items():
        name, parameter = _find(path, list(entries))
        if parameter:
            inside.setdefault(name, {})[parameter] = value
        else:
            replaced[name] = value
    entries.update(replaced)
    for name, own in inside.items():
        entries[name] = _changed(entries[name], own)
    if isinstance(kernels, list | tuple) and not any(map(_is_word, kernels)):
        return type(kernels)(entries.values())
    if isinstance(kernels, Mapping):
        return dict(zip(kernels, entries.values(), strict=True))
    return entries


@lru_cache(maxsize=1)
def _standard() -> dict[str, Any]:
    """Kernels that None stands for, the same objects each time: parameters then compare equal."""
    return _entries(None)


def _entries(kernels: Any) -> dict[str, Any]:
    """Kernels as they were given, by name, or by position in a list of objects."""
    if kernels is None:
        return dict(named_kernels(None))
    if _is_word(kernels):
        return {kernels: kernels}
    if isinstance(kernels, Mapping):
        return {str(name): entry for name, entry in kernels.items()}
    if not isinstance(kernels, list | tuple):
        return {}
    if any(map(_is_word, kernels)):
        return dict(zip(named_kernels(kernels), kernels, strict=True))
    return {str(i): entry for i, entry in enumerate(kernels)}


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value in WORDS


def _has_parameters(kernel: Any) -> bool:
    return hasattr(kernel, "get_params") and not isinstance(kernel, type)


def _find(path: str, names: list[str]) -> tuple[str, str]:
    """Return the kernel that a path starts with, and the parameter that follows; "" for none."""
    # Names may contain the separator themselves: the longest that fits is meant.
    for name in sorted(names, key=len, reverse=True):
        if path == name or path.startswith(f"{name}__"):
            return name, path[len(name) + 2 :]
    first, _, parameter = path.partition("__")
    if first.isdecimal() and int(first) < len(names):
        return names[int(first)], parameter
    known = ", ".join(names) or "none that is known before fit"
    raise ValueError(
        f"unknown kernel {first!r} in parameter '{PREFIX}{path}'; the kernels are: {known}"
    )


def _changed(entry: Any, parameters: Mapping[str, Any]) -> Any:
    """Return a copy of a kernel with other parameters."""
    kernel = as_kernel(entry) if isinstance(entry, str) else entry
    if not _has_parameters(kernel):
        raise ValueError(
            f"kernel {as_kernel(kernel).label!r} is a function and has no parameter "
            f"{', '.join(parameters)}"
        )
    return clone(kernel).set_params(**parameters)
