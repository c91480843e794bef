"""Scores over folds: the folds themselves, and intervals that know folds to overlap."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv
from sklearn.utils import indexable

from lokl._arrays import Array
from lokl.selection.decisions import as_numbers
from lokl.solvers.held_out import Fold

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
    ratio = float(np.mean([len(left) / len(kept) for kept, left in folds]))
    spread = np.sqrt((1.0 / len(scores) + ratio) * scores.var(ddof=1))
    reach = float(stats.t.ppf(0.5 + _LEVEL / 2, len(scores) - 1) * spread)
    mean = float(scores.mean())
    return mean, mean - reach, mean + reach
