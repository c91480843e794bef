"""From records to what they say: scores with intervals, who is chosen, what views are worth.

Files of a comparison, each of them whole or as it was before.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.explain.explanation import Explanation
from lokl.explain.formatting import corrected_interval
from lokl.study.candidates import BASELINE, OURS, VIEW, Candidate
from lokl.study.experiment import BY_VIEW, Bench, unpacked
from lokl.tables import Table

BEST_VIEW = "best view"
Interval = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Row:
    """A candidate over all splits.

    Attributes
    ----------
    name, role : str
    complexity : int
    scores : array of shape (n_splits,)
        Empty where it failed.
    interval : (mean, low, high)
    seconds : float
        Of one fit with everything that is chosen.
    support : float or None
    note : str
        Why it failed.
    """

    name: str
    role: str
    complexity: int
    scores: Array
    interval: Interval
    seconds: float
    support: float | None = None
    note: str = ""

    @property
    def failed(self) -> bool:
        return not len(self.scores)

    @property
    def mean(self) -> float:
        return self.interval[0]


@dataclass(frozen=True, eq=False)
class Worth:
    """What a view is worth to the chosen model.

    Attributes
    ----------
    view : str
    alone : (mean, low, high) or None
        Score of a model of this view only.
    loss : (mean, low, high) or None
        How far the score falls without it; below 0 the model is better without.
    without : (mean, low, high) or None
        Score without it.
    """

    view: str
    alone: Interval | None
    loss: Interval | None
    without: Interval | None


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that a comparison has found.

    Attributes
    ----------
    bench : Bench
    table : Table
    records : dict of (candidate, split) to record
    splits : list of int
        Those that all candidates have finished.
    """

    bench: Bench
    table: Table
    records: Mapping[tuple[str, int], dict[str, Any]]
    splits: list[int]

    @classmethod
    def of(cls, bench: Bench, table: Table, records: Sequence[dict[str, Any]]) -> "Results":
        """Sort records."""
        found = {(record["candidate"], record["split"]): record for record in records}
        splits = [
            split
            for split in range(len(bench.splits))
            if all((name, split) in found for name in bench.candidates)
        ]
        return cls(bench, table, found, splits)

    @property
    def score_name(self) -> str:
        return self.bench.question.score_name

    @cached_property
    def rows(self) -> list[Row]:
        """All candidates, the best first, those that failed last."""
        found = [self._row(one) for one in self.bench.candidates.values()]
        best = self._best_view()
        found += [best] if best is not None else []
        return sorted(found, key=lambda row: (row.failed, -row.mean, row.complexity))

    def row(self, name: str) -> Row:
        """Return a candidate by its name."""
        return next(row for row in self.rows if row.name == name)

    @cached_property
    def chosen(self) -> Row | None:
        """The simplest of ours that is within one standard error of the best of ours."""
        able = [row for row in self.rows if row.role == OURS and not row.failed]
        if not able:
            return None
        bound = able[0].mean - self.standard_error(able[0])
        near = [row for row in able if row.mean >= bound]
        simplest = min(row.complexity for row in near)
        return next(row for row in near if row.complexity == simplest)

    def standard_error(self, row: Row) -> float:
        """Of a mean score over splits whose training samples overlap."""
        ratio = float(np.mean([len(left) / len(kept) for kept, left in self._folds()]))
        return float(np.sqrt((1.0 / len(row.scores) + ratio) * row.scores.var(ddof=1)))

    def difference(self, one: Row, other: Row) -> Interval:
        """How far one candidate is better than another, with the interval."""
        return corrected_interval(one.scores - other.scores, self._folds())

    @property
    def best_single(self) -> Row | None:
        """The best of single views."""
        return next((row for row in self.rows if row.role == VIEW and row.name != BEST_VIEW), None)

    @property
    def best_baseline(self) -> Row | None:
        """The best baseline."""
        return next((row for row in self.rows if row.role == BASELINE and not row.failed), None)

    def _score(self, scores: Array) -> Interval:
        """Mean score with its interval, which ends where scores do."""
        mean, low, high = corrected_interval(scores, self._folds())
        least = 0.0 if self.bench.question.classes else -np.inf
        return mean, max(low, least), min(high, 1.0)

    def _folds(self) -> list[Any]:
        return [self.bench.splits[split] for split in self.splits]

    def _row(self, one: Candidate) -> Row:
        records = [self.records[one.name, split] for split in self.splits]
        errors = [record["error"] for record in records if record["error"] is not None]
        if errors or not records:
            note = f"failed in {len(errors)} of {len(records)} folds: {errors[0]}" if errors else ""
            nothing = (float("nan"),) * 3
            return Row(one.name, one.role, one.complexity, np.array([]), nothing, 0.0, None, note)
        scores = np.array([record["score"] for record in records])
        supports: list[Any] = [record.get("support") for record in records]
        return Row(
            one.name,
            one.role,
            one.complexity,
            scores,
            self._score(scores),
            float(np.mean([record["seconds"] for record in records])),
            None if None in supports else float(np.mean(supports)),
        )

    def _best_view(self) -> Row | None:
        """Return the view that looks best inside the samples to learn from, split by split."""
        names = [one.name for one in self.bench.candidates.values() if one.role == VIEW]
        rows = [self._row(self.bench.candidates[name]) for name in names]
        if len(rows) < 2 or any(row.failed for row in rows):
            return None
        taken = self.best_views()
        pairs = zip(taken, self.splits, strict=True)
        scores = np.array([self.records[name, split]["score"] for name, split in pairs])
        interval = self._score(scores)
        return Row(BEST_VIEW, VIEW, 0, scores, interval, sum(row.seconds for row in rows))

    def best_views(self) -> list[str]:
        """Names of candidates of single views that look best inside each split."""
        names = [one.name for one in self.bench.candidates.values() if one.role == VIEW]
        return [
            max(names, key=lambda name: self.records[name, split]["inner"]) for split in self.splits
        ]

    def worth(self) -> list[Worth]:
        """What each view is worth to the chosen model."""
        chosen, found = self.chosen, []
        for view in self.table.views:
            alone = [r for r in self.rows if r.name == f"{view} alone" and not r.failed]
            loss = without = None
            if chosen is not None:
                pairs = [
                    self.records[chosen.name, split].get("withheld", {}).get(view)
                    for split in self.splits
                ]
                if pairs and None not in pairs:
                    kept, lost = np.array(pairs, dtype=float).T
                    loss = corrected_interval(kept - lost, self._folds())
                    without = self._score(lost)
            found.append(Worth(view, alone[0].interval if alone else None, loss, without))
        return found

    def held_out(self, name: str, repeat: int) -> Explanation | None:
        """Return the explanation of held-out samples by a candidate of ours.

        None where there is no such repeat, or where not all of its splits are finished.
        """
        splits = [k for k, label in enumerate(self.bench.labels) if label[0] == repeat]
        if not splits or any(k not in self.splits for k in splits):
            return None
        n = len(self.bench.part.y)
        order = np.concatenate([self.bench.splits[k][1] for k in splits])
        found: dict[str, Any] = {}
        for part in (*BY_VIEW, "predicted", "probabilities"):
            lists = [self.records[name, k][part] for k in splits]
            if None in lists:
                found[part] = None
                continue
            values = np.concatenate([unpacked(own) for own in lists])
            found[part] = np.empty((n, *values.shape[1:]), dtype=values.dtype)
            found[part][order] = values
        if found["probabilities"] is not None:
            # They are noted with few digits, and sum to one again.
            found["probabilities"] /= found["probabilities"].sum(axis=1, keepdims=True)
        classes, predictions = None, found.pop("predicted")
        if self.bench.question.classes:
            classes = np.array(self.bench.question.classes, dtype=object)
            # The last entry stands for the code -1 of views without a prediction.
            labels = np.array([*classes, None], dtype=object)
            predictions, found["runner_up"] = classes[predictions], classes[found["runner_up"]]
            found["alone"] = labels[found["alone"]]
        return Explanation(
            ids=self.table.ids,
            views=list(self.table.views),
            classes=classes,
            predictions=predictions,
            truth=np.asarray(self.bench.part.y),
            **found,
        )

    def notices(self, name: str) -> dict[str, tuple[str, int]]:
        """Return what a candidate's fits had to tell, by kind: the text, and in how many splits."""
        found: dict[str, tuple[str, int]] = {}
        for split in self.splits:
            for kind, text in self.records[name, split].get("notices", {}).items():
                found[kind] = text, found.get(kind, ("", 0))[1] + 1
        return found


