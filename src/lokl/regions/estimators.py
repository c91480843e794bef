"""What classifiers and regressors in regions share: settings, division, fits, questions.

Classifiers and regressors for many samples: one model in each region.
"""

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import (
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    is_classifier,
    is_regressor,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl._frames import labelled
from lokl._threads import single_threaded_blas
from lokl._warnings import DeferredWarnings
from lokl.base import KernelEstimator, setting, settings
from lokl.base.classifier import ProbabilityMixin, decided_classes, learned_classes
from lokl.base.delegation import ExplanationMixin
from lokl.base.estimator import atomic_fit, publish
from lokl.base.model import FEATURE_ATTRIBUTES, AttributeDocs
from lokl.base.settings import JOBS, SEED, Rule, anything, check_settings, count
from lokl.base.validation import check_samples, check_weights, with_absent_views
from lokl.kernels.dictionaries import named_kernels
from lokl.regions.fitting import (
    Choice,
    Divided,
    InMemory,
    Learning,
    choose,
    default_classifier,
    default_regressor,
    region_seed,
    regions_to_tune,
    spread_of_targets,
)
from lokl.regions.model import Cover, Regions, take
from lokl.regions.scaling import Neighbourhood, learn_stretch, standardizing, stretched
from lokl.regions.tree import Growth
from lokl.search.calibration import CalibratedMKLClassifier
from lokl.search.lockstep import threads_for

logger = logging.getLogger("lokl")

_LARGEST_OVERLAP = 0.5


def _check_overlap(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(f"{name} must be a number from 0 to {_LARGEST_OVERLAP}, got {value!r}")
    if not 0 <= value <= _LARGEST_OVERLAP:
        raise ValueError(f"{name} must be from 0 to {_LARGEST_OVERLAP}, got {value!r}")


def _check_scaling(name: str, value: Any) -> None:
    if value is not None and value != "shared":
        raise ValueError(f"{name} must be 'shared' or None, got {value!r}")


def _check_tune(name: str, value: Any) -> None:
    if value is not None and value not in ("shared", "each"):
        raise ValueError(f"{name} must be 'shared', 'each' or None, got {value!r}")


@settings
class InRegions(MetaEstimatorMixin, ExplanationMixin):
    """A tree divides the samples, a copy of an estimator learns in each region."""

    estimator: Any = setting(
        None,
        anything("estimator or None"),
        "What learns in each region; a copy is fitted. None is one machine with an RBF kernel, "
        "whose width and cost are chosen as `tune` says.",
        kw_only=False,
    )
    max_region_size: int = setting(
        4000,
        count(2),
        "Most samples of a region. Time and memory grow with it, and so does the accuracy of wide "
        "kernels. Only samples that are equal may be more.",
    )
    covers: int = setting(
        1,
        count(),
        "How many times the samples are divided, each time in another way; decisions are means. "
        "What one division cuts, others hold together.",
    )
    overlap: float = setting(
        0.0,
        Rule("float", _check_overlap),
        "Share of the samples, from 0 to 0.5, that are near to the border of a split and belong to "
        "both sides, with weights that fall to zero across the border. Regions are more, and never "
        "larger: 0.1 about doubles the work.",
    )
    scale_features: str | None = setting(
        None,
        Rule('{"shared"} or None', _check_scaling),
        'Whether every column is multiplied by a factor, the same in all regions: "shared" learns '
        "factors in four regions, such that samples near each other have like targets. Columns "
        "that tell nothing then hardly count, neither for the division nor for kernels. In this "
        "unit, ``RBF(0.1)`` to ``RBF(0.5)`` are good guesses. Worth trying where columns are of "
        "different worth.",
    )
    tune: str | None = setting(
        "shared",
        Rule('{"shared", "each"} or None', _check_tune),
        'How the values of `param_grid` are chosen: "shared", by cross-validation in four regions, '
        'the same for all; "each", in every region by itself; None, not at all. Regions with fewer '
        "than 100 samples, or five of a class, have no part in it.",
    )
    param_grid: Any = setting(
        None,
        anything("dict, list of dict or None"),
        "Values to try by name of a parameter of the estimator, as in "
        ":class:`~lokl.search.KernelSearchCV`. None: an estimator that was given is taken as it "
        "is.",
    )
    random_state: Any = setting(
        None,
        SEED,
        "Decides how samples are divided, and what the estimator leaves open. Regions have seeds "
        "of their own, so that no order of work changes the result.",
    )
    n_jobs: int | None = setting(
        None,
        JOBS,
        "Regions that are worked on at a time, in threads that share the `cache_size` of the "
        "estimator; None is one for each core.",
    )
    verbose: int = setting(
        0, anything("int"), "1 logs a line about every division to the logger ``lokl``."
    )

    _attributes: ClassVar[AttributeDocs] = {
        "trees_": ("list of RegionTree", "How samples are divided, one tree for each cover."),
        "estimators_": (
            "list of lists",
            "Of each cover, what was fitted in each region; None where a region has samples of one "
            "class only, or a single sample.",
        ),
        "region_sizes_": ("list of arrays", "Of each cover, the training samples of each region."),
        "feature_scale_": (
            "array of shape (n_features,) or None",
            "Factor of each column before anything else; None where it was not asked for.",
        ),
        "best_params_": ("dict", 'What ``tune="shared"`` has chosen; empty where it has not.'),
        "kernel_names_": ("list", "Names of all kernels of all regions."),
        **FEATURE_ATTRIBUTES,
    }

    _kind: ClassVar[str]  # of estimators

    @classmethod
    def _attribute_docs(cls) -> AttributeDocs:
        return cls._attributes

    @abstractmethod
    def _configured(self, spread: float = 1.0) -> Any:
        """Return the estimator, or what None stands for, for targets of this spread."""

    @abstractmethod
    def _stated(self, y: Array, weight: Array) -> tuple[Array, Array | None, dict[str, Any]]:
        """Return targets, numbers of classes (None for targets), and attributes they tell."""

    @abstractmethod
    def _tasks(self) -> tuple[str, Sequence[Any]]:
        """What is decided about, "class" or "target", and the names of these."""

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Divide the samples, and learn in every region.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for regressors
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts like the row written twice in its region, 0 like no row.

        Returns
        -------
        self
        """
        check_settings(self)
        self._check_estimator()
        samples = X if hasattr(X, "iloc") else None
        X, y = check_samples(self, X, y, fitting=True, missing=self._takes_missing(X))
        weight = check_weights(sample_weight, X)
        # A weight of zero is the same as no row at all.
        counted = np.flatnonzero(weight > 0)
        y, codes, known = self._stated(y, weight)
        X, samples = take(X, counted), take(X if samples is None else samples, counted)
        n_classes = 0 if codes is None else len(known["classes_"])
        learning = Learning(
            samples,
            y[counted],
            None if codes is None else codes[counted],
            n_classes,
            None if sample_weight is None else weight[counted],
        )
        spread = 1.0
        if codes is None:
            spread = spread_of_targets(learning.y, learning.weight)
        # Many fits, none of which should wait for threads of BLAS.
        with DeferredWarnings(), single_threaded_blas():
            seed, factors = self._draw_seed(), None
            if self.scale_features is not None:
                factors = self._factors(X, learning, seed)
                X = stretched(X, factors)
                learning = replace(learning, samples=stretched(learning.samples, factors))
            divide = partial(InMemory, X, learning, self.n_jobs)
            learned = self._learn(divide, seed, spread, learning.n_tasks)
        publish(self, {**known, **learned, "feature_scale_": factors})
        return self

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _growth(self, seed: int, cover: int) -> Growth:
        """How the tree of a cover is grown."""
        overlap = float(self.overlap)
        return Growth(self.max_region_size, overlap, (seed, cover), varied=cover > 0)

    def _learn(
        self, divide: Callable[[Growth], Divided], seed: int, spread: float, n_tasks: int
    ) -> dict[str, Any]:
        """Learn all covers; return what is published.

        Parameters
        ----------
        divide : callable
            Divides the samples, wherever they are.
        seed : int
        spread : float
            Standard deviation of targets.
        n_tasks : int
        """
        covers: list[Cover] = []
        sizes: list[Array] = []
        choice = Choice(self._configured(spread))
        for number in range(self.covers):
            divided = divide(self._growth(seed, number))
            sizes.append(divided.sizes)
            if number == 0:
                grid = self.param_grid
                if grid is None and self.estimator is None:
                    grid = "default"
                choice = choose(choice.estimator, divided, self.tune, grid, (seed, number))
                if choice.best:
                    self._log(f"chosen for all regions: {choice.best}")
            self._log(f"cover {number + 1}: {len(sizes[-1])} regions of up to {sizes[-1].max()}")
            models = divided.fitted(choice.estimator, choice.fit, (seed, number))
            covers.append(Cover(divided.tree, models))
            # All samples are one region, and would be again.
            if len(models) == 1:
                break
        return {
            **_described_covers(covers, n_tasks),
            "region_sizes_": sizes,
            "feature_scale_": None,
            "best_params_": choice.best,
        }

    def _factors(self, X: Any, learning: Learning, seed: int) -> Array:
        """Learn factors of columns in some regions of standardised samples."""
        unit, growth = standardizing(X), Growth(self.max_region_size, seed=(seed, 0))
        divided = InMemory(stretched(X, unit), learning, self.n_jobs, growth)
        parts = []
        for place in regions_to_tune(divided.have_folds()):
            rows = divided.rows(place)
            region = learning.part(rows, None)
            own = region.targets(), region.weight, region_seed(growth.seed, place)
            parts.append(Neighbourhood.of(X[rows], *own))
        if not parts:
            # Too few samples to learn from.
            return np.ones(len(unit))
        factors = learn_stretch(parts, unit, threads_for(self.n_jobs))
        self._log(f"factors of columns: {np.array2string(factors, precision=3, threshold=20)}")
        return factors

    def _log(self, text: str) -> None:
        if self.verbose:
            logger.info("%s: %s", type(self).__name__, text)

    def _check_estimator(self) -> None:
        """Raise where the estimator is none that could learn in a region."""
        estimator = self.estimator
        if estimator is not None and (isinstance(estimator, type) or not hasattr(estimator, "fit")):
            raise ValueError(
                "estimator must be an estimator of lokl, such as UniformMKLClassifier(), a "
                f"pipeline that ends in one, or None, got {estimator!r}"
            )
        if estimator is not None and not self._suits(estimator):
            raise ValueError(
                f"estimator of {type(self).__name__} must be a {self._kind}, got {estimator!r}"
            )

    @abstractmethod
    def _suits(self, estimator: Any) -> bool:
        """Whether an estimator is of the kind that regions need."""

    def _takes_missing(self, X: Any) -> bool:
        """Whether samples may lack views."""
        model = self._configured()
        model = model.estimator if isinstance(model, CalibratedMKLClassifier) else model
        if not isinstance(model, KernelEstimator):
            return bool(get_tags(model).input_tags.allow_nan)
        named = named_kernels(model._default_kernels(X))
        return model._accepts_missing_views() and all(kernel.is_view for kernel in named.values())

    def _new(self, X: Any) -> tuple[Any, Any]:
        """Check new samples; return them as trees take them, and as estimators do."""
        check_is_fitted(self)
        missing = self._takes_missing(X)
        if missing and self._model.kernels:
            columns = getattr(self, "feature_names_in_", None)
            X = with_absent_views(X, columns, self._model.kernels, self.kernel_names_)
        samples = X if hasattr(X, "iloc") else None
        X = check_samples(self, X, fitting=False, missing=missing)
        samples = X if samples is None else samples
        if self.feature_scale_ is None:
            return X, samples
        return stretched(X, self.feature_scale_), stretched(samples, self.feature_scale_)

    def _asked(self, question: str, X: Any, *more: Any) -> Array:
        """Ask the model of all regions about new samples."""
        # First, since it says so where the estimator is not fitted.
        new = self._new(X)
        return np.asarray(getattr(self._model, question)(*new, *more, threads_for(self.n_jobs)))

    def region(self, X: Any) -> Array:
        """Number of the region of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        regions : array of shape (n_samples,), or (n_samples, n_covers) for more than one
            Places in ``estimators_`` of the cover; with `overlap`, of the largest share.
        """
        new = self._new(X)[0]
        found = np.column_stack([tree.assign(new) for tree in self.trees_])
        return found[:, 0] if found.shape[1] == 1 else found

    def _explains(self, question: str) -> bool:
        return hasattr(self._configured(), question)

    def _explained(self, question: str, X: Any, labels: bool) -> Any:
        told = self._asked("trust" if question == "weights" else "parts", X)
        if question != "weights" and self._is_flat():
            told = told[:, 0]
        return labelled(told, X, self.kernel_names_, self._tasks()) if labels else told

    @abstractmethod
    def _is_flat(self) -> bool:
        """Whether there is one decision for a sample."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if self.estimator is not None and hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def _described_covers(covers: list[Cover], n_tasks: int) -> dict[str, Any]:
    """Attributes that covers tell."""
    fitted = [
        [None if region is None else region.estimator for region in cover.regions]
        for cover in covers
    ]
    names, kernels = _all_kernels([one for cover in fitted for one in cover if one is not None])
    trees = [cover.tree for cover in covers]
    mixed = len(covers) > 1 or any(tree.overlaps for tree in trees)
    return {
        "trees_": trees,
        "estimators_": fitted,
        "kernel_names_": names,
        "_model": Regions(covers, mixed, n_tasks, names, kernels),
    }


def _all_kernels(fitted: Sequence[Any]) -> tuple[list[str], list[Any]]:
    """Names of all kernels in any region, and bound kernels where one region has all of them."""
    models = [model[-1] if isinstance(model, Pipeline) else model for model in fitted]
    models = [model for model in models if hasattr(model, "kernel_names_")]
    names = list(dict.fromkeys(name for model in models for name in model.kernel_names_))
    whole = (model for model in fitted if list(getattr(model, "kernel_names_", ())) == names)
    # Kernels behind other steps see other columns.
    first = next(whole, None)
    return names, list(getattr(getattr(first, "estimator_", first), "kernels_", []))


@settings
class RegionClassifier(ProbabilityMixin, ClassifierMixin, InRegions):
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

    _attributes: ClassVar[AttributeDocs] = {
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

    def _class_probabilities(self, X: Any, log: bool) -> Array:
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
