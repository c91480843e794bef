"""A best candidate on the edge of the grid: a better one may lie beyond."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._notices import tell
from lokl.selection.grid import Candidate, Coordinates, coordinates, is_number

# Of two values, each is an edge.
_FEWEST_VALUES = 3


def warn_of_edges(candidates: Sequence[Candidate], scores: Array) -> None:
    """Warn where the best candidate has the smallest or largest value of a number.

    Not where its neighbour inside the grid is as good: the score is flat there.

    Parameters
    ----------
    candidates : sequence of mappings
    scores : array of shape (n_candidates,)
        NaN where a candidate has none.
    """
    if np.isnan(scores).all():
        return
    places = [coordinates(candidate) for candidate in candidates]
    best = places[int(np.nanargmax(scores))]
    for name in [name for name, value in best.items() if is_number(value)]:
        line = _line(places, scores, best, name)
        values = sorted(line)
        if len(values) < _FEWEST_VALUES or best[name] not in (values[0], values[-1]):
            continue
        is_low = best[name] == values[0]
        neighbour = values[1] if is_low else values[-2]
        if line[neighbour] < line[best[name]]:
            side, end = ("below", "smallest") if is_low else ("above", "largest")
            tell(
                f"edge of the grid in {name}",
                f"the best {name} is {best[name]:g}, the {end} of the grid; a better one may lie "
                f"{side}: extend the grid {side} {best[name]:g}",
            )


def _line(
    places: Sequence[Coordinates], scores: Array, best: Coordinates, name: str
) -> dict[float, float]:
    """Best score for each value of a number, where all else is as in the best candidate."""
    others = {other: value for other, value in best.items() if other != name}
    line: dict[float, float] = {}
    for place, score in zip(places, scores, strict=True):
        value: Any = place.get(name)
        alike = {other: own for other, own in place.items() if other != name} == others
        if alike and is_number(value) and not np.isnan(score):
            line[value] = max(float(score), line.get(value, -np.inf))
    return line
