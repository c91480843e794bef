"""A fit that fails leaves the estimator as it was; one that succeeds leaves nothing of the last.

The path that all methods share: data in, model out, attributes published.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, Samples
from lokl._frames import labelled
from lokl._parameters import parameter_names
from lokl._threads import limit_blas_for
from lokl._warnings import DeferredWarnings
from lokl.base.diagnostics import (
    find_off_centre,
    warn_if_shifted,
    warn_of_useless_widths,
    warn_of_weight_at_the_end,
)
from lokl.base.fit_cache import FitCache
from lokl.base.kernel_params import PREFIX, nested_parameters, with_parameters
from lokl.base.model import FEATURE_ATTRIBUTES, AttributeDocs, GatedMachine, Model
from lokl.base.settings import (
    JOBS,
    POSITIVE,
    SEED,
    STEPS,
    anything,
    check_settings,
    one_of,
    setting,
    settings,
)
from lokl.base.training import Training, chosen_solver
from lokl.base.validation import (
    check_learned,
    check_samples,
    check_weights,
    checked_prediction,
    with_absent_views,
)
from lokl.gates.base import normalized_weights
from lokl.kernels import Kernel
from lokl.kernels.dictionaries import named_kernels
from lokl.kernels.samples import read_samples
from lokl.solvers import Problem
from lokl.solvers.solve import SOLVERS

Fit = TypeVar("Fit", bound=Callable[..., Any])


def atomic_fit(fit: Fit) -> Fit:
    """Make a method that learns either replace all results of the last one, or change nothing.

    Results are checked and published step by step, and scikit-learn notes the columns of the data
    before anything is learned. An error or an interruption in between would leave a model whose
    parts do not belong together, and which answers all the same.
    """

    @wraps(fit)
    def whole(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(estimator))
        try:
            for name in before.get("_results", ()):
                vars(estimator).pop(name, None)
            return fit(estimator, *args, **kwargs)
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise

    return whole  # type: ignore[return-value]


def publish(estimator: Any, results: dict[str, Any]) -> None:
    """Set what was learned, and note its names for the next fit."""
    vars(estimator).update(results, _results=tuple(results))


logger = logging.getLogger("lokl")

# What scikit-learn notes about the columns of the data.
_FEATURES = ("n_features_in_", "feature_names_in_")


@dataclass(frozen=True, eq=False)
class _Data:
    """Data and kernels that passed all checks."""

    X: Any
    y: Any
    weight: Array
    kernels: dict[str, Kernel]
    frame: Any  # X as given, where it has column names
    features: dict[str, Any]  # attributes that tell number and names of the columns
    cache: FitCache = field(default_factory=FitCache)
    tolerance: float = 0.0  # of the solver, where it may be looser than the settings say


@dataclass(frozen=True, eq=False)
class _Ready:
    """Samples that count and kernels bound to them."""

    rows: Array
    kernels: list[Kernel]
    samples: Samples


Stated = tuple[list[tuple[Array, Array]], dict[str, Any]]


@settings
class KernelEstimator(BaseEstimator, ABC):
    """Common settings and the common way from data to a model; a method says how it learns."""

    kernels: Any = setting(
        None,
        anything("list or mapping of kernels, one kernel or None"),
        "None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`). A "
        "mapping gives the kernels names. A kernel is a :class:`~lokl.kernels.Kernel`, a word such "
        'as "rbf" or "poly2", a function of two arrays, or a kernel of '
        "``sklearn.gaussian_process``. Its settings are parameters: ``kernels__rbf__gamma``.",
        kw_only=False,
    )
    C: float = setting(1.0, POSITIVE, "Cost of errors beyond the margin.", kw_only=False)
    solver: Any = setting(
        "exact",
        anything(f"{one_of(*SOLVERS).words} or Solver"),
        "What solves a machine. An object has settings of its own, such as "
        "``solver=Exact(tol=1e-5)``; those that it would override here must then be left alone.",
    )
    tol: float = setting(
        1e-3,
        POSITIVE,
        "Largest violation of the optimality conditions that a machine leaves. Below 1e-4 "
        "everything is computed in float64.",
    )
    max_iter: int = setting(
        -1, STEPS, "Limit on the steps of the solver; -1 is far more than scaled data needs."
    )
    cache_size: float = setting(
        512, POSITIVE, "Megabytes for rows of the Gram matrix; the answer does not depend on it."
    )
    random_state: Any = setting(None, SEED, "Decides every random choice of the method.")
    n_jobs: int | None = setting(
        None,
        JOBS,
        "Kernels that are worked on at a time, in threads that share `cache_size`; used by methods "
        "that train every kernel by itself.",
    )
    verbose: int = setting(
        0, anything("int"), "1 logs a line about every round and fit to the logger ``lokl``."
    )

    _is_common = True
    # Methods with an outer loop count its rounds with max_iter; others leave it to the solver.
    _counts_rounds = False
    # Methods that store rows themselves use cache_size, whatever the solver.
    _stores_rows = False
    # Whether labels decide where a kernel is trusted, beyond how much: a gate can then repeat them.
    _weights_use_labels: ClassVar[bool] = False
    # The kind of model that the method learns, and attributes that only the method has.
    _model_class: ClassVar[type[Model]] = GatedMachine
    _own_attributes: ClassVar[AttributeDocs] = {}

    @abstractmethod
    def _learn(self, training: Training) -> Model:
        """Learn from validated samples: the method itself. Sets nothing."""

    @abstractmethod
    def _encode_targets(self, y: Array, weight: Array) -> "Stated":
        """Return target and cost of every sample, for each class or target.

        Also returned are attributes that the targets have told already.
        """

    @abstractmethod
    def _decode(self, decision: Array) -> Array:
        """Turn decisions (n_samples, n_tasks) into what `predict` returns."""

    @abstractmethod
    def _fit_data(self, data: Any) -> Any:
        """Learn from checked data; the end of `fit`."""

    @abstractmethod
    def _problem(self, target: Array, cost: Array) -> Problem:
        """Return the dual problem of one class or target."""

    @abstractmethod
    def _tasks(self) -> tuple[str, Sequence[Any]]:
        """What a machine decides about, "class" or "target", and the names of these."""

    def _check_combinations(self) -> None:
        """Raise where settings that are each allowed do not go together; extended by methods."""
        chosen_solver(self)

    def _accepts_missing_views(self) -> bool:
        """Whether samples may lack the view of a kernel, where all kernels are views."""
        return True

    def _default_kernels(self, X: Any) -> Any:
        """Return the kernels to use; methods may choose others than the standard for None.

        `X` is None where the data is not known yet.
        """
        return self.kernels

    def _check(self) -> None:
        """Raise where settings are not allowed."""
        check_settings(self)
        self._check_combinations()

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> "_Data":
        """Check settings and data."""
        self._check()
        frame = X if hasattr(X, "columns") else None
        named = named_kernels(self._default_kernels(X))
        views = self._accepts_missing_views()
        missing = views and all(k.is_view for k in named.values())
        X, y = check_samples(self, X, y, fitting=True, missing=missing, views=views)
        features = {name: vars(self)[name] for name in _FEATURES if name in vars(self)}
        return _Data(X, y, check_weights(sample_weight, X), named, frame, features)

    def _copy_feature_info(self, data: "_Data") -> None:
        """Note the columns of data that an estimator with the same kernels has checked."""
        for name in _FEATURES:
            if name in data.features:
                setattr(self, name, data.features[name])
            elif hasattr(self, name):
                delattr(self, name)

    def _fit(
        self, data: "_Data", targets: list[tuple[Array, Array]], **known: Any
    ) -> tuple[Training, Model]:
        """Learn from checked data, and publish what was learned.

        `targets` are target and cost of every sample, for each class or target; `known` are
        attributes that the targets have told already. What was learned from and the model as
        learning left it are returned.
        """
        # Numbers that overflow are looked for where they come in and where they come out.
        with DeferredWarnings(), np.errstate(all="ignore"):
            training = self._training(data, targets)
            with limit_blas_for(training.work):
                model = self._learn(training)
                learned = model.attributes()
                check_learned(learned)
                # Only where all kernels are views may samples lack one.
                views = len(training.kernels) > 1 and all(k.is_view for k in training.kernels)
                off_centre: tuple[str, ...] = ()
                if views and model.shares_intercept:
                    off_centre = data.cache.cached("off centre", lambda: find_off_centre(training))
            warn_of_weight_at_the_end(training.kernels, learned.get("weights_"))
        kept = {"_model": model.without_training(), "_off_centre": off_centre}
        publish(self, {**known, **learned, **kept})
        if self.verbose:
            logger.info(
                "%s: objective %.6g, %d of %d samples support",
                type(self).__name__,
                self.history_[-1],
                len(self.support_),
                training.n_samples,
            )
        return training, model

    def _training(self, data: "_Data", targets: list[tuple[Array, Array]]) -> Training:
        """State the problems of samples with the kernels bound to them."""
        ready = data.cache.cached("samples", lambda: self._bind(data))
        problems = [self._problem(t[ready.rows], cost[ready.rows]) for t, cost in targets]
        solver = chosen_solver(self)
        if data.tolerance > solver.tolerance > 0:
            solver = solver.with_tolerance(data.tolerance)
        return Training(
            ready.samples,
            ready.rows,
            ready.kernels,
            list(data.kernels),
            problems,
            solver,
            check_random_state(self.random_state),
            data.cache,
        )

    def _bind(self, data: "_Data") -> "_Ready":
        """Bind kernels to the samples that count."""
        X, frame, names = data.X, data.frame, list(data.kernels)
        # A weight of zero is the same as no row at all, for scales and for the solver.
        rows = np.flatnonzero(data.weight > 0)
        if len(rows) < X.shape[0]:
            X, frame = X[rows], None if frame is None else frame.iloc[rows]
        weight = data.weight[rows]
        with np.errstate(all="ignore"):
            kernels = [kernel.bind(X, weight, frame) for kernel in data.kernels.values()]
        columns = getattr(self, "feature_names_in_", None)
        samples = read_samples(
            kernels,
            names,
            X,
            columns=columns,
            rows=rows,
            weight=weight,
            frame=frame,
            training=True,
        )
        warn_of_useless_widths(kernels, samples)
        return _Ready(rows, kernels, samples)

    def _validate_for_predict(self, X: Any, *, decides: bool = False) -> Samples:
        """Check new samples against the training samples.

        With `decides`, warn if their decisions are shifted because they lack a view.
        """
        check_is_fitted(self)
        views = self._accepts_missing_views()
        missing = views and all(k.is_view for k in self.kernels_)
        if missing:
            columns = getattr(self, "feature_names_in_", None)
            X = with_absent_views(X, columns, self.kernels_, self.kernel_names_)
        X = check_samples(self, X, fitting=False, missing=missing, views=views)
        samples = read_samples(self.kernels_, self.kernel_names_, X)
        if decides:
            warn_if_shifted(self._off_centre, samples)
        return samples

    def _decisions(self, X: Any) -> Array:
        """Decisions about new samples, (n_samples, n_tasks)."""
        # Before the model is looked up: an estimator that is not fitted has none.
        samples = self._validate_for_predict(X, decides=True)
        return checked_prediction(self._model.decide, samples)

    def weights(self, X: Any, *, labels: bool = False) -> Any:
        """How far each kernel is trusted at each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : bool, default=False
            Whether to return a data frame with the names of the kernels, and the index of `X`.

        Returns
        -------
        trust : array of shape (n_samples, n_kernels)
            Shares of the kernels: not negative, rows sum to one, 0 where a sample lacks the view of
            a kernel. A sample that trusts no kernel has equal shares in those it can see. The
            factors that the learned kernel multiplies are in ``kernel_``.
        """
        samples = self._validate_for_predict(X)
        trust = normalized_weights(
            checked_prediction(self._model.weights, samples), samples.present
        )
        return labelled(trust, X, self.kernel_names_, self._tasks()) if labels else trust

    def contributions(self, X: Any, *, labels: bool = False) -> Any:
        """Signed part of each kernel in the decision (or prediction) of each sample.

        Parts and intercept add up: ``contributions(X).sum(-1) + intercept_`` is the decision.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : bool, default=False
            Whether to return a data frame with the names of the kernels, and the index of `X`; with
            several classes or targets, columns have two levels, class or target above kernel.

        Returns
        -------
        parts : array of shape (n_samples, n_kernels)
            With more than two classes or several targets (n_samples, n_tasks, n_kernels).
        """
        samples = self._validate_for_predict(X, decides=True)
        parts = checked_prediction(self._model.contributions, samples)
        parts = parts[:, :, 0] if self._is_flat() else parts.transpose(0, 2, 1)
        return labelled(parts, X, self.kernel_names_, self._tasks()) if labels else parts

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return parameter_names(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the estimator; with `deep`, also those of its kernels and other parts.

        A kernel is called by its name or its position: ``kernels__rbf__gamma``,
        ``kernels__0__gamma``.

        Parameters
        ----------
        deep : bool, default=True
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            params.update(nested_parameters(self._default_kernels(None)))
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters of the estimator and of its parts.

        Kernels that are changed are copied first: nobody else who holds them sees it.

        Parameters
        ----------
        **params
            By the names of :meth:`get_params`.

        Returns
        -------
        self
        """
        if params.keys() <= set(self._get_param_names()):
            # Nothing inside of parts is meant: they need not be looked at.
            for name, value in params.items():
                setattr(self, name, value)
            return self
        inside = {name: value for name, value in params.items() if name.startswith(PREFIX)}
        super().set_params(**{name: params[name] for name in params if name not in inside})
        if inside:
            self.kernels = with_parameters(self._default_kernels(None), inside)
        return self

    @classmethod
    def _attribute_docs(cls) -> AttributeDocs:
        """Type and meaning of every fitted attribute."""
        attribute_docs = dict(cls._model_class.attribute_docs)
        for base in reversed(cls.__mro__):
            attribute_docs.update(base.__dict__.get("_own_attributes", {}))
        return {**attribute_docs, **FEATURE_ATTRIBUTES}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
