"""The path that all methods share: validate data, learn a model, publish attributes."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, Samples
from lokl._frames import labelled, labelled_samples
from lokl._parameters import parameter_names
from lokl._threads import limit_blas_for
from lokl._warnings import DeferredWarnings
from lokl.base.delegation import ExplanationMixin
from lokl.base.diagnostics import check_attributes, checked_prediction, diagnose, warn_if_shifted
from lokl.base.model import FEATURE_ATTRIBUTES, AttributeDocs, GatedMachine, Model, publish
from lokl.base.settings import (
    JOBS,
    POSITIVE,
    PREFIX,
    SEED,
    STEPS,
    anything,
    check_settings,
    nested_parameters,
    one_of,
    setting,
    settings,
    with_parameters,
)
from lokl.base.training import Training, ValidatedData, build_solver
from lokl.base.validation import check_samples, check_weights, with_absent_views
from lokl.gates.base import normalized_weights
from lokl.kernels.dictionaries import named_kernels
from lokl.kernels.samples import read_samples
from lokl.solvers import Problem, Solver
from lokl.solvers.solve import SOLVERS

logger = logging.getLogger("lokl")

# Target and cost of every sample, both (n_samples,), for each output.
Targets = list[tuple[Array, Array]]


@settings
class KernelEstimator(BaseEstimator, ExplanationMixin, ABC):
    """Common settings, and the path from data to a model; subclasses define how to learn."""

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
        "Solver of the SVMs. A solver object has its own settings, such as "
        "``solver=Exact(tol=1e-5)``; leave the settings that it would override at their defaults.",
    )
    tol: float = setting(
        1e-3,
        POSITIVE,
        "Largest violation of the optimality conditions of an SVM. Below 1e-4 all computations are "
        "in float64.",
    )
    max_iter: int = setting(
        -1, STEPS, "Limit on the steps of the solver; -1 is far more than scaled data needs."
    )
    cache_size: float = setting(
        512, POSITIVE, "Megabytes for rows of the Gram matrix; it does not change the result."
    )
    random_state: Any = setting(None, SEED, "Seed of all random choices.")
    n_jobs: int | None = setting(
        None,
        JOBS,
        "Number of kernels processed in parallel, in threads that share `cache_size`; used by "
        "methods that train every kernel alone.",
    )
    verbose: int = setting(
        0, anything("int"), "1 logs a line for every round and fit to the logger ``lokl``."
    )

    _is_common = True
    # Whether max_iter limits the rounds of an outer loop instead of the steps of the solver.
    _counts_rounds: ClassVar[bool] = False
    # Whether the method itself stores rows in cache_size, whatever the solver does.
    _stores_rows: ClassVar[bool] = False
    # Whether weights of the kernels depend on labels and sample: a gate can then memorise labels.
    _weights_use_labels: ClassVar[bool] = False
    # Class of the model, and fitted attributes that only this method has.
    _model_class: ClassVar[type[Model]] = GatedMachine
    _own_attributes: ClassVar[AttributeDocs] = {}

    @abstractmethod
    def _learn(self, training: Training) -> Model:
        """Learn a model: the method itself. Sets no attribute."""

    @abstractmethod
    def _encode_targets(self, y: Array, weight: Array) -> tuple[Targets, dict[str, Any]]:
        """Return target and cost of every sample for each output, and attributes of the targets."""

    @abstractmethod
    def _problem(self, target: Array, cost: Array, solver: Solver) -> Problem:
        """Return the dual problem of one output."""

    @abstractmethod
    def _decode(self, decision: Array) -> Array:
        """Turn decisions (n_samples, n_tasks) into predictions."""

    @abstractmethod
    def _is_flat(self) -> bool:
        """Return whether there is one decision per sample."""

    @abstractmethod
    def _tasks(self) -> tuple[str, Sequence[Any]]:
        """Return "class" or "target", and the names of the classes or targets."""

    def _check_combinations(self, solver: Solver) -> None:
        """Raise ValueError if valid settings do not go together; extended by methods."""

    def _accepts_missing_views(self) -> bool:
        """Return whether samples may lack the view of a kernel if all kernels are views."""
        return True

    def _default_kernels(self, X: Any) -> Any:
        """Return the kernels to use; methods may replace the standard kernels for None.

        `X` is None before the data is known.
        """
        return self.kernels

    def _check(self) -> Solver:
        """Check all settings and return the solver."""
        check_settings(self)
        solver = build_solver(self)
        self._check_combinations(solver)
        return solver

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> ValidatedData:
        """Check settings and training data."""
        solver = self._check()
        frame = X if hasattr(X, "columns") else None
        kernels = named_kernels(self._default_kernels(X))
        views = self._accepts_missing_views()
        missing = views and all(kernel.is_view for kernel in kernels.values())
        X, y = check_samples(self, X, y, fitting=True, missing=missing, views=views)
        info = {name: vars(self)[name] for name in FEATURE_ATTRIBUTES if name in vars(self)}
        return ValidatedData(X, y, check_weights(sample_weight, X), kernels, solver, frame, info)

    def _copy_feature_info(self, data: ValidatedData) -> None:
        """Set number and names of the columns of data that another estimator has checked."""
        attributes: dict[str, Any] = self.__dict__
        for name in FEATURE_ATTRIBUTES:
            attributes.pop(name, None)
        attributes.update(data.feature_info)

    def _training(self, data: ValidatedData, targets: Targets) -> Training:
        """Bind the kernels to the samples and state the problems."""
        rows, kernels, samples = data.cache.cached("samples", data.bound)
        return Training(
            samples,
            rows,
            kernels,
            list(data.kernels),
            [self._problem(target[rows], cost[rows], data.solver) for target, cost in targets],
            data.solver,
            check_random_state(self.random_state),
            data.cache,
        )

    def _fit(self, data: ValidatedData, *, diagnosed: bool = True) -> Any:
        """Learn from validated data, check the result and publish it."""
        targets, attributes = self._encode_targets(data.y, data.weight)
        off_centre: tuple[str, ...] = ()
        # Overflows are checked in the data and in the results instead.
        with DeferredWarnings(), np.errstate(all="ignore"):
            training = self._training(data, targets)
            with limit_blas_for(training.work):
                model = self._learn(training)
                attributes |= model.attributes()
                check_attributes(attributes)
                if diagnosed:
                    off_centre = diagnose(self, data, training, model)
        fitted = {"_model": model.without_details(), "_off_centre": off_centre}
        publish(self, {**attributes, **fitted})
        if self.verbose:
            logger.info(
                "%s: objective %.6g, %d of %d samples support",
                type(self).__name__,
                self.history_[-1],
                len(self.support_),
                training.n_samples,
            )
        return self

    def _validate_for_predict(self, X: Any, *, decides: bool = False) -> Samples:
        """Check new samples against the training samples.

        With `decides`, warn if their decisions are shifted because they lack a view.
        """
        check_is_fitted(self)
        views = self._accepts_missing_views()
        missing = views and all(kernel.is_view for kernel in self.kernels_)
        if missing:
            columns = getattr(self, "feature_names_in_", None)
            X = with_absent_views(X, columns, self.kernels_, self.kernel_names_)
        X = check_samples(self, X, fitting=False, missing=missing, views=views)
        samples = read_samples(self.kernels_, self.kernel_names_, X)
        if decides:
            warn_if_shifted(self._off_centre, samples)
        return samples

    def _decisions(self, X: Any) -> Array:
        """Return decisions about new samples, (n_samples, n_tasks)."""
        # Before the model is looked up: an estimator that is not fitted has none.
        samples = self._validate_for_predict(X, decides=True)
        return checked_prediction(self._model.decide, samples)

    def _explains(self, quantity: str) -> bool:
        return hasattr(self._model_class, quantity)

    def _explained(self, quantity: str, X: Any, labels: bool) -> Any:
        samples = self._validate_for_predict(X, decides=quantity == "contributions")
        values = checked_prediction(getattr(self._model, quantity), samples)
        if quantity == "weights":
            values = normalized_weights(values, samples.present)
        elif quantity == "contributions":
            values = values[:, :, 0] if self._is_flat() else values.transpose(0, 2, 1)
        if not labels:
            return values
        if values.ndim == 1:
            return labelled_samples(values, X, quantity)
        return labelled(values, X, self.kernel_names_, self._tasks())

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return parameter_names(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters of the estimator; with `deep`, also of its kernels and other parts.

        Kernels are addressed by name or position: ``kernels__rbf__gamma``, ``kernels__0__gamma``.

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

        Kernels are copied before they are changed, so that other users of them are unaffected.

        Parameters
        ----------
        **params
            By the names of :meth:`get_params`.

        Returns
        -------
        self
        """
        if params.keys() <= set(self._get_param_names()):
            # No nested parameters: skip the slow path of scikit-learn.
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
        """Return type and meaning of every fitted attribute."""
        attribute_docs = dict(cls._model_class.attribute_docs)
        for base in reversed(cls.__mro__):
            attribute_docs.update(base.__dict__.get("_own_attributes", {}))
        return {**attribute_docs, **FEATURE_ATTRIBUTES}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
