"""Censored times: from events and times to one-sided problems, from risks to survival curves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl._survival import (
    StepFunction,
    as_columns,
    as_target,
    deviance_residuals,
    read_target,
    steps_at,
)
from lokl.base.estimator import KernelEstimator, Targets
from lokl.base.model import Model, model_layers
from lokl.base.settings import FLAG, NOT_NEGATIVE, one_of, setting, settings
from lokl.base.targets import check_squared_loss
from lokl.base.training import Training, check_costs
from lokl.metrics import concordance_index
from lokl.optimizers.newton import minimize_in_box
from lokl.solvers import Problem, Solver
from lokl.solvers.machines import Fold
from lokl.solvers.problem import censored, squared_loss
from lokl.solvers.solve import SURVIVAL, survival_loss

# Folds whose risks are held out to learn survival curves.
_N_FOLDS = 5
# Ridge penalty on the slope of the log hazard in the standardised risk.
_SLOPE_PENALTY = 1e-3


@dataclass(frozen=True, eq=False)
class ProportionalHazards:
    """``H(t|x) = H_0(t) exp(slope (risk(x) - centre))``, with Breslow's estimate of ``H_0``.

    Attributes
    ----------
    times : array of shape (n_times,)
        Times of the training samples, increasing.
    baseline : array of shape (n_times,)
        Cumulative hazard ``H_0`` at these times.
    slope, centre : float
    """

    times: Array
    baseline: Array
    slope: float
    centre: float

    @classmethod
    def fit(cls, risk: Array, y: Array, weight: Array) -> "ProportionalHazards":
        """Maximise the partial likelihood of held-out risks.

        Parameters
        ----------
        risk : array of shape (n_samples,)
        y : array of shape (n_samples, 2)
            Events and times.
        weight : array of shape (n_samples,)
        """
        centre = float(np.average(risk, weights=weight))
        scale = float(np.sqrt(np.average((risk - centre) ** 2, weights=weight)))
        scale = scale if scale > 1e-12 * max(1.0, abs(centre)) else 1.0
        order = np.argsort(y[:, 1])
        standard, weight = ((risk - centre) / scale)[order], weight[order]
        times, first, inverse = np.unique(y[order, 1], return_index=True, return_inverse=True)
        events = weight * y[order, 0]
        likelihood = _PartialLikelihood(standard, weight, events, first, inverse)
        bounds = np.zeros(1), np.full(1, np.inf)
        slope = minimize_in_box(likelihood, np.ones(1), *bounds)
        at_risk, *_ = likelihood.at_risk(slope[0])
        hazard = np.bincount(inverse, weights=events) / at_risk
        return cls(times, np.cumsum(hazard), float(slope[0]) / scale, centre)

    def cumulative_hazard(self, risk: Array) -> Array:
        """Return the cumulative hazard of samples at all times, (n_samples, n_times)."""
        # Risks far beyond those of the training samples must not overflow.
        factor = np.exp(np.minimum(self.slope * (risk - self.centre), 500.0))
        return np.outer(factor, self.baseline)


@dataclass(frozen=True, eq=False)
class _PartialLikelihood:
    """Penalised negative log partial likelihood of a slope, with ties as by Breslow."""

    risk: Array  # standardised, by increasing time
    weight: Array
    events: Array  # weights of events, 0 for censored samples
    first: Array  # first sample of each unique time
    inverse: Array  # index of the unique time of each sample

    def at_risk(self, slope: float) -> tuple[Array, Array, Array]:
        """Return the sums of hazards, and their first two moments, at risk at each time."""
        hazard = self.weight * np.exp(slope * self.risk)
        moments = (hazard, hazard * self.risk, hazard * self.risk**2)
        zero, one, two = (np.cumsum(m[::-1])[::-1][self.first] for m in moments)
        return zero, one, two

    def __call__(self, x: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and Hessian."""
        zero, one, two = self.at_risk(float(x[0]))
        deaths, total = np.bincount(self.inverse, weights=self.events), self.events.sum()
        mean = one / zero
        value = deaths @ np.log(zero) - float(x[0]) * (self.events @ self.risk)
        slope = deaths @ mean - self.events @ self.risk
        curvature = deaths @ (two / zero - mean**2)
        return (
            float(value / total + 0.5 * _SLOPE_PENALTY * x[0] ** 2),
            np.array([slope / total + _SLOPE_PENALTY * x[0]]),
            np.array([[curvature / total + _SLOPE_PENALTY]]),
        )


