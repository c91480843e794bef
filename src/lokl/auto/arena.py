"""Where candidates meet: the same samples, folds, preparation and score for all of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from lokl._arrays import Array
from lokl._notices import apart
from lokl.auto.candidates import Candidate, Judged
from lokl.auto.preparation import PrepareColumns
from lokl.selection.calibration import Calibration
from lokl.selection.rounds import Rounds
from lokl.selection.winner import calibration_of
from lokl.selection.work import Task, Worker
from lokl.selection.workers import new_workers


@dataclass(frozen=True, eq=False)
class Arena:
    """Samples that candidates are judged on.

    Parameters
    ----------
    X : array or CSR matrix
        Numbers, not yet prepared.
    y : array
    weight : array or None
    splits : list of (learned from, scored)
        Numbers of samples.
    scorer : callable
    prepare : PrepareColumns
    n_jobs, verbose : as in ``KernelSearchCV``
    rows : array
        Numbers of the samples among those that were given.
    """

    X: Any
    y: Array
    weight: Array | None
    splits: list[tuple[Array, Array]]
    scorer: Any
    prepare: PrepareColumns
    n_jobs: int | None
    verbose: int
    rows: Array
    # Methods share the prepared samples.
    workers: list[Worker] = field(default_factory=new_workers)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    def part(self, rows: Array) -> "Arena":
        """Some of the samples, in the same folds; a fold that has none of them is left out."""
        place = np.full(self.n_rows, -1)
        place[rows] = np.arange(len(rows))
        cut = [tuple(place[side][place[side] >= 0] for side in split) for split in self.splits]
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            weight=None if self.weight is None else self.weight[rows],
            splits=[(train, test) for train, test in cut if len(train) and len(test)],
            rows=self.rows[rows],
        )

    def judge(self, candidates: Iterable[Candidate], seconds: float | None) -> list[Judged]:
        """Cross-validate candidates until time is over; those that were not tried are left out."""
        by_method: dict[int, list[Candidate]] = {}
        for candidate in candidates:
            by_method.setdefault(id(candidate.contender), []).append(candidate)
        judged = []
        for alike in by_method.values():
            task = self._task(alike)
            rounds = Rounds(None, True, False, seconds, None, self.verbose, self.workers)
            # What happens to candidates on the way is told by the leaderboard alone.
            rows, _ = apart(rounds.rows, task)
            judged += [
                Judged(alike[row.candidate], row.cells, self.n_rows)
                for row in rows
                if row.cells is not None
            ]
        return judged

    def fitted(self, candidate: Candidate) -> Pipeline:
        """Fit a candidate on all samples."""
        model = self._pipeline(candidate).set_params(**candidate.parameters)
        return model.fit(self.X, self.y, **self._fit_params(candidate))

    def calibration(self, judged: Judged) -> Calibration | None:
        """From held-out decisions of a candidate to probabilities; None where they are unknown."""
        return calibration_of(self._task([judged.candidate]), judged.cells)

    def _task(self, alike: Sequence[Candidate]) -> Task:
        """Candidates of one method."""
        return Task(
            estimator=self._pipeline(alike[0]),
            candidates=[candidate.parameters for candidate in alike],
            X=self.X,
            y=self.y,
            fit_params=self._fit_params(alike[0]),
            score_params={} if self.weight is None else {"sample_weight": self.weight},
            splits=self.splits,
            scorers=self.scorer,
            error_score=np.nan,
            return_train_score=False,
            n_jobs=self.n_jobs,
        )

    def _pipeline(self, candidate: Candidate) -> Pipeline:
        model = clone(candidate.contender.estimator)
        return Pipeline([("prepare", clone(self.prepare)), ("model", model)])

    def _fit_params(self, candidate: Candidate) -> dict[str, Any]:
        if self.weight is None:
            return {}
        if not has_fit_parameter(candidate.contender.estimator, "sample_weight"):
            name = type(candidate.contender.estimator).__name__
            raise ValueError(f"{name} takes no sample_weight; leave one of both out")
        return {"prepare__sample_weight": self.weight, "model__sample_weight": self.weight}


def some_rows(y: Array, count: int, is_classifier: bool, rng: np.random.RandomState) -> Array:
    """Row numbers of a random part, with all classes in their shares, at least two rows each."""
    if not is_classifier:
        return np.sort(rng.permutation(len(y))[:count])
    _, codes = np.unique(y, return_inverse=True)
    chosen = []
    for code in range(codes.max() + 1):
        own = np.flatnonzero(codes == code)
        least = min(len(own), 10)
        chosen.append(rng.permutation(own)[: max(least, round(count * len(own) / len(y)))])
    return np.sort(np.concatenate(chosen))


def take(values: Any, rows: Array) -> Any:
    """Some rows of anything that has rows; None stays None."""
    return None if values is None else _safe_indexing(values, rows)
