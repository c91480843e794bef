"""Results of a comparison: scores with intervals, the chosen model, and the value of views."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._frames import need_pandas
from lokl._text import csv_text
from lokl.explain.explanation import DISAGREE, Explanation
from lokl.explain.results import corrected_error, corrected_interval
from lokl.report import Interval, LeaderboardEntry, ViewSummary
from lokl.solvers.machines import Fold
from lokl.study.candidates import OURS, VIEW, single_view_name
from lokl.study.experiment import CLASS_FIELDS, EXPLANATION_FIELDS, Experiment, to_array
from lokl.study.run_folder import Record

BEST_VIEW = "best view"
# Mean trust from which on a view counts as trusted; for weights, the share of equal weights.
_TRUSTED, _NEARLY_EQUAL = 0.5, 0.9
# Weights that differ by less between samples count as constant.
_CONSTANT = 1e-3
_THIRDS = ["low values", "middle values", "high values"]


@dataclass(frozen=True, eq=False, kw_only=True)
class CandidateResult(LeaderboardEntry):
    """A row of the leaderboard, with the scores of all splits.

    Attributes
    ----------
    role : {"ours", "view", "baseline"}
    complexity : int
    scores : array of shape (n_splits,)
        Empty if the candidate failed; `note` then has the reason.
    """

    role: str
    complexity: int
    scores: Array

    @property
    def failed(self) -> bool:
        """Whether a fit of the candidate failed."""
        return self.score is None

    @property
    def mean(self) -> float:
        """Mean score over the splits, NaN if the candidate failed."""
        return np.nan if self.score is None else self.score.mean


class Results:
    """Scores, value of views and explanations from the records of a comparison.

    Parameters
    ----------
    experiment : Experiment
    records : iterable of dict
        Records of finished and failed cells.

    Attributes
    ----------
    table : Table
    target : PredictionTarget
    records : dict of (candidate, split) to record
    splits : list of int
        Splits that all candidates have finished.
    """

    def __init__(self, experiment: Experiment, records: Iterable[Record]):
        self.experiment = experiment
        self.table, self.target = experiment.table, experiment.target
        self.records = {(record["candidate"], record["split"]): record for record in records}
        self.splits = [
            split
            for split in range(len(experiment.splits))
            if all((name, split) in self.records for name in experiment.candidates)
        ]

    @cached_property
    def leaderboard(self) -> list[CandidateResult]:
        """All candidates and the best view, best first, failed ones last.

        The simplest candidate of lokl within one standard error of the best one is chosen.
        """
        rows = sorted(self._rows(), key=lambda row: (row.failed, -row.mean, row.complexity))
        ours = [row for row in rows if row.role == OURS and not row.failed]
        if not ours:
            return rows
        bound = ours[0].mean - corrected_error(ours[0].scores, self._folds)
        near = [row for row in ours if row.mean >= bound]
        chosen = min(near, key=lambda row: (row.complexity, -row.mean))
        return [
            replace(
                row,
                chosen=row is chosen,
                behind=None if row.failed or row is chosen else self.difference(chosen, row),
            )
            for row in rows
        ]

    def _rows(self) -> list[CandidateResult]:
        """Return all candidates in the order of the experiment, and the best view if any."""
        rows = [
            self._result(one.name, one.role, one.complexity, self._records_of(one.name))
            for one in self.experiment.candidates.values()
        ]
        views = [row for row in rows if row.role == VIEW]
        if len(views) > 1 and not any(row.failed for row in views):
            # In each split, the view with the best score inside the training samples.
            by_split = zip(*(self._records_of(row.name) for row in views), strict=True)
            best = [max(records, key=lambda r: r["inner score"]) for records in by_split]
            seconds = sum(row.seconds for row in views)
            rows.append(replace(self._result(BEST_VIEW, VIEW, 0, best), seconds=seconds))
        return rows

    def _records_of(self, name: str) -> list[Record]:
        """Return the records of a candidate, one for each finished split."""
        return [self.records[name, split] for split in self.splits]

    def _result(
        self, name: str, role: str, complexity: int, records: list[Record]
    ) -> CandidateResult:
        """Return the row of a candidate on the leaderboard, before one is chosen.

        Parameters
        ----------
        name, role : str
        complexity : int
        records : list of dict
            One for each finished split.
        """
        errors = [record["error"] for record in records if record["error"] is not None]
        failed = bool(errors) or not records
        scores = np.array([] if failed else [record["score"] for record in records])
        return CandidateResult(
            name,
            None if failed else self._score_interval(scores),
            0.0 if failed else float(np.mean([record["seconds"] for record in records])),
            None if failed else _mean(records, "support"),
            baseline=role != OURS,
            note=f"failed in {len(errors)} of {len(records)} folds: {errors[0]}" if errors else "",
            other_scores={} if failed else self._other_scores(records),
            role=role,
            complexity=complexity,
            scores=scores,
        )

    def result(self, name: str) -> CandidateResult:
        """Return a candidate by its name."""
        return next(row for row in self.leaderboard if row.name == name)

    @property
    def chosen(self) -> CandidateResult | None:
        """The chosen candidate, None if no model of lokl was compared."""
        return next((row for row in self.leaderboard if row.chosen), None)

    def difference(self, first: CandidateResult, second: CandidateResult) -> Interval:
        """Return how much better the first candidate is, paired by split.

        Parameters
        ----------
        first, second : CandidateResult
            Neither has failed.
        """
        return corrected_interval(first.scores - second.scores, self._folds)

    def best(self, role: str) -> CandidateResult | None:
        """Return the best candidate with a role, None if there is none."""
        rows = (row for row in self.leaderboard if row.role == role and not row.failed)
        return next((row for row in rows if row.name != BEST_VIEW), None)

    @property
    def _folds(self) -> list[Fold]:
        """Training and test rows of the finished splits."""
        return [self.experiment.splits[split] for split in self.splits]

    def _score_interval(self, scores: Array) -> Interval:
        """Return the mean score and its interval, which ends at the limits of scores."""
        mean, low, high = corrected_interval(scores, self._folds)
        return Interval(mean, max(low, 0.0 if self.target.classes else -np.inf), min(high, 1.0))

    def _other_scores(self, records: list[Record]) -> dict[str, Interval]:
        """Return the scores that all records have, besides the one candidates are compared by."""
        values = {name: [record.get(name) for record in records] for name in _EXTRA_SCORES}
        known = {name: np.array(own) for name, own in values.items() if None not in own}
        return {name: corrected_interval(own, self._folds) for name, own in known.items()}

    @property
    def view_scores(self) -> list[ViewSummary]:
        """Value of each view to the chosen model."""
        alone = {row.name: row.score for row in self.leaderboard}
        missing, n_samples = self.table.n_missing(), len(self.table.ids)
        records = [] if self.chosen is None else self._records_of(self.chosen.name)
        rows = []
        for view, columns in self.table.views.items():
            loss = without = None
            pairs = [record.get("ablation", {}).get(view) for record in records]
            if pairs and None not in pairs:
                complete, reduced = np.array(pairs, dtype=float).T
                loss = corrected_interval(complete - reduced, self._folds)
                without = self._score_interval(reduced)
            share, single = missing.get(view, 0) / n_samples, alone.get(single_view_name(view))
            rows.append(ViewSummary(view, len(columns), single, loss, share, without))
        return rows

    def held_out(self, repeat: int = 0) -> Explanation | None:
        """Return the explanation of held-out samples by the chosen candidate.

        Parameters
        ----------
        repeat : int
            Repeat of the cross-validation, from 0.

        Returns
        -------
        explanation : Explanation or None
            None if nothing is chosen, or if splits of the repeat are missing.
        """
        splits = [k for k, label in enumerate(self.experiment.labels) if label[0] == repeat]
        is_finished = bool(splits) and set(splits) <= set(self.splits)
        return self.explanation_of(splits) if is_finished and self.chosen is not None else None

    def explanation_of(self, splits: Sequence[int]) -> Explanation:
        """Return the explanation of the test samples of some splits by the chosen candidate.

        Parameters
        ----------
        splits : sequence of int
            Finished splits of one repeat.

        Returns
        -------
        explanation : Explanation
            Of the test samples, in the order of the table.
        """
        if self.chosen is None:
            raise ValueError("no candidate is chosen")
        records = [self.records[self.chosen.name, split] for split in splits]
        rows = np.concatenate([self.experiment.splits[split][1] for split in splits])
        order = np.argsort(rows)
        classes = np.array(self.target.classes, dtype=object) if self.target.classes else None
        fields: dict[str, Any] = {}
        for name in EXPLANATION_FIELDS:
            values = [value for record in records for value in record[name] or ()]
            is_class = classes is not None and name in CLASS_FIELDS
            array = np.array(values, dtype=object) if is_class else to_array(values)
            fields[name] = array[order] if values else None
        if fields["probabilities"] is not None:
            # Recorded probabilities are rounded.
            fields["probabilities"] /= fields["probabilities"].sum(axis=1, keepdims=True)
        return Explanation(
            ids=[self.table.ids[row] for row in rows[order]],
            views=list(self.table.views),
            classes=classes,
            truth=self.experiment.samples.y[rows[order]],
            prior=self._prior(),
            unit=records[0]["unit"],
            **fields,
        )

    def _prior(self) -> Any:
        """Return the share of each class among all samples, or the mean of their targets."""
        y = self.experiment.samples.y
        if not self.target.classes:
            return float(y.mean())
        return {label: float(np.mean(y == label)) for label in self.target.classes}

    def warning_counts(self, name: str) -> Counter[str]:
        """Return the number of splits with a warning of a candidate's fit, by kind."""
        records = self._records_of(name)
        return Counter(kind for record in records for kind in record.get("warnings", ()))

    def trusted_where(self) -> dict[str, str]:
        """Return the classes, or thirds of the values, for which each view is trusted.

        Returns
        -------
        texts : dict of str to str
            By view, such as "all classes" or "little"; empty without an explanation.
        """
        explanation = self.held_out()
        trust = None if explanation is None else explanation.trust_or_weights
        if explanation is None or trust is None:
            return {}
        limit, complete = _TRUSTED, explanation.presence.all(axis=1)
        if explanation.trust is None:
            limit = _NEARLY_EQUAL / len(explanation.views)
            if complete.any() and np.ptp(trust[complete], axis=0).max() < _CONSTANT:
                return dict.fromkeys(explanation.views, "the same for all")
        names, codes = list(map(str, self.target.classes)) or _THIRDS, explanation.truth_codes
        if not self.target.classes:
            codes = np.digitize(codes, np.quantile(codes, [1 / 3, 2 / 3]), right=True)
        present = need_pandas("lokl compare").DataFrame(trust).where(explanation.presence)
        means = present.groupby(codes).mean()
        everywhere = "all classes" if self.target.classes else "everywhere"
        texts = {}
        for column, view in enumerate(explanation.views):
            trusted = [names[code] for code in means.index[means[column] >= limit]]
            shown = everywhere if len(trusted) == len(names) else ", ".join(trusted)
            texts[view] = shown or "little"
        return texts

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


