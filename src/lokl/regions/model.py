"""Fitted models of regions, and their combined outputs for samples.

An output has the name of the estimator method that returns it: "decision_function",
"predict_proba", "weights" or "contributions". "predict" stands for the decisions that it needs, and
"cumulative_hazard" for cumulative hazards at the times of all regions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lokl._arrays import Array, column
from lokl._survival import steps_at
from lokl._threads import run_calls, single_threaded
from lokl.base.model import model_layers
from lokl.base.survival import ProportionalHazards, hazard_at
from lokl.gates.base import normalized_weights
from lokl.kernels.samples import split_missing
from lokl.regions.tree import RegionTree


@dataclass(frozen=True, eq=False)
class ConstantRegion:
    """Region whose samples determine one prediction: there is one of them, one class, no event."""

    decision: Array  # (n_tasks,)
    probability: Array  # (n_classes,), empty for regression
    hazards: ProportionalHazards | None = None  # for censored times

    @property
    def times(self) -> Array:
        """Times at which survival curves may change."""
        return np.empty(0) if self.hazards is None else self.hazards.times

    def cumulative_hazard(self, X: Any, times: Array) -> Array:
        """Return the cumulative hazard until each time, the same for every sample."""
        assert self.hazards is not None
        return np.asarray(steps_at(self.hazards.times, self.hazards.baseline, times, 0.0))

    def compute(self, output: str, X: Any, names: Sequence[str], bounded: bool) -> Any:
        """Return the value for every sample; weights and contributions of all kernels are 0."""
        if output in ("weights", "contributions"):
            return 0.0
        return self.probability if output == "predict_proba" else self.decision


@dataclass(frozen=True, eq=False)
class FittedRegion:
    """Region with a fitted estimator.

    Attributes
    ----------
    fitted : estimator
    codes : array of int, or None
        Sorted indices, among all classes, of the classes in its training samples, which may lack
        some. None for regression.
    n_classes : int
        Number of all classes; 0 for regression.
    """

    fitted: Any
    codes: Array | None = None
    n_classes: int = 0

    @property
    def times(self) -> Array:
        """Times at which survival curves may change."""
        return np.asarray(next(iter(model_layers(self.fitted)))[0].unique_times_)

    def cumulative_hazard(self, X: Any, times: Array) -> Array:
        """Return the cumulative hazard until each time, (n_samples, n_times)."""
        return hazard_at(self.fitted, X, times)

    def compute(self, output: str, X: Any, names: Sequence[str], bounded: bool) -> Array:
        """Compute an output for samples.

        Parameters
        ----------
        output : str
        X : {array, CSR matrix, data frame} of shape (n_samples, n_features)
        names : list of str
            Names of all kernels of all regions. Kernels that this region does not have get zeros.
        bounded : bool
            Whether decisions of classifiers are brought to the range from -1 to 1, so that they can
            be averaged over regions; contributions are scaled accordingly.

        Returns
        -------
        values : array of shape (n_samples, *PartitionedModel.shape(output))
        """
        match output:
            case "predict" | "decision_function":
                return self._decide(X, bounded)
            case "predict_proba":
                return self._probabilities(X)
            case "weights":
                return self._by_name(self.fitted.weights(X), names)
        values = self._by_name(self.fitted.contributions(X), names)
        values = values[:, np.newaxis] if values.ndim == 2 else values
        if self.codes is not None and self.n_classes > 2:
            values = np.hstack([-values, values]) if len(self.codes) == 2 else values
            values = self._all_classes(values, 0.0)
        if not bounded:
            return values
        decision = self._decide(X, False)
        scale = np.zeros_like(decision)
        np.divide(self._decide(X, True), decision, out=scale, where=decision != 0)
        return np.asarray(values * scale[:, :, np.newaxis])

    def _decide(self, X: Any, bounded: bool) -> Array:
        """Return decision values or predicted targets, (n_samples, n_tasks)."""
        if self.codes is None:
            return column(np.asarray(self.fitted.predict(X), dtype=float))
        if bounded and hasattr(self.fitted, "predict_proba"):
            signed = 2.0 * self._probabilities(X) - 1.0
            return signed[:, 1:] if self.n_classes == 2 else signed
        decision = column(np.asarray(self.fitted.decision_function(X), dtype=float))
        if self.n_classes > 2:
            decision = np.hstack([-decision, decision]) if len(self.codes) == 2 else decision
            # Absent classes get a lower value than all others, so that they are never predicted.
            lowest = np.minimum(-1.0, decision.min(axis=1, keepdims=True) - 1.0)
            decision = self._all_classes(decision, lowest)
        return np.clip(decision, -1.0, 1.0) if bounded else decision

    def _probabilities(self, X: Any) -> Array:
        """Return probabilities of all classes, (n_samples, n_classes)."""
        return self._all_classes(np.asarray(self.fitted.predict_proba(X), dtype=float), 0.0)

    def _all_classes(self, values: Array, absent: Any) -> Array:
        """Expand axis 1 to all classes, with `absent` for classes that this region lacks."""
        expanded = np.empty((len(values), self.n_classes, *values.shape[2:]))
        expanded[:] = absent
        expanded[:, self.codes] = values
        return expanded

    def _by_name(self, values: Any, names: Sequence[str]) -> Array:
        """Expand the last axis to all kernels, 0 for kernels that this region lacks."""
        values = np.asarray(values)
        if list(self.fitted.kernel_names_) == list(names):
            return values
        expanded = np.zeros((*values.shape[:-1], len(names)))
        expanded[..., [list(names).index(name) for name in self.fitted.kernel_names_]] = values
        return expanded


RegionModel = ConstantRegion | FittedRegion


@dataclass(frozen=True, eq=False)
class PartitionedModel:
    """Models of all regions of one or several partitions of the samples.

    Attributes
    ----------
    trees : list of RegionTree
        Tree of each partition.
    models : list of lists of RegionModel
        Model of each region, by partition; None if it is stored elsewhere.
    n_classes : int
        0 for regression.
    n_targets : int
        1 for classification.
    kernel_names : list of str
        Names of all kernels of all regions.
    kernels : list of Kernel
        Bound kernels of one region that has all of them, which determine the views that samples
        have. Empty without such a region.
    total : array or None
        Result of :meth:`mean` if it was computed elsewhere.
    """

    trees: list[RegionTree]
    models: Sequence[Sequence[RegionModel | None]]
    n_classes: int
    n_targets: int
    kernel_names: list[str]
    kernels: list[Any]
    total: Array | None = None

    def compute(self, output: str, X: Any, samples: Any, threads: int) -> Array:
        """Compute one output for samples.

        Parameters
        ----------
        output : str
        X : {array, CSR matrix} of shape (n_samples, n_features)
            Samples for the trees.
        samples : {array, CSR matrix, data frame}
            The same samples for the models of the regions.
        threads : int

        Returns
        -------
        values : array of shape (n_samples, *self.shape(output))
        """
        values = self.mean(output, X, samples, threads) if self.total is None else self.total
        if output != "weights":
            return values
        # Regions without a model give equal weights to all kernels whose view a sample has.
        present = None
        if self.kernels:
            present = split_missing(self.kernels, self.kernel_names, X)[1]
        return normalized_weights(values, present)

    @property
    def times(self) -> Array:
        """Increasing times at which survival curves of any region may change."""
        times = [model.times for part in self.models for model in part if model is not None]
        return np.unique(np.concatenate(times))

    def shape(self, output: str) -> tuple[int, ...]:
        """Return the shape of an output for one sample."""
        n_tasks = self.n_classes if self.n_classes > 2 else self.n_targets
        n_kernels = len(self.kernel_names)
        shapes: dict[str, tuple[int, ...]] = {
            "predict_proba": (self.n_classes,),
            "contributions": (n_tasks, n_kernels),
            "weights": (n_kernels,),
        }
        return shapes.get(output, (n_tasks,))

    def mean(self, output: str, X: Any, samples: Any, threads: int) -> Array:
        """Compute the weighted mean of an output over the regions of every sample.

        Regions whose model is stored elsewhere add zeros. The results of several objects that store
        different models therefore sum to the complete result. Parameters as in :meth:`compute`.
        """
        times = self.times if output == "cumulative_hazard" else None
        shape = self.shape(output) if times is None else times.shape
        total = np.zeros((X.shape[0], *shape))
        for tree, models in zip(self.trees, self.models, strict=True):
            tasks = [
                (region, partial(self._region_output, output, model, samples, region.rows, times))
                for region, model in zip(tree.divide(X), models, strict=True)
                if len(region.rows) and model is not None
            ]
            with single_threaded():
                outputs = run_calls([call for _, call in tasks], threads)
            for (region, _), values in zip(tasks, outputs, strict=True):
                if region.weight is not None:
                    values = values * region.weight.reshape(-1, *[1] * len(shape))
                total[region.rows] += values
        return total / len(self.trees) if len(self.trees) > 1 else total

    def _region_output(
        self, output: str, model: RegionModel, samples: Any, rows: Array, times: Array | None
    ) -> Any:
        if times is not None:
            return model.cumulative_hazard(take(samples, rows), times)
        bounded = len(self.trees) > 1 or self.trees[0].overlaps
        return model.compute(output, take(samples, rows), self.kernel_names, bounded)


def take(samples: Any, rows: Array) -> Any:
    """Return some rows of an array, a CSR matrix or a data frame."""
    if len(rows) == samples.shape[0]:
        return samples
    return samples.iloc[rows] if hasattr(samples, "iloc") else samples[rows]
