"""Where a candidate stands in the grid: its parameters as coordinates that can be compared.

Kernels given as a whole list are taken apart, so that ``[RBF(0.1)]`` and ``[RBF(1.0)]`` are two
values of one coordinate, ``kernels__0__gamma``.
"""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from lokl.kernels import Kernel
from lokl.kernels.dictionaries import named_kernels

Candidate = Mapping[str, Any]
Coordinates = dict[str, Any]


def coordinates(candidate: Candidate) -> Coordinates:
    """Return the parameters of a candidate by name; each is hashable and can be compared."""
    found: Coordinates = {}
    for name, value in candidate.items():
        if last_part(name) == "kernels":
            found.update(_kernel_coordinates(name, value))
        elif isinstance(value, Kernel):
            found.update(_inside(name, value))
        else:
            found[name] = _comparable(value)
    return found


def last_part(name: str) -> str:
    """Return the name of a parameter without the names of the parts that it is in."""
    return name.rpartition("__")[2]


def is_number(value: Any) -> bool:
    """Whether a coordinate has an order; True and False have none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def group(
    candidates: Sequence[Candidate], some: Iterable[int], apart_from: Iterable[str]
) -> list[list[int]]:
    """Put candidates together that are equal apart from some parameters, wherever these are.

    Parameters
    ----------
    candidates : sequence of mappings
        All candidates.
    some : iterable of int
        Those that are put together.
    apart_from : iterable of str
        Last parts of the names of parameters.
    """
    free = set(apart_from)
    groups: dict[Any, list[int]] = {}
    for index in some:
        fixed = coordinates(candidates[index]).items()
        key = frozenset((name, value) for name, value in fixed if last_part(name) not in free)
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def by_cost(candidates: Sequence[Candidate], some: Iterable[int]) -> list[int]:
    """Sort candidates by ascending `C`; those of equal cost stay in the order of the grid."""
    return sorted(some, key=lambda index: cost(coordinates(candidates[index])))


def cost(place: Coordinates) -> float:
    """Largest `C` of a candidate; 0 where none is varied."""
    costs = [float(v) for name, v in place.items() if last_part(name) == "C" and is_number(v)]
    return max(costs, default=0.0)


def _kernel_coordinates(name: str, value: Any) -> Coordinates:
    try:
        kernels = list(named_kernels(value).values())
    except (TypeError, ValueError):
        # The fit of this candidate will say what is wrong with them.
        return {name: _comparable(value)}
    return _inside(name, kernels)


def _inside(place: str, value: Any) -> Coordinates:
    """Take kernels apart, and lists of kernels, and kernels that are made of kernels."""
    if isinstance(value, list | tuple):
        found: Coordinates = {place: len(value)}
        for position, entry in enumerate(value):
            found.update(_inside(f"{place}__{position}", entry))
        return found
    if isinstance(value, Kernel):
        found = {place: type(value).__name__}
        for own, setting in value.get_params(deep=False).items():
            found.update(_inside(f"{place}__{own}", setting))
        return found
    return {place: _comparable(value)}


def _comparable(value: Any) -> Any:
    if isinstance(value, bool):
        # Equal to 1 or 0 otherwise.
        return repr(value)
    if isinstance(value, str | Real | type(None)):
        return value
    # A grid repeats the very objects that it was given.
    return f"{type(value).__name__} at {id(value)}"