def folds_by_time(y: Array, n_folds: int = _N_FOLDS) -> list[Fold]:
    """Return folds with equal shares of events and of early and late times, without randomness.

    Parameters
    ----------
    y : array of shape (n_samples, 2)
        Events and times.
    n_folds : int
    """
    n = len(y)
    fold = np.empty(n, dtype=int)
    fold[np.lexsort((y[:, 1], y[:, 0]))] = np.arange(n) % min(n_folds, n)
    pairs = ((np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds))
    return [(kept, left) for kept, left in pairs if len(kept) and len(left)]


def check_any_event(estimator: Any, y: Array, weight: Array) -> None:
    """Raise ValueError if all samples with a weight are censored; y are columns."""
    if not ((y[:, 0] > 0) & (weight > 0)).any():
        raise ValueError(
            f"{type(estimator).__name__} needs an observed event; all {int((weight > 0).sum())} "
            "samples with a weight are censored"
        )


def survival_at(model: Any, X: Any, times: Array) -> Array:
    """Return the predicted probability of no event until some times, (n_samples, n_times).

    Parameters
    ----------
    model : fitted survival model
        Alone, at the end of pipelines or the best of a search, of any library with
        ``unique_times_``.
    X : samples
    times : array of shape (n_times,)
        Probabilities stay the same after the last time of the training samples.
    """
    return _curves_at(model, X, times, "predict_survival_function", 1.0)


def hazard_at(model: Any, X: Any, times: Array) -> Array:
    """Return the predicted cumulative hazard until some times; see :func:`survival_at`."""
    return _curves_at(model, X, times, "predict_cumulative_hazard_function", 0.0)


def _curves_at(model: Any, X: Any, times: Array, method: str, before: float) -> Array:
    layers = model_layers(model, X)
    with_curves, prepared = next(layer for layer in layers if hasattr(layer[0], method))
    values = getattr(with_curves, method)(prepared, return_array=True)
    return np.asarray(steps_at(with_curves.unique_times_, np.asarray(values), times, before))


def risk_of_time(time: Array) -> Array:
    """Return minus the log of each time; raise ValueError if a time is zero."""
    if not (time > 0).all():
        row = int(np.argmin(time > 0))
        raise ValueError(
            f"time must be positive if log_time=True, got {time[row]} in row {row}; remove "
            "the sample, or give it a small positive time"
        )
    return np.asarray(-np.log(time))


