"""Estimators for many samples, with one model in each region."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, column, row_hashes
from lokl._frames import as_pandas, labelled
from lokl._survival import as_columns, as_target, read_target
from lokl._threads import single_threaded_blas, threads_for
from lokl._warnings import DeferredWarnings
from lokl.base import KernelEstimator, Survival, setting, settings
from lokl.base.estimator import ExplanationMixin
from lokl.base.model import atomic_fit, publish
from lokl.base.settings import JOBS, SEED, Rule, anything, check_settings, count, one_of, or_none
from lokl.base.survival import SurvivalMixin, check_any_event, risk_of_time
from lokl.base.targets import (
    ClassDecisionMixin,
    ProbabilityMixin,
    TargetDecisionMixin,
    learned_classes,
    target_spread,
)
from lokl.base.training import check_samples, check_weights, with_absent_views
from lokl.kernels import RBF
from lokl.kernels.dictionaries import named_kernels
from lokl.methods.uniformmkl import (
    UniformMKLClassifier,
    UniformMKLRegressor,
    UniformMKLSurvival,
)
from lokl.regions.fitting import LocalRegions, RegionBackend, RegionData, tune_regions
from lokl.regions.model import PartitionedModel
from lokl.regions.scaling import learn_feature_scale, scale_columns
from lokl.regions.tree import TreeGrower
from lokl.search.calibration import CalibratedMKLClassifier

logger = logging.getLogger("lokl")

_LARGEST_OVERLAP = 0.5
# Settings of the default estimators, for targets of unit standard deviation. A loose tolerance is
# enough, since errors of single SVMs average out over many regions.
_TOLERANCE, _EPSILON = 1e-2, 0.05


def _check_overlap(name: str, value: Any) -> None:
    if not isinstance(value, Real) or not 0 <= float(value) <= _LARGEST_OVERLAP:
        raise ValueError(f"{name} must be a number from 0 to {_LARGEST_OVERLAP}, got {value!r}")


@settings
class RegionEstimator(MetaEstimatorMixin, ExplanationMixin, BaseEstimator):
    """Base of estimators that divide the samples by trees and fit a model in each region.

    Attributes
    ----------
    trees_ : list of RegionTree
        Tree of each partition.
    estimators_ : list of lists
        Fitted estimators, by partition and region; None for a region with samples of one class
        only, without an event, or with a single sample.
    region_sizes_ : list of arrays
        Number of training samples of each region, by partition.
    feature_scale_ : array of shape (n_features,) or None
        Factor by which each column is multiplied first; None without `scale_features`.
    best_params_ : dict
        Parameters chosen by ``tune="shared"``; empty if none were chosen.
    kernel_names_ : list
        Names of all kernels of all regions.
    """

    estimator: Any = setting(
        None,
        anything("estimator or None"),
        "Estimator of which a copy is fitted in each region. None is an SVM with an RBF kernel, "
        "whose width and cost are chosen according to `tune`.",
        kw_only=False,
    )
    max_region_size: int = setting(
        4000,
        count(2),
        "Most samples of a region. Time and memory grow with it, and so does the accuracy of wide "
        "kernels. Only regions of equal samples may be larger.",
    )
    covers: int = setting(
        1,
        count(),
        "Number of different partitions of the samples into regions, over which decisions are "
        "averaged. Neighbours that one partition separates are together in others.",
    )
    overlap: float = setting(
        0.0,
        Rule("float", _check_overlap),
        "Share of the samples, from 0 to 0.5, that are close to the border of a split and belong "
        "to both sides, with weights that fall to zero across the border. There are more regions "
        "then, of the same size: 0.1 about doubles the work.",
    )
    scale_features: str | None = setting(
        None,
        or_none(one_of("shared")),
        'Whether to multiply every column by a learned factor, the same in all regions: "shared" '
        "learns the factors in four regions, such that nearby samples have similar targets. "
        "Uninformative columns then hardly count, neither for the partition nor for kernels. "
        "``RBF(0.1)`` to ``RBF(0.5)`` are good kernels for scaled columns. Worth trying if some "
        "columns are much more informative than others.",
    )
    tune: str | None = setting(
        "shared",
        or_none(one_of("shared", "each")),
        'How the values of `param_grid` are chosen: "shared", by cross-validation in four regions, '
        'the same for all; "each", in every region by itself; None, not at all. Regions with fewer '
        "than 100 samples, or fewer than five of a class or five events, are left out.",
    )
    param_grid: Any = setting(
        None,
        anything("dict, list of dict or None"),
        "Values to try for parameters of the estimator, as in "
        ":class:`~lokl.search.KernelSearchCV`. None uses a given estimator with its own settings.",
    )
    random_state: Any = setting(
        None,
        SEED,
        "Seed of the partitions, and of the estimator if its own `random_state` is None. Every "
        "region has its own seed, so that results do not depend on the order of work.",
    )
    n_jobs: int | None = setting(
        None,
        JOBS,
        "Regions at a time, in threads that share the `cache_size` of the estimator; None is one "
        "per core.",
    )
    verbose: int = setting(
        0, anything("int"), "1 logs a line about every partition to the logger ``lokl``."
    )

    _is_flat: ClassVar[Any]  # whether there is one decision per sample
    _tasks: ClassVar[Any]  # kind of a decision, "class" or "target", and names of the decisions

    @abstractmethod
    def _region_estimator(self, spread: float = 1.0) -> Any:
        """Return the estimator, or the default for targets of this standard deviation."""

    @abstractmethod
    def _suits(self, estimator: Any) -> tuple[bool, str]:
        """Return whether an estimator can be fitted in a region, and what it has to be."""

    @abstractmethod
    def _encode_targets(self, y: Array, weight: Array | None) -> tuple[Array, dict[str, Any]]:
        """Return class indices or targets, and the attributes that they define."""

    def _spread(self, data: RegionData) -> float:
        """Return the unit of costs and tolerances of the default estimator."""
        return target_spread(data.y, data.weight)

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Divide the samples into regions, and fit a model in each of them.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for regressors
            Events and times for survival models, as for other survival models.
        sample_weight : array-like of shape (n_samples,), optional
            Within a region, a sample of weight 2 counts like two equal rows. Samples of weight 0
            are ignored.

        Returns
        -------
        self
        """
        check_settings(self)
        self._check_estimator()
        X, data = self._validate_training(X, y, sample_weight)
        y, attributes = self._encode_targets(data.y, data.weight)
        X, data = data._replace(y=y, classes=attributes.get("classes_")).with_weight(X)
        # Threads of BLAS would slow down the many small fits.
        with DeferredWarnings(), single_threaded_blas():
            seed, scale = self._draw_seed(), None
            if self.scale_features is not None:
                grower = TreeGrower(self.max_region_size, seed=(seed, 0))
                scale = learn_feature_scale(X, data, grower, self.n_jobs)
                self._log(f"feature scale: {np.array2string(scale, precision=3, threshold=20)}")
                X = scale_columns(X, scale)
                data = data._replace(samples=scale_columns(data.samples, scale))
            divide = partial(LocalRegions, X, data, self.n_jobs)
            spread = self._spread(data) if data.classes is None else 1.0
            learned = self._learn(divide, seed, spread, data.classes, column(y).shape[1])
        attributes |= {**learned, "feature_scale_": scale, "_row_hashes": row_hashes(X)}
        publish(self, attributes)
        return self

    def _validate_training(
        self, X: Any, y: Any, weight: Any, *, part: bool = False
    ) -> tuple[Any, RegionData]:
        """Check training samples; return them for the trees, and for the estimators.

        Targets are returned as they are. With `part`, there are other samples elsewhere.
        """
        X = as_pandas(X)
        frame = X if hasattr(X, "iloc") else None
        X, y = check_samples(self, X, y, fitting=True, missing=self._takes_missing(X))
        if weight is not None:
            weight = check_weights(weight, X, part=part)
        return X, RegionData(X if frame is None else frame, y, weight)

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _grower(self, seed: int, partition: int) -> TreeGrower:
        """Return the tree grower of a partition, which is given by its index."""
        overlap = float(self.overlap)
        return TreeGrower(self.max_region_size, overlap, (seed, partition), varied=partition > 0)

    def _learn(
        self,
        divide: Callable[[TreeGrower], RegionBackend],
        seed: int,
        spread: float,
        classes: Array | None,
        n_targets: int,
    ) -> dict[str, Any]:
        """Fit the models of all partitions, and return the fitted attributes.

        Parameters
        ----------
        divide : callable
            Divides the samples, wherever they are stored.
        seed : int
        spread : float
            Standard deviation of the targets; 1 for classification.
        classes : array of shape (n_classes,) or None
            None for regression and censored times.
        n_targets : int
            1 for classification.
        """
        estimator, grid = self._region_estimator(spread), None
        best_params: dict[str, Any] = {}
        trees, models, sizes = [], [], []
        for index in range(self.covers):
            backend = divide(self._grower(seed, index))
            if index == 0:
                is_default = self.estimator is None
                estimator, grid, best_params = tune_regions(
                    estimator, backend, self.tune, self.param_grid, default=is_default
                )
                if best_params:
                    self._log(f"chosen for all regions: {best_params}")
            trees.append(backend.tree)
            sizes.append(backend.sizes)
            self._log(f"partition {index + 1}: {len(sizes[-1])} regions of up to {sizes[-1].max()}")
            models.append(backend.fit(estimator, grid))
            # If all samples are in one region, all further partitions would be the same.
            if len(models[-1]) == 1:
                break
        fitted = [[getattr(model, "fitted", None) for model in part] for part in models]
        names, kernels = _all_kernels([m for part in fitted for m in part if m is not None])
        n_classes = 0 if classes is None else len(classes)
        return {
            "trees_": trees,
            "estimators_": fitted,
            "kernel_names_": names,
            "region_sizes_": sizes,
            "feature_scale_": None,
            "best_params_": best_params,
            "_model": PartitionedModel(trees, models, n_classes, n_targets, names, kernels),
        }

    def _log(self, text: str) -> None:
        if self.verbose:
            logger.info("%s: %s", type(self).__name__, text)

    def _check_estimator(self) -> None:
        """Raise an error if the estimator cannot be fitted in a region."""
        estimator = self.estimator
        if estimator is None:
            return
        if isinstance(estimator, type) or not hasattr(estimator, "fit"):
            raise ValueError(
                "estimator must be an estimator of lokl, such as UniformMKLClassifier(), a "
                f"pipeline that ends in one, or None, got {estimator!r}"
            )
        suits, kind = self._suits(estimator)
        if not suits:
            raise ValueError(
                f"estimator of {type(self).__name__} must be a {kind}, got {estimator!r}"
            )

    def _takes_missing(self, X: Any) -> bool:
        """Whether samples may have missing views."""
        model = self._region_estimator()
        model = model.estimator if isinstance(model, CalibratedMKLClassifier) else model
        if not isinstance(model, KernelEstimator):
            return bool(get_tags(model).input_tags.allow_nan)
        named = named_kernels(model._default_kernels(X))
        return model._accepts_missing_views() and all(kernel.is_view for kernel in named.values())

    def _validate_for_predict(self, X: Any) -> tuple[Any, Any]:
        """Check new samples; return them for the trees, and for the estimators."""
        check_is_fitted(self)
        X = as_pandas(X)
        missing = self._takes_missing(X)
        if missing and self._model.kernels:
            columns = getattr(self, "feature_names_in_", None)
            X = with_absent_views(X, columns, self._model.kernels, self.kernel_names_)
        frame = X if hasattr(X, "iloc") else None
        X = check_samples(self, X, fitting=False, missing=missing)
        if self.feature_scale_ is not None:
            X = scale_columns(X, self.feature_scale_)
            frame = None if frame is None else scale_columns(frame, self.feature_scale_)
        return X, X if frame is None else frame

    def _compute(self, output: str, X: Any) -> Array:
        """Compute an output for new samples."""
        X, samples = self._validate_for_predict(X)
        return self._model.compute(output, X, samples, threads_for(self.n_jobs))

    def _decisions(self, X: Any) -> Array:
        """Return decisions about new samples, (n_samples, n_tasks)."""
        return self._compute("decision_function", X)

    def _learned_from(self, X: Any) -> Array:
        """Return whether each sample equals a training row, (n_samples,)."""
        X, _ = self._validate_for_predict(X)
        return np.isin(row_hashes(X), self._row_hashes)

    def region(self, X: Any) -> Array:
        """Return the index of the region of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        regions : array of shape (n_samples,), or (n_samples, n_partitions) for more than one
            Indices into ``estimators_`` of the partition; with `overlap`, the region in which a
            sample has the largest weight.
        """
        X, _ = self._validate_for_predict(X)
        regions = np.column_stack([tree.assign(X) for tree in self.trees_])
        return regions[:, 0] if regions.shape[1] == 1 else regions

    def _explains(self, question: str) -> bool:
        supported = question in ("weights", "contributions")
        return supported and hasattr(self._region_estimator(), question)

    def _explained(self, question: str, X: Any, labels: bool) -> Any:
        values = self._compute(question, X)
        if question == "contributions" and self._is_flat():
            values = values[:, 0]
        return labelled(values, X, self.kernel_names_, self._tasks()) if labels else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if self.estimator is not None and hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def _all_kernels(fitted: Sequence[Any]) -> tuple[list[str], list[Any]]:
    """Return the names of all kernels, and bound kernels of a region that has all of them."""
    models = [model[-1] if isinstance(model, Pipeline) else model for model in fitted]
    models = [model for model in models if hasattr(model, "kernel_names_")]
    names = list(dict.fromkeys(name for model in models for name in model.kernel_names_))
    # Not those at the end of a pipeline, which may see other columns.
    complete = (model for model in fitted if list(getattr(model, "kernel_names_", ())) == names)
    first = next(complete, None)
    return names, list(getattr(getattr(first, "estimator_", first), "kernels_", []))


