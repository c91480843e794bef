"""Baselines of survival models: Cox regression with a ridge penalty, and the same curve for all."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator

from lokl._arrays import Array
from lokl._survival import kaplan_meier, read_target
from lokl.metrics import concordance_index

_MAX_STEPS, _TOLERANCE = 50, 1e-9
# Halvings of a step that does not decrease the objective.
_HALVINGS = 30


class CoxRegression(BaseEstimator):
    """Proportional hazards ``h(t|x) = h_0(t) exp(<w, x>)`` with a ridge penalty.

    Minimises ``-log(partial likelihood) / n_events + alpha |w|^2 / 2`` by Newton's method, with
    ties as by Breslow. With more columns than samples the problem is solved in the space that the
    samples span. Columns should have zero mean and unit variance.

    Parameters
    ----------
    alpha : float, default=0.1
        Weight of the penalty.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    unique_times_ : array of shape (n_times,)
        Times of the training samples.

    References
    ----------
    .. [1] D. R. Cox. Regression Models and Life-Tables. Journal of the Royal Statistical Society,
       Series B 34, 1972.
    """

    def __init__(self, alpha: float = 0.1):
        self.alpha = alpha

    def fit(self, X: Any, y: Any) -> "CoxRegression":
        """Fit the coefficients and the baseline hazard.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : structured array of shape (n_samples,)

        Returns
        -------
        self
        """
        X, y = np.asarray(X, dtype=float), read_target(y)
        order = np.argsort(y["time"], kind="stable")
        times, first, inverse = np.unique(y["time"][order], return_index=True, return_inverse=True)
        self._mean = X.mean(axis=0)
        centred, events = (X - self._mean)[order], y["event"][order].astype(float)
        basis = None
        if X.shape[1] > len(X):
            _, _, basis = np.linalg.svd(centred, full_matrices=False)
            centred = centred @ basis.T
        likelihood = _Likelihood(centred, events, first, inverse, self.alpha)
        coef = likelihood.minimiser()
        at_risk = likelihood.at_risk(np.exp(centred @ coef))
        self.coef_ = coef if basis is None else coef @ basis
        self.unique_times_ = times
        self._hazard = np.cumsum(np.bincount(inverse, weights=events) / at_risk)
        return self

    def predict(self, X: Any) -> Array:
        """Return the log hazard of each sample, up to a constant."""
        return np.asarray((np.asarray(X, dtype=float) - self._mean) @ self.coef_)

    def predict_survival_function(self, X: Any, return_array: bool = True) -> Array:
        """Return the probability of no event until each time, (n_samples, n_times)."""
        # Risks far beyond those of the training samples must not overflow.
        factor = np.exp(np.minimum(self.predict(X), 500.0))
        return np.exp(-np.outer(factor, self._hazard))

    def score(self, X: Any, y: Any) -> float:
        """Return Harrell's concordance index."""
        y = read_target(y)
        return float(concordance_index(y["event"], y["time"], self.predict(X)).cindex)


class KaplanMeier(BaseEstimator):
    """Baseline that predicts the same risk and the Kaplan-Meier estimate for all samples.

    Attributes
    ----------
    unique_times_ : array of shape (n_times,)
        Times of the training samples.
    """

    def fit(self, X: Any, y: Any) -> "KaplanMeier":
        """Estimate the curve; X is not used."""
        curve = kaplan_meier(read_target(y))
        self.unique_times_, self._values = curve.x, curve.y
        return self

    def predict(self, X: Any) -> Array:
        """Return zeros."""
        return np.zeros(len(X))

    def predict_survival_function(self, X: Any, return_array: bool = True) -> Array:
        """Return the probability of no event until each time, (n_samples, n_times)."""
        return np.tile(self._values, (len(X), 1))


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """Penalised negative log partial likelihood of samples in the order of their times."""

    X: Array
    events: Array  # 1 for events, 0 for censored samples
    first: Array  # first sample of each unique time
    inverse: Array  # index of the unique time of each sample
    alpha: float

    def at_risk(self, values: Array) -> Array:
        """Return the sums of values over the samples at risk at each time."""
        return np.asarray(np.cumsum(values[::-1], axis=0)[::-1][self.first])

    def value(self, coef: Array) -> float:
        risk = self.X @ coef
        top = risk.max()
        sums = np.log(self.at_risk(np.exp(risk - top))) + top
        fit = (sums[self.inverse] - risk) @ self.events
        return float(fit / self.events.sum() + 0.5 * self.alpha * coef @ coef)

    def derivatives(self, coef: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian."""
        risk = self.X @ coef
        hazard = np.exp(risk - risk.max())
        zero = self.at_risk(hazard)
        deaths = np.bincount(self.inverse, weights=self.events)
        mean = self.at_risk(hazard[:, np.newaxis] * self.X) / zero[:, np.newaxis]
        # Expected events of each sample until its own time.
        expected = hazard * np.cumsum(deaths / zero)[self.inverse]
        n_events = self.events.sum()
        gradient = (expected - self.events) @ self.X / n_events + self.alpha * coef
        spread = mean * np.sqrt(deaths)[:, np.newaxis]
        hessian = (self.X * expected[:, np.newaxis]).T @ self.X - spread.T @ spread
        return gradient, hessian / n_events + self.alpha * np.eye(len(coef))

    def minimiser(self) -> Array:
        """Return the minimum by Newton's method with halved steps."""
        coef = np.zeros(self.X.shape[1])
        value = self.value(coef)
        for _ in range(_MAX_STEPS):
            gradient, hessian = self.derivatives(coef)
            step = cho_solve(cho_factor(hessian), gradient)
            decrease = float(gradient @ step)
            if decrease < _TOLERANCE:
                break
            for halving in range(_HALVINGS):
                trial = coef - step / 2**halving
                new = self.value(trial)
                if new <= value - 1e-4 * decrease / 2**halving:
                    break
            else:
                break
            coef, value = trial, new
        return coef
