"""Results of a comparison: scores with intervals, the chosen model, and the value of views."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._text import csv_text
from lokl.explain.explanation import STATUSES, Explanation
from lokl.report import Interval, LeaderboardEntry, ViewSummary
from lokl.report.formatting import Scale, count
from lokl.study.candidates import OURS, VIEW, single_view_name
from lokl.study.experiment import (
    CLASS_FIELDS,
    EXPLANATION_FIELDS,
    TEST,
    Experiment,
    columns_of_folds,
    to_array,
)
from lokl.study.permutation import PermutationTest
from lokl.study.run_folder import Record
from lokl.study.scores import (
    POSITIVE_SCORES,
    Estimate,
    HeldOut,
    Score,
    estimate,
    scores_of,
)

BEST_VIEW = "best view"
# Weights that differ by less between samples count as constant.
_CONSTANT = 1e-3
# Complexity of candidates with trust in each view.
_TRUST = 3
# Recorded predictions have six decimals.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class CandidateResult(LeaderboardEntry):
    """A row of the leaderboard, with the scores of all splits.

    Attributes
    ----------
    role : {"ours", "view", "baseline"}
    complexity : int
    estimate : Estimate or None
        Its score and its values without each part of the samples. None if the candidate failed, or
        if the score is undefined; `note` then has the reason.
    """

    role: str
    complexity: int
    estimate: Estimate | None

    @property
    def failed(self) -> bool:
        """Whether a fit of the candidate failed, or its score is undefined."""
        return self.score is None

    @property
    def mean(self) -> float:
        """Mean score over the repeats, NaN if the candidate failed."""
        return np.nan if self.score is None else self.score.mean


class Results:
    """Scores, value of views and explanations from the records of a comparison.

    Parameters
    ----------
    experiment : Experiment
        Samples, splits and candidates of the records.
    records : iterable of dict
        Records of finished and failed cells.

    Attributes
    ----------
    table : Table
    target : PredictionTarget
    records : dict of (candidate, split) to record
    splits : list of int
        Splits that all candidates have finished.

    See Also
    --------
    lokl.study.Comparison : Makes the records.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from lokl.study import Comparison, Results, Settings
    >>> frame = load_iris(as_frame=True).frame.iloc[::3]
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "iris.csv"
    ...     frame.to_csv(path, index=False)
    ...     settings = Settings((str(path),), target="target", folds=2, methods=("uniform mix",))
    ...     comparison = Comparison(settings, Path(folder) / "run")
    ...     with comparison.open():
    ...         records = comparison.run(jobs=1)
    ...     results = Results(comparison.experiment, comparison.records)
    >>> [entry.name for entry in results.leaderboard]
    ['uniform mix']
    """

    def __init__(self, experiment: Experiment, records: Iterable[Record]):
        self.experiment = experiment
        self.table, self.target = experiment.table, experiment.target
        self.records: dict[tuple[str, int], Record] = {}
        # Records of finished permutations by candidate, permutation and split.
        self._permuted: dict[tuple[str, int], dict[int, Record]] = {}
        for record in records:
            candidate, split = record["candidate"], record["split"]
            permutation = record.get("permutation", 0)
            if not permutation:
                self.records[candidate, split] = record
            elif record["error"] is None:
                self._permuted.setdefault((candidate, permutation), {})[split] = record
        self.splits = [
            split
            for split in range(len(experiment.splits))
            if all((name, split) in self.records for name in experiment.candidates)
        ]

    @cached_property
    def leaderboard(self) -> list[CandidateResult]:
        """All candidates and the best view, best first, failed ones last; see :attr:`chosen`."""
        sign = self.target.score.sign
        rows = sorted(self._rows(), key=lambda row: (row.failed, -sign * row.mean, row.complexity))
        ours = [row for row in rows if row.role == OURS and not row.failed]
        if not ours:
            return rows
        near = [row for row in ours if not self._clearly_worse(row, ours[0])]
        order = {
            "explain": lambda row: -row.complexity if self.n_views > 1 else row.complexity,
            "accuracy": lambda row: 0,
            "simple": lambda row: row.complexity,
        }[self.experiment.settings.goal]
        # Rows are sorted by their scores: the first of equal ones is the best.
        chosen = min(near, key=order)
        rows.sort(key=lambda row: (row.failed, -sign * row.mean, row is not chosen))
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
        scores = {} if failed else self._estimates(records)
        main = scores.get(self.target.score_name)
        note = f"failed in {len(errors)} of {len(records)} folds: {errors[0]}" if errors else ""
        if main is None and not failed:
            note = f"{self.target.score_name} is undefined for its predictions"
        if role == OURS and not failed and any(record["trust"] is None for record in records):
            # A vote in regions has no trust.
            complexity = min(complexity, _TRUST - 1)
        return CandidateResult(
            name,
            None if main is None else self.target.score.interval(main),
            0.0 if failed else float(np.mean([record["seconds"] for record in records])),
            support=None if failed else _mean(records, "support"),
            baseline=role != OURS,
            note=note,
            other_scores={
                score.name: score.interval(scores[score.name])
                for score in self.other_scores
                if score.name in scores
            },
            role=role,
            complexity=complexity,
            estimate=main,
        )

    def result(self, name: str) -> CandidateResult:
        """Return a candidate by its name."""
        return next(row for row in self.leaderboard if row.name == name)

    @property
    def chosen(self) -> CandidateResult | None:
        """The chosen candidate, None if no model of lokl was compared.

        It is chosen among the candidates of lokl whose difference from the best of them, paired by
        sample, is within one standard error. To explain, trust in each view is preferred
        to weights that differ between samples, these to learned weights, and these to a fixed mix;
        the simplest is the reverse. With one view there is nothing to explain by views, and the
        simplest is chosen. For accuracy, the best is chosen.
        """
        return next((row for row in self.leaderboard if row.chosen), None)

    @property
    def n_views(self) -> int:
        return len(self.table.views)

    def _clearly_worse(self, row: CandidateResult, best: CandidateResult) -> bool:
        """Return whether a candidate is worse than the best by more than a standard error."""
        difference = self._gain(best, row)
        return difference.value > difference.error

    def _gain(self, first: CandidateResult, second: CandidateResult) -> Estimate:
        """Return how much better the first of two candidates is that have not failed."""
        if first.estimate is None or second.estimate is None:
            raise ValueError(f"{first.name} or {second.name} has no score")
        return self._oriented(first.estimate, second.estimate)

    def _oriented(self, first: Estimate, second: Estimate) -> Estimate:
        """Return the difference of scores, positive if the first is better."""
        return second - first if self.target.score.is_loss else first - second

    def difference(self, first: CandidateResult, second: CandidateResult) -> Interval:
        """Return how much better the first candidate is, paired by sample.

        Parameters
        ----------
        first, second : CandidateResult
            Neither has failed.
        """
        return self._gain(first, second).difference()

    def best(self, role: str) -> CandidateResult | None:
        """Return the best candidate with a role, None if there is none."""
        rows = (row for row in self.leaderboard if row.role == role and not row.failed)
        return next((row for row in rows if row.name != BEST_VIEW), None)

    @cached_property
    def other_scores(self) -> list[Score]:
        """Scores of the task besides the one by which candidates are compared."""
        scores = list(scores_of(self.experiment.samples.task))
        if self.target.positive is not None:
            scores += POSITIVE_SCORES
        return [score for score in scores if score.name != self.target.score_name]

    def _estimates(self, records: list[Record]) -> dict[str, Estimate]:
        """Return all scores of predictions by name, without undefined ones."""
        held_out, rows = self._predictions(records)
        scores = [self.target.score, *self.other_scores]
        values = {score.name: self._estimate(score, held_out, rows) for score in scores}
        return {name: value for name, value in values.items() if value is not None}

    def _estimate(
        self, score: Score, held_out: Sequence[HeldOut], rows: Sequence[Array]
    ) -> Estimate | None:
        # Held-out groups are the only ones: the intervals are about samples of these groups.
        settings, groups = self.experiment.settings, self.experiment.samples.groups
        return estimate(score, held_out, rows, None if settings.leave_one_group_out else groups)

    def _predictions(
        self,
        records: Sequence[Record],
        tested: Sequence[Any] | None = None,
        splits: Sequence[int] | None = None,
        y: Array | None = None,
    ) -> tuple[list[HeldOut], list[Array]]:
        """Return predictions of each repeat, and the rows of the table that they are of.

        Parameters
        ----------
        records : sequence of dict
            One for each split, with ``predictions`` and ``probabilities``.
        tested : sequence of int arrays, optional
            Positions of the predicted samples among the test samples; all of them if not given.
        splits : sequence of int, optional
            All finished splits if not given.
        y : array of shape (n_samples,), optional
            Target; that of the samples if not given.
        """
        splits = self.splits if splits is None else splits
        y = self.experiment.samples.y if y is None else y
        by_repeat: dict[int, list[tuple[Array, Record, int]]] = {}
        for k, (split, record) in enumerate(zip(splits, records, strict=True)):
            rows = self.experiment.splits[split][1]
            rows = rows if tested is None else rows[np.asarray(tested[k], dtype=np.intp)]
            if len(rows):
                repeat = self.experiment.labels[split][0]
                by_repeat.setdefault(repeat, []).append((rows, record, split))
        held_out, rows_of = [], []
        for parts in by_repeat.values():
            rows = np.concatenate([rows for rows, _, _ in parts])
            fold = np.concatenate([np.full(len(rows), split) for rows, _, split in parts])
            predictions = [value for _, record, _ in parts for value in record["predictions"]]
            lists = [record["probabilities"] for _, record, _ in parts]
            probabilities = None
            if all(one is not None for one in lists):
                probabilities = np.array([row for one in lists for row in one], dtype=float)
            truth = y[rows]
            values = np.array(predictions, self._prediction_type)
            held_out.append(self.target.held_out(truth, values, probabilities, fold))
            rows_of.append(rows)
        return held_out, rows_of

    @property
    def _prediction_type(self) -> Any:
        """Type of predictions: that of the target, or numbers for risks."""
        return float if self.target.times is not None else self.experiment.samples.y.dtype

    def fold_scores(self, record: Record) -> dict[str, float]:
        """Return all scores of the predictions in one record by name."""
        held_out = self._of_one_model(record)
        return {s.name: s(held_out) for s in (self.target.score, *self.other_scores)}

    def _of_one_model(self, record: Record) -> HeldOut:
        """Return the predictions in one record."""
        truth, probabilities = (
            self.experiment.tested(record["split"]).y,
            record["probabilities"],
        )
        return self.target.held_out(
            truth,
            np.array(record["predictions"], self._prediction_type),
            None if probabilities is None else np.array(probabilities, dtype=float),
            np.zeros(len(truth), dtype=int),
        )

    @cached_property
    def test_leaderboard(self) -> list[CandidateResult]:
        """The candidates on the test cohort, in the order of the leaderboard; empty without it."""
        rows = []
        for row in self.leaderboard:
            record = self.records.get((row.name, TEST))
            if row.failed or record is None or record["error"] is not None:
                continue
            held_out = self._of_one_model(record)
            own = [np.arange(len(held_out.truth))]
            intervals = {}
            for score in (self.target.score, *self.other_scores):
                value = estimate(score, [held_out], own)
                if value is not None:
                    intervals[score.name] = score.interval(value)
            main = intervals.pop(self.target.score_name, None)
            seconds = record["seconds"]
            rows.append(
                replace(row, score=main, other_scores=intervals, seconds=seconds, behind=None)
            )
        return rows

    @cached_property
    def permutation_test(self) -> PermutationTest | None:
        """Score of the chosen candidate against those on permuted targets, None without any."""
        splits, score = self.experiment.splits_of(0), self.target.score
        if self.chosen is None or not set(splits) <= set(self.splits):
            return None
        name = self.chosen.name
        actual = self._score_of([self.records[name, k] for k in splits], self.experiment.samples.y)
        permuted = []
        for permutation in range(1, self.experiment.settings.permutations + 1):
            records = self._permuted.get((name, permutation), {})
            if set(splits) <= set(records):
                y = self.experiment.permuted(permutation).y
                permuted.append(self._score_of([records[k] for k in splits], y))
        values = np.array([value for value in permuted if np.isfinite(value)])
        if not len(values) or not np.isfinite(actual):
            return None
        # Rounding must not make equal scores different.
        as_good = score.sign * values >= score.sign * actual - _ROUNDING
        best = float(score.sign * (score.sign * values).max())
        return PermutationTest(actual, float(values.mean()), best, int(as_good.sum()), len(values))

    def _score_of(self, records: Sequence[Record], y: Array) -> float:
        """Return the score of the predictions of some splits that test all samples once.

        Parameters
        ----------
        records : sequence of dict
        y : array of shape (n_samples,)
            Target.
        """
        held_out, _ = self._predictions(records, splits=[r["split"] for r in records], y=y)
        return self.target.score(held_out[0])

    def permutation_sentence(self) -> str:
        """Return a sentence about the permutation test; empty without one."""
        test, scale = self.permutation_test, self.scale
        if test is None:
            return ""
        mean, best = (scale.mean(Interval(value)) for value in (test.mean, test.best))
        return (
            f"Permutation test: p = {test.p_value:.2g}; {test.n_as_good} of "
            f"{count(test.n_permutations, 'permuted target')} reach the score (mean "
            f"{mean}{scale.unit}, best {best}{scale.unit})."
        )

    @property
    def view_scores(self) -> list[ViewSummary]:
        """Value of each view to the chosen model."""
        alone = {row.name: row.score for row in self.leaderboard}
        missing, n_samples = self.table.n_missing(), len(self.table.ids)
        rows = []
        for view, columns in self.table.views.items():
            loss, without = self._without(view)
            share, single = missing.get(view, 0) / n_samples, alone.get(single_view_name(view))
            rows.append(ViewSummary(view, len(columns), single, loss, share, without))
        return rows

    def _without(self, view: str) -> tuple[Interval | None, Interval | None]:
        """Return the loss of the chosen model without a view, and its score without the view."""
        records = [] if self.chosen is None else self._records_of(self.chosen.name)
        reduced = [record.get("ablation", {}).get(view) for record in records]
        if not records or None in reduced:
            return None, None
        tested = [np.array(one["rows"], dtype=np.intp) for one in reduced]
        complete = [_take_predictions(*pair) for pair in zip(records, tested, strict=True)]
        first, second = (
            self._estimate(self.target.score, *self._predictions(own, tested))
            for own in (complete, reduced)
        )
        if first is None or second is None:
            return None, None
        return self._oriented(first, second).difference(), self.target.score.interval(second)

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
        splits = self.experiment.splits_of(repeat)
        is_finished = bool(splits) and set(splits) <= set(self.splits)
        return self.explanation_of(splits) if is_finished and self.chosen is not None else None

    def explanation_of(self, splits: Sequence[int]) -> Explanation:
        """Return the explanation of the test samples of some splits by the chosen candidate.

        Parameters
        ----------
        splits : sequence of int
            Finished splits of one repeat, or `TEST` alone.

        Returns
        -------
        explanation : Explanation
            Of the test samples, in the order of the table.
        """
        if self.chosen is None:
            raise ValueError("no candidate is chosen")
        records = [self.records[self.chosen.name, split] for split in splits]
        if splits == [TEST] and self.experiment.cohort is not None:
            ids, truth = self.experiment.cohort.ids, self.experiment.tested(TEST).y
            rows = np.arange(len(ids))
        else:
            ids, truth = self.table.ids, self.experiment.samples.y
            rows = np.concatenate([self.experiment.splits[split][1] for split in splits])
        order = np.argsort(rows)
        classes = np.array(self.target.classes, dtype=object) if self.target.classes else None
        fields: dict[str, Any] = {}
        for name in EXPLANATION_FIELDS:
            values = [value for record in records for value in record.get(name) or ()]
            is_class = classes is not None and name in CLASS_FIELDS
            array = np.array(values, dtype=object) if is_class else to_array(values)
            fields[name] = array[order] if values else None
        columns: list[Any] = [record.get("columns") for record in records]
        if all(columns):
            fields["columns"] = columns_of_folds(columns, order)
        if self.target.times is not None:
            # The records of all candidates have their curves there.
            fields |= {"probabilities": None, "times": self.target.times}
        if fields["probabilities"] is not None:
            # Recorded probabilities are rounded.
            fields["probabilities"] /= fields["probabilities"].sum(axis=1, keepdims=True)
        return Explanation(
            ids=[ids[row] for row in rows[order]],
            views=list(self.table.views),
            classes=classes,
            truth=truth[rows[order]],
            prior=self._prior(),
            unit=records[0].get("unit", ""),
            **fields,
        )

    def _prior(self) -> Any:
        """Return the share of each class among all samples, or the mean of their targets."""
        y = self.experiment.samples.y
        if self.target.times is not None:
            return None
        if not self.target.classes:
            return float(y.mean())
        return {label: float(np.mean(y == label)) for label in self.target.classes}

    def warning_counts(self, name: str) -> Counter[str]:
        """Return the number of splits with a warning of a candidate's fit, by kind."""
        records = self._records_of(name)
        return Counter(kind for record in records for kind in record.get("warnings", ()))

    @property
    def scale(self) -> Scale:
        """Scale on which scores are shown."""
        score, n_samples = self.target.score, len(self.table.ids)
        scale = Scale.of_score(score.name, percent=score.percent, n_samples=n_samples)
        return replace(scale, low=score.low, high=score.high, is_loss=score.is_loss)

    def positive_scores(self) -> dict[str, Interval]:
        """Return the scores of the positive class by name; empty without one."""
        if self.chosen is None or self.target.positive is None:
            return {}
        names = [score.name for score in POSITIVE_SCORES]
        scores = self.chosen.other_scores
        return {name: scores[name] for name in names if name in scores}

    def reason(self) -> str:
        """Return in one or two sentences why the chosen candidate was chosen.

        Returns
        -------
        sentences : str
            Empty if no model of lokl was compared.
        """
        chosen, scale, goal = self.chosen, self.scale, self.experiment.settings.goal
        if chosen is None:
            return ""
        first = f"Chosen: {chosen.name}, {scale.mean(chosen.score)}{scale.unit}"
        ours = [row for row in self.leaderboard if row.role == OURS and not row.failed]
        others = [row for row in ours if row is not chosen]
        if not others:
            return f"{first}, the only model of lokl that was compared."
        best = ours[0]
        if goal == "accuracy":
            return f"{first}, the best model of lokl (--goal accuracy)."
        if goal == "simple" or self.n_views < 2:
            if best is chosen:
                return f"{first}, the best model of lokl."
            return f"{first}. {_sentence(self._compared(best, chosen))}, but less simple."
        if chosen.complexity < _TRUST:
            votes = [row for row in others if row.complexity == _TRUST]
            return f"{first}. {_sentence(self._compared((votes or others)[0], chosen))}."
        without = next((row for row in others if row.complexity < _TRUST), None)
        can = f"can say which {self.noun} to believe"
        if without is None:
            return f"{first}. It {can}."
        if self._clearly_worse(without, chosen):
            return f"{first}. It {can}; {self._compared(without, chosen)}."
        can = f"cannot say which {self.noun} to believe"
        return f"{first}. {_sentence(self._compared(without, chosen))}, but {can}."

    def sentences(self) -> str:
        """Return why the chosen candidate was chosen, its constant weights, and its p-value."""
        parts = (self.reason(), self.equal_weights(), self.permutation_sentence())
        return " ".join(filter(None, parts))

    def _compared(self, row: CandidateResult, chosen: CandidateResult) -> str:
        """Return a clause that compares a candidate with the chosen one."""
        worse, better = self._clearly_worse(row, chosen), self._clearly_worse(chosen, row)
        words = ("less accurate", "more accurate", "as accurate")
        if "accuracy" not in self.target.score_name:
            words = ("worse", "better", "as good")
        how = words[0 if worse else 1 if better else 2]
        return f"{_with_article(row.name)} is {how} ({self.scale.mean(row.score)}{self.scale.unit})"

    def decisive_for(self) -> dict[str, str]:
        """Return for how many held-out samples each view is decisive, and which class most have.

        Returns
        -------
        texts : dict of str to str
            By view, such as "21 samples, mostly Her2"; empty for regression and without an
            explanation.
        """
        explanation = self.held_out()
        if explanation is None or explanation.decisive is None or not self.target.classes:
            return {}
        texts = {}
        for view, rows in zip(explanation.views, explanation.decisive.T, strict=True):
            counts = np.bincount(explanation.truth_codes[rows], minlength=1)
            texts[view] = count(int(rows.sum()), "sample")
            if rows.sum() > 1 and 2 * counts.max() > rows.sum():
                texts[view] += f", mostly {self.target.classes[int(counts.argmax())]}"
        return texts

    def with_status(self) -> dict[str, list[str]]:
        """Return the ids of the held-out samples by status; empty without statuses."""
        explanation = self.held_out()
        if explanation is None or explanation.status is None or self.n_views < 2:
            return {}
        ids, disagreement = np.array(explanation.ids, dtype=object), explanation.disagreement
        order = np.argsort(-np.nan_to_num(disagreement), kind="stable")
        return {
            status: ids[order][explanation.status[order] == status].tolist() for status in STATUSES
        }

    def equal_weights(self) -> str:
        """Return a sentence about weights that are the same for all samples.

        Returns
        -------
        sentence : str
            Empty if the chosen model has trust, or weights that differ between samples.
        """
        explanation = self.held_out()
        if explanation is None or explanation.trust is not None or explanation.weights is None:
            return ""
        weights = explanation.weights[explanation.presence.all(axis=1)]
        if self.n_views < 2 or not len(weights) or np.ptp(weights, axis=0).max() >= _CONSTANT:
            return ""
        if np.ptp(weights[0]) < _CONSTANT:
            return f"All {self.noun}s count equally."
        shown = zip(explanation.views, weights[0], strict=True)
        listed = ", ".join(f"{view} {weight:.2f}" for view, weight in shown)
        return f"The weights of the {self.noun}s are the same for all samples: {listed}."

    @property
    def noun(self) -> str:
        """What a view is called: a table if it has a file of its own."""
        return "table" if len(self.table.files) > 1 else "view"