@settings
class RegionClassifier(ProbabilityMixin, ClassDecisionMixin, RegionEstimator):
    """Classifier for many samples, with one model in each region.

    A tree divides the samples into regions of bounded size; every split is found by 2-means. A copy
    of the estimator is fitted in each region, including its kernel weights. A new sample is
    classified by the model of its region. Time and memory grow linearly with the number of samples,
    instead of quadratically as for one SVM on all of them.

    With several partitions (`covers`) or with overlap, a decision is the mean over the regions of a
    sample. Decisions of the regions are first clipped to [-1, 1], or are ``2 p - 1`` if the
    estimator has probabilities, so that no region dominates the others.

    A region whose samples are all of one class predicts this class. A region never predicts a class
    that its training samples lack. Attributes that differ between regions, such as ``support_`` and
    ``intercept_``, are those of ``estimators_``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)

    See Also
    --------
    lokl.RegionRegressor : The same for numeric targets.
    lokl.RegionSurvival : The same for censored times.
    lokl.distributed.fit : The same on Dask collections.
    lokl.solvers.Primal : One model of low rank instead.

    Notes
    -----
    Kernel values between samples of different regions are lost. They hardly matter for narrow
    kernels, which are best for many samples. For other kernels, increase `max_region_size` or
    `covers`.

    References
    ----------
    .. [1] C.-J. Hsieh, S. Si, I. S. Dhillon. A Divide-and-Conquer Solver for Kernel Support Vector
       Machines. International Conference on Machine Learning (ICML), 2014.
       https://arxiv.org/abs/1311.0914
    .. [2] I. Steinwart, P. Thomann. liquidSVM: A Fast and Versatile SVM Package. 2017.
       https://arxiv.org/abs/1702.06899

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from lokl import RegionClassifier, UniformMKLClassifier
    >>> X, y = make_moons(2000, noise=0.2, random_state=0)
    >>> estimator = UniformMKLClassifier(["rbf"], C=10)
    >>> model = RegionClassifier(estimator, max_region_size=500, random_state=0).fit(X, y)
    >>> model.region_sizes_
    [array([500, 500, 500, 500])]
    >>> round(model.score(X, y), 2)
    0.98
    """

    def _region_estimator(self, spread: float = 1.0) -> Any:
        # Type checkers cannot see constructors that are made from declared settings.
        make: Any = UniformMKLClassifier
        return make([RBF()], tol=_TOLERANCE) if self.estimator is None else self.estimator

    def _suits(self, estimator: Any) -> tuple[bool, str]:
        suits = is_classifier(estimator) and hasattr(estimator, "decision_function")
        return suits, "classifier with decision_function"

    def _encode_targets(self, y: Array, weight: Array | None) -> tuple[Array, dict[str, Any]]:
        classes, codes, tie = learned_classes(type(self).__name__, y, weight)
        return codes, {"classes_": classes, "_tie": tie}

    def _has_probabilities(self) -> bool:
        return hasattr(self._region_estimator(), "predict_proba")

    def _class_probabilities(self, X: Any, log: bool) -> Array:
        probabilities = self._compute("predict_proba", X)
        if not log:
            return probabilities
        with np.errstate(divide="ignore"):
            return np.log(probabilities)


