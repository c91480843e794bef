"""Probabilities: one text for all who have them; of others, an error says who makes them."""

from abc import abstractmethod
from typing import Any, NoReturn

import numpy as np
from sklearn.utils.metaestimators import available_if

from lokl._arrays import Array


def _are_known(model: Any) -> bool:
    return bool(model._has_probabilities())


class Probabilities:
    """Probabilities of classes."""

    def _has_probabilities(self) -> bool:
        """Whether there are any; where it depends on a model inside, on that."""
        return True

    @abstractmethod
    def _chances(self, X: Any, log: bool) -> Array:
        """Probabilities of new samples or their logarithms, (n_samples, n_classes)."""

    @available_if(_are_known)
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
            Rows sum to one; columns in the order of ``classes_``.
        """
        return np.asarray(self._chances(X, log=False))

    @available_if(_are_known)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        logarithms : array of shape (n_samples, n_classes)
            Finite also where probabilities are too small for a number, but minus infinity for
            classes that are ruled out.
        """
        return np.asarray(self._chances(X, log=True))


class NoProbabilities:
    """A method that a model lacks, as ``hasattr`` and scikit-learn ask for it.

    Who calls it learns what to use instead.
    """

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: Any) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__} has no {self.name}: decision values are no probabilities; use "
            f"lokl.selection.calibrated(model, X, y), which has {self.name}"
        )
