"""Cells of a comparison: a candidate trained on one split, and the record of its predictions."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, log_loss, mean_absolute_error, r2_score
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from lokl._arrays import Array
from lokl._threads import single_threaded
from lokl._warnings import capture_warnings
from lokl.base.model import unwrap
from lokl.explain import explain
from lokl.search.columns import ColumnScaler
from lokl.solvers.machines import Fold
from lokl.study.candidates import OURS, FittedCandidate, StudyCandidate, TableSamples
from lokl.study.run_folder import Record, failed_record

# Decimals of recorded values; no table shows more.
_DECIMALS = 6
# Fields of an explanation that are recorded.
EXPLANATION_FIELDS = (
    "presence",
    "weights",
    "trust",
    "contributions",
    "base_values",
    "runner_up",
    "alone",
    "alone_probabilities",
    "decisive",
    "status",
    "disagreement",
    "familiarity",
)


def to_lists(values: Array | None) -> Any:
    """Return an array as nested lists for JSON: floats are rounded, None stands for NaN."""
    if values is None:
        return None
    values = np.asarray(values)
    if values.dtype.kind != "f":
        return values.tolist()
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
    positive : int or None
        Code of the positive class, if one was named.
    """

    classes: list[Any]
    positive: int | None = None

    @property
    def score_name(self) -> str:
        return "accuracy" if self.classes else "R squared"

    def format_score(self, value: float, sign: str = "") -> str:
        """Return a score in percent, or R squared, as text; `sign` is "+" to show the sign."""
        factor, decimals = (100, 1) if self.classes else (1, 3)
        return f"{factor * value:{sign}.{decimals}f}"

    def format_interval(self, interval: tuple[float, float, float]) -> str:
        """Return a mean score and its interval as text."""
        mean, low, high = map(self.format_score, interval)
        return f"{mean}{' %' if self.classes else ''} ({low} to {high})"

    def encode(self, labels: Any) -> Array:
        """Return codes of classes, or values as floats."""
        if not self.classes:
            return np.asarray(labels, dtype=float)
        codes = {label: code for code, label in enumerate(self.classes)}
        return np.array([codes[label] for label in np.asarray(labels).tolist()], dtype=int)

    def decode(self, codes: Any) -> list[Any]:
        """Return classes of codes, or values."""
        return [self.classes[int(k)] if self.classes else float(k) for k in codes]

    def scores(self, truth: Array, predicted: Array, probabilities: Array | None) -> dict[str, Any]:
        """Return scores of predictions by name; candidates are compared by ``score``.

        Parameters
        ----------
        truth, predicted : arrays of shape (n_samples,)
            Codes of classes, or values.
        probabilities : array of shape (n_samples, n_classes), or None

        Returns
        -------
        scores : dict
            ``score`` is None for R squared of a single sample, which is undefined.
        """
        if not self.classes:
            return {
                "score": float(r2_score(truth, predicted)) if len(truth) > 1 else None,
                "absolute error": float(mean_absolute_error(truth, predicted)),
            }
        right = truth == predicted
        scores: dict[str, Any] = {"score": float(np.mean(right))}
        with warnings.catch_warnings():
            # A predicted class that is not in the truth is wrong, which the score counts.
            warnings.simplefilter("ignore", UserWarning)
            scores["balanced accuracy"] = float(balanced_accuracy_score(truth, predicted))
        if probabilities is not None:
            codes = range(len(self.classes))
            scores["log loss"] = float(log_loss(truth, probabilities, labels=codes))
        if self.positive is not None:
            positive = truth == self.positive
            for name, rows in (("sensitivity", positive), ("specificity", ~positive)):
                scores[name] = float(right[rows].mean()) if rows.any() else None
        return scores


def view_ablation(
    model: Pipeline,
    train: TableSamples,
    test: TableSamples,
    predicted: Array,
    target: PredictionTarget,
) -> dict[str, list[float]]:
    """Score a model with and without each view, on test samples that have another view.

    A model without a view has the same settings and is fitted to the other views.

    Parameters
    ----------
    model : Pipeline
        Fitted to `train`; its first step prepares tables.
    train, test : TableSamples
    predicted : array of shape (n_test,)
        Predictions of the model, encoded.
    target : PredictionTarget

    Returns
    -------
    scores : dict of view to [with the view, without the view]
        Views are left out if nothing can be learned or scored without them.
    """
    learner, _ = unwrap(model)
    X, X_test = model[0].transform(train.frame), model[0].transform(test.frame)
    truth = target.encode(test.y)
    scores = {}
    for view in train.columns:
        columns = [c for name, own in train.columns.items() if name != view for c in own]
        smaller = _without_view(view, learner, train)
        rows, tested = (~np.isnan(Z[:, columns]).all(axis=1) for Z in (X, X_test))
        if smaller is None or not tested.any() or len(np.unique(train.y[rows])) < 2:
            continue
        smaller.fit(X[rows][:, columns], train.y[rows])
        without = target.encode(smaller.predict(X_test[tested][:, columns]))
        pair = [
            target.scores(truth[tested], codes, None)["score"]
            for codes in (predicted[tested], without)
        ]
        if None not in pair:
            scores[view] = pair
    return scores


