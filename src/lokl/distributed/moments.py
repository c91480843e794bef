"""Means and sums of squares that can be put together from parts."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array


@dataclass(frozen=True, eq=False)
class Moments:
    """Weight, mean and sum of squared distances from the mean, of each column.

    Attributes
    ----------
    weight : float
    mean : array of shape (n_columns,)
    squares : array of shape (n_columns,)
    """

    weight: float
    mean: Array
    squares: Array

    @classmethod
    def of(cls, values: Array, weight: Array) -> "Moments":
        """Moments of rows, not all of which have a weight of zero."""
        mean = np.average(values, axis=0, weights=weight)
        return cls(float(weight.sum()), mean, weight @ (values - mean) ** 2)

    def joined(self, other: "Moments") -> "Moments":
        """Moments of the rows of both; nothing is lost where means are far from zero."""
        weight = self.weight + other.weight
        apart, share = other.mean - self.mean, other.weight / weight
        squares = self.squares + other.squares + apart**2 * self.weight * share
        return Moments(weight, self.mean + apart * share, squares)

    @property
    def variance(self) -> Array:
        return self.squares / self.weight
