"""What is predicted, classes by their numbers, and how good answers are."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score, log_loss, mean_absolute_error, r2_score

from lokl._arrays import Array


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
