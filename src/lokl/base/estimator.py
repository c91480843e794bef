"""The path that all methods share: validate data, learn a model, publish attributes."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, Samples, row_hashes
from lokl._environment import documentation_page
from lokl._frames import as_pandas, labelled
from lokl._parameters import parameter_names
from lokl._threads import limit_blas_for
from lokl._warnings import DeferredWarnings, warn_once
from lokl.base.diagnostics import diagnose, warn_if_shifted
from lokl.base.model import (
    FEATURE_ATTRIBUTES,
    GatedMachine,
    Model,
    atomic_fit,
    publish,
)
from lokl.base.settings import (
    CALLBACK,
    JOBS,
    POSITIVE,
    PREFIX,
    ROUNDS,
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
from lokl.base.training import (
    Training,
    build_solver,
    check_attributes,
    check_samples,
    check_weights,
    checked_prediction,
    with_absent_views,
)
from lokl.gates import Gate, WeightedGate
from lokl.gates.base import EqualGates, normalized_weights
from lokl.kernels.dictionaries import named_kernels
from lokl.kernels.samples import read_samples
from lokl.optimizers import OptimizerStep
from lokl.solvers import Problem, Solver
from lokl.solvers.solve import SOLVERS

logger = logging.getLogger("lokl")

# Weights that differ by less are equal; length of the bar of a weight of 1, in a notebook.
_EQUAL, _BAR = 1e-6, 20.0

# Target and cost of every sample, both (n_samples,), for each output.
Targets = list[tuple[Array, Array]]


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

    def _get_doc_link(self) -> str:
        """Return the page of the estimator, which scikit-learn links in its diagram."""
        return documentation_page(type(self).__name__)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """Return what a notebook shows: scikit-learn's diagram, and the weights of the kernels."""
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += _weights_as_html(self)
        return bundle

    @available_if(lambda model: model._explains("weights"))
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

    @available_if(lambda model: model._explains("contributions"))
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

    @available_if(lambda model: model._explains("trust"))
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

    @available_if(lambda model: model._explains("disagreement"))
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

    @available_if(lambda model: model._explains("familiarity"))
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


def _weights_as_html(estimator: Any) -> str:
    """Return bars of the weights of the kernels if they are the same for all samples."""
    weights = getattr(estimator, "weights_", None)
    if weights is None or weights.ndim != 1 or len(weights) < 2:
        return ""
    share = weights / max(weights.sum(), np.finfo(float).tiny)
    if np.ptp(share) < _EQUAL:
        return f"<p>All {len(share)} kernels count equally.</p>"
    bar = "display:inline-block;height:0.8em;background:#0072B2;width:{:.1f}em"
    rows = "".join(
        f"<tr><td style='text-align:left'>{escape(str(name))}</td><td>{value:.2f}</td>"
        f"<td style='text-align:left'><span style='{bar.format(_BAR * value)}'></span></td></tr>"
        for name, value in zip(estimator.kernel_names_, share, strict=True)
    )
    return f"<table><thead><tr><th>kernel</th><th>weight</th><th></th></tr></thead>{rows}</table>"


