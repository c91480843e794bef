"""Test rows with wrong, noisy or missing views, and a mask of the corrupted views.

Columns are first scaled to [0, 1] by the training part, and then corrupted:

- *conflict*: a tenth of the rows get noise in some views, then two fifths get one view of the first
  sample of the next class;
- *swap*: two fifths of the rows get one view of a sample of another class;
- *noise*: half of the rows get noise of deviation 0.5 in some views, at most all but one;
- *missing*: two fifths of the rows have one missing view.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

KINDS = ("clean", "conflict", "swap", "noise", "missing")
DEVIATION = 0.5


@dataclass(frozen=True, eq=False)
class Damaged:
    """Rows, and whether each view of each row is corrupted."""

    X: Any  # (n_samples, n_columns)
    corrupted: Any  # (n_samples, n_views)


@dataclass(frozen=True, eq=False)
class Part:
    """Test rows, columns of each view, and random generator of one kind of corruption."""

    X: Any
    y: Any
    views: Sequence[Any]
    rng: np.random.RandomState

    def damaged(self, kind: str) -> Damaged:
        """Corrupt a copy of the rows."""
        found = Damaged(self.X.copy(), np.zeros((len(self.X), len(self.views)), dtype=bool))
        if kind == "conflict":
            self._add_noise(found, 0.1)
            self._replace(found, self._first_of_next_class())
        elif kind == "swap":
            self._replace(found, self._of_another_class())
        elif kind == "noise":
            self._add_noise(found, 0.5)
        elif kind == "missing":
            for row, view in self._one_view_of_some():
                found.X[row, self.views[view]] = np.nan
        return found

    def _some(self, share: float) -> Any:
        n = len(self.X)
        return self.rng.choice(n, round(share * n), replace=False)

    def _one_view_of_some(self) -> list[tuple[int, int]]:
        return [(int(row), self.rng.randint(len(self.views))) for row in self._some(0.4)]

    def _replace(self, found: Damaged, donors: Any) -> None:
        for row, view in self._one_view_of_some():
            columns = self.views[view]
            found.X[row, columns] = self.X[donors[row], columns]
            found.corrupted[row, view] = True

    def _first_of_next_class(self) -> Any:
        classes, codes = np.unique(self.y, return_inverse=True)
        first = np.array([np.argmax(self.y == c) for c in np.roll(classes, -1)])
        return first[codes]

    def _of_another_class(self) -> Any:
        return [self.rng.choice(np.flatnonzero(self.y != label)) for label in self.y]

    def _add_noise(self, found: Damaged, share: float) -> None:
        for row in self._some(share):
            count = self.rng.randint(len(self.views))
            for view in self.rng.choice(len(self.views), count, replace=False):
                columns = self.views[view]
                found.X[row, columns] += self.rng.normal(0.0, DEVIATION, len(columns))
                found.corrupted[row, view] = True


def detection(trust: Any, corrupted: Any) -> float:
    """Return the share of pairs in which the corrupted view of a sample has the lower trust.

    Pairs consist of a corrupted and an intact view of the same sample, so this is the area under
    the ROC curve over the views of a sample, pooled over samples. Equal trust counts half. NaN if
    there are no such pairs.
    """
    right, pairs = 0.0, 0
    for row in np.flatnonzero(corrupted.any(axis=1)):
        bad, good = trust[row, corrupted[row]], trust[row, ~corrupted[row]]
        differences = good - bad[:, np.newaxis]
        right += float((differences > 0).sum() + 0.5 * (differences == 0).sum())
        pairs += differences.size
    return right / pairs if pairs else float("nan")
