"""Estimators: one file for each published method."""

from lokl.estimators.uniform import UniformMKLClassifier, UniformMKLRegressor

__all__ = ["UniformMKLClassifier", "UniformMKLRegressor"]