@settings
class KernelEstimator(ExplanationMixin, BaseEstimator, ABC):
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

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from samples with labels or numeric targets.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            For a classifier, labels of any type, two or more classes; for a regressor, one or
            several numeric targets; for a survival model, the event and the time of each sample
            (:func:`lokl.survival_target`, or a data frame or array with these two columns).
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts like the row written twice, 0 like no row.

        Returns
        -------
        self
        """
        return self._fit(self._validate(X, y, sample_weight))

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """Check settings and training data."""
        solver, X = self._check(), as_pandas(X)
        frame = X if hasattr(X, "columns") else None
        named = named_kernels(self._default_kernels(X))
        views = self._accepts_missing_views()
        missing = views and all(kernel.is_view for kernel in named.values())
        X, y = check_samples(self, X, y, fitting=True, missing=missing, views=views)
        samples = Samples(X, X, weight=check_weights(sample_weight, X), frame=frame)
        info = {name: vars(self)[name] for name in FEATURE_ATTRIBUTES if name in vars(self)}
        rows, kernels = np.arange(samples.n_samples), list(named.values())
        return Training(samples, y, rows, list(named), kernels, solver, info)

    def _prepare(self, data: Training) -> tuple[Training, dict[str, Any]]:
        """Bind the kernels and state the problems; also return attributes of the targets."""
        targets, attributes = self._encode_targets(data.y, data.weight)
        bound, weighted = data.cache.cached("samples", data.bound), data.weight > 0
        problems = [self._problem(y[weighted], c[weighted], data.solver) for y, c in targets]
        training = replace(
            bound,
            problems=problems,
            solver=data.solver.precise_for(problems),
            cache=data.cache,
            rng=check_random_state(self.random_state),
        )
        return training, attributes

    def _fit(self, data: Training, *, diagnosed: bool = True) -> Any:
        """Learn from validated data, check the result and publish it."""
        off_centre: tuple[str, ...] = ()
        # Overflows are checked in the data and in the results instead.
        with DeferredWarnings(), np.errstate(all="ignore"):
            training, attributes = self._prepare(data)
            with limit_blas_for(training.work):
                model = self._learn(training)
                attributes |= model.attributes()
                check_attributes(attributes)
                if diagnosed:
                    off_centre = diagnose(self, training, model)
                    attributes |= self._held_out_attributes(data, training, model, attributes)
        # Another estimator may have validated the data.
        attributes |= training.feature_info
        kept = replace(model, training_gates=None, left_out=None)
        attributes |= {"_model": kept, "_off_centre": off_centre}
        attributes["_row_hashes"] = row_hashes(data.samples.given)
        publish(self, attributes)
        if self.verbose:
            logger.info(
                "%s: objective %.6g, %d of %d samples support",
                type(self).__name__,
                self.history_[-1],
                len(self.support_),
                training.n_samples,
            )
        return self

    def _held_out_attributes(
        self, data: Training, training: Training, model: Model, attributes: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the attributes that follow from held-out decisions of the model."""
        return _leave_one_out(data, training, model, attributes)

    def _validate_for_predict(self, X: Any, *, decides: bool = False) -> Samples:
        """Check new samples against the training samples.

        With `decides`, warn if their decisions are shifted because they lack a view.
        """
        if "_model" not in vars(self):
            check_is_fitted(self)
        X = as_pandas(X)
        views = self._accepts_missing_views()
        missing = views and all(kernel.is_view for kernel in self.kernels_)
        if missing:
            columns = getattr(self, "feature_names_in_", None)
            X = with_absent_views(X, columns, self.kernels_, self.kernel_names_)
        X = check_samples(self, X, fitting=False, missing=missing, views=views)
        samples = read_samples(self.kernels_, self.kernel_names_, Samples(X, X))
        if decides and self._off_centre:
            warn_if_shifted(self._off_centre, samples)
        return samples

    def _decisions(self, X: Any) -> Array:
        """Return decisions about new samples, (n_samples, n_tasks)."""
        # Before the model is looked up: an estimator that is not fitted has none.
        samples = self._validate_for_predict(X, decides=True)
        return checked_prediction(self._model.decide, samples)

    def _learned_from(self, X: Any) -> Array:
        """Return whether each sample equals a training row, (n_samples,)."""
        samples = self._validate_for_predict(X)
        return np.isin(row_hashes(samples.given), self._row_hashes)

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
        return labelled(values, X, self.kernel_names_, self._tasks(), quantity)

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _leave_one_out(
    data: Training, training: Training, model: Model, attributes: dict[str, Any]
) -> dict[str, Any]:
    """Return the attribute with leave-one-out decisions of all rows, if the model has them."""
    if model.left_out is None:
        return {}
    decision = np.empty((data.n_samples, model.left_out.shape[1]))
    is_left = np.isin(data.rows, training.rows, invert=True)
    order = np.argsort(data.rows)
    decision[order[np.searchsorted(data.rows, training.rows, sorter=order)]] = model.left_out
    if is_left.any():
        names = attributes["kernels_"], attributes["kernel_names_"]
        samples = read_samples(*names, data.samples.take(np.flatnonzero(is_left)))
        decision[is_left] = checked_prediction(model.decide, samples)
    is_flat = attributes.get("_one_target", decision.shape[1] == 1)
    return {"loo_decision_": decision[:, 0] if is_flat else decision}


