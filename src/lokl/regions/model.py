"""One model for each region of the samples: a sample is decided where it lies."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from lokl._arrays import Array, column
from lokl._threads import run_calls, single_threaded
from lokl.gates.base import shares
from lokl.kernels.samples import split_missing


class Divides(Protocol):
    """A tree that tells the samples of every region, and how far they belong to it."""

    @property
    def overlaps(self) -> bool:
        """Whether samples may belong to several regions."""

    def divide(self, X: Any) -> Sequence[tuple[Array, Array | None]]:
        """Return the samples of every region."""


class RegionModel(ABC):
    """What is known in one region; all of it about samples of the region."""

    @abstractmethod
    def decide(self, X: Any) -> Array:
        """Decisions or predictions, (n_samples, n_tasks)."""

    @abstractmethod
    def bounded(self, X: Any) -> Array:
        """Decisions on a scale that all regions share, so that means of them make sense."""

    @abstractmethod
    def probabilities(self, X: Any) -> Array:
        """Probabilities of all classes, (n_samples, n_classes)."""

    @abstractmethod
    def parts(self, X: Any, names: Sequence[str]) -> Array:
        """Parts of the kernels in the decision, (n_samples, n_tasks, n_kernels)."""

    @abstractmethod
    def trust(self, X: Any, names: Sequence[str]) -> Array:
        """Shares of the kernels, (n_samples, n_kernels); zeros where none is asked."""

    @property
    def estimator(self) -> Any:
        """What was fitted in the region, None for nothing."""
        return None


@dataclass(frozen=True, eq=False)
class ConstantRegion(RegionModel):
    """A region whose samples are too few, or all of one class, to learn anything from them."""

    decision: Array  # (n_tasks,)
    probability: Array  # (n_classes,), empty for targets

    def decide(self, X: Any) -> Array:
        return np.tile(self.decision, (X.shape[0], 1))

    bounded = decide

    def probabilities(self, X: Any) -> Array:
        return np.tile(self.probability, (X.shape[0], 1))

    def parts(self, X: Any, names: Sequence[str]) -> Array:
        return np.zeros((X.shape[0], len(self.decision), len(names)))

    def trust(self, X: Any, names: Sequence[str]) -> Array:
        return np.zeros((X.shape[0], len(names)))


@dataclass(frozen=True, eq=False)
class TargetRegion(RegionModel):
    """A regressor that was fitted in a region."""

    fitted: Any

    @property
    def estimator(self) -> Any:
        return self.fitted

    def decide(self, X: Any) -> Array:
        return column(np.asarray(self.fitted.predict(X), dtype=float))

    bounded = decide

    def probabilities(self, X: Any) -> Array:
        raise TypeError("targets have no probabilities")

    def parts(self, X: Any, names: Sequence[str]) -> Array:
        return _by_name(_parts(self.fitted, X), self.fitted.kernel_names_, names)

    def trust(self, X: Any, names: Sequence[str]) -> Array:
        return _by_name(np.asarray(self.fitted.weights(X)), self.fitted.kernel_names_, names)


@dataclass(frozen=True, eq=False)
class ClassRegion(TargetRegion):
    """A classifier that was fitted in a region, and may not have met all classes there."""

    known: Array  # numbers of the classes it has met, in rising order
    n_classes: int

    def decide(self, X: Any) -> Array:
        decision = np.asarray(self.fitted.decision_function(X), dtype=float)
        if self.n_classes == 2:
            return column(decision)
        if len(self.known) == 2:
            decision = np.column_stack([-decision, decision])
        # Below all others: a class that is not there is never chosen.
        below = np.minimum(-1.0, decision.min(axis=1, keepdims=True) - 1.0)
        return self._among_all(decision, below)

    def bounded(self, X: Any) -> Array:
        if hasattr(self.fitted, "predict_proba"):
            signed = 2.0 * self.probabilities(X) - 1.0
            return signed[:, 1:] if self.n_classes == 2 else signed
        return np.clip(self.decide(X), -1.0, 1.0)

    def probabilities(self, X: Any) -> Array:
        return self._among_all(np.asarray(self.fitted.predict_proba(X), dtype=float), 0.0)

    def parts(self, X: Any, names: Sequence[str]) -> Array:
        parts = super().parts(X, names)
        if self.n_classes == 2:
            return parts
        every = np.zeros((len(parts), self.n_classes, len(names)))
        every[:, self.known] = np.hstack([-parts, parts]) if len(self.known) == 2 else parts
        return every

    def _among_all(self, values: Array, others: Any) -> Array:
        """Columns of the known classes in their places, others with a value of their own."""
        every = np.empty((len(values), self.n_classes))
        every[:] = others
        every[:, self.known] = values
        return every


@dataclass(frozen=True, eq=False)
class Cover:
    """One division of the samples, with a model for each of its regions.

    None stands for a model that is elsewhere.
    """

    tree: Divides
    regions: Sequence[RegionModel | None]


class Question(NamedTuple):
    """What regions are asked: to decide, for probabilities, parts or trust."""

    about: str
    n_classes: int = 0


@dataclass(frozen=True, eq=False)
class Regions:
    """Models of all regions of one or several covers.

    Attributes
    ----------
    covers : list of Cover
    mixed : bool
        Whether decisions are means over several regions. They are then first brought to a scale
        that all regions share.
    n_tasks : int
    kernel_names : list of str
        Of all kernels of all regions.
    kernels : list of Kernel
        Bound kernels of one region, which tell the views that samples have.
    """

    covers: list[Cover]
    mixed: bool
    n_tasks: int
    kernel_names: list[str]
    kernels: list[Any]

    def decide(self, X: Any, samples: Any, threads: int) -> Array:
        """Decisions, (n_samples, n_tasks).

        Parameters
        ----------
        X : {array, CSR matrix} of shape (n_samples, n_features)
            What trees look at.
        samples : {array, CSR matrix, data frame}
            The same samples as the models of the regions take them.
        threads : int
        """
        return self.mean(Question("decide"), X, samples, threads)

    def probabilities(self, X: Any, samples: Any, n_classes: int, threads: int) -> Array:
        """Probabilities, (n_samples, n_classes); arguments as in :meth:`decide`."""
        return self.mean(Question("probabilities", n_classes), X, samples, threads)

    def parts(self, X: Any, samples: Any, threads: int) -> Array:
        """Parts of the kernels, (n_samples, n_tasks, n_kernels); arguments as in :meth:`decide`."""
        return self.mean(Question("parts"), X, samples, threads)

    def trust(self, X: Any, samples: Any, threads: int) -> Array:
        """Shares of the kernels, (n_samples, n_kernels); arguments as in :meth:`decide`."""
        told = self.mean(Question("trust"), X, samples, threads)
        # Where no model was learned, all kernels that a sample can see are trusted alike.
        present = None
        if self.kernels:
            present = split_missing(self.kernels, self.kernel_names, X)[1]
        return shares(told, present)

    def mean(self, question: Question, X: Any, samples: Any, threads: int) -> Array:
        """Ask the region of every sample; the mean of all that it belongs to.

        A region whose model is not here adds nothing: what several say who have some of the models
        each adds up to the whole.
        """
        shape = self.shape(question)
        total = np.zeros((X.shape[0], *shape))
        for cover in self.covers:
            asked = [
                (rows, weight, partial(self._ask, question.about, model, samples, rows))
                for (rows, weight), model in zip(cover.tree.divide(X), cover.regions, strict=True)
                if len(rows) and model is not None
            ]
            with single_threaded():
                told = run_calls([call for _, _, call in asked], threads)
            for (rows, weight, _), values in zip(asked, told, strict=True):
                if weight is not None:
                    values = values * weight.reshape(-1, *[1] * len(shape))
                total[rows] += values
        return total / len(self.covers) if len(self.covers) > 1 else total

    def shape(self, question: Question) -> tuple[int, ...]:
        """Shape of what is said about one sample."""
        kernels = len(self.kernel_names)
        return {
            "decide": (self.n_tasks,),
            "probabilities": (question.n_classes,),
            "parts": (self.n_tasks, kernels),
            "trust": (kernels,),
        }[question.about]

    def _ask(self, about: str, model: RegionModel, samples: Any, rows: Array) -> Array:
        own = take(samples, rows)
        if about == "decide":
            return model.bounded(own) if self.mixed else model.decide(own)
        if about == "probabilities":
            return model.probabilities(own)
        if about == "trust":
            return model.trust(own, self.kernel_names)
        return self._scaled_parts(model, own)

    def _scaled_parts(self, model: RegionModel, part: Any) -> Array:
        parts = model.parts(part, self.kernel_names)
        if not self.mixed:
            return parts
        decision = model.decide(part)
        none = np.zeros_like(decision)
        scale = np.divide(model.bounded(part), decision, out=none, where=decision != 0)
        return np.asarray(parts * scale[:, :, np.newaxis])


def take(samples: Any, rows: Array) -> Any:
    """Return some rows of an array, a CSR matrix or a data frame."""
    if len(rows) == samples.shape[0]:
        return samples
    return samples.iloc[rows] if hasattr(samples, "iloc") else samples[rows]


def _parts(fitted: Any, X: Any) -> Array:
    parts = np.asarray(fitted.contributions(X))
    return parts[:, np.newaxis] if parts.ndim == 2 else parts


def _by_name(values: Array, own: Sequence[str], names: Sequence[str]) -> Array:
    """Values of a model's own kernels among those of all models, 0 for the others."""
    if list(own) == list(names):
        return values
    every = np.zeros((*values.shape[:-1], len(names)))
    every[..., [list(names).index(name) for name in own]] = values
    return every