class SurvivalMixin:
    """Risks and survival curves of a model with ``_decisions(X)``, as in scikit-survival."""

    unique_times_: Array
    _decisions: Any  # new samples to risks, (n_samples, 1)
    _cumulative_hazards: Any  # new samples to cumulative hazards, (n_samples, n_times)

    def _is_flat(self) -> bool:
        return True

    def _tasks(self) -> tuple[str, Sequence[Any]]:
        return "target", ["risk"]

    def _decode(self, decision: Array) -> Array:
        return decision[:, 0]

    def predict(self, X: Any) -> Array:
        """Predict the risk of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        risk : array of shape (n_samples,)
            Higher for earlier events.
        """
        return self._decode(self._decisions(X))

    # Without sample weights, so that searches with weights do not pass them on to the score.
    def score(self, X: Any, y: Any) -> float:
        """Return Harrell's concordance index of the predicted risks.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : structured array, data frame or array of shape (n_samples, 2)
            Events and times.

        Returns
        -------
        float
            1 for perfect order, 0.5 for chance.
        """
        y = read_target(y)
        return float(concordance_index(y["event"], y["time"], self.predict(X)).cindex)

    def predict_survival_function(self, X: Any, return_array: bool = False) -> Array:
        """Predict the probability of no event until each time.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        return_array : bool, default=False
            Whether to return the values at ``unique_times_`` instead of functions of time.

        Returns
        -------
        curves : array of shape (n_samples,) or (n_samples, n_times)
            Step functions with the attributes ``x`` and ``y``.
        """
        values = np.exp(-self._checked_hazards(X))
        return values if return_array else self._as_functions(values, 1.0)

    def predict_cumulative_hazard_function(self, X: Any, return_array: bool = False) -> Array:
        """Predict the cumulative hazard until each time: minus the log of the survival function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        return_array : bool, default=False
            Whether to return the values at ``unique_times_`` instead of functions of time.

        Returns
        -------
        curves : array of shape (n_samples,) or (n_samples, n_times)
            Step functions with the attributes ``x`` and ``y``.
        """
        values = self._checked_hazards(X)
        return values if return_array else self._as_functions(values, 0.0)

    def _checked_hazards(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(self._cumulative_hazards(X))

    def _as_functions(self, values: Array, before: float) -> Array:
        functions = np.empty(len(values), dtype=object)
        functions[:] = [StepFunction(self.unique_times_, row, before) for row in values]
        return functions


@settings
class Survival(SurvivalMixin, KernelEstimator):
    """Regression of the risk of an event, whose time may be censored.

    Attributes
    ----------
    unique_times_ : array of shape (n_times,)
        Times of the training samples with a weight, at which predicted curves may change.
    """

    loss: str = setting(
        "censored",
        one_of(*SURVIVAL),
        '"censored": the risk is minus the log of the predicted time. An error beyond `epsilon` '
        "costs in both directions for an event, but for a censored sample only if the predicted "
        'time is too early. "squared": half the squared distance from the deviance residual of the '
        "model without covariates, which depends on the order of the times only; with exact "
        "leave-one-out decisions. Some methods do not have it.",
    )
    epsilon: float = setting(
        0.1,
        NOT_NEGATIVE,
        "Errors of the risk up to this size cost nothing; not used by the squared loss.",
    )
    log_time: bool = setting(
        True,
        FLAG,
        "If False, the risk is minus the time divided by the mean training time, without a "
        "logarithm; not used by the squared loss.",
    )

    _is_common = True

    @property
    def _predicts_log_time(self) -> bool:
        """Whether risks are minus log times, and can be compared between different models."""
        return self.loss == "censored" and self.log_time

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> Training:
        return super()._validate(X, as_columns(read_target(y)), sample_weight)

    def _encode_targets(self, y: Array, weight: Array) -> tuple[Targets, dict[str, Any]]:
        check_any_event(self, y, weight)
        is_event, time = y[:, 0] > 0, y[:, 1]
        target = np.empty(len(y), dtype=[("risk", float), ("event", bool)])
        if self.loss == "squared":
            target["risk"] = deviance_residuals(as_target(y), weight)
        else:
            target["risk"] = self._risk(time, weight)
        target["event"] = is_event
        return [(target, check_costs(self.C, {"sample_weight": weight}))], {}

    def _risk(self, time: Array, weight: Array) -> Array:
        """Return the risk that corresponds to each time."""
        if self.log_time:
            return risk_of_time(time)
        mean = float(np.average(time, weights=weight))
        return -time / mean if mean > 0 else -time

    def _problem(self, target: Array, cost: Array, solver: Solver) -> Problem:
        if self.loss == "squared":
            return squared_loss(target["risk"], cost)
        return censored(target["risk"], cost, self.epsilon, target["event"])

    def _check_combinations(self, solver: Solver) -> None:
        super()._check_combinations(solver)
        check_squared_loss(self, survival_loss(self.loss, solver))

    def _prepare(self, data: Training) -> tuple[Training, dict[str, Any]]:
        training, attributes = super()._prepare(data)
        if self.loss == "squared":
            return training, attributes
        return replace(training, folds=folds_by_time(training.y)), attributes

    def _held_out_attributes(
        self, data: Training, training: Training, model: Model, attributes: dict[str, Any]
    ) -> dict[str, Any]:
        published: dict[str, Any] = {}
        if self.loss == "squared":
            published = super()._held_out_attributes(data, training, model, attributes)
        risk = self._held_out_risks(training) if model.left_out is None else model.left_out
        log_hazard = self._log_hazard(risk[:, 0])
        hazards = ProportionalHazards.fit(log_hazard, training.y, training.weight)
        return {**published, "unique_times_": hazards.times, "_hazards": hazards}

    def _held_out_risks(self, training: Training) -> Array:
        """Return risks of training samples by models that have not learned from them."""
        risks = np.zeros((training.n_samples, 1))
        for kept, left in folds_by_time(training.y):
            model = self._learn(training.take(kept))
            risks[left] = model.decide(training.samples.take(left))
        return risks

    def _cumulative_hazards(self, X: Any) -> Array:
        return self._hazards.cumulative_hazard(self._log_hazard(self.predict(X)))

    def _log_hazard(self, risk: Array) -> Array:
        """Return the log hazard of each risk, up to a constant and a factor."""
        return risk

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
