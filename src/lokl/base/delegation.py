"""Models inside pipelines and searches, and methods that explain predictions, documented once."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from sklearn.utils.metaestimators import available_if

# Attributes in which meta-estimators keep the fitted estimator.
_INNER = ("best_estimator_", "estimator_")


def fitted_inside(model: Any) -> Any:
    """Return the fitted estimator inside a meta-estimator, None if there is none."""
    return next((vars(model)[name] for name in _INNER if name in vars(model)), None)


def model_layers(model: Any, X: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield a model and the fitted models inside it, outermost first.

    Pipelines are replaced by their last steps.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : samples, optional

    Yields
    ------
    model : estimator
    X : samples
        As this model receives them, after the transformers of the pipelines around it; None without
        samples.
    """
    while model is not None:
        if hasattr(model, "steps"):
            X = model[:-1].transform(X) if X is not None and len(model.steps) > 1 else X
            model = model.steps[-1][1]
            continue
        yield model, X
        model = fitted_inside(model)


def unwrap(model: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the innermost model of pipelines and searches, and samples as it receives them.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : samples, optional

    Returns
    -------
    model : estimator
    X : samples
        Transformed by the pipelines around the model; None without samples.
    """
    *_, innermost = model_layers(model, X)
    return innermost


def _supports(quantity: str) -> Callable[[Any], bool]:
    return lambda model: model._explains(quantity)


class ExplanationMixin:
    """Weights, contributions and trust of the kernels at each sample.

    An estimator has those methods that its model supports.
    """

    @abstractmethod
    def _explains(self, quantity: str) -> bool:
        """Return whether the model, fitted or not, supports a quantity."""

    @abstractmethod
    def _explained(self, quantity: str, X: Any, labels: bool) -> Any:
        """Compute a quantity at samples."""

    @available_if(_supports("weights"))
    def weights(self, X: Any, *, labels: bool = False) -> Any:
        """Weights of the kernels at each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : bool, default=False
            Whether to return a data frame with the names of the kernels, and the index of `X`.

        Returns
        -------
        weights : array of shape (n_samples, n_kernels)
            Not negative; rows sum to one. The weight of a kernel is 0 if a sample lacks its view.
            If all weights would be 0, the available kernels have equal weights. Factors of the
            learned kernel itself are in ``kernel_``.
        """
        return self._explained("weights", X, labels)

    @available_if(_supports("contributions"))
    def contributions(self, X: Any, *, labels: bool = False) -> Any:
        """Signed contribution of each kernel to the decision (or prediction) of each sample.

        Contributions and intercept add up: ``contributions(X).sum(-1) + intercept_`` is the
        decision of the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : bool, default=False
            Whether to return a data frame with the names of the kernels, and the index of `X`. With
            several classes or targets, columns have two levels: class or target, then kernel.

        Returns
        -------
        contributions : array of shape (n_samples, n_kernels)
            With more than two classes or several targets (n_samples, n_tasks, n_kernels).
        """
        return self._explained("contributions", X, labels)

    @available_if(_supports("trust"))
    def trust(self, X: Any, *, labels: bool = False) -> Any:
        """Probability that each kernel is informative for each sample.

        Unlike :meth:`weights`, rows need not sum to one: all kernels of a sample may be trusted, or
        none.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : bool, default=False
            Whether to return a data frame with the names of the kernels, and the index of `X`.

        Returns
        -------
        trust : array of shape (n_samples, n_kernels)
            From 0 to below 1. It is 0 if a sample lacks the view, and near 0 if the sample is
            unlike all training samples or if the other kernels contradict. The mean over several
            targets.
        """
        return self._explained("trust", X, labels)

    @available_if(_supports("disagreement"))
    def disagreement(self, X: Any, *, labels: bool = False) -> Any:
        """Disagreement between the kernels at each sample, independent of their trust.

        Two kernels that give an outcome the probabilities ``q_i(y)`` and ``q_k(y)`` disagree by
        ``sum_y |q_i(y) - q_k(y)| / 2``. The result is the mean over all pairs of kernels, weighted
        by the familiarity of the sample to both.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : bool, default=False
            Whether to return a series (pandas) with the index of `X`.

        Returns
        -------
        disagreement : array of shape (n_samples,)
            0 if all kernels predict the same distribution, 1 if each excludes the outcomes of the
            others.
        """
        return self._explained("disagreement", X, labels)

    @available_if(_supports("familiarity"))
    def familiarity(self, X: Any, *, labels: bool = False) -> Any:
        """Similarity of each sample to the training samples, for each kernel.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : bool, default=False
            Whether to return a data frame with the names of the kernels, and the index of `X`.

        Returns
        -------
        familiarity : array of shape (n_samples, n_kernels)
            From 0, unlike all training samples, to 1. It is 0 if a sample lacks the view, and 1 for
            all others without `novelty`.
        """
        return self._explained("familiarity", X, labels)