@settings
class RegionRegressor(TargetDecisionMixin, RegionEstimator):
    """Regressor for many samples, with one model in each region.

    A tree divides the samples into regions of bounded size; every split is found by 2-means. A copy
    of the estimator is fitted in each region, including its kernel weights. The target of a new
    sample is predicted by the model of its region. Time and memory grow linearly with the number of
    samples, instead of quadratically as for one SVM on all of them.

    With several partitions (`covers`) or with overlap, a prediction is the mean over the regions of
    a sample. Overlap makes predictions continuous across borders.

    See Also
    --------
    lokl.RegionClassifier : The same for classes.
    lokl.RegionSurvival : The same for censored times.
    lokl.distributed.fit : The same on Dask collections.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import RegionRegressor, UniformMKLRegressor
    >>> X = np.linspace(0, 60, 2000)[:, np.newaxis]
    >>> estimator = UniformMKLRegressor(["rbf"], C=10)
    >>> model = RegionRegressor(estimator, max_region_size=500, random_state=0)
    >>> round(model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])), 2)
    0.99
    """

    def _region_estimator(self, spread: float = 1.0) -> Any:
        if self.estimator is not None:
            return self.estimator
        make: Any = UniformMKLRegressor
        return make([RBF()], C=spread, epsilon=_EPSILON * spread, tol=_TOLERANCE * spread)

    def _suits(self, estimator: Any) -> tuple[bool, str]:
        return is_regressor(estimator), "regressor"

    def _encode_targets(self, y: Array, weight: Array | None) -> tuple[Array, dict[str, Any]]:
        y = np.asarray(y, dtype=np.float64)
        return y, {"_one_target": y.ndim == 1}

    def _tasks(self) -> tuple[str, Sequence[Any]]:
        return "target", range(self._model.n_targets)


