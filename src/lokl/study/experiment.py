"""Cells of a comparison: a candidate trained on one split, and the record of its predictions."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from lokl._arrays import Array
from lokl.base.model import unwrap
from lokl.base.survival import survival_at
from lokl.explain import Explanation, explain
from lokl.explain.columns import ColumnContributions
from lokl.explain.explanation import class_codes
from lokl.solvers.machines import Fold
from lokl.study.candidates import (
    OURS,
    StudyCandidate,
    TableSamples,
    all_samples,
    probabilities_of,
)
from lokl.study.permutation import permuted_target
from lokl.study.run_folder import Record, RunCell
from lokl.study.scores import HeldOut, Score, score_named
from lokl.study.settings import Settings
from lokl.tables import Table
from lokl.tables.learning import target_of

# Decimals of recorded values; no table shows more.
_DECIMALS = 6
# Cells of a table up to which the contributions of its columns are computed.
MOST_CELLS = 200_000
# Distance of the seeds of repeats, so that comparisons with neighbouring seeds share no split.
_SEED_STEP = 1_000
# Split whose test samples are those of the test cohort.
TEST = -1
# Fields of an explanation that have classes as values, and all fields that are recorded. The others
# are the same in all records, or known from the table.
CLASS_FIELDS = {"predictions", "alone", "runner_up", "without"}
_NOT_RECORDED = {
    *("ids", "views", "classes", "truth", "prior", "columns", "sets", "gene_sets", "times"),
    *("unit", "learned"),
}
EXPLANATION_FIELDS = {field.name for field in fields(Explanation)} - _NOT_RECORDED


def to_lists(values: Array | None) -> Any:
    """Return an array as nested lists for JSON: floats are rounded, None stands for NaN."""
    if values is None or values.dtype.kind != "f":
        return None if values is None else values.tolist()
    lists = np.round(values, _DECIMALS).astype(object)
    lists[~np.isfinite(values)] = None
    return lists.tolist()


def to_array(lists: Any) -> Array:
    """Return the array of nested lists, with NaN for None."""
    values = np.asarray(lists)
    return values.astype(float) if values.dtype == object else values


def columns_to_lists(columns: ColumnContributions | None) -> Record | None:
    """Return contributions of columns as plain values for JSON."""
    if columns is None:
        return None
    names = {"views": columns.views, "columns": columns.columns, "view": columns.view.tolist()}
    return {**names, "values": to_lists(columns.values)}


def columns_of_folds(parts: Sequence[Record], order: Array) -> ColumnContributions:
    """Return contributions of columns to the predictions of several models.

    Parameters
    ----------
    parts : sequence of dict
        As :func:`columns_to_lists` returns them, one for each model.
    order : int array of shape (n_samples,)
        Order of the samples among those of all parts.

    Returns
    -------
    columns : ColumnContributions
        A column that a model does not use contributes zero.
    """
    pairs = [list(zip(part["view"], part["columns"], strict=True)) for part in parts]
    position = {pair: k for k, pair in enumerate(dict.fromkeys(p for own in pairs for p in own))}
    blocks = []
    for part, own in zip(parts, pairs, strict=True):
        block = np.zeros((len(part["values"]), len(position)))
        block[:, [position[pair] for pair in own]] = np.reshape(part["values"], (-1, len(own)))
        blocks.append(block)
    return ColumnContributions(
        list(parts[0]["views"]),
        [name for _, name in position],
        np.array([view for view, _ in position], dtype=np.intp),
        np.concatenate(blocks)[order],
    )


@dataclass(frozen=True, eq=False)
class PredictionTarget:
    """Classes or values to predict, and the score of predictions.

    Attributes
    ----------
    classes : list
        Sorted; empty for regression.
    score : Score
        By which candidates are compared.
    positive : str or None
        The positive class as text, if one was named.
    times : array or None
        Times of survival curves; None for other tasks.
    """

    classes: list[Any]
    score: Score
    positive: str | None = None
    times: Array | None = None

    @property
    def score_name(self) -> str:
        """Name of the score by which candidates are compared."""
        return self.score.name

    def held_out(
        self, truth: Array, predicted: Array, probabilities: Array | None, fold: Array
    ) -> HeldOut:
        """Return predictions of held-out samples in the form that scores take.

        Parameters
        ----------
        truth, predicted : arrays of shape (n_samples,)
            Classes or values.
        probabilities : array of shape (n_samples, n_classes) or None
        fold : int array of shape (n_samples,)
        """
        classes = np.array(self.classes, dtype=object) if self.classes else None
        names = [str(label) for label in self.classes]
        positive = None if self.positive is None else names.index(self.positive)
        if self.times is not None:
            return HeldOut(truth, predicted, probabilities, fold, [], None, self.times)
        return HeldOut(
            class_codes(truth, classes),
            class_codes(predicted, classes),
            probabilities,
            fold,
            self.classes,
            positive,
        )


def view_ablation(model: Pipeline, train: TableSamples, test: TableSamples) -> dict[str, Record]:
    """Predict test samples that have another view by a model without each view.

    A model without a view has the same settings and is fitted to the other views.

    Parameters
    ----------
    model : Pipeline
        Fitted to `train`; its first step prepares tables.
    train, test : TableSamples

    Returns
    -------
    without : dict of view to dict
        Positions of the test samples (``rows``), their ``predictions``, and their ``probabilities``
        if the model has them. Views are left out if nothing can be learned without them.
    """
    learner, X = unwrap(model, train.frame)
    _, X_test = unwrap(model, test.frame)
    # The model scales views side by side.
    ends = np.cumsum([len(columns) for columns in train.columns.values()]).tolist()
    without: dict[str, Record] = {}
    for (view, columns), end in zip(train.columns.items(), ends, strict=True):
        own = range(end - len(columns), end)
        kernels = {n: k for n, k in learner.kernels.items() if _first_column(k) not in own}
        others = np.setdiff1d(np.arange(ends[-1]), own)
        rows, tested = (~np.isnan(Z[:, others]).all(axis=1) for Z in (X, X_test))
        if not kernels or not tested.any() or len(np.unique(train.strata[rows])) < 2:
            continue
        smaller = clone(learner).set_params(kernels=kernels).fit(X[rows], train.y[rows])
        predictions, probabilities = predicted(smaller, X_test[tested], train)
        without[view] = {
            "rows": np.flatnonzero(tested).tolist(),
            "predictions": to_lists(predictions),
            "probabilities": to_lists(probabilities),
        }
    return without


def _first_column(kernel: Any) -> int:
    """Return the first column of a kernel on a slice of columns, or on a list of them."""
    columns = kernel.columns
    return int(columns.start if isinstance(columns, slice) else columns[0])


def predicted(model: Any, samples: Any, train: TableSamples) -> tuple[Array, Array | None]:
    """Return predictions of a model, and probabilities if it has them.

    They are of all classes, or of no event until each time of the samples.

    Parameters
    ----------
    model : fitted estimator
    samples : data frame or array with n_samples rows
    train : TableSamples
        With the classes of all samples.
    """
    predictions = np.asarray(model.predict(samples))
    if train.times is not None:
        find = getattr(model, "survival_at", partial(survival_at, model))
        return predictions.astype(float), find(samples, train.times)
    predictions = predictions.astype(train.y.dtype)
    probabilities = None
    if train.classes is not None and hasattr(model, "predict_proba"):
        probabilities = probabilities_of(model, samples, train.classes)
    return predictions, probabilities


@dataclass(frozen=True)
class CandidateSplit(RunCell):
    """A cell of a comparison.

    The split `TEST` trains on all samples and predicts the test cohort.

    Attributes
    ----------
    candidate : str
        Name of the candidate.
    split : int
        Index of the split, across all repeats.
    permutation : int, default=0
        Number of the permutation of the target; 0 for the target itself.
    """

    candidate: str
    split: int
    permutation: int = 0


class Experiment:
    """Samples, splits and candidates that all cells share.

    Parameters
    ----------
    table : Table
    candidates : sequence of StudyCandidate
    settings : Settings
        Folds, repeats and seed of the cross-validation.
    cohort : Table, optional
        Samples that are only tested.

    Attributes
    ----------
    table, settings
        As given.
    samples : TableSamples
        All samples.
    test : TableSamples or None
        Samples of the test cohort.
    target : PredictionTarget
    splits : list of (train, test)
    labels : list of (int, int)
        Repeat and fold of each split.
    candidates : dict of str to StudyCandidate
    """

    def __init__(
        self,
        table: Table,
        candidates: Sequence[StudyCandidate],
        settings: Settings,
        cohort: Table | None = None,
    ):
        self.table, self.settings = table, settings
        self.samples = all_samples(table, settings.seed)
        classes = [] if self.samples.classes is None else self.samples.classes.tolist()
        score = score_named(settings.score, self.samples.task)
        self.target = PredictionTarget(classes, score, table.positive, self.samples.times)
        self.candidates = {candidate.name: candidate for candidate in candidates}
        self.splits: list[Fold] = []
        self.labels: list[tuple[int, int]] = []
        self.cohort = cohort
        self.test = None
        if cohort is not None:
            y = np.asarray(target_of(cohort)).astype(self.samples.y.dtype)
            self.test = replace(self.samples, frame=cohort.frame, y=y, groups=None)
        groups = self.samples.groups
        for repeat in range(1 if settings.leave_one_group_out else settings.repeats):
            seed = settings.seed + _SEED_STEP * repeat
            if settings.leave_one_group_out and groups is not None:
                of_repeat = [
                    (np.flatnonzero(groups != group), np.flatnonzero(groups == group))
                    for group in np.unique(groups)
                ]
            else:
                of_repeat = self.samples.folds(settings.folds, seed=seed)
            self.splits += of_repeat
            self.labels += [(repeat, fold) for fold in range(len(of_repeat))]

    def tested(self, split: int) -> TableSamples:
        """Return the samples that are predicted in a split."""
        if split == TEST:
            if self.test is None:
                raise ValueError("there is no test cohort")
            return self.test
        return self.samples.take(self.splits[split][1])

    def splits_of(self, repeat: int) -> list[int]:
        """Return the indices of the splits of a repeat."""
        return [k for k, label in enumerate(self.labels) if label[0] == repeat]

    def permuted(self, permutation: int) -> TableSamples:
        """Return all samples with a permuted target; see :func:`permuted_target`.

        Parameters
        ----------
        permutation : int
            From 1.
        """
        y, groups, fold = self.samples.y, self.samples.groups, np.zeros(len(self.samples.y), int)
        if not self.settings.leave_one_group_out:
            for split in self.splits_of(0):
                fold[self.splits[split][1]] = split
        rng = np.random.RandomState((self.settings.seed, permutation))
        return replace(self.samples, y=permuted_target(y, fold, groups, rng))

    def run(self, cell: CandidateSplit) -> Record:
        """Fit and score a cell in one thread.

        Parameters
        ----------
        cell : CandidateSplit

        Returns
        -------
        record : dict
            Plain values for JSON; ``error`` is the reason if the cell failed, else None.
        """
        # Baselines of scikit-learn have threads of their own.
        with threadpool_limits(1):
            return cell.measured(self._measure)

    def _has_columns(self, cell: CandidateSplit) -> bool:
        """Return whether contributions of columns are recorded: once for each sample, if few."""
        return cell.split in self.splits_of(0) and self.table.frame.size <= MOST_CELLS

    def _measure(self, cell: CandidateSplit) -> Record:
        """Return scores, times and predictions, and for models of lokl their explanation."""
        candidate = self.candidates[cell.candidate]
        train, test = self.samples, self.tested(cell.split)
        if cell.permutation:
            train = self.permuted(cell.permutation)
        if cell.split != TEST:
            train = train.take(self.splits[cell.split][0])
        # Processor time: other cells may be running at the same time.
        begun = time.process_time()
        fitted = candidate.fit(train)
        seconds = time.process_time() - begun
        predictions, probabilities = predicted(fitted.model, test.frame, train)
        measured: Record = {}
        if candidate.role == OURS and not cell.permutation:
            shown: Any = {"columns": self._has_columns(cell), "times": train.times}
            explanation = explain(fitted.model, test.frame, **shown)
            measured |= {n: to_lists(getattr(explanation, n)) for n in EXPLANATION_FIELDS}
            measured["columns"] = columns_to_lists(explanation.columns)
            measured["unit"] = explanation.unit
            support = getattr(unwrap(fitted.model)[0], "support_fraction_", None)
            measured["support"] = None if support is None else round(float(support), _DECIMALS)
            if len(train.columns) > 1:
                measured["ablation"] = view_ablation(fitted.model, train, test)
        return {
            **measured,
            "seconds": round(seconds, 4),
            "cell seconds": round(time.process_time() - begun, 4),
            "inner score": fitted.inner_score,
            "settings": fitted.settings,
            "predictions": to_lists(predictions),
            "probabilities": to_lists(probabilities),
        }
