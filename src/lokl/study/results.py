"""Results of a comparison: scores with intervals, the chosen model, and the value of views."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._text import csv_text
from lokl.explain.explanation import DISAGREE, Explanation
from lokl.explain.results import corrected_error, corrected_interval
from lokl.solvers.machines import Fold
from lokl.study.candidates import OURS, VIEW, StudyCandidate, single_view_name
from lokl.study.experiment import EXPLANATION_FIELDS, Experiment, to_array
from lokl.study.run_folder import Record
from lokl.tables import Table

BEST_VIEW = "best view"
ScoreInterval = tuple[float, float, float]
# Mean trust from which on a view counts as trusted; for weights, the share of equal weights.
_TRUSTED, _NEARLY_EQUAL = 0.5, 0.9
# Weights that differ by less between samples count as constant.
_CONSTANT = 1e-3
_THIRDS = ["low values", "middle values", "high values"]


@dataclass(frozen=True, eq=False)
class CandidateResult:
    """Scores of a candidate over all splits.

    Attributes
    ----------
    name, role : str
    complexity : int
    scores : array of shape (n_splits,)
        Empty if the candidate failed.
    interval : (mean, low, high)
    seconds : float
        Mean processor time of a fit, including the choice of settings.
    support : float or None
        Mean fraction of support samples.
    error : str
        Why it failed.
    """

    name: str
    role: str
    complexity: int
    scores: Array
    interval: ScoreInterval
    seconds: float
    support: float | None = None
    error: str = ""

    @property
    def failed(self) -> bool:
        return not len(self.scores)

    @property
    def mean(self) -> float:
        return self.interval[0]


@dataclass(frozen=True, eq=False)
class ViewScores:
    """Value of a view to the chosen model.

    Attributes
    ----------
    view : str
    alone : (mean, low, high) or None
        Score of a model of this view only.
    loss : (mean, low, high) or None
        Loss of the score when the view is removed; negative if the model is better without it.
    without : (mean, low, high) or None
        Score without the view.
    """

    view: str
    alone: ScoreInterval | None
    loss: ScoreInterval | None
    without: ScoreInterval | None


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that a comparison has found.

    Attributes
    ----------
    experiment : Experiment
    table : Table
    records : dict of (candidate, split) to record
    splits : list of int
        Splits that all candidates have finished.
    """

    experiment: Experiment
    table: Table
    records: Mapping[tuple[str, int], Record]
    splits: list[int]

    @classmethod
    def of(cls, experiment: Experiment, table: Table, records: Iterable[Record]) -> "Results":
        """Return the results of records."""
        by_cell = {(record["candidate"], record["split"]): record for record in records}
        splits = [
            split
            for split in range(len(experiment.splits))
            if all((name, split) in by_cell for name in experiment.candidates)
        ]
        return cls(experiment, table, by_cell, splits)

    @property
    def classes(self) -> list[Any]:
        """Classes; empty for regression."""
        return self.experiment.target.classes

    @property
    def score_name(self) -> str:
        return self.experiment.target.score_name

    def format_score(self, value: float, sign: str = "") -> str:
        """Return a score as text; see :meth:`PredictionTarget.format_score`."""
        return self.experiment.target.format_score(value, sign)

    @cached_property
    def leaderboard(self) -> list[CandidateResult]:
        """All candidates, best first, failed ones last."""
        found = [self._result(candidate) for candidate in self.experiment.candidates.values()]
        best = self._best_view()
        found += [best] if best is not None else []
        return sorted(found, key=lambda row: (row.failed, -row.mean, row.complexity))

    def result(self, name: str) -> CandidateResult:
        """Return a candidate by its name."""
        return next(row for row in self.leaderboard if row.name == name)

    @cached_property
    def chosen(self) -> CandidateResult | None:
        """The simplest candidate of lokl within one standard error of the best one."""
        ours = [row for row in self.leaderboard if row.role == OURS and not row.failed]
        if not ours:
            return None
        bound = ours[0].mean - corrected_error(ours[0].scores, self._folds)
        return min(
            (row for row in ours if row.mean >= bound), key=lambda row: (row.complexity, -row.mean)
        )

    def difference(self, first: CandidateResult, second: CandidateResult) -> ScoreInterval:
        """Return how much better the first candidate is, with the interval."""
        return corrected_interval(first.scores - second.scores, self._folds)

    def best(self, role: str) -> CandidateResult | None:
        """Return the best candidate with a role, None if there is none."""
        rows = (row for row in self.leaderboard if row.role == role and not row.failed)
        return next((row for row in rows if row.name != BEST_VIEW), None)

    @property
    def _folds(self) -> list[Fold]:
        return [self.experiment.splits[split] for split in self.splits]

    def _score_interval(self, scores: Array) -> ScoreInterval:
        """Return the mean score and its interval, which ends at the limits of scores."""
        mean, low, high = corrected_interval(scores, self._folds)
        return mean, max(low, 0.0 if self.classes else -np.inf), min(high, 1.0)

    def _result(self, candidate: StudyCandidate) -> CandidateResult:
        records = [self.records[candidate.name, split] for split in self.splits]
        errors = [record["error"] for record in records if record["error"] is not None]
        common = (candidate.name, candidate.role, candidate.complexity)
        if errors or not records:
            text = f"failed in {len(errors)} of {len(records)} folds: {errors[0]}" if errors else ""
            return CandidateResult(*common, np.array([]), (np.nan,) * 3, 0.0, None, text)
        scores = np.array([record["score"] for record in records])
        supports: list[Any] = [record.get("support") for record in records]
        return CandidateResult(
            *common,
            scores,
            self._score_interval(scores),
            float(np.mean([record["seconds"] for record in records])),
            None if None in supports else float(np.mean(supports)),
        )

    def _best_view(self) -> CandidateResult | None:
        """Return the result of choosing the view with the best inner score in each split."""
        candidates = [c for c in self.experiment.candidates.values() if c.role == VIEW]
        rows = [self._result(candidate) for candidate in candidates]
        if len(rows) < 2 or any(row.failed for row in rows):
            return None
        chosen = [
            max((self.records[row.name, split] for row in rows), key=lambda record: record["inner"])
            for split in self.splits
        ]
        scores = np.array([record["score"] for record in chosen])
        seconds = sum(row.seconds for row in rows)
        return CandidateResult(BEST_VIEW, VIEW, 0, scores, self._score_interval(scores), seconds)

    @property
    def view_scores(self) -> list[ViewScores]:
        """Value of each view to the chosen model."""
        alone = {row.name: row.interval for row in self.leaderboard if not row.failed}
        found = []
        for view in self.table.views:
            loss = without = None
            if self.chosen is not None:
                pairs = [
                    self.records[self.chosen.name, split].get("ablation", {}).get(view)
                    for split in self.splits
                ]
                if pairs and None not in pairs:
                    complete, reduced = np.array(pairs, dtype=float).T
                    loss = corrected_interval(complete - reduced, self._folds)
                    without = self._score_interval(reduced)
            found.append(ViewScores(view, alone.get(single_view_name(view)), loss, without))
        return found

    def held_out(self, repeat: int = 0) -> Explanation | None:
        """Return the explanation of held-out samples by the chosen candidate.

        None if nothing is chosen, or if not all splits of the repeat are finished.
        """
        labels = self.experiment.labels
        splits = [split for split, label in enumerate(labels) if label[0] == repeat]
        if self.chosen is None or not splits or any(split not in self.splits for split in splits):
            return None
        order = np.concatenate([self.experiment.splits[split][1] for split in splits])
        fields: dict[str, Any] = {}
        for name in (*EXPLANATION_FIELDS, "predicted", "probabilities"):
            lists = [self.records[self.chosen.name, split][name] for split in splits]
            if None in lists:
                fields[name] = None
                continue
            values = np.concatenate([to_array(part) for part in lists])
            fields[name] = np.empty((len(order), *values.shape[1:]), dtype=values.dtype)
            fields[name][order] = values
        if fields["probabilities"] is not None:
            # Recorded probabilities are rounded.
            fields["probabilities"] /= fields["probabilities"].sum(axis=1, keepdims=True)
        classes, predictions = None, fields.pop("predicted")
        if self.classes:
            classes = np.array(self.classes, dtype=object)
            # The last entry stands for the code -1 of views without a prediction.
            labels_or_none = np.array([*classes, None], dtype=object)
            predictions, fields["runner_up"] = classes[predictions], classes[fields["runner_up"]]
            fields["alone"] = labels_or_none[fields["alone"]]
        return Explanation(
            ids=self.table.ids,
            views=list(self.table.views),
            classes=classes,
            predictions=predictions,
            truth=np.asarray(self.experiment.samples.y),
            **fields,
        )

    def warning_counts(self, name: str) -> Counter[str]:
        """Return the number of splits with a warning of a candidate's fit, by kind."""
        records = [self.records[name, split] for split in self.splits]
        return Counter(kind for record in records for kind in record.get("warnings", {}))

    def trusted_where(self) -> dict[str, str]:
        """Return the classes, or thirds of the values, for which each view is trusted."""
        explanation = self.held_out()
        trust = None if explanation is None else explanation.trust_or_weights
        if explanation is None or trust is None:
            return {}
        limit, complete = _TRUSTED, explanation.presence.all(axis=1)
        if explanation.trust is None:
            limit = _NEARLY_EQUAL / len(explanation.views)
            if complete.any() and np.ptp(trust[complete], axis=0).max() < _CONSTANT:
                return dict.fromkeys(explanation.views, "the same for all")
        y = self.experiment.samples.y
        names, codes = list(map(str, self.classes)), self.experiment.target.encode(y)
        if not names:
            names, codes = _THIRDS, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]), right=True)
        found = {}
        for v, view in enumerate(explanation.views):
            present = explanation.presence[:, v]
            trusted = []
            for code, name in enumerate(names):
                values = trust[present & (codes == code), v]
                if len(values) and values.mean() >= limit:
                    trusted.append(name)
            everywhere = "all classes" if self.classes else "everywhere"
            found[view] = everywhere if len(trusted) == len(names) else ", ".join(trusted)
        return {view: text or "little" for view, text in found.items()}

    def disagreeing(self) -> list[str]:
        """Return ids of samples whose views predict different classes, worst first."""
        explanation = self.held_out()
        if explanation is None or explanation.probabilities is None or len(self.table.views) < 2:
            return []
        codes, disagreement = explanation.alone_codes, explanation.disagreement
        highest = codes.max(axis=1)
        # Views without a prediction have the code -1.
        lowest = np.where(codes >= 0, codes, highest[:, None]).min(axis=1)
        rows = np.flatnonzero((lowest != highest) & (disagreement >= DISAGREE))
        order = rows[np.argsort(-disagreement[rows], kind="stable")]
        return [self.table.ids[row] for row in order]