_EXTRA_SCORES = (
    *("balanced accuracy", "log loss", "AUROC", "sensitivity", "specificity"),
    "absolute error",
)


def _mean(records: Sequence[Record], name: str) -> float | None:
    """Return the mean of a value of all records, None if one of them lacks it."""
    values: list[Any] = [record.get(name) for record in records]
    return None if None in values else float(np.mean(values))


def results_csv(results: Results) -> str:
    """Return a CSV table with a row for each candidate and fold.

    Parameters
    ----------
    results : Results

    Returns
    -------
    text : str
        Repeats and folds are counted from 1; scores that no record has are left out.
    """
    experiment = results.experiment
    recorded = {name for record in results.records.values() for name in record}
    head = ["candidate", "role", "repeat", "fold", "samples", "score"]
    head += [name for name in _EXTRA_SCORES if name in recorded]
    head += ["seconds", "support", "inner score", "settings", "error"]
    rows = []
    for candidate in experiment.candidates.values():
        for split, (repeat, fold) in enumerate(experiment.labels):
            record = results.records.get((candidate.name, split))
            if record is not None:
                row = {"role": candidate.role, "repeat": repeat + 1, "fold": fold + 1, **record}
                row["samples"] = len(experiment.splits[split][1])
                rows.append([row.get(name) for name in head])
    return csv_text(head, rows)


def predictions_csv(results: Results) -> str:
    """Return a CSV table of held-out predictions of the chosen model, by repeat and sample.

    Parameters
    ----------
    results : Results
        With a chosen model.

    Returns
    -------
    text : str
        The columns are id, repeat, fold, the target, and the columns of `Explanation.table`.
    """
    splits, labels = results.experiment.splits, results.experiment.labels
    head: list[str] = []
    rows: list[tuple[Any, ...]] = []
    for repeat in sorted({labels[split][0] for split in results.splits}):
        finished = [split for split in results.splits if labels[split][0] == repeat]
        explanation = results.explanation_of(finished)
        folds = {row: labels[split][1] + 1 for split in finished for row in splits[split][1]}
        columns = {
            "id": explanation.ids,
            "repeat": [repeat + 1] * len(explanation),
            "fold": [folds[row] for row in sorted(folds)],
            str(results.table.target.name): explanation.truth,
            **explanation.table(details=False),
        }
        head = list(columns)
        rows += zip(*columns.values(), strict=True)
    return csv_text(head, rows)