@settings
class RegionSurvival(SurvivalMixin, RegionEstimator):
    """Survival model for many samples, with one model in each region.

    A tree divides the samples into regions of bounded size; every split is found by 2-means. A copy
    of the estimator is fitted in each region, including its kernel weights and survival curves. The
    risk and the curves of a new sample are those of the model of its region. Time and memory grow
    linearly with the number of samples, instead of quadratically as for one SVM on all of them.

    Risks of different regions are compared with each other. Therefore the estimator must predict
    log times: ``loss="censored"`` and ``log_time=True``. The squared loss and the trusted vote have
    risks relative to the other samples of a region.

    With several partitions (`covers`) or with overlap, the risk and the cumulative hazard are means
    over the regions of a sample. A region without an event predicts its latest time, and no event.
    Curves stay the same after the latest training time of the region.

    Attributes
    ----------
    unique_times_ : array of shape (n_times,)
        Times of the training samples with a weight, at which predicted curves may change.

    See Also
    --------
    lokl.RegionClassifier : The same for classes.
    lokl.RegionRegressor : The same for numeric targets.
    lokl.UniformMKLSurvival : One model for all samples.

    Examples
    --------
    >>> import numpy as np
    >>> import lokl
    >>> rng = np.random.RandomState(0)
    >>> X, ends = rng.normal(size=(2000, 3)), rng.exponential(size=(2000, 2))
    >>> event, censored = ends[:, 0] * np.exp(-2 * X[:, 0]), 3 * ends[:, 1]
    >>> y = lokl.survival_target(event <= censored, np.minimum(event, censored))
    >>> estimator = lokl.UniformMKLSurvival(["rbf"])
    >>> model = lokl.RegionSurvival(estimator, max_region_size=500, random_state=0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.84
    """

    def _region_estimator(self, spread: float = 1.0) -> Any:
        if self.estimator is not None:
            return self.estimator
        make: Any = UniformMKLSurvival
        return make([RBF()], C=spread, epsilon=_EPSILON * spread, tol=_TOLERANCE * spread)

    def _suits(self, estimator: Any) -> tuple[bool, str]:
        model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        suits = isinstance(model, Survival) and model._predicts_log_time
        return suits, (
            "survival model of log times, which are comparable between regions: "
            "UniformMKLSurvival, LpMKLSurvival, SimpleMKLSurvival, ExpertAverageSurvival or "
            'LDMKLSurvival with loss="censored" and log_time=True'
        )

    def _check_estimator(self) -> None:
        super()._check_estimator()
        if self.tune is None or self.param_grid is None:
            return
        for params in ParameterGrid(self.param_grid):
            suits, kind = self._suits(clone(self._region_estimator()).set_params(**params))
            if not suits:
                raise ValueError(
                    f"param_grid of RegionSurvival has {params}; it must give a {kind}"
                )

    def _validate_training(
        self, X: Any, y: Any, weight: Any, *, part: bool = False
    ) -> tuple[Any, RegionData]:
        return super()._validate_training(X, as_columns(read_target(y)), weight, part=part)

    def _encode_targets(self, y: Array, weight: Array | None) -> tuple[Array, dict[str, Any]]:
        weight = np.ones(len(y)) if weight is None else weight
        check_any_event(self, y, weight)
        risk_of_time(y[:, 1])
        return as_target(y), {"unique_times_": np.unique(y[weight > 0, 1])}

    def _spread(self, data: RegionData) -> float:
        return target_spread(np.log(data.y["time"]), data.weight)

    def _cumulative_hazards(self, X: Any) -> Array:
        return self._compute("cumulative_hazard", X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
