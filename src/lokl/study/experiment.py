"""Cells of a comparison: a candidate trained on one split, and the record of its predictions."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import (
    balanced_accuracy_score,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from lokl._arrays import Array
from lokl.base.model import unwrap
from lokl.explain import Explanation, explain
from lokl.solvers.machines import Fold
from lokl.study.candidates import (
    OURS,
    StudyCandidate,
    TableSamples,
    all_samples,
    probabilities_of,
)
from lokl.study.run_folder import Record, RunCell
from lokl.study.settings import Settings
from lokl.tables import Table

# Decimals of recorded values; no table shows more.
_DECIMALS = 6
# Distance of the seeds of repeats, so that comparisons with neighbouring seeds share no split.
_SEED_STEP = 1_000
# Fields of an explanation that have classes as values, and all fields that are recorded. The others
# are the same in all records, or known from the table.
CLASS_FIELDS = {"predictions", "alone", "runner_up", "without"}
_NOT_RECORDED = {
    *("ids", "views", "classes", "truth", "prior", "columns", "sets"),
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


@dataclass(frozen=True, eq=False)
class PredictionTarget:
    """Classes or values to predict, and the scores of predictions.

    Attributes
    ----------
    classes : list
        Sorted; empty for regression.
    positive : str or None
        The positive class as text, if one was named.
    """

    classes: list[Any]
    positive: str | None = None

    @property
    def score_name(self) -> str:
        """Name of the score by which candidates are compared."""
        return "accuracy" if self.classes else "R squared"

    def scores(
        self, truth: Array, predictions: Array, probabilities: Array | None = None
    ) -> dict[str, Any]:
        """Return scores of predictions by name; candidates are compared by ``score``.

        Parameters
        ----------
        truth, predictions : arrays of shape (n_samples,)
            Classes or values.
        probabilities : array of shape (n_samples, n_classes), optional

        Returns
        -------
        scores : dict
            ``score`` is None for R squared of a single sample, which is undefined.
        """
        if not self.classes:
            return {
                "score": float(r2_score(truth, predictions)) if len(truth) > 1 else None,
                "absolute error": float(mean_absolute_error(truth, predictions)),
            }
        right = truth == predictions
        scores: dict[str, Any] = {"score": float(np.mean(right))}
        with warnings.catch_warnings():
            # A predicted class that is not in the truth is wrong, which the score counts.
            warnings.simplefilter("ignore", UserWarning)
            scores["balanced accuracy"] = float(balanced_accuracy_score(truth, predictions))
        if probabilities is not None:
            scores["log loss"] = float(log_loss(truth, probabilities, labels=self.classes))
            scores["AUROC"] = self._auroc(truth, probabilities)
        if self.positive is not None:
            positive = truth.astype(str) == self.positive
            for name, rows in (("sensitivity", positive), ("specificity", ~positive)):
                scores[name] = float(right[rows].mean()) if rows.any() else None
        return scores

    def _auroc(self, truth: Array, probabilities: Array) -> float | None:
        """Return the mean area under the ROC curve of each class; None if a class is absent."""
        if len(np.unique(truth)) < len(self.classes):
            return None
        if len(self.classes) == 2:
            return float(roc_auc_score(truth == self.classes[1], probabilities[:, 1]))
        return float(roc_auc_score(truth, probabilities, multi_class="ovr", labels=self.classes))


def view_ablation(
    model: Pipeline,
    train: TableSamples,
    test: TableSamples,
    predictions: Array,
    target: PredictionTarget,
) -> dict[str, list[float]]:
    """Score a model with and without each view, on test samples that have another view.

    A model without a view has the same settings and is fitted to the other views.

    Parameters
    ----------
    model : Pipeline
        Fitted to `train`; its first step prepares tables.
    train, test : TableSamples
    predictions : array of shape (n_test,)
        Predictions of the model.
    target : PredictionTarget

    Returns
    -------
    scores : dict of view to [with the view, without the view]
        Views are left out if nothing can be learned or scored without them.
    """
    learner, X = unwrap(model, train.frame)
    _, X_test = unwrap(model, test.frame)
    # The model scales views side by side.
    ends = np.cumsum([len(columns) for columns in train.columns.values()]).tolist()
    scores = {}
    for (view, columns), end in zip(train.columns.items(), ends, strict=True):
        own = range(end - len(columns), end)
        kernels = {n: k for n, k in learner.kernels.items() if k.columns.start not in own}
        others = np.setdiff1d(np.arange(ends[-1]), own)
        rows, tested = (~np.isnan(Z[:, others]).all(axis=1) for Z in (X, X_test))
        if not kernels or not tested.any() or len(np.unique(train.y[rows])) < 2:
            continue
        smaller = clone(learner).set_params(kernels=kernels).fit(X[rows], train.y[rows])
        without = smaller.predict(X_test[tested])
        pair = [
            target.scores(test.y[tested], answers)["score"]
            for answers in (predictions[tested], without)
        ]
        if None not in pair:
            scores[view] = pair
    return scores


@dataclass(frozen=True)
class CandidateSplit(RunCell):
    """A cell of a comparison.

    Attributes
    ----------
    candidate : str
        Name of the candidate.
    split : int
        Index of the split, across all repeats.
    """

    candidate: str
    split: int


class Experiment:
    """Samples, splits and candidates that all cells share.

    Parameters
    ----------
    table : Table
    candidates : sequence of StudyCandidate
    settings : Settings
        Folds, repeats and seed of the cross-validation.

    Attributes
    ----------
    table, settings
        As given.
    samples : TableSamples
        All samples.
    target : PredictionTarget
    splits : list of (train, test)
    labels : list of (int, int)
        Repeat and fold of each split.
    candidates : dict of str to StudyCandidate
    """

    def __init__(self, table: Table, candidates: Sequence[StudyCandidate], settings: Settings):
        self.table, self.settings = table, settings
        self.samples = all_samples(table, settings.seed)
        classes = [] if table.is_regression else np.unique(self.samples.y).tolist()
        self.target = PredictionTarget(classes, table.positive)
        self.candidates = {candidate.name: candidate for candidate in candidates}
        self.splits: list[Fold] = []
        self.labels: list[tuple[int, int]] = []
        for repeat in range(settings.repeats):
            seed = settings.seed + _SEED_STEP * repeat
            of_repeat = self.samples.folds(settings.folds, seed=seed)
            self.splits += of_repeat
            self.labels += [(repeat, fold) for fold in range(len(of_repeat))]

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

    def _measure(self, cell: CandidateSplit) -> Record:
        """Return scores, times and predictions, and for models of lokl their explanation."""
        candidate = self.candidates[cell.candidate]
        train, test = (self.samples.take(rows) for rows in self.splits[cell.split])
        # Processor time: other cells may be running at the same time.
        begun = time.process_time()
        fitted = candidate.fit(train)
        seconds = time.process_time() - begun
        predictions = np.asarray(fitted.model.predict(test.frame)).astype(test.y.dtype)
        probabilities = None
        if self.target.classes and hasattr(fitted.model, "predict_proba"):
            classes = np.unique(self.samples.y)
            probabilities = probabilities_of(fitted.model, test.frame, classes)
        measured = self.target.scores(test.y, predictions, probabilities)
        if measured["score"] is None:
            raise ValueError("R squared of a fold with one sample is undefined; use fewer folds")
        if candidate.role == OURS:
            explanation = explain(fitted.model, test.frame)
            measured |= {n: to_lists(getattr(explanation, n)) for n in EXPLANATION_FIELDS}
            measured["unit"] = explanation.unit
            support = getattr(unwrap(fitted.model)[0], "support_fraction_", None)
            measured["support"] = None if support is None else round(float(support), _DECIMALS)
            if len(train.columns) > 1:
                measured["ablation"] = view_ablation(
                    fitted.model, train, test, predictions, self.target
                )
        return {
            **measured,
            "seconds": round(seconds, 4),
            "inner score": fitted.inner_score,
            "settings": fitted.settings,
            "predictions": to_lists(predictions),
            "probabilities": to_lists(probabilities),
        }
