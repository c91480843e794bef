"""Peers on the UCI tables: functions that tune and fit on the training part of a fold.

- SVC: Gaussian kernel on standardised columns, ten costs (2^-5 to 2^13) and ten gammas (2^-15 to
  2^3) by cross-validated accuracy. Above 5,000 training rows, the search sees a stratified random
  2,000 of them; the final fit uses all.
- forest: 500 trees, no search.
- boosting: histogram boosting; two learning rates and three numbers of leaves. For each pair the
  number of rounds is found by early stopping on the held-out part of every fold. The pair with the
  least held-out log loss is fitted to all training rows, for the mean number of rounds. Leaves hold
  at least 20 samples, or a tenth of the rows below 200 rows.

Searches use five stratified folds, or two above 1,000 rows.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.uci_tables import MANY_TRAIN_ROWS, SAMPLED_ROWS, SOME_TRAIN_ROWS

COSTS, GAMMAS = 2.0 ** np.arange(-5, 14, 2), 2.0 ** np.arange(-15, 4, 2)
CACHE_MEGABYTES = 500
RATES, LEAVES = (0.05, 0.2), (4, 10, 31)
ROUNDS, PATIENCE = 500, 20


def folds(y: Any) -> StratifiedKFold:
    """Return the folds of a search; no more than the largest class has members."""
    wanted = 5 if len(y) <= SOME_TRAIN_ROWS else 2
    largest = int(np.unique(y, return_counts=True)[1].max())
    return StratifiedKFold(min(wanted, largest), shuffle=True, random_state=0)


def fit_svc(X: Any, y: Any) -> Any:
    model = make_pipeline(StandardScaler(), SVC(cache_size=CACHE_MEGABYTES))
    grid = {"svc__C": COSTS, "svc__gamma": GAMMAS}
    rows = np.arange(len(y))
    if len(y) > MANY_TRAIN_ROWS:
        rows, _ = train_test_split(rows, train_size=SAMPLED_ROWS, stratify=y, random_state=0)
    search = GridSearchCV(model, grid, cv=folds(y[rows]), refit=False).fit(X[rows], y[rows])
    return model.set_params(**search.best_params_).fit(X, y)


def fit_forest(X: Any, y: Any) -> Any:
    return RandomForestClassifier(500, random_state=0).fit(X, y)


def fit_boosting(X: Any, y: Any) -> Any:
    def made(rate: float, leaves: int, rounds: int, samples: int, **settings: Any) -> Any:
        return HistGradientBoostingClassifier(
            learning_rate=rate,
            max_leaf_nodes=leaves,
            max_iter=rounds,
            min_samples_leaf=min(20, max(1, samples // 10)),
            random_state=0,
            **settings,
        )

    splits = list(folds(y).split(X, y))
    stopping = {"early_stopping": True, "scoring": "loss", "n_iter_no_change": PATIENCE}
    trials = []
    for rate, leaves in product(RATES, LEAVES):
        losses, rounds = [], []
        for train, held_out in splits:
            # Boosting rejects held-out classes that it was not trained on.
            known = held_out[np.isin(y[held_out], y[train])]
            model = made(rate, leaves, ROUNDS, len(train), **stopping)
            model.fit(X[train], y[train], X_val=X[known], y_val=y[known])
            curve = -np.asarray(model.validation_score_)
            losses.append(curve.min())
            rounds.append(curve.argmin())
        trials.append((np.mean(losses), rate, leaves, max(1, round(np.mean(rounds)))))
    _, rate, leaves, count = min(trials)
    return made(rate, leaves, count, len(y), early_stopping=False).fit(X, y)


PEERS: dict[str, Callable[[Any, Any], Any]] = {
    "SVC": fit_svc,
    "forest": fit_forest,
    "boosting": fit_boosting,
}