def _take_predictions(record: Record, rows: Array) -> Record:
    """Return the predictions of some of the samples of a record."""
    names = ("predictions", "probabilities")
    return {
        name: None if record[name] is None else [record[name][row] for row in rows]
        for name in names
    }


def _mean(records: Sequence[Record], name: str) -> float | None:
    """Return the mean of a value of all records, None if one of them lacks it."""
    values: list[Any] = [record.get(name) for record in records]
    return None if None in values else float(np.mean(values))


def _with_article(name: str) -> str:
    """Return the name of a candidate in a sentence: methods named by a noun have an article."""
    return name if any(letter.isupper() for letter in name) else f"the {name}"


def _sentence(clause: str) -> str:
    """Return a clause with a capital letter at its beginning."""
    return clause[:1].upper() + clause[1:]


def results_csv(results: Results) -> str:
    """Return a CSV table with a row for each candidate and fold.

    Parameters
    ----------
    results : Results

    Returns
    -------
    text : str
        Repeats and folds are counted from 1. The first score is the one by which candidates are
        compared.
    """
    experiment = results.experiment
    scores = [results.target.score, *results.other_scores]
    head = ["candidate", "role", "repeat", "fold", "samples"]
    head += [score.name for score in scores]
    head += ["seconds", "support", "inner score", "settings", "error"]
    rows = []
    for candidate in experiment.candidates.values():
        for split, (repeat, fold) in enumerate(experiment.labels):
            record = results.records.get((candidate.name, split))
            if record is not None:
                row = {"role": candidate.role, "repeat": repeat + 1, "fold": fold + 1, **record}
                row["samples"] = len(experiment.splits[split][1])
                row |= {} if record["error"] else results.fold_scores(record)
                rows.append([row.get(name) for name in head])
        record = results.records.get((candidate.name, TEST))
        if record is not None:
            row = {"role": candidate.role, "repeat": None, "fold": "test", **record}
            row["samples"] = len(experiment.tested(TEST).y)
            row |= {} if record["error"] else results.fold_scores(record)
            rows.append([row.get(name) for name in head])
    return csv_text(head, rows)


def _truth_columns(results: Results, explanation: Explanation) -> dict[str, Any]:
    """Return the target of samples by the name of its column; times and events for survival."""
    truth, table = np.asarray(explanation.truth), results.table
    if results.target.times is None:
        return {str(table.target.name): truth}
    return {str(table.target.name): truth["time"], str(table.event.name): truth["event"]}


def cohort_predictions_csv(results: Results) -> str:
    """Return a CSV table of the predictions of the chosen model for the test cohort."""
    explanation = results.explanation_of([TEST])
    columns = {
        "id": explanation.ids,
        **_truth_columns(results, explanation),
        **explanation.table(details=False),
    }
    return csv_text(columns, zip(*columns.values(), strict=True))


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
            **_truth_columns(results, explanation),
            **explanation.table(details=False),
        }
        head = list(columns)
        rows += zip(*columns.values(), strict=True)
    return csv_text(head, rows)