RESULTS, PREDICTIONS, MODEL, REPORT = "results.csv", "predictions.csv", "model.lokl", "report.html"
# Columns whose values are the machine's.
MEASURED = ("seconds",)
_HEAD = ("candidate", "role", "repeat", "fold", "samples", "score")
_TAIL = ("seconds", "support", "inner score", "settings", "error")


def results_csv(results: Results) -> str:
    """Return a line for each candidate and fold."""
    known = [record for record in results.records.values() if record["error"] is None]
    more = [name for name in _EXTRA if any(name in record for record in known)]
    return _csv([*_HEAD, *more, *_TAIL], _fold_rows(results, more))


_EXTRA = ("balanced accuracy", "log loss", "sensitivity", "specificity", "absolute error")


def _fold_rows(results: Results, more: Sequence[str]) -> Iterator[list[Any]]:
    for candidate in results.bench.candidates.values():
        for split, (repeat, fold) in enumerate(results.bench.labels):
            record = results.records.get((candidate.name, split))
            if record is None:
                continue
            yield [
                candidate.name,
                candidate.role,
                repeat + 1,
                fold + 1,
                len(results.bench.splits[split][1]),
                record.get("score"),
                *(record.get(name) for name in more),
                record.get("seconds"),
                record.get("support"),
                record.get("inner"),
                record.get("settings"),
                record["error"],
            ]


