"""Models inside models: pipelines, searches, and classifiers that add probabilities.

Explanations by a model inside of another estimator, with one text for all that have one.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

# Attributes in which estimators around others keep the fitted one.
_INNER = ("best_estimator_", "estimator_")


def fitted_inside(model: Any) -> Any:
    """Return the fitted estimator that another is built around, None where there is none."""
    return next((vars(model)[name] for name in _INNER if name in vars(model)), None)


def layers_of(model: Any) -> Iterator[Any]:
    """Yield a model and the fitted models inside it, outermost first; the last steps of pipelines.

    What a pipeline does before its last step is left out.
    """
    for layer, _ in layers_with(model, None):
        yield layer


def layers_with(model: Any, X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the layers of a model, each with samples as it sees them; samples may be None."""
    while model is not None:
        if hasattr(model, "steps"):
            X = model[:-1].transform(X) if X is not None and len(model.steps) > 1 else X
            model = model.steps[-1][1]
            continue
        yield model, X
        model = fitted_inside(model)


def unwrapped(model: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the innermost model, and samples as it sees them."""
    *_, last = layers_with(model, X)
    return last


def _inside(question: str) -> Callable[[Any], bool]:
    return lambda model: model._explains(question)


class ExplanationMixin(BaseEstimator):
    """An estimator that hands questions about kernels on to what it has learned."""

    @abstractmethod
    def _explains(self, question: str) -> bool:
        """Whether the model inside, fitted or not, has a method of this name."""

    @abstractmethod
    def _explained(self, question: str, X: Any, labels: bool) -> Any:
        """Ask it."""

    @available_if(_inside("weights"))
    def weights(self, X: Any, *, labels: bool = False) -> Any:
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
        return self._explained("weights", X, labels)

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
