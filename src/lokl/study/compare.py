"""Several models on the same splits of the same data."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any

from sklearn.base import clone, is_classifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline


@dataclass(frozen=True)
class Score:
    """One model on one data set, over several random splits."""

    model: str
    accuracy: float  # mean test score: fraction correct, or R^2 for regressors
    spread: float  # standard deviation of the test score over the splits
    fit_seconds: float  # median time of one fit
    support: float  # mean fraction of the training samples that are support points


def compare(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    repeats: int = 5,
    test_size: float = 0.25,
    seed: int = 0,
) -> Iterator[Score]:
    """Fit every model on the same random splits, and yield its score when it is done.

    Parameters
    ----------
    models : mapping of str to estimator
        Estimators of lokl, or pipelines that end in one.
    X, y : samples and targets
    repeats : int, default=5
        Number of random splits, stratified for classifiers.
    test_size : float, default=0.25
    seed : int, default=0
        Seed of all splits.
    """
    for name, model in models.items():
        scores, seconds, support = [], [], []
        for repeat in range(repeats):
            X_train, X_test, y_train, y_test = train_test_split(
                X,
                y,
                test_size=test_size,
                random_state=seed + repeat,
                stratify=y if is_classifier(model) else None,
            )
            start = time.perf_counter()
            fitted = clone(model).fit(X_train, y_train)
            seconds.append(time.perf_counter() - start)
            scores.append(float(fitted.score(X_test, y_test)))
            machine = fitted[-1] if isinstance(fitted, Pipeline) else fitted
            support.append(float(machine.support_fraction_))
        spread = stdev(scores) if repeats > 1 else 0.0
        yield Score(name, fmean(scores), spread, median(seconds), fmean(support))