@dataclass(frozen=True, eq=False)
class OptimizationTrace:
    """Last step of an optimiser, and the objective after every step."""

    last: OptimizerStep
    history: list[float]

    def model(
        self, training: Training, gate: Gate, params: Array | None = None, **learned: Any
    ) -> GatedMachine:
        """Return the model of the last step, by default with its parameters of the gate.

        Further arguments are those of ``Training.model``.
        """
        last, history = self.last, np.array(self.history)
        params = last.params if params is None else params
        model = training.model(gate, params, last.solution, **learned)
        return replace(model, history=history, gap=last.gap, n_iter=len(history))


@settings
class IterativeEstimator(KernelEstimator):
    """A method with an outer loop: limit, log and callback of its rounds.

    Attributes
    ----------
    history_ : array
        Objective after every round.
    n_iter_ : int
        Rounds.
    """

    max_iter: int = setting(100, ROUNDS, "Limit on the rounds of the method, -1 for none.")
    callback: Any = setting(
        None,
        CALLBACK,
        "Called with every :class:`~lokl.optimizers.OptimizerStep`; True stops the method.",
    )

    _is_common = True
    _counts_rounds = True

    def _run(self, steps: Iterable[OptimizerStep], limit: int | None = None) -> OptimizationTrace:
        """Run an optimiser to its end, to the limit on rounds, or until the callback stops it."""
        limit = self.max_iter if limit is None else limit
        name, history = type(self).__name__, []
        for step in steps:
            history.append(step.objective)
            if self.verbose:
                text = "%s: round %d, objective %.6g, gap %.3g"
                logger.info(text, name, len(history), step.objective, step.gap)
            result = None if self.callback is None else self.callback(step)
            # Other values that count as true, such as a number, do not stop the method.
            if isinstance(result, bool | np.bool_) and result:
                break
            if len(history) == limit:
                warn_once(
                    "rounds",
                    f"{name} stopped after max_iter={self.max_iter} rounds; raise max_iter or "
                    "learn_tol",
                    ConvergenceWarning,
                )
                break
        return OptimizationTrace(step, history)

    def _learn_weights(
        self,
        training: Training,
        optimize: Callable[..., Iterable[OptimizerStep]],
        *,
        gate: WeightedGate | None = None,
        base: Array | None = None,
        resume: bool = True,
        **learned: Any,
    ) -> GatedMachine:
        """Learn ``k = sum_i w_i <h_i, h_i> k_i`` with fixed gates `h`, by default all equal.

        Parameters
        ----------
        training : Training
        optimize : callable
            Takes the keywords of an objective (machines, gram, base, first) and yields steps whose
            parameters are weights of shape (1, n_kernels) or (rank, n_kernels).
        gate : WeightedGate, optional
        base : array of shape (n_samples, n_kernels) or (n_samples, n_kernels, rank), optional
            Gates of the training samples before they are weighted.
        resume : bool, default=True
            Whether fits of a cost path start from the weights of the previous fit.
        **learned
            Further fitted attributes.
        """
        # Weights of equal gates mean the same on other folds.
        shared = gate is None
        gate = WeightedGate(EqualGates(training.n_kernels)) if gate is None else gate
        base = gate.base(training.samples) if base is None else base
        name = "weights" if resume else None
        steps = optimize(
            machines=training.machines(resume=name),
            gram=training.gram(base, keep=True),
            base=base,
            by_rank=gate.by_rank,
            first=training.cache.warm_start(name, from_exchange=shared),
        )
        trace = self._run(steps)
        params = trace.last.params
        if resume:
            training.cache.store(name, params)
        learned["weights_"] = params if gate.by_rank else params[0]
        return trace.model(training, gate, **learned)
