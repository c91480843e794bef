"""Classifiers and regressors for many samples: one model in each region."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl.estimators._base import settings
from lokl.estimators._base.classes import decided_classes, learned_classes
from lokl.estimators._base.probabilities import Probabilities
from lokl.models.described import Attributes
from lokl.regions.base import InRegions
from lokl.regions.tuning import default_classifier, default_regressor


@settings
class RegionClassifier(Probabilities, ClassifierMixin, InRegions):
    """A classifier for many samples: one model in each region.

    A tree of splits, each between two means, divides the samples into regions of bounded size; a
    copy of the estimator learns in each of them, its own kernel weights included. A new sample
    walks down the tree and is decided by its region. Time and memory grow with the number of
    samples, where one machine on all of them would grow with its square.

    With several covers, or with overlap, a decision is the mean over the regions of a sample. Then
    decisions are first clipped to [-1, 1], or are ``2 p - 1`` where the estimator has
    probabilities, so that no region shouts down the others.

    A region whose samples are all of one class decides for it. A class that a region has not met
    is never decided for in it. What differs between regions has no place here: ``support_``,
    ``intercept_`` and the like are found on ``estimators_``.

    Notes
    -----
    What is lost is what kernels would say about samples of different regions: little where kernels
    are narrow, as they are on many samples. `max_region_size` and `covers` win it back.

    References
    ----------
    C.-J. Hsieh, S. Si and I. Dhillon, A divide-and-conquer solver for kernel support vector
    machines, 2014. I. Steinwart and P. Thomann, liquidSVM: a fast and versatile SVM package, 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from lokl import RegionClassifier, UniformMKLClassifier
    >>> X, y = make_moons(2000, noise=0.2, random_state=0)
    >>> inside = UniformMKLClassifier(["rbf"], C=10)
    >>> model = RegionClassifier(inside, max_region_size=500, random_state=0).fit(X, y)
    >>> model.region_sizes_
    [array([500, 500, 500, 500])]
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _attributes: ClassVar[Attributes] = {
        "classes_": ("array of shape (n_classes,)", ""),
        **InRegions._attributes,
    }
    _kind = "classifier with decision_function"

    def _suits(self, estimator: Any) -> bool:
        return is_classifier(estimator) and hasattr(estimator, "decision_function")

    def _configured(self, spread: float = 1.0) -> Any:
        return default_classifier() if self.estimator is None else self.estimator

    def _stated(self, y: Array, weight: Array) -> tuple[Array, Array | None, dict[str, Any]]:
        classes, codes, tie = learned_classes(type(self).__name__, y, weight)
        return y, codes, {"classes_": classes, "_tie": tie}

    def _is_flat(self) -> bool:
        return len(self.classes_) == 2

    def _tasks(self) -> tuple[str, Sequence[Any]]:
        return "class", self.classes_.tolist()

    def decision_function(self, X: Any) -> Array:
        """Decision of the region of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        decision : array of shape (n_samples,), or (n_samples, n_classes) for more than two
            Positive values speak for ``classes_[1]``, or for the class of the column.
        """
        decision = self._asked("decide", X)
        return decision[:, 0] if self._is_flat() else decision

    def predict(self, X: Any) -> Array:
        """Class of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        return decided_classes(self._asked("decide", X), self.classes_, self._tie)

    def _has_probabilities(self) -> bool:
        return hasattr(self._configured(), "predict_proba")

    def _chances(self, X: Any, log: bool) -> Array:
        check_is_fitted(self)
        chances = self._asked("probabilities", X, len(self.classes_))
        if not log:
            return chances
        with np.errstate(divide="ignore"):
            return np.log(chances)


@settings
class RegionRegressor(RegressorMixin, InRegions):
    """A regressor for many samples: one model in each region.

    A tree of splits, each between two means, divides the samples into regions of bounded size; a
    copy of the estimator learns in each of them, its own kernel weights included. A new sample
    walks down the tree and is predicted by its region. Time and memory grow with the number of
    samples, where one machine on all of them would grow with its square.

    With several covers, or with overlap, a prediction is the mean over the regions of a sample;
    overlap makes it continuous across borders.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import RegionRegressor, UniformMKLRegressor
    >>> X = np.linspace(0, 60, 2000)[:, np.newaxis]
    >>> inside = UniformMKLRegressor(["rbf"], C=10)
    >>> model = RegionRegressor(inside, max_region_size=500, random_state=0)
    >>> bool(model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.95)
    True
    """

    _kind = "regressor"

    def _suits(self, estimator: Any) -> bool:
        return bool(is_regressor(estimator))

    def _configured(self, spread: float = 1.0) -> Any:
        return default_regressor(spread) if self.estimator is None else self.estimator

    def _stated(self, y: Array, weight: Array) -> tuple[Array, Array | None, dict[str, Any]]:
        y = np.asarray(y, dtype=np.float64)
        return y, None, {"_one_target": y.ndim == 1}

    def _is_flat(self) -> bool:
        return bool(self._one_target)

    def _tasks(self) -> tuple[str, Sequence[Any]]:
        return "target", range(self._model.n_tasks)

    def predict(self, X: Any) -> Array:
        """Value of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : array of shape (n_samples,) or (n_samples, n_targets), as in training
        """
        decision = self._asked("decide", X)
        return decision[:, 0] if self._is_flat() else decision

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
