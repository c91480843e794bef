"""Settings that mean the same, though they may be copies of each other.

What earlier fits on the same samples have left for the next.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from lokl._warnings import CountedWarning, capture_warnings, reissue
from lokl.solvers import Machines


def alike(one: Any, other: Any) -> bool:
    """Whether two settings mean the same for certain.

    Copies of parts such as kernels are alike where all their settings are. Objects that nothing is
    known about are alike only where they are equal, or the same.
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if hasattr(one, "get_params"):
        return alike(one.get_params(deep=False), other.get_params(deep=False))
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    equal = one == other
    return isinstance(equal, bool | np.bool_) and bool(equal)


Part = TypeVar("Part")


@dataclass(frozen=True, eq=False)
class _Made:
    """A part, what it was made from and told, and the random numbers it took."""

    value: Any
    notices: dict[str, CountedWarning]
    before: Any  # what was given, and the state of the generator
    after: Any  # state of the generator


@dataclass(eq=False)
class Guide:
    """What one line of fits has ended with, for lines beside it on samples of the same kind.

    Weights of kernels hardly change from one part of the samples to another: a line that has
    learned them for a cost spares the others most of the way.
    """

    leads: bool = True  # whether the line gives, and does not take
    # What the fits of the leading line ended with, by step and name: it may be steps ahead.
    ended: dict[tuple[Hashable, Hashable], Any] = field(default_factory=dict)
    # Which fit of the line is under way; set by whoever runs it.
    step: Hashable = None

    def follower(self) -> "Guide":
        """Return a guide for a line that follows."""
        return Guide(False, self.ended)


@dataclass(eq=False)
class Earlier:
    """Parts, machines and weights of the fits before this one in a line; nothing in other fits.

    Fits of a line differ in what errors cost. What does not depend on that is made once, as a
    *part*; what does is a *start*: where the last fit ended, the next begins. A fit whose answer
    depends on where it begins takes no start. Where fits differ in some of their kernels as well,
    what is left about the others, each by itself, still holds.
    """

    lasting: bool = False  # whether fits follow that may use it
    guide: Guide | None = None
    _parts: dict[Hashable, _Made] = field(default_factory=dict)
    _machines: dict[Hashable, Machines] = field(default_factory=dict)
    _ended: dict[Hashable, Any] = field(default_factory=dict)
    _alone: dict[int, "Earlier"] = field(default_factory=dict)  # by the number of a kernel

    def of_kernel(self, number: int) -> "Earlier":
        """Return what fits have left about one kernel by itself, whatever the others are."""
        return self._alone.setdefault(number, Earlier(lasting=True)) if self.lasting else self

    def for_kernels(self, numbers: Iterable[int]) -> "Earlier":
        """Return what is left for fits that have only these kernels in common with the last."""
        alone = {i: self._alone[i] for i in numbers if i in self._alone}
        return Earlier(self.lasting, self.guide, _alone=alone)

    def part(
        self,
        name: Hashable,
        make: Callable[[], Part],
        rng: np.random.RandomState | None = None,
        *,
        given: Any = None,
    ) -> Part:
        """Return what does not depend on the cost, made by the first fit that needs it.

        Every fit draws the same random numbers and gives the same warnings as if it had made the
        part itself: from another state of the generator it is made anew, and where something else
        is `given`, which costs may have changed.
        """
        if not self.lasting:
            return make()
        before = (given, _state(rng))
        found = self._parts.get(name)
        if found is None or not alike(found.before, before):
            # What was made for another state need not stay in memory until its successor is there.
            self._parts.pop(name, None)
            value, notices = capture_warnings(make)
            found = self._parts[name] = _Made(value, notices, before, _state(rng))
        if rng is not None:
            rng.set_state(found.after)
        copies = {kind: replace(notice) for kind, notice in found.notices.items()}
        made: Part = reissue((found.value, copies))
        return made

    def resumed(self, name: Hashable, machines: Machines, *, same_matrix: bool = False) -> Machines:
        """Let machines begin where those of the same name ended in the last fit.

        With `same_matrix`, those were on the matrix that these will be on.
        """
        if not self.lasting:
            return machines
        last = self._machines.get(name)
        self._machines[name] = machines
        return machines if last is None else machines.resume(last, same_matrix=same_matrix)

    def start(self, name: Hashable, *, anywhere: bool = False) -> Any:
        """Return where the last fit ended; None where there was none.

        With `anywhere`, it says the same of other samples: where a line beside this one has already
        learned for the same cost, that is nearer.
        """
        own, guide = self._ended.get(name), self.guide
        if anywhere and guide is not None and not guide.leads:
            return guide.ended.get((guide.step, name), own)
        return own

    def end(self, name: Hashable, value: Any) -> None:
        """Leave what the next fit shall start from."""
        if self.lasting:
            self._ended[name] = value
            if self.guide is not None and self.guide.leads:
                self.guide.ended[self.guide.step, name] = value


def _state(rng: np.random.RandomState | None) -> Any:
    return None if rng is None else rng.get_state(legacy=False)