def _without_view(view: str, learner: Any, train: TableSamples) -> Pipeline | None:
    """Return an unfitted model of all other views, or None if no kernel is left."""
    others = [columns for name, columns in train.columns.items() if name != view]
    moved = {column: k for k, column in enumerate(c for columns in others for c in columns)}
    kernels = {}
    for name, kernel in learner.kernels.items():
        # Columns of a view are consecutive, and a kernel has one view.
        first, last = kernel.columns.start, kernel.columns.stop - 1
        if first in moved:
            kernels[name] = kernel.kernel.on(slice(moved[first], moved[last] + 1))
    if not kernels:
        return None
    scale = ColumnScaler([np.array([moved[c] for c in columns]) for columns in others])
    return Pipeline([("scale", scale), ("model", clone(learner).set_params(kernels=kernels))])


@dataclass(frozen=True)
class CandidateSplit:
    """A cell of a comparison: the name of a candidate, and the index of a split."""

    candidate: str
    split: int

    @property
    def key(self) -> str:
        """Text that is equal for equal cells."""
        return f"{self.split} {self.candidate}"


@dataclass(frozen=True, eq=False)
class Experiment:
    """Samples, splits and candidates that all cells share.

    Attributes
    ----------
    samples : TableSamples
        All samples.
    target : PredictionTarget
    splits : list of (train, test)
    labels : list of (int, int)
        Repeat and fold of each split.
    candidates : dict of str to StudyCandidate
    """

    samples: TableSamples
    target: PredictionTarget
    splits: list[Fold]
    labels: list[tuple[int, int]]
    candidates: Mapping[str, StudyCandidate]

    def run(self, cell: CandidateSplit) -> Record:
        """Fit and score a cell in one thread; the record of a cell that fails has the error."""
        try:
            with (
                single_threaded(),
                threadpool_limits(1),
                warnings.catch_warnings(record=True) as caught,
            ):
                warnings.simplefilter("always")
                measured, notices = capture_warnings(self._measure, cell)
        except Exception as reason:
            return failed_record(cell, f"{type(reason).__name__}: {' '.join(str(reason).split())}")
        texts = {kind: notice.text for kind, notice in notices.items()}
        texts |= {w.category.__name__: " ".join(str(w.message).split()) for w in caught}
        return {**vars(cell), **measured, "warnings": texts, "error": None}

    def _measure(self, cell: CandidateSplit) -> dict[str, Any]:
        candidate = self.candidates[cell.candidate]
        train, test = (self.samples.take(rows) for rows in self.splits[cell.split])
        # Processor time: other cells may be running at the same time.
        begun = time.process_time()
        fitted = candidate.fit(train)
        seconds = time.process_time() - begun
        predicted, probabilities = self._predict(fitted, test)
        measured = self.target.scores(self.target.encode(test.y), predicted, probabilities)
        if measured["score"] is None:
            raise ValueError("R squared of a fold with one sample is undefined; use fewer folds")
        if candidate.role == OURS:
            measured |= self._explain(fitted, test)
            support = getattr(unwrap(fitted.model)[0], "support_fraction_", None)
            measured["support"] = None if support is None else round(float(support), _DECIMALS)
            if len(train.columns) > 1:
                measured["ablation"] = view_ablation(
                    fitted.model, train, test, predicted, self.target
                )
        return {
            **measured,
            "seconds": round(seconds, 4),
            "inner": fitted.inner_score,
            "settings": fitted.settings,
            "predicted": to_lists(predicted),
            "probabilities": to_lists(probabilities),
        }

    def _predict(self, fitted: FittedCandidate, test: TableSamples) -> tuple[Array, Array | None]:
        """Return encoded predictions, and probabilities of all classes if the model has them."""
        model, target = fitted.model, self.target
        predicted = target.encode(model.predict(test.frame))
        if not target.classes or not hasattr(model, "predict_proba"):
            return predicted, None
        probabilities = np.zeros((len(predicted), len(target.classes)))
        probabilities[:, target.encode(model.classes_)] = model.predict_proba(test.frame)
        return predicted, probabilities

    def _explain(self, fitted: FittedCandidate, test: TableSamples) -> dict[str, Any]:
        """Return the explanation of test samples, with codes instead of classes."""
        explanation = explain(fitted.model, test.frame)
        fields = {name: getattr(explanation, name) for name in EXPLANATION_FIELDS}
        if self.target.classes:
            # A fold may have seen fewer classes than there are.
            codes = self.target.encode(fitted.model.classes_)
            alone = explanation.alone_codes
            fields["alone"] = np.where(alone >= 0, codes[alone], -1)
            fields["runner_up"] = codes[explanation.runner_up_codes]
        return {name: to_lists(values) for name, values in fields.items()}
