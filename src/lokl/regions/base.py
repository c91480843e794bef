"""What classifiers and regressors in regions share: settings, division, fits, questions."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import MetaEstimatorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl._notices import Collected
from lokl._tables import labelled
from lokl._threads import quiet_blas
from lokl.clustering.region_tree import Growth
from lokl.estimators._base import Learner, setting, settings
from lokl.estimators._base.absent_views import with_absent_views
from lokl.estimators._base.explained import Explained
from lokl.estimators._base.refit import all_or_nothing, publish
from lokl.estimators._base.rules import JOBS, SEED, Rule, anything, count
from lokl.estimators._base.settings import check_settings
from lokl.estimators._base.validation import check_samples, check_weights
from lokl.kernels.dictionaries import named_kernels
from lokl.models.described import COLUMNS, Attributes
from lokl.models.regions import Cover, Regions, take
from lokl.regions.divided import Divided
from lokl.regions.fitting import Learning, region_seed
from lokl.regions.in_memory import InMemory
from lokl.regions.stretching import Neighbourhood, learn_stretch, standardizing, stretched
from lokl.regions.tuning import Choice, choose, regions_to_tune, spread_of_targets
from lokl.selection.calibrated_classifier import CalibratedMKLClassifier
from lokl.selection.in_step import threads_for

logger = logging.getLogger("lokl")

_LARGEST_OVERLAP = 0.5


def _check_overlap(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(f"{name} must be a number from 0 to {_LARGEST_OVERLAP}, got {value!r}")
    if not 0 <= value <= _LARGEST_OVERLAP:
        raise ValueError(f"{name} must be from 0 to {_LARGEST_OVERLAP}, got {value!r}")


def _check_stretch(name: str, value: Any) -> None:
    if value is not None and value != "shared":
        raise ValueError(f"{name} must be 'shared' or None, got {value!r}")


def _check_tune(name: str, value: Any) -> None:
    if value is not None and value not in ("shared", "each"):
        raise ValueError(f"{name} must be 'shared', 'each' or None, got {value!r}")


@settings
class InRegions(MetaEstimatorMixin, Explained):
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
    stretch: str | None = setting(
        None,
        Rule('{"shared"} or None', _check_stretch),
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
        ":class:`~lokl.selection.KernelSearchCV`. None: an estimator that was given is taken as it "
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

    _attributes: ClassVar[Attributes] = {
        "trees_": ("list of RegionTree", "How samples are divided, one tree for each cover."),
        "estimators_": (
            "list of lists",
            "Of each cover, what was fitted in each region; None where a region has samples of one "
            "class only, or a single sample.",
        ),
        "region_sizes_": ("list of arrays", "Of each cover, the training samples of each region."),
        "stretch_": (
            "array of shape (n_features,) or None",
            "Factor of each column before anything else; None where it was not asked for.",
        ),
        "best_params_": ("dict", 'What ``tune="shared"`` has chosen; empty where it has not.'),
        "kernel_names_": ("list", "Names of all kernels of all regions."),
        **COLUMNS,
    }

    _kind: ClassVar[str]  # of estimators

    @classmethod
    def _described(cls) -> Attributes:
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

    @all_or_nothing
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
        with Collected(), quiet_blas():
            seed, factors = self._draw_seed(), None
            if self.stretch is not None:
                factors = self._factors(X, learning, seed)
                X = stretched(X, factors)
                learning = replace(learning, samples=stretched(learning.samples, factors))
            divide = partial(InMemory, X, learning, self.n_jobs)
            learned = self._learn(divide, seed, spread, learning.n_tasks)
        publish(self, {**known, **learned, "stretch_": factors})
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
            "stretch_": None,
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
        if not isinstance(model, Learner):
            return bool(get_tags(model).input_tags.allow_nan)
        named = named_kernels(model._default_kernels(X))
        return model._takes_missing_views() and all(kernel.is_view for kernel in named.values())

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
        if self.stretch_ is None:
            return X, samples
        return stretched(X, self.stretch_), stretched(samples, self.stretch_)

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
        told = self._asked("trust" if question == "gate" else "parts", X)
        if question != "gate" and self._is_flat():
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
