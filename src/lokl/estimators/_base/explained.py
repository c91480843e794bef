"""Explanations by a model inside of another estimator, with one text for all that have one."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if


def _inside(question: str) -> Callable[[Any], bool]:
    return lambda model: model._explains(question)


class Explained(BaseEstimator):
    """An estimator that hands questions about kernels on to what it has learned."""

    @abstractmethod
    def _explains(self, question: str) -> bool:
        """Whether the model inside, fitted or not, has a method of this name."""

    @abstractmethod
    def _explained(self, question: str, X: Any, labels: bool) -> Any:
        """Ask it."""

    @available_if(_inside("gate"))
    def gate(self, X: Any, *, labels: bool = False) -> Any:
        """How far each kernel is trusted at each sample: ``gate`` of the model that decides on it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : bool, default=False
            Whether to return a data frame with the names of the kernels, and the index of `X`.

        Returns
        -------
        trust : array of shape (n_samples, n_kernels)
            Shares of the kernels; rows sum to one. Equal shares where no model was needed.
        """
        return self._explained("gate", X, labels)

    @available_if(_inside("contributions"))
    def contributions(self, X: Any, *, labels: bool = False) -> Any:
        """Signed part of each kernel in what is said: ``contributions`` of the model that decides.

        Parts and the intercept of that model add up to the decision.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : bool, default=False
            Whether to return a data frame with the names of the kernels, and the index of `X`.

        Returns
        -------
        parts : array of shape (n_samples, n_kernels)
            With more than two classes or several targets (n_samples, n_tasks, n_kernels). Zeros
            where no model was needed.
        """
        return self._explained("contributions", X, labels)
