"""Samples that a candidate learns from, and what it makes of them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold

from lokl._arrays import Array
from lokl.auto.arena import some_rows
from lokl.selection.decisions import class_splits
from lokl.solvers.held_out import Fold
from lokl.tables import TablePreparation
from lokl.tables.learning import places_in

# With more samples than that, settings are chosen on a part of them.
MANY, ROWS_TO_TUNE = 4_000, 3_000


@dataclass(frozen=True, eq=False)
class Part:
    """Samples to learn from.

    Attributes
    ----------
    frame : data frame
    y : array of shape (n_samples,)
    groups : array of shape (n_samples,), or None
    numbers : bool
        Whether numbers are predicted, not classes.
    preparation : TablePreparation
        Not fitted.
    seed : int
    time_limit : float or None
        Seconds, for candidates that can do with less time.
    """

    frame: Any
    y: Array
    groups: Array | None
    numbers: bool
    preparation: TablePreparation
    seed: int
    time_limit: float | None = None

    @property
    def places(self) -> dict[str, list[int]]:
        """Columns of each view once they are prepared."""
        return places_in(self.preparation)

    def take(self, rows: Array) -> "Part":
        """Some of the samples."""
        return Part(
            self.frame.iloc[rows],
            self.y[rows],
            None if self.groups is None else self.groups[rows],
            self.numbers,
            self.preparation,
            self.seed,
            self.time_limit,
        )

    def prepared(self) -> tuple[TablePreparation, Array]:
        """Return the preparation, fitted, and the prepared samples."""
        preparation = clone(self.preparation)
        return preparation, preparation.fit_transform(self.frame, self.y)

    def to_tune(self) -> Array:
        """Rows that settings are chosen on: all of them unless there are many."""
        if len(self.y) <= MANY:
            return np.arange(len(self.y))
        rng = np.random.RandomState(self.seed)
        return some_rows(self.y, ROWS_TO_TUNE, not self.numbers, rng)

    def folds(self, count: int, rows: Array) -> list[Fold]:
        """Divide some of the samples; folds are numbers of these rows."""
        groups = None if self.groups is None else self.groups[rows]
        return divided(self.y[rows], groups, self.numbers, count, self.seed)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A candidate that has learned.

    Attributes
    ----------
    model : estimator
        Takes data frames.
    inner : float or None
        Held-out score inside the samples that it learned from.
    settings : str
        What was chosen, in words.
    """

    model: Any
    inner: float | None = None
    settings: str = ""


class Recipe(ABC):
    """How a candidate learns: preparation, settings and model, from nothing but its samples."""

    @abstractmethod
    def fit(self, part: Part) -> Fitted:
        """Choose settings and learn."""


def divided(y: Array, groups: Array | None, numbers: bool, count: int, seed: int) -> list[Fold]:
    """Divide samples at random: with all classes in each fold as far as they go, groups together.

    There are fewer folds where there are fewer groups, or where numbers would be judged by one
    sample alone.
    """
    if groups is not None:
        count = min(count, len(np.unique(groups)))
        rare = numbers or np.unique(y, return_counts=True)[1].min() < count
        kind: Any = GroupKFold if rare else StratifiedGroupKFold
        return list(kind(count, shuffle=True, random_state=seed).split(y, y, groups))
    order = np.random.RandomState(seed).permutation(len(y))
    if numbers:
        splits = list(KFold(max(2, min(count, len(y) // 2))).split(order))
    else:
        splits = class_splits(count, y[order])
    return [(np.sort(order[kept]), np.sort(order[left])) for kept, left in splits]
