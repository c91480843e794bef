"""What people would try first, tuned with care: scikit-learn's models on the same preparation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from lokl.comparison.parts import Fitted, Part, Recipe

_FOLDS = 3
_TREES = 300
# Rounds of boosting without gain before it stops, where there are samples to judge by.
_PATIENCE, _ENOUGH_TO_STOP = 10, 1_000


@dataclass(frozen=True, eq=False)
class Baseline(Recipe):
    """A model of scikit-learn; missing views are filled with means unless it can do without.

    Attributes
    ----------
    make : callable
        Takes samples (`Part`) and their number of columns, and returns an estimator and the grid
        that is searched, empty for none.
    fills : bool
    """

    make: Callable[[Part, int], tuple[Any, dict[str, Any]]]
    fills: bool = True

    def fit(self, part: Part) -> Fitted:
        preparation, X = part.prepared()
        fill = []
        if self.fills:
            # Prepared columns have a mean of zero.
            zero = SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)
            fill = [("fill", zero.fit(X))]
            X = zero.transform(X)
        estimator, grid = self.make(part, X.shape[1])
        inner, words = None, ""
        if grid:
            rows = part.to_tune()
            search = GridSearchCV(estimator, grid, cv=part.folds(_FOLDS, rows), refit=False)
            search.fit(X[rows], part.y[rows])
            estimator = clone(estimator).set_params(**search.best_params_)
            inner = float(search.best_score_)
            best = {name.rpartition("__")[2]: v for name, v in search.best_params_.items()}
            words = "; ".join(f"{name} {value:.4g}" for name, value in best.items())
        estimator.fit(X, part.y)
        steps = [("preparation", preparation), *fill, ("model", estimator)]
        return Fitted(Pipeline(steps), inner, words)


def guess(part: Part, width: int) -> tuple[Any, dict[str, Any]]:
    """Return what says the same about every sample."""
    return DummyRegressor() if part.numbers else DummyClassifier(strategy="prior"), {}


def linear(part: Part, width: int) -> tuple[Any, dict[str, Any]]:
    """Return ridge or logistic regression."""
    if part.numbers:
        return Ridge(), {"alpha": np.logspace(-1, 4, 6).tolist()}
    return LogisticRegression(max_iter=1000), {"C": np.logspace(-3, 1, 5).tolist()}


def machine(part: Part, width: int) -> tuple[Any, dict[str, Any]]:
    """Return a support vector machine with an RBF kernel of all columns."""
    grid = {"C": [1.0, 10.0, 100.0], "gamma": [f / width for f in (0.25, 1.0, 4.0)]}
    if not part.numbers:
        return SVC(), grid
    model = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
    return model, {f"regressor__{name}": values for name, values in grid.items()}


def forest(part: Part, width: int) -> tuple[Any, dict[str, Any]]:
    """Return a random forest, which needs no tuning."""
    kind: Any = RandomForestRegressor if part.numbers else RandomForestClassifier
    return kind(_TREES, random_state=part.seed), {}


def boosting(part: Part, width: int) -> tuple[Any, dict[str, Any]]:
    """Return boosted trees, which stop by themselves where there are enough samples."""
    kind: Any = HistGradientBoostingRegressor if part.numbers else HistGradientBoostingClassifier
    enough = len(part.y) >= _ENOUGH_TO_STOP
    return kind(early_stopping=enough, n_iter_no_change=_PATIENCE, random_state=part.seed), {}
