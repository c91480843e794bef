"""Numbers with names: what an inspection found, as a table that needs no other library.

Scores over folds: the folds themselves, and intervals that know folds to overlap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv
from sklearn.utils import indexable

from lokl._arrays import Array
from lokl._frames import need_pandas
from lokl.search.cross_validation import as_numbers
from lokl.solvers.machines import Fold

_WIDTH = 80
_SHORTEST_NAME = 12


@dataclass(frozen=True, eq=False)
class Findings:
    """A table of numbers: ``findings["score"]`` is a column, ``str(findings)`` a page.

    Attributes
    ----------
    title : str
        What the numbers are.
    kind : str
        What a row is about: a view, a column, a kernel.
    rows : tuple of str
        Name of each row.
    columns : dict of str to array of shape (n_rows,)
        Numbers by name. Where ``x_low`` and ``x_high`` are there, they are the 95 % interval of
        ``x``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import view_importance
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels, C=10).fit(X[::2], y[::2])
    >>> found = view_importance(model, X[1::2], y[1::2], random_state=0)
    >>> bool(found.row("colours")["loss"] > found.row("acids")["loss"])
    True
    """

    title: str
    kind: str
    rows: tuple[str, ...]
    columns: Mapping[str, Array]

    def __getitem__(self, column: str) -> Array:
        if column not in self.columns:
            raise KeyError(f"no column {column!r}; there are {', '.join(self.columns)}")
        return self.columns[column]

    def row(self, name: str) -> dict[str, float]:
        """Return the numbers of one row by the names of their columns."""
        if name not in self.rows:
            raise KeyError(f"no {self.kind} {name!r}; there are {', '.join(self.rows)}")
        place = self.rows.index(name)
        return {column: float(values[place]) for column, values in self.columns.items()}

    def to_frame(self) -> Any:
        """Return a data frame (pandas) with one row for each name."""
        pandas = need_pandas("to_frame")
        index = pandas.Index(self.rows, name=self.kind)
        return pandas.DataFrame(dict(self.columns), index=index)

    def __str__(self) -> str:
        head, body = self._cells()
        widths = [max(map(len, cells)) for cells in zip(head, *body, strict=True)] if body else []
        room = _WIDTH - sum(width + 2 for width in widths)
        longest = max(map(len, (self.kind, *self.rows)))
        names = min(longest, max(room, _SHORTEST_NAME))
        lines = [self.title]
        for name, cells in zip((self.kind, *self.rows), (head, *body), strict=True):
            shown = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
            lines.append("  ".join([shortened(name, names).ljust(names), *shown]).rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Heads of the columns, and the texts of each row; intervals stand behind their number."""
        ends = {f"{name}{end}" for name in self.columns for end in ("_low", "_high")}
        heads = [name for name in self.columns if name not in ends]
        body = []
        for place in range(len(self.rows)):
            texts = []
            for name in heads:
                text = number(self.columns[name][place])
                if f"{name}_low" in self.columns:
                    low, high = (self.columns[f"{name}_{end}"][place] for end in ("low", "high"))
                    text += f" [{number(low)}, {number(high)}]"
                texts.append(text)
            body.append(texts)
        return [name.replace("_", " ") for name in heads], body


def number(value: float) -> str:
    """A number in few characters."""
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}"


def shortened(name: str, width: int) -> str:
    """A name that fits, its end left out where it is too long."""
    return name if len(name) <= width else name[: width - 1] + "…"


def with_interval(name: str, intervals: Sequence[tuple[float, float, float]]) -> dict[str, Array]:
    """Columns of numbers that have intervals (middle, low, high), one of each row."""
    table = np.array(intervals, dtype=float).reshape(len(intervals), 3)
    return {f"{name}{end}": table[:, k] for k, end in enumerate(("", "_low", "_high"))}


_LEVEL = 0.95


def make_folds(model: Any, X: Any, y: Any, cv: Any, groups: Any = None) -> list[Fold]:
    """Splits that all models of a comparison share.

    A number of folds keeps groups together where there are any; other values are what
    scikit-learn takes.
    """
    X, y, groups = indexable(X, y, groups)
    splitter = check_cv(cv, y, classifier=is_classifier(model))
    if groups is not None and isinstance(cv, int | np.integer):
        splitter = StratifiedGroupKFold(cv) if is_classifier(model) else GroupKFold(cv)
    folds = as_numbers(splitter.split(X, y, groups))
    if len(folds) < 2:
        raise ValueError(
            f"cv={cv!r} gives {len(folds)} split; an interval over folds needs two or more"
        )
    return folds


def one_scorer(model: Any, scoring: Any) -> Any:
    """Return the function that scores a model; one score, not several."""
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise ValueError(f"scoring must be the name of one score or a function, got {scoring!r}")
    return check_scoring(model, scoring)


def corrected_interval(scores: Array, folds: Sequence[Fold]) -> tuple[float, float, float]:
    """Mean of scores over splits with its 95 % interval: (mean, low, high).

    Models of different splits share most of their training samples, so that their scores vary less
    than those of independent samples would: the variance of the mean is taken as
    ``(1 / n_splits + n_test / n_train) * variance`` (Nadeau and Bengio, 2003).

    Parameters
    ----------
    scores : array of shape (n_splits,)
        Scores, or differences of two models' scores on the same splits.
    folds : sequence of (learned from, left out)
    """
    scores = np.asarray(scores, dtype=float)
    quantile = stats.t.ppf(0.5 + _LEVEL / 2, len(scores) - 1)
    reach = float(quantile * corrected_error(scores, folds))
    mean = float(scores.mean())
    return mean, mean - reach, mean + reach


def corrected_error(scores: Array, folds: Sequence[Fold]) -> float:
    """Return the standard error of a mean score over splits; see :func:`corrected_interval`."""
    scores = np.asarray(scores, dtype=float)
    ratio = float(np.mean([len(test) / len(train) for train, test in folds]))
    return float(np.sqrt((1.0 / len(scores) + ratio) * scores.var(ddof=1)))
