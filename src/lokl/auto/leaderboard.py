"""All candidates so far, who leads, and the table that users see."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lokl.auto.candidates import GLOBAL, Candidate, Judged

# Costs of this ratio at most are next to each other: the first grid has steps of four.
_NEXT_COST = 4.0 + 1e-9


class LeaderboardRow(NamedTuple):
    """What cross-validation says of a candidate."""

    method: str
    kernels: str
    C: float | None
    score: float  # mean held-out score
    score_error: float  # its standard error
    seconds: float  # of all folds
    n_samples: int  # samples that took part
    error: str | None  # why it could not be fitted


@dataclass(eq=False)
class Leaderboard:
    """Candidates with their scores."""

    judged: list[Judged] = field(default_factory=list)
    may_win: Callable[[Candidate], bool] = lambda candidate: True

    def add(self, more: Iterable[Judged]) -> None:
        self.judged += more

    @property
    def fitted(self) -> list[Judged]:
        """Those that could be fitted."""
        return [one for one in self.judged if one.mean == one.mean]

    def knows(self, candidate: Candidate, n_rows: int) -> bool:
        keys = {one.candidate.key for one in self.judged if one.n_rows == n_rows}
        return candidate.key in keys

    def best(self, wanted: Callable[[Judged], bool] | None = None) -> Judged | None:
        """The best of all, or of some; of equal ones the simplest."""
        some = [one for one in self.fitted if wanted is None or wanted(one)]
        return min(some, key=lambda one: (-one.mean, *_complexity(one)), default=None)

    def winner(self, rule: str) -> Judged | None:
        """Who wins, of those that were judged on the most samples.

        With "one_se", the best of the simplest kind that is within one standard error of the best
        of all: single kernels and uniform mixes before learned weights before learned trust. The
        best of them is the one whose score is good at the next costs, too.
        """
        able = [one for one in self.fitted if self.may_win(one.candidate)]
        most = max((one.n_rows for one in able), default=0)
        final = Leaderboard([one for one in able if one.n_rows == most])
        best = final.best()
        if best is None or rule == "best":
            return best
        near = [one for one in final.fitted if one.mean >= best.mean - best.deviation]
        simplest = min(one.candidate.contender.level for one in near)
        kind = [one for one in final.fitted if one.candidate.contender.level == simplest]
        return min(kind, key=lambda one: (-_steady_mean(kind, one), -one.mean, *_complexity(one)))

    def survivors(self, count: int) -> list[Candidate]:
        """The best few, and the best of every kind of method among them."""
        able = [one for one in self.fitted if self.may_win(one.candidate)]
        ranked = sorted(able, key=lambda one: (-one.mean, *_complexity(one)))
        chosen = ranked[:count]
        simple = [one for one in ranked if one.candidate.contender.level < GLOBAL][:1]
        return [one.candidate for one in [*chosen, *(s for s in simple if s not in chosen)]]

    def rows(self) -> list[LeaderboardRow]:
        """Best first; those that could not be fitted last."""
        order = sorted(
            self.judged,
            key=lambda one: (one.mean != one.mean, -one.n_rows, -one.mean, *_complexity(one)),
        )
        return [_row(one) for one in order]


def cold_seconds(judged: Sequence[Judged], one: Judged) -> float:
    """Seconds of a fit from nothing: those of all smaller costs led to where this one began."""
    path = [
        other.fit_seconds
        for other in judged
        if other.n_rows == one.n_rows
        and other.candidate.key[:2] == one.candidate.key[:2]
        and (other.candidate.cost or 0.0) <= (one.candidate.cost or 0.0)
    ]
    return sum(path)


def _steady_mean(judged: Sequence[Judged], one: Judged) -> float:
    """Mean score of a candidate, counted twice, and of the same at the next costs.

    The score changes slowly along costs, the luck of a few folds does not: a lone peak is luck.
    """
    cost = one.candidate.cost
    if cost is None:
        return one.mean
    near = [
        other.mean
        for other in judged
        if other.candidate.key[:2] == one.candidate.key[:2]
        and other.candidate.cost is not None
        and cost / _NEXT_COST <= other.candidate.cost <= cost * _NEXT_COST
    ]
    return (one.mean + sum(near)) / (1 + len(near))


def _complexity(one: Judged) -> tuple[float, ...]:
    candidate = one.candidate
    n_kernels = 0 if candidate.kernels is None else len(candidate.kernels)
    return candidate.contender.level, candidate.cost or 0.0, n_kernels


def _row(one: Judged) -> LeaderboardRow:
    candidate = one.candidate
    kernels = "" if candidate.kernels is None else ", ".join(candidate.kernels)
    return LeaderboardRow(
        candidate.method,
        kernels,
        candidate.cost,
        one.mean,
        one.deviation,
        one.seconds,
        one.n_rows,
        one.error,
    )
