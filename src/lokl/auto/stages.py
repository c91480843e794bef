"""In which order candidates are tried: cheap and promising ones first, each stage from the last.

Single kernels on a coarse grid come first, so that little time still gives a good model. What wins
there says around which width and cost to look closer, and at which costs mixes and learned methods
are worth their time.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lokl.auto.candidates import GLOBAL, LOCAL, OTHER, Candidate, Contender, Judged
from lokl.auto.dictionary import CENTRED, HIGH, LOW, STEP, Kernels, View, together
from lokl.auto.leaderboard import Leaderboard

Stage = list[Candidate]

# Powers of two; the finer ones between them are tried around the best.
_COSTS = range(-3, 10, 2)
_LEAST_COST, _LARGEST_COST = -3, 9
_FIRST_COST = 3
# Costs of a learned method of which nothing is known.
_LEARNED_COSTS = (-1, 2, 5)
# Views from which on learned methods get two kernels of each instead of the whole dictionary.
_MANY_VIEWS = 4


@dataclass(frozen=True, eq=False)
class Plan:
    """What there is to try.

    Parameters
    ----------
    contenders : sequence of Contender
    views : sequence of View
    given : list of kernels, each alone, or None
        Kernels of the user in the place of those of the views.
    unit_cost : float
        What a cost of one means: the spread of the targets of a regression, else 1.
    in_haste : bool
        Whether time may be over soon: a candidate that is seldom bad then comes first of all.
    every_view : bool
        Whether only candidates may win that have kernels of their own for each view.
    """

    contenders: Sequence[Contender]
    views: Sequence[View]
    given: list[Kernels] | None
    unit_cost: float
    in_haste: bool = False
    every_view: bool = False

    def may_win(self, candidate: Candidate) -> bool:
        """Whether a candidate is allowed to win, however good it is."""
        if not self.every_view or candidate.kernels is None:
            return True
        # Single kernels of views are still judged: they tell which width suits a view.
        seen = {str(getattr(kernel, "columns", None)) for kernel in candidate.kernels.values()}
        return seen == {str(view.columns) for view in self.views}

    def stages(self, board: Leaderboard) -> Iterator[Stage]:
        """Yield candidates, looking at what the board says of those before."""
        for uniform in self._of(0):
            yield from self._uniform(uniform, board)
        for level in (GLOBAL, LOCAL):
            for contender in self._of(level):
                yield from self._learned(contender, board)
        for contender in self._of(OTHER):
            yield [Candidate(contender)]

    @property
    def _low(self) -> int:
        """Least power of widths; samples that lack views need kernels that are not off centre."""
        return CENTRED if self.every_view else LOW

    def _beside_power(self, power: int) -> list[int]:
        return [p for p in (power - 1, power + 1) if p >= self._low or not self.every_view]

    def _of(self, level: int) -> list[Contender]:
        return [contender for contender in self.contenders if contender.level == level]

    def _at(self, contender: Contender, lists: Sequence[Kernels], powers: Sequence[float]) -> Stage:
        return [
            Candidate(contender, kernels, self.unit_cost * 2.0**power)
            for kernels in lists
            for power in powers
        ]

    def _uniform(self, uniform: Contender, board: Leaderboard) -> Iterator[Stage]:
        """Single kernels and uniform mixes."""
        if self.given is not None:
            yield self._at(uniform, [*self.given, _merged(self.given)], _COSTS)
            yield self._closer_costs(uniform, board)
            return
        alone = self._alone()
        coarse = range(self._low, HIGH + 1, STEP)
        if self.in_haste:
            first = self.views if self.every_view else alone[:1]
            yield self._at(uniform, [_merged([view.rbf(0) for view in first])], [_FIRST_COST])
        singles = [view.rbf(power) for view in alone for power in coarse]
        if len(self.views) > 1:
            singles += [_merged([view.rbf(power) for view in self.views]) for power in coarse]
        for view in alone:
            singles += [view.linear(), view.quadratic()]
        yield self._at(uniform, singles, _COSTS)
        yield [
            *self._closer_widths(uniform, board),
            *self._closer_costs(uniform, board),
            *self._at(uniform, self._mixes(board), self._costs_near_best(board)),
        ]

    def _alone(self) -> list[View]:
        """Views that a single kernel can be asked about, and all of them as one."""
        complete = [view for view in self.views if view.complete]
        several = len(complete) == len(self.views) > 1 and not self.every_view
        whole = [together(self.views)] if several else []
        return whole + complete

    def _closer_widths(self, uniform: Contender, board: Leaderboard) -> Stage:
        """Widths between those of the coarse grid, beside the best one."""
        best = board.best(_is_of(uniform))
        if best is None or best.candidate.kernels is None:
            return []
        names = set(best.candidate.kernels)
        for view in self._alone():
            for power in range(self._low, HIGH + 1, STEP):
                if names == set(view.rbf(power)):
                    near = [view.rbf(p) for p in self._beside_power(power)]
                    return self._at(uniform, near, self._costs_near_best(board))
        for power in range(self._low, HIGH + 1, STEP):
            if names == set(_merged([view.rbf(power) for view in self.views])):
                beside = self._beside_power(power)
                near = [_merged([view.rbf(p) for view in self.views]) for p in beside]
                return self._at(uniform, near, self._costs_near_best(board))
        return []

    def _closer_costs(self, uniform: Contender, board: Leaderboard) -> Stage:
        best = board.best(_is_of(uniform))
        if best is None or best.candidate.kernels is None:
            return []
        return [c for factor in (0.5, 2.0) if (c := self._beside(best, factor)) is not None]

    def _beside(self, best: Judged, factor: float) -> Candidate | None:
        """The same at another cost, where that is in the range of costs."""
        candidate = best.candidate
        assert candidate.cost is not None
        cost = factor * candidate.cost
        low, high = self.unit_cost * 2.0**_LEAST_COST, self.unit_cost * 2.0**_LARGEST_COST
        if not 0.99 * low <= cost <= 1.01 * high:
            return None
        return Candidate(candidate.contender, candidate.kernels, cost)

    def _costs_near_best(self, board: Leaderboard) -> list[float]:
        """Powers of costs around that of the best candidate so far."""
        best = board.best(lambda one: one.candidate.cost is not None)
        if best is None or best.candidate.cost is None:
            return list(_LEARNED_COSTS)
        power = math.log2(best.candidate.cost / self.unit_cost)
        near = {min(max(power + step, _LEAST_COST), _LARGEST_COST) for step in (-2, 0, 2)}
        return sorted(near)

    def _mixes(self, board: Leaderboard) -> list[Kernels]:
        """Uniform mixes: the whole dictionary, and the best kernels of each view."""
        best = [self._best_of(view, board) for view in self.views]
        with_linear = _merged([*best, *(view.linear() for view in self.views)])
        mixes = [self._dictionary(board), with_linear]
        return [*mixes, _merged(best)] if len(self.views) > 1 else mixes

    def _best_of(self, view: View, board: Leaderboard) -> Kernels:
        """The RBF kernel of a view that did best alone; the middle one if none was asked."""
        known = {tuple(view.rbf(p)): view.rbf(p) for p in range(LOW - 1, HIGH + 2)}
        best = board.best(
            lambda one: one.candidate.kernels is not None and tuple(one.candidate.kernels) in known
        )
        if best is None or best.candidate.kernels is None:
            return view.rbf(0)
        return known[tuple(best.candidate.kernels)]

    def _dictionary(self, board: Leaderboard) -> Kernels:
        """All kernels that a learned method may choose from."""
        if self.given is not None:
            return _merged(self.given)
        if len(self.views) < _MANY_VIEWS:
            return _merged([view.ladder(self._low) for view in self.views])
        return _merged([{**self._best_of(v, board), **v.linear()} for v in self.views])

    def _learned(self, contender: Contender, board: Leaderboard) -> Iterator[Stage]:
        """A method that learns weights or trust, at the cost of the best mix, then beside it."""
        kernels = self._dictionary(board)
        if contender.level == LOCAL and self.given is None and len(self.views) > 1:
            kernels = _merged([self._best_of(view, board) for view in self.views])
        mix = board.best(lambda one: len(one.candidate.kernels or ()) > 1)
        costs = [mix.candidate.cost] if mix is not None and mix.candidate.cost is not None else None
        if costs is None:
            yield self._at(contender, [kernels], _LEARNED_COSTS)
        else:
            yield [Candidate(contender, kernels, cost) for cost in costs]
        best, own = board.best(), board.best(_is_of(contender))
        # It wins only where it is better than what is simpler, so that others need no finer look.
        if own is None or own is not best:
            return
        yield [c for factor in (0.25, 4.0) if (c := self._beside(own, factor)) is not None]


def _is_of(contender: Contender) -> Callable[[Judged], bool]:
    return lambda one: one.candidate.contender is contender


def _merged(lists: Sequence[Kernels]) -> Kernels:
    return {name: kernel for kernels in lists for name, kernel in kernels.items()}