_EXTRA_SCORES = ("balanced accuracy", "log loss", "sensitivity", "specificity", "absolute error")


def results_csv(results: Results) -> str:
    """Return a CSV table with a row for each candidate and fold."""
    experiment = results.experiment
    finished = [record for record in results.records.values() if record["error"] is None]
    extra = [name for name in _EXTRA_SCORES if any(name in record for record in finished)]
    head = ["candidate", "role", "repeat", "fold", "samples", "score", *extra]
    head += ["seconds", "support", "inner score", "settings", "error"]
    fields = ("score", *extra, "seconds", "support", "inner", "settings", "error")
    rows = []
    for candidate in experiment.candidates.values():
        for split, (repeat, fold) in enumerate(experiment.labels):
            record = results.records.get((candidate.name, split))
            if record is not None:
                n_test = len(experiment.splits[split][1])
                row = [candidate.name, candidate.role, repeat + 1, fold + 1, n_test]
                rows.append([*row, *(record.get(field) for field in fields)])
    return csv_text(head, rows)


def predictions_csv(results: Results) -> str:
    """Return a CSV table of held-out predictions of the chosen model, by repeat and sample."""
    chosen = results.chosen
    if chosen is None:
        return ""
    experiment, views, classes = results.experiment, list(results.table.views), results.classes
    records = {split: results.records[chosen.name, split] for split in results.splits}
    head = ["id", "repeat", "fold", str(results.table.target.name), "prediction"]
    head += [f"probability {label}" for label in classes]
    trusts = all(record["trust"] is not None for record in records.values())
    kind, field = ("trust", "trust") if trusts else ("weight", "weights")
    several = len(views) > 1
    if several:
        head += [f"{kind} {view}" for view in views] + ["disagreement"]
        head += ["status"] if classes else []

    def rows() -> Iterator[tuple[tuple[int, int], list[Any]]]:
        for split, record in records.items():
            repeat, fold = experiment.labels[split]
            predicted = experiment.target.decode(record["predicted"])
            unknown = [[None] * len(classes)] * len(predicted)
            probabilities = record["probabilities"] or unknown
            for k, row in enumerate(experiment.splits[split][1]):
                line = [results.table.ids[row], repeat + 1, fold + 1]
                line += [experiment.samples.y[row], predicted[k], *probabilities[k]]
                if several:
                    line += [*record[field][k], record["disagreement"][k]]
                    line += [record["status"][k]] if classes else []
                yield (repeat, row), line

    return csv_text(head, [line for _, line in sorted(rows(), key=lambda item: item[0])])
