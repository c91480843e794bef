"""Estimators that differ only in their costs, fitted one after the other on the same samples."""

from collections.abc import Iterator, Sequence
from typing import Any


def fit_line(estimators: Sequence[Any], X: Any, y: Any, sample_weight: Any) -> Iterator[Any]:
    """Fit estimators that differ only in `C`, `epsilon` and `class_weight`; yield each when fitted.

    Parameters
    ----------
    estimators : sequence of estimators
        In ascending order of `C`.
    X, y : samples and targets
    sample_weight : array of shape (n_samples,) or None
    """
    for estimator in estimators:
        yield estimator.fit(X, y, sample_weight)