def predictions_csv(results: Results) -> str:
    """Return a line for each sample and repeat: what the chosen model said when it was left out."""
    chosen = results.chosen
    if chosen is None:
        return ""
    bench, views = results.bench, list(results.table.views)
    classes, ids = bench.question.classes, results.table.ids
    head = ["id", "repeat", "fold", str(results.table.target.name), "prediction"]
    head += [f"probability {label}" for label in classes]
    several = len(views) > 1
    trusts = all(results.records[chosen.name, k]["trust"] is not None for k in results.splits)
    kind, field = ("trust", "trust") if trusts else ("weight", "weights")
    if several:
        head += [f"{kind} {view}" for view in views] + ["disagreement"]
        head += ["status"] if classes else []

    def rows() -> Iterator[list[Any]]:
        for split in results.splits:
            record, (repeat, fold) = results.records[chosen.name, split], bench.labels[split]
            chances = record["probabilities"] or [[None] * len(classes)] * len(record["predicted"])
            said = bench.question.names(record["predicted"])
            for k, row in enumerate(bench.splits[split][1]):
                line = [ids[row], repeat + 1, fold + 1]
                line += [bench.part.y[row], said[k], *chances[k]]
                if several:
                    line += [*record[field][k], record["disagreement"][k]]
                    line += [record["status"][k]] if classes else []
                yield line

    order = {name: place for place, name in enumerate(ids)}
    return _csv(head, sorted(rows(), key=lambda line: (line[1], order[line[0]])))


def _csv(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow(
            f"{value:.6g}" if isinstance(value, float) else "" if value is None else value
            for value in row
        )
    return stream.getvalue()
