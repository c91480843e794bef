"""The way from samples to a winner: stages of candidates within the time that there is."""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from sklearn.pipeline import Pipeline

from lokl._arrays import Array
from lokl._notices import tell
from lokl.auto.arena import Arena, some_rows
from lokl.auto.candidates import GLOBAL, Candidate, Judged
from lokl.auto.leaderboard import Leaderboard, cold_seconds
from lokl.auto.stages import Plan

logger = logging.getLogger("lokl")

# With more samples than that, the search is on a part of them, and the best few are judged on all.
MANY_ROWS, ROWS_OF_PART, SURVIVORS = 6_000, 4_000, 4
# A fit from nothing and to the full tolerance takes longer than one of a search.
_SLOWER = 1.5
# Part of the time that is kept for what cannot be foreseen.
_SPARE = 0.05
# Machines that a learned method solves for each of its kernels, roughly.
_MACHINES_A_KERNEL = 5.0


@dataclass(eq=False)
class Deadline:
    """Seconds that are left."""

    limit: float | None
    start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        if self.limit is None:
            return float("inf")
        return self.limit * (1.0 - _SPARE) - (time.monotonic() - self.start)


@dataclass(eq=False)
class Tournament:
    """Stages of candidates, and the fit of the winner."""

    arena: Arena
    plan: Plan
    rule: str
    deadline: Deadline
    is_classifier: bool
    rng: np.random.RandomState
    board: Leaderboard = field(default_factory=Leaderboard)

    def play(self) -> None:
        """Judge candidates until all were tried or time is over."""
        self._search(self._small_arena())
        if not self.board.fitted:
            self._all_failed()
        if self.arena.n_rows > MANY_ROWS:
            for candidate in self.board.survivors(SURVIVORS):
                if not self._judge(self.arena, [candidate]):
                    return

    def winner(self) -> Judged:
        found = self.board.winner(self.rule)
        assert found is not None
        return found

    def fitted(self, winner: Judged) -> tuple[Pipeline, Array]:
        """Fit the winner on all samples, or on as many as time allows; return which."""
        arena, n = self.arena, self.arena.n_rows
        expected = self._final_seconds(winner)
        left = max(self.deadline.left, 0.05 * (self.deadline.limit or 0.0))
        if expected > left:
            count = max(int(n * np.sqrt(left / expected)), min(n, 500))
            if count < n:
                rows = some_rows(arena.y, count, self.is_classifier, self.rng)
                arena = arena.part(rows)
                tell(
                    "fewer samples than given",
                    f"time_limit={self.deadline.limit:g} seconds are too few for a fit on all {n} "
                    f"samples: the model learned from {len(rows)} of them; raise time_limit",
                )
        return arena.fitted(winner.candidate), arena.rows

    def _search(self, arena: Arena) -> None:
        for stage in self._stages(arena):
            if not self._judge(arena, stage):
                return

    def _stages(self, arena: Arena) -> Iterator[list[Candidate]]:
        for stage in self.plan.stages(self.board):
            fresh: dict[object, Candidate] = {}
            for candidate in stage:
                if not self.board.knows(candidate, arena.n_rows):
                    fresh.setdefault(candidate.key, candidate)
            if fresh:
                yield list(fresh.values())

    def _judge(self, arena: Arena, stage: list[Candidate]) -> bool:
        """Judge candidates; False where time is over."""
        left = self.deadline.left - self._reserve()
        if self.board.judged and left <= 0:
            return False
        if self.board.fitted and self._expected(arena, stage[0]) > left:
            # A later, cheaper stage may still fit.
            return True
        judged = arena.judge(stage, None if self.deadline.limit is None else max(left, 1e-3))
        self.board.add(judged)
        best = self.board.best()
        logger.log(
            logging.INFO if arena.verbose else logging.DEBUG,
            "%s: %d of %d candidates tried, best score so far %.4g",
            stage[0].method,
            len(judged),
            len(stage),
            float("nan") if best is None else best.mean,
        )
        return self.deadline.left > 0

    def _expected(self, arena: Arena, candidate: Candidate) -> float:
        """Seconds that one candidate may take, where there is a limit."""
        best = self.board.best()
        if self.deadline.limit is None or best is None:
            return 0.0
        growth = (arena.n_rows / best.n_rows) ** 2
        seconds = growth * len(arena.splits) * cold_seconds(self.board.judged, best)
        if candidate.contender.level >= GLOBAL:
            seconds *= _MACHINES_A_KERNEL * len(candidate.kernels or (1,))
        return seconds

    def _reserve(self) -> float:
        """Seconds that the last fit will need."""
        best = self.board.winner(self.rule)
        if self.deadline.limit is None or best is None:
            return 0.0
        # A search that gets nothing is worse than a model of a part of the samples.
        return min(self._final_seconds(best), 0.5 * self.deadline.limit)

    def _final_seconds(self, winner: Judged) -> float:
        if self.deadline.limit is None:
            return 0.0
        train = np.mean([len(train) for train, _ in self._arena_of(winner).splits])
        growth = (self.arena.n_rows / float(train)) ** 2
        return _SLOWER * growth * cold_seconds(self.board.judged, winner)

    def _arena_of(self, judged: Judged) -> Arena:
        return self.arena if judged.n_rows == self.arena.n_rows else self._small_arena()

    def _small_arena(self) -> Arena:
        if self.arena.n_rows <= MANY_ROWS:
            return self.arena
        if self._small is None:
            rows: Array = some_rows(self.arena.y, ROWS_OF_PART, self.is_classifier, self.rng)
            self._small = self.arena.part(rows)
        return self._small

    _small: Arena | None = None

    def calibration(self, winner: Judged):  # type: ignore[no-untyped-def]
        """Probabilities from the held-out decisions of the winner."""
        return self._arena_of(winner).calibration(winner)

    def _all_failed(self) -> None:
        errors = [one.error for one in self.board.judged if one.error is not None]
        raise ValueError(
            f"none of the {len(self.board.judged)} candidates could be fitted; the first says: "
            f"{errors[0] if errors else 'no score is a number'}"
        )
