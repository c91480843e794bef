"""Fitted models of regions, and their combined outputs for samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from lokl._arrays import Array, column
from lokl._threads import run_calls, single_threaded
from lokl.gates.base import normalized_weights
from lokl.kernels.samples import split_missing
from lokl.regions.tree import RegionTree


class Output(Enum):
    """Quantities that regions compute for samples, by the estimator method that returns them."""

    DECISION = "decision_function"
    PROBABILITIES = "predict_proba"
    WEIGHTS = "weights"
    CONTRIBUTIONS = "contributions"

    @classmethod
    def of_method(cls, method: str) -> "Output":
        """Return the output from which a method of an estimator computes its result."""
        return cls.DECISION if method == "predict" else cls(method)


@dataclass(frozen=True, eq=False)
class ConstantRegion:
    """Region with a single sample or a single class, which is predicted everywhere.

    Its methods have the same meaning as those of :class:`ClassifierRegion`; weights and
    contributions of all kernels are zero.
    """

    decision: Array  # (n_tasks,)
    probability: Array  # (n_classes,), empty for regression

    def decide(self, X: Any) -> Array:
        return np.tile(self.decision, (X.shape[0], 1))

    bounded_decide = decide

    def probabilities(self, X: Any) -> Array:
        return np.tile(self.probability, (X.shape[0], 1))

    def contributions(self, X: Any, names: Sequence[str]) -> Array:
        return np.zeros((X.shape[0], len(self.decision), len(names)))

    def weights(self, X: Any, names: Sequence[str]) -> Array:
        return np.zeros((X.shape[0], len(names)))


@dataclass(frozen=True, eq=False)
class RegressorRegion:
    """Region with a fitted regressor.

    `names` are the names of all kernels of all regions. Kernels that this region does not have get
    zeros.
    """

    fitted: Any

    def decide(self, X: Any) -> Array:
        """Return decision values or predicted targets, (n_samples, n_tasks)."""
        return column(np.asarray(self.fitted.predict(X), dtype=float))

    bounded_decide = decide

    def contributions(self, X: Any, names: Sequence[str]) -> Array:
        """Return contributions of the kernels to the decision, (n_samples, n_tasks, n_kernels)."""
        values = np.asarray(self.fitted.contributions(X))
        return self._by_name(values[:, np.newaxis] if values.ndim == 2 else values, names)

    def weights(self, X: Any, names: Sequence[str]) -> Array:
        """Return weights of the kernels, (n_samples, n_kernels)."""
        return self._by_name(np.asarray(self.fitted.weights(X)), names)

    def _by_name(self, values: Array, names: Sequence[str]) -> Array:
        """Move the last axis from the kernels of this region to all kernels, 0 for the others."""
        if list(self.fitted.kernel_names_) == list(names):
            return values
        expanded = np.zeros((*values.shape[:-1], len(names)))
        expanded[..., [list(names).index(name) for name in self.fitted.kernel_names_]] = values
        return expanded


@dataclass(frozen=True, eq=False)
class ClassifierRegion(RegressorRegion):
    """Region with a fitted classifier, whose training samples may lack some of the classes."""

    codes: Array  # sorted indices, among all classes, of the classes in its training samples
    n_classes: int

    def decide(self, X: Any) -> Array:
        decision = np.asarray(self.fitted.decision_function(X), dtype=float)
        if self.n_classes == 2:
            return column(decision)
        if len(self.codes) == 2:
            decision = np.column_stack([-decision, decision])
        # Absent classes get a lower value than all others, so that they are never predicted.
        lowest = np.minimum(-1.0, decision.min(axis=1, keepdims=True) - 1.0)
        return self._all_classes(decision, lowest)

    def bounded_decide(self, X: Any) -> Array:
        """Return decision values between -1 and 1, which can be averaged over regions."""
        if hasattr(self.fitted, "predict_proba"):
            signed = 2.0 * self.probabilities(X) - 1.0
            return signed[:, 1:] if self.n_classes == 2 else signed
        return np.clip(self.decide(X), -1.0, 1.0)

    def probabilities(self, X: Any) -> Array:
        """Return probabilities of all classes, (n_samples, n_classes)."""
        return self._all_classes(np.asarray(self.fitted.predict_proba(X), dtype=float), 0.0)

    def contributions(self, X: Any, names: Sequence[str]) -> Array:
        values = super().contributions(X, names)
        if self.n_classes == 2:
            return values
        expanded = np.zeros((len(values), self.n_classes, len(names)))
        expanded[:, self.codes] = np.hstack([-values, values]) if len(self.codes) == 2 else values
        return expanded

    def _all_classes(self, values: Array, absent: Any) -> Array:
        """Return columns for all classes, `absent` for classes that this region lacks."""
        expanded = np.empty((len(values), self.n_classes))
        expanded[:] = absent
        expanded[:, self.codes] = values
        return expanded


RegionModel = ConstantRegion | RegressorRegion | ClassifierRegion


@dataclass(frozen=True, eq=False)
class RegionPartition:
    """Division of the samples into regions, with the model of each region.

    A model that is stored elsewhere is None.
    """

    tree: RegionTree
    models: Sequence[RegionModel | None]


@dataclass(frozen=True, eq=False)
class PartitionedModel:
    """Models of all regions of one or several partitions.

    Attributes
    ----------
    partitions : list of RegionPartition
    averages : bool
        Whether outputs are means over several regions. Decisions are then first brought to a scale
        that all regions share.
    n_classes : int
        0 for regression.
    n_targets : int
        1 for classification.
    kernel_names : list of str
        Names of all kernels of all regions.
    kernels : list of Kernel
        Bound kernels of one region that has all of them, which determine the views that samples
        have. Empty if there is no such region.
    """

    partitions: list[RegionPartition]
    averages: bool
    n_classes: int
    n_targets: int
    kernel_names: list[str]
    kernels: list[Any]

    def compute(self, output: Output, X: Any, samples: Any, threads: int) -> Array:
        """Compute one output for samples.

        Parameters
        ----------
        output : Output
        X : {array, CSR matrix} of shape (n_samples, n_features)
            Samples for the trees.
        samples : {array, CSR matrix, data frame}
            The same samples for the models of the regions.
        threads : int

        Returns
        -------
        values : array of shape (n_samples, *self.shape(output))
        """
        values = self.mean(output, X, samples, threads)
        if output is not Output.WEIGHTS:
            return values
        # Regions without a model give equal weights to all kernels whose view a sample has.
        present = None
        if self.kernels:
            present = split_missing(self.kernels, self.kernel_names, X)[1]
        return normalized_weights(values, present)

    def shape(self, output: Output) -> tuple[int, ...]:
        """Return the shape of an output for one sample."""
        n_tasks = self.n_classes if self.n_classes > 2 else self.n_targets
        n_kernels = len(self.kernel_names)
        return {
            Output.DECISION: (n_tasks,),
            Output.PROBABILITIES: (self.n_classes,),
            Output.CONTRIBUTIONS: (n_tasks, n_kernels),
            Output.WEIGHTS: (n_kernels,),
        }[output]

    def mean(self, output: Output, X: Any, samples: Any, threads: int) -> Array:
        """Compute the weighted mean of an output over the regions of every sample.

        Regions whose model is stored elsewhere add zeros. The results of several objects that store
        different models therefore sum to the complete result. Parameters as in :meth:`compute`.
        """
        shape = self.shape(output)
        total = np.zeros((X.shape[0], *shape))
        for partition in self.partitions:
            members = partition.tree.divide(X)
            tasks = [
                (region, partial(self._region_output, output, model, samples, region.rows))
                for region, model in zip(members, partition.models, strict=True)
                if len(region.rows) and model is not None
            ]
            with single_threaded():
                outputs = run_calls([call for _, call in tasks], threads)
            for (region, _), values in zip(tasks, outputs, strict=True):
                if region.weight is not None:
                    values = values * region.weight.reshape(-1, *[1] * len(shape))
                total[region.rows] += values
        return total / len(self.partitions) if len(self.partitions) > 1 else total

    def _region_output(self, output: Output, model: Any, samples: Any, rows: Array) -> Array:
        samples = take(samples, rows)
        match output:
            case Output.PROBABILITIES:
                return model.probabilities(samples)
            case Output.WEIGHTS:
                return model.weights(samples, self.kernel_names)
            case Output.DECISION if self.averages:
                return model.bounded_decide(samples)
            case Output.DECISION:
                return model.decide(samples)
        values = model.contributions(samples, self.kernel_names)
        if not self.averages:
            return values
        decision = model.decide(samples)
        scale = np.zeros_like(decision)
        np.divide(model.bounded_decide(samples), decision, out=scale, where=decision != 0)
        return np.asarray(values * scale[:, :, np.newaxis])


def take(samples: Any, rows: Array) -> Any:
    """Return some rows of an array, a CSR matrix or a data frame."""
    if len(rows) == samples.shape[0]:
        return samples
    return samples.iloc[rows] if hasattr(samples, "iloc") else samples[rows]
