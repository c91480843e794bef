"""One candidate on one split: what goes in, and the record that comes out."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from lokl._arrays import Array
from lokl._layers import unwrapped
from lokl._notices import apart
from lokl._threads import one_thread
from lokl.comparison.candidates import OURS, Candidate
from lokl.comparison.packing import packed
from lokl.comparison.parts import Fitted, Part
from lokl.comparison.scoring import Question
from lokl.comparison.withheld import without_each_view
from lokl.inspection.answers import answers_by_view
from lokl.solvers.held_out import Fold
from lokl.tables.schema import places_in_model

# Digits of what is said about samples, of which no table shows more.
_DIGITS = 6
# What is noted of the views of models that have them.
BY_VIEW = ("trust", "parts", "start", "says", "sure", "disagreement", "present", "familiar")


@dataclass(frozen=True)
class Cell:
    """A candidate and a split, by name and number."""

    candidate: str
    split: int

    @property
    def key(self) -> str:
        """Text that is equal for equal cells."""
        return key_of(vars(self))


def key_of(record: Mapping[str, Any]) -> str:
    """Return the key of the cell that a record belongs to."""
    return f"{record['split']} {record['candidate']}"


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
            with one_thread(), threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found, notices = apart(self._measure, cell)
        except Exception as reason:
            return failed(cell, f"{type(reason).__name__}: {' '.join(str(reason).split())}")
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
        """What each view has to do with the answers."""
        told = answers_by_view(fitted.model, test.frame, places_in_model(fitted.model))
        found = {name: getattr(told, name) for name in BY_VIEW}
        if self.question.classes:
            # A fold may have seen fewer classes than there are.
            own = self.question.codes(fitted.model.classes_)
            found["says"] = np.where(told.says >= 0, own[np.maximum(told.says, 0)], -1)
        noted = {
            name: None if values is None else packed(values, _DIGITS)
            for name, values in found.items()
        }
        return {**noted, "shares": told.shares}


def failed(cell: Cell, why: str) -> dict[str, Any]:
    """Return the record of a cell that failed."""
    return {**vars(cell), "error": why}


def died(cell: Cell, reason: Exception) -> dict[str, Any]:
    """Return the record of a cell whose process ended."""
    return failed(cell, f"the process died, perhaps for lack of memory ({reason})")


def _support(fitted: Fitted) -> float | None:
    share = getattr(unwrapped(fitted.model)[0], "support_fraction_", None)
    return None if share is None else round(float(share), _DIGITS)
