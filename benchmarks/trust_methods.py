"""The trusted vote and its rivals on one split.

The trusted vote is ``AutoMKLClassifier(views)`` as it comes: it scales columns and chooses kernels
and a cost by exact leave-one-out decisions on the training rows.

Settings of its rivals are chosen by three-fold cross-validation of accuracy on the training rows:

- each view: one kernel (RBF, gamma 1/16 to 4 times "scale"; Laplacian, gamma 1/16 to 4 times
  "median"; for text, also the cosine) and a cost of 1, 10 or 100, by an SVM of this view;
- UNIFORM: these kernels, and its own cost;
- the best view: the view with the best cross-validated accuracy;
- mean of probabilities: the SVMs of single views, calibrated on held-out decisions;
- stacking: logistic regression on held-out decisions of the SVMs, with three penalties;
- concatenated SVC: one kernel on all columns, with the same widths and costs;
- random forest: leaves of one or three samples, by the score out of bag;
- boosting: the number of rounds, by early stopping.

For methods that do not support missing views, these are replaced by the mean of the training part.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import lokl
from benchmarks.common import scale_gamma
from lokl.kernels import RBF, Cosine, Laplacian, per_view
from lokl.search import KernelSearchCV, held_out

FOLDS = 3
# Data sets with a larger share of zeros are word counts.
TEXT = 0.9


@dataclass(frozen=True)
class Choices:
    """Candidate settings."""

    costs: tuple[float, ...] = (1.0, 10.0, 100.0)
    widths: tuple[float, ...] = (1 / 16, 0.25, 1.0, 4.0)
    only_laplacian: bool = False


TUNED, FIXED = Choices(), Choices((10.0,), (1.0,), True)


class Split:
    """Training and test rows of one split, scaled by the training part."""

    def __init__(self, found: Any, seed: int, choices: Choices = TUNED):
        everything = np.arange(found.data.shape[1])
        self.views = {name: everything[columns] for name, columns in found.views.items()}
        X, X_test, self.y, self.y_test = train_test_split(
            found.data, found.target, test_size=0.2, random_state=seed, stratify=found.target
        )
        self.choices, self.is_text = choices, bool(np.mean(X == 0) > TEXT)
        self._unit = MinMaxScaler().fit(X)
        self._standard = StandardScaler().fit(self._unit.transform(X))
        self.X = self.seen(self._unit.transform(X))
        self.test = self._unit.transform(X_test)
        self.classes, codes = np.unique(self.y, return_inverse=True)
        self.most_frequent = self.classes[np.argmax(np.bincount(codes))]

    def seen(self, unit: Any) -> Any:
        """Return the input of the kernels, given rows in [0, 1]: standardised, except word counts.

        Standardisation would make a word dominant that occurs in few training rows, and folds that
        are standardised together would not show it.
        """
        scale = self._unit.inverse_transform if self.is_text else self._standard.transform
        return scale(unit)

    def filled(self, Z: Any) -> Any:
        """Return rows with missing values replaced by the mean of the training part."""
        return np.where(np.isnan(Z), self.X.mean(axis=0), Z)

    def present(self, Z: Any, view: str) -> Any:
        return ~np.isnan(Z[:, self.views[view]]).any(axis=1)

    def candidates(self, columns: Any) -> list[Any]:
        X, widths = self.X[:, columns], self.choices.widths
        median = Laplacian("median").bind(X).gamma
        made: list[Any] = [Laplacian(width * median) for width in widths]
        if not self.choices.only_laplacian:
            made += [RBF(width * scale_gamma(X)) for width in widths]
            made += [Cosine()] * self.is_text
        return [kernel.on(columns) for kernel in made]

    def search(self, kernels: list[Any]) -> Any:
        """Choose among lists of kernels and costs."""
        grid = {"C": list(self.choices.costs), "kernels": kernels}
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        return KernelSearchCV(lokl.UniformMKLClassifier(), grid, cv=folds).fit(self.X, self.y)

    @cached_property
    def single(self) -> Mapping[str, Any]:
        """Return the search over the SVM of each view."""
        return {
            view: self.search([{view: kernel} for kernel in self.candidates(columns)])
            for view, columns in self.views.items()
        }

    @cached_property
    def kernels(self) -> dict[str, Any]:
        """Return the chosen kernel of each view."""
        return {view: search.best_params_["kernels"][view] for view, search in self.single.items()}

    def vote(self) -> Any:
        """Return the fitted trusted vote, and its cost."""
        if self.choices.only_laplacian:
            kernels = per_view(Laplacian("median"), self.views)
            vote: Any = lokl.TrustedVoteClassifier(kernels, *self.choices.costs, loss="squared")
            return vote.fit(self.X, self.y), vote.C
        auto: Any = lokl.AutoMKLClassifier(self.views, n_jobs=1).fit(self.X, self.y)
        return auto, auto.best_estimator_[-1].C


Predict = Callable[[Any], Any]


def uniform(split: Split) -> Predict:
    predict: Predict = split.search([split.kernels]).predict
    return predict


def best_view(split: Split) -> Predict:
    best = max(split.single, key=lambda view: split.single[view].best_score_)

    def predict(Z: Any) -> Any:
        # Samples without this view get the most frequent class.
        present = split.present(Z, best)
        labels = np.full(len(Z), split.most_frequent, dtype=split.classes.dtype)
        labels[present] = split.single[best].predict(Z[present])
        return labels

    return predict


def mean_of_probabilities(split: Split) -> Predict:
    def predict(Z: Any) -> Any:
        total = np.zeros((len(Z), len(split.classes)))
        for view, search in split.single.items():
            present = split.present(Z, view)
            total[present] += search.predict_proba(Z[present]) if present.any() else 0.0
        return split.classes[total.argmax(axis=1)]

    return predict


def stacking(split: Split) -> Predict:
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(split.X, split.y))
    decisions = [
        held_out(search.best_estimator_, split.X, split.y, folds)
        for search in split.single.values()
    ]
    widths = [block.shape[1] for block in decisions]
    learner = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    grid = {"logisticregression__C": [0.01, 0.1, 1.0]}
    stacked = np.hstack(decisions)
    model = GridSearchCV(learner, grid, cv=FOLDS).fit(stacked, split.y)
    means = np.split(stacked.mean(axis=0), np.cumsum(widths)[:-1])

    def predict(Z: Any) -> Any:
        blocks = []
        for (view, search), mean in zip(split.single.items(), means, strict=True):
            present, block = split.present(Z, view), np.tile(mean, (len(Z), 1))
            if present.any():
                block[present] = search.decision_function(Z[present]).reshape(present.sum(), -1)
            blocks.append(block)
        return model.predict(np.hstack(blocks))

    return predict


def concatenated(split: Split) -> Predict:
    columns = np.arange(split.X.shape[1])
    search = split.search([[kernel] for kernel in split.candidates(columns)])
    return lambda Z: search.predict(split.filled(Z))


def forest(split: Split) -> Predict:
    made = [
        RandomForestClassifier(
            300, min_samples_leaf=leaf, oob_score=True, n_jobs=1, random_state=0
        ).fit(split.X, split.y)
        for leaf in (1, 3)
    ]
    best = max(made, key=lambda model: model.oob_score_)
    return lambda Z: best.predict(split.filled(Z))


def boosting(split: Split) -> Predict:
    model = HistGradientBoostingClassifier(
        early_stopping=True, max_iter=200, max_features=0.2, random_state=0
    )
    model.fit(split.X, split.y)
    # Boosting supports missing values.
    return lambda Z: model.predict(Z)


VOTE = "trusted vote"
RIVALS: dict[str, Callable[[Split], Predict]] = {
    "UNIFORM": uniform,
    "best view": best_view,
    "mean of probabilities": mean_of_probabilities,
    "stacking": stacking,
    "concatenated SVC": concatenated,
    "random forest": forest,
    "boosting": boosting,
}
