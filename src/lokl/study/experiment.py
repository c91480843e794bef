"""Arrays in lines of JSON, with as many digits as anybody looks at.

What is predicted, classes by their numbers, and how good answers are.

What a model loses without a view: the same settings, fitted again to the views that are left.

One candidate on one split: what goes in, and the record that comes out.
"""

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
from lokl.base.delegation import unwrap
from lokl.explain import explain
from lokl.search.columns import PrepareColumns
from lokl.solvers.machines import Fold
from lokl.study.candidates import OURS, Candidate, Fitted, Part
from lokl.study.run_folder import failed_record


def packed(values: Array, digits: int) -> Any:
    """Return nested lists; None for NaN, whole numbers and truth values as they are."""
    values = np.asarray(values)
    if values.dtype.kind != "f":
        return values.tolist()
    lists = np.round(values, digits).astype(object)
    lists[~np.isfinite(values)] = None
    return lists.tolist()


def unpacked(lists: Any) -> Array:
    """Return an array again, NaN for None."""
    values = np.asarray(lists)
    return values.astype(float) if values.dtype == object else values


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of every candidate.

    Attributes
    ----------
    classes : list
        In their order; empty for numbers.
    positive : int or None
        Number of the class that is told from the other one, where that was named.
    """

    classes: list[Any]
    positive: int | None = None

    @property
    def score_name(self) -> str:
        return "accuracy" if self.classes else "R squared"

    def codes(self, labels: Any) -> Array:
        """Return numbers of classes, or the numbers themselves."""
        if not self.classes:
            return np.asarray(labels, dtype=float)
        place = {label: code for code, label in enumerate(self.classes)}
        return np.array([place[label] for label in np.asarray(labels).tolist()], dtype=int)

    def names(self, codes: Any) -> list[Any]:
        """Return classes by their numbers, or numbers as they are."""
        return [self.classes[int(k)] if self.classes else float(k) for k in codes]

    def scores(self, truth: Array, said: Array, chances: Array | None) -> dict[str, Any]:
        """Return how good answers are; ``score`` is what candidates are compared by.

        It is None where nothing can be said, as by R squared about one sample.
        """
        if not self.classes:
            known = len(truth) > 1
            return {
                "score": float(r2_score(truth, said)) if known else None,
                "absolute error": float(mean_absolute_error(truth, said)),
            }
        with warnings.catch_warnings():
            # A class that only predictions have is wrong, which the score counts.
            warnings.simplefilter("ignore", UserWarning)
            balanced = float(balanced_accuracy_score(truth, said))
        found: dict[str, Any] = {"score": float(np.mean(truth == said))}
        found["balanced accuracy"] = balanced
        if chances is not None:
            found["log loss"] = float(log_loss(truth, chances, labels=range(len(self.classes))))
        if self.positive is not None:
            ill = truth == self.positive
            right = truth == said
            for name, rows in (("sensitivity", ill), ("specificity", ~ill)):
                found[name] = float(right[rows].mean()) if rows.any() else None
        return found


def without_each_view(
    model: Any, part: Part, test: Part, predicted: Array, question: Question
) -> dict[str, list[float]]:
    """Score a model with and without each view, both on samples that have another view.

    Parameters
    ----------
    model : Pipeline
        That learned from `part`; it begins with a preparation of tables.
    part, test : Part
    predicted : array of shape (n_test,)
        What the model says about `test`.
    question : Question

    Returns
    -------
    scores : dict of view to [with it, without it]
        Views without which nothing can be learned or judged are left out.
    """
    learner, _ = unwrap(model)
    X, Z = model[0].transform(part.frame), model[0].transform(test.frame)
    truth = question.codes(test.y)
    found = {}
    for view in part.places:
        columns = [c for name, own in part.places.items() if name != view for c in own]
        smaller = _without(view, learner, part, columns)
        rows, asked = (~np.isnan(values[:, columns]).all(axis=1) for values in (X, Z))
        if smaller is None or not asked.any() or len(np.unique(part.y[rows])) < 2:
            continue
        smaller.fit(X[rows][:, columns], part.y[rows])
        said = question.codes(smaller.predict(Z[asked][:, columns]))
        pair = [
            question.scores(truth[asked], one, None)["score"] for one in (predicted[asked], said)
        ]
        if None not in pair:
            found[view] = pair
    return found


def _without(view: str, learner: Any, part: Part, columns: list[int]) -> Pipeline | None:
    """Return a model of the columns that are left; None where no kernel is."""
    moved = {column: place for place, column in enumerate(columns)}
    kernels = {}
    for name, kernel in learner.kernels.items():
        # Views stand side by side, and a kernel has one of them.
        first, last = kernel.columns.start, kernel.columns.stop - 1
        if first in moved:
            kernels[name] = kernel.kernel.on(slice(moved[first], moved[last] + 1))
    if not kernels:
        return None
    left = [own for name, own in part.places.items() if name != view]
    scale = PrepareColumns([np.array([moved[c] for c in own]) for own in left])
    return Pipeline([("scale", scale), ("model", clone(learner).set_params(kernels=kernels))])


# Digits of what is said about samples, of which no table shows more.
_DIGITS = 6
# Fields of an explanation that are recorded.
BY_VIEW = (
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


@dataclass(frozen=True)
class Cell:
    """A candidate and a split, by name and number."""

    candidate: str
    split: int

    @property
    def key(self) -> str:
        """Text that is equal for equal cells."""
        return f"{self.split} {self.candidate}"


@dataclass(frozen=True, eq=False)
class Bench:
    """What all cells share: samples, splits and candidates.

    Attributes
    ----------
    part : Part
        All samples.
    question : Question
    splits : list of (learned from, left out)
    labels : list of (int, int)
        Repeat and fold of each split.
    candidates : dict of str to Candidate
    """

    part: Part
    question: Question
    splits: list[Fold]
    labels: list[tuple[int, int]]
    candidates: Mapping[str, Candidate]

    def work(self, cell: Cell) -> dict[str, Any]:
        """Fit and ask in one thread; the record of a cell that fails has the error."""
        try:
            with (
                single_threaded(),
                threadpool_limits(1),
                warnings.catch_warnings(record=True) as caught,
            ):
                warnings.simplefilter("always")
                found, notices = capture_warnings(self._measure, cell)
        except Exception as reason:
            return failed_record(cell, f"{type(reason).__name__}: {' '.join(str(reason).split())}")
        told = {kind: notice.text for kind, notice in notices.items()}
        told |= {w.category.__name__: " ".join(str(w.message).split()) for w in caught}
        return {**vars(cell), **found, "notices": told, "error": None}

    def _measure(self, cell: Cell) -> dict[str, Any]:
        kept, left = self.splits[cell.split]
        candidate = self.candidates[cell.candidate]
        part, test = self.part.take(kept), self.part.take(left)
        # Of the processor: other cells may be at work beside this one.
        begun = time.process_time()
        fitted = candidate.recipe.fit(part)
        seconds = time.process_time() - begun
        predicted, chances = self._asked(fitted, test)
        found = self.question.scores(self.question.codes(test.y), predicted, chances)
        if found["score"] is None:
            raise ValueError("a fold of one sample cannot be judged; use fewer folds")
        if candidate.role == OURS:
            found |= self._by_view(fitted, test)
            found["support"] = _support(fitted)
            if len(part.places) > 1:
                asked = (part, test, predicted, self.question)
                found["withheld"] = without_each_view(fitted.model, *asked)
        return {
            **found,
            "seconds": round(seconds, 4),
            "inner": fitted.inner,
            "settings": fitted.settings,
            "predicted": packed(predicted, _DIGITS),
            "probabilities": None if chances is None else packed(chances, _DIGITS),
        }

    def _asked(self, fitted: Fitted, test: Part) -> tuple[Array, Array | None]:
        """Return predictions, and probabilities of all classes where the model has them."""
        model, question = fitted.model, self.question
        said = question.codes(model.predict(test.frame))
        if not question.classes or not hasattr(model, "predict_proba"):
            return said, None
        chances = np.zeros((len(said), len(question.classes)))
        chances[:, question.codes(model.classes_)] = model.predict_proba(test.frame)
        return said, chances

    def _by_view(self, fitted: Fitted, test: Part) -> dict[str, Any]:
        """Return the explanation of test samples, with class codes instead of classes."""
        explanation = explain(fitted.model, test.frame)
        found = {name: getattr(explanation, name) for name in BY_VIEW}
        if self.question.classes:
            # A fold may have seen fewer classes than there are.
            own = self.question.codes(fitted.model.classes_)
            alone = explanation.alone_codes
            found["alone"] = np.where(alone >= 0, own[alone], -1)
            found["runner_up"] = own[explanation.runner_up_codes]
        return {
            name: None if values is None else packed(values, _DIGITS)
            for name, values in found.items()
        }


def _support(fitted: Fitted) -> float | None:
    share = getattr(unwrap(fitted.model)[0], "support_fraction_", None)
    return None if share is None else round(float(share), _DIGITS)
