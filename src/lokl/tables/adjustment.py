"""Adjustment of columns for covariates such as age, sex and batch."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array


class CovariateAdjustment(BaseEstimator):
    """Removes the linear effect of covariates from columns: ``x - (c - mean(c)) B``.

    Each column is regressed on the covariates by least squares, on the samples that have it. Its
    mean stays as it is. A missing covariate counts as its mean.

    Attributes
    ----------
    centre_ : array of shape (n_covariates,)
        Means of the covariates.
    coef_ : array of shape (n_covariates, n_columns)

    See Also
    --------
    read_table : Reads covariates from files.
    TablePreparation : Adjusts the columns of a table inside a model.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.tables import CovariateAdjustment
    >>> age = np.array([[40.0], [50.0], [60.0]])
    >>> blood = np.array([[1.0], [2.1], [2.9]])
    >>> CovariateAdjustment().fit(blood, age).transform(blood, age).round(2).ravel().tolist()
    [1.95, 2.1, 1.95]
    """

    def fit(self, X: Array, C: Array) -> "CovariateAdjustment":
        """Learn the effect of covariates.

        Parameters
        ----------
        X : array of shape (n_samples, n_columns)
            NaN for missing values.
        C : array of shape (n_samples, n_covariates)
            NaN for missing values.

        Returns
        -------
        self
        """
        known = ~np.isnan(C)
        total = np.where(known, C, 0.0).sum(axis=0)
        self.centre_ = total / np.maximum(known.sum(axis=0), 1)
        design = np.column_stack([np.ones(len(C)), self._centred(C)])
        self.coef_ = np.zeros((C.shape[1], X.shape[1]))
        # Columns of a view usually are missing together.
        patterns, code = np.unique(np.isnan(X), axis=1, return_inverse=True)
        for k, missing in enumerate(patterns.T):
            own = np.flatnonzero(code.ravel() == k)
            # The solution of least norm, if covariates determine each other.
            solution = np.linalg.lstsq(design[~missing], X[np.ix_(~missing, own)], rcond=None)[0]
            self.coef_[:, own] = solution[1:]
        return self

    def transform(self, X: Array, C: Array) -> Any:
        """Return adjusted columns.

        Parameters
        ----------
        X : array of shape (n_samples, n_columns)
        C : array of shape (n_samples, n_covariates)

        Returns
        -------
        adjusted : array of shape (n_samples, n_columns)
            NaN where `X` is NaN.
        """
        check_is_fitted(self)
        return X - self._centred(C) @ self.coef_

    def _centred(self, C: Array) -> Array:
        return np.where(np.isnan(C), 0.0, C - self.centre_)
