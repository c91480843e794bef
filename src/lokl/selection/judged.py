"""A stand-in for a fitted estimator that knows its decisions about some samples, nothing else."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score
from sklearn.metrics._scorer import _BaseScorer, _MultimetricScorer, _PassthroughScorer

from lokl._arrays import Array
from lokl.selection.work import Task


class _Judged(BaseEstimator):
    """Answers for samples whose decisions are known already.

    Parameters
    ----------
    estimator : Learner
        Configured, and with the attributes that targets tell, such as classes.
    known : list of (samples, array of shape (n_samples, n_tasks))
        Scorers hand over the very samples they are given, so that these are known by identity.
    """

    def __init__(self, estimator: Any, known: list[tuple[Any, Array]]):
        self.estimator = estimator
        self.known = known

    def decisions(self, X: Any) -> Array:
        """Decisions about samples, (n_samples, n_tasks)."""
        return next(decision for samples, decision in self.known if samples is X)

    def predict(self, X: Any) -> Array:
        return np.asarray(self.estimator._answers(self.decisions(X)))

    def __sklearn_is_fitted__(self) -> bool:
        return True


class _JudgedClassifier(ClassifierMixin, _Judged):
    """Adds what scorers ask of classifiers."""

    @property
    def classes_(self) -> Array:
        return np.asarray(self.estimator.classes_)

    def decision_function(self, X: Any) -> Array:
        decision = self.decisions(X)
        return decision[:, 0] if self.estimator._is_flat() else decision


class _JudgedRegressor(RegressorMixin, _Judged):
    """Adds what scorers ask of regressors."""


def judged(estimator: Any, known: list[tuple[Any, Array]]) -> Any:
    """Return a stand-in for an estimator that has decided about some samples."""
    is_classifier = isinstance(estimator, ClassifierMixin)
    return (_JudgedClassifier if is_classifier else _JudgedRegressor)(estimator, known)


def sees_predictions_only(scorers: Any) -> bool:
    """Whether scorers ask for predictions and decisions alone; a function may look inside."""
    each = scorers._scorers.values() if isinstance(scorers, _MultimetricScorer) else [scorers]
    return all(isinstance(scorer, _BaseScorer | _PassthroughScorer) for scorer in each)


def is_accuracy(task: Task, estimator: Any) -> bool:
    """Whether the score is the share of right answers, which needs no scorer."""
    if task.score_params or np.ndim(task.y) != 1 or not isinstance(estimator, ClassifierMixin):
        return False
    scorer = task.scorers
    if isinstance(scorer, _PassthroughScorer):
        return type(estimator).score is ClassifierMixin.score
    return (
        isinstance(scorer, _BaseScorer)
        and scorer._score_func is accuracy_score
        and scorer._sign > 0
        and not scorer._kwargs
    )
