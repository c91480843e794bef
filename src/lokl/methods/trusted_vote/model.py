"""A vote of calibrated experts, each trusted as far as it knows samples like this one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lokl._arrays import Array, Samples
from lokl._threads import multiply
from lokl.base.model import AttributeDocs, Model, SupportSet
from lokl.gram import Expansion, mixing
from lokl.gram.plan import Points
from lokl.kernels import Kernel
from lokl.methods.trusted_vote.evidence import Heard, Panel
from lokl.methods.trusted_vote.neighbourhood import Closeness, LocalSuccess, Neighbours, Novelty
from lokl.methods.trusted_vote.outcomes import Classes

# Numbers of one block of samples: kernel values, and probabilities of all outcomes.
_BLOCK = 2**22
_FEWEST, _MOST = 16, 8192


@dataclass(frozen=True, eq=False)
class Statement:
    """What the machine of one kernel says about samples that have its view."""

    decision: Array  # (n_samples, n_tasks)
    part: Array  # (n_samples, n_tasks), in the machine of all kernels, own gate left out
    neighbours: Neighbours


@dataclass(frozen=True, eq=False)
class TrustedExpert:
    """The machine of one kernel, and what the kernel has seen.

    Attributes
    ----------
    name : str
        Of the kernel.
    kernel : Kernel
    support : array of int
        Training samples that carry it.
    coef : array of shape (n_known, n_tasks)
        Signed coefficients.
    together : array of shape (n_known, n_tasks)
        Coefficients of this kernel in the machine of all kernels; zero where that is not asked.
    intercept : array of shape (n_tasks,)
    known : Points or None
        Training samples that it looks at: all that have the view where neighbours are asked for,
        else those with a coefficient. None where no training sample has the view.
    closeness : Closeness
    novelty : Novelty or None
        None where new samples are as familiar as any.
    success : tuple of LocalSuccess
        One for each question, empty where the temperature is the same everywhere.
    n_neighbors : int
    machine : Expansion or None
        Functions of all coefficients where features of low rank stand for the kernel, and the
        samples that it looks at are for neighbours only.
    """

    name: str
    kernel: Kernel
    support: Array
    coef: Array
    together: Array
    intercept: Array
    known: Points | None
    closeness: Closeness
    novelty: Novelty | None
    success: tuple[LocalSuccess, ...]
    n_neighbors: int
    machine: Expansion | None = None

    @property
    def looks_around(self) -> bool:
        """Whether neighbours matter."""
        return self.novelty is not None or bool(self.success)

    def ask(self, samples: Samples) -> Statement:
        """Ask about samples that all have the view."""
        n, n_tasks = samples.n_samples, len(self.intercept)
        if self.known is None or n == 0:
            nobody = Neighbours(np.empty((n, 0), np.intp), np.empty((n, 0)))
            return Statement(np.zeros((n, n_tasks)), np.zeros((n, n_tasks)), nobody)
        count = self.n_neighbors if self.looks_around else 0
        new = Points.make(self.known.plan, samples.filled, np.ones((n, 1)))
        K = mixing.block(new, self.known)
        if self.machine is None:
            columns = np.hstack([self.coef, self.together]).astype(K.dtype)
            sums = multiply(K, np.ascontiguousarray(columns)).astype(float)
        else:
            sums = self.machine(samples)
        near = self.closeness(K, mixing.diag(new), mixing.diag(self.known)) if count else K
        decision = sums[:, :n_tasks] + self.intercept
        return Statement(decision, sums[:, n_tasks:], Neighbours.among(near, count))

    @property
    def residual(self) -> Array:
        """How far features of low rank miss the kernel, (1,)."""
        return np.zeros(1) if self.machine is None else self.machine.residual

    def familiar(self, neighbours: Neighbours) -> Array:
        """How far samples with such neighbours are known, from 0 to 1."""
        if self.known is None:
            return np.zeros(len(neighbours.index))
        return np.ones(len(neighbours.index)) if self.novelty is None else self.novelty(neighbours)

    def local(self, neighbours: Neighbours, n_panels: int) -> Array:
        """Local success in each question, (n_samples, n_panels)."""
        if not self.success:
            return np.zeros((len(neighbours.index), n_panels))
        return np.column_stack([success(neighbours) for success in self.success])


@dataclass(frozen=True, eq=False)
class TrustedVote(Model):
    """``S(y) = r log prior(y) + sum_i w_i B_i(y)`` with bounded evidence ``B`` of each kernel.

    ``r`` is one where nothing is heard, and learned where all kernels are.
    """

    experts: list[TrustedExpert]
    panels: list[Panel]
    base: Array  # (n_tasks,), intercept of the machine of all kernels
    support: SupportSet
    objective: float  # sum of the dual values of all machines
    n_iter: int

    shares_intercept: ClassVar[bool] = False
    attribute_docs: ClassVar[AttributeDocs] = {
        "experts_": (
            "list of TrustedExpert",
            "One for each kernel: its machine, and what the kernel has seen.",
        ),
        **Model.attribute_docs,
        "dual_coef_": (
            "array of shape (n_kernels, n_support) or (n_kernels, n_machines, n_support)",
            "Signed coefficients of the experts.",
        ),
        "intercept_": (
            "array of shape (n_machines,)",
            "The decision without evidence: log frequencies of the classes (two classes: of their "
            "ratio), or the mean target.",
        ),
        "weights_": (
            "array of shape (n_kernels,)",
            "Weight of each kernel in the vote, the mean over several targets; 1 if not learned.",
        ),
        "joint_weight_": ("float", "Weight of what all kernels know only together."),
        "prior_weight_": (
            "float",
            "How often the frequencies of classes count where all kernels are heard; where none "
            "is, they count once, as those of numbers do everywhere.",
        ),
        "history_": ("array", "Dual objective, summed over the machines."),
    }

    @property
    def n_tasks(self) -> int:
        return len(self.base)

    def decide(self, samples: Samples) -> Array:
        return self._of_all(samples, lambda panel, heard: panel.decide(heard))

    def contributions(self, samples: Samples) -> Array:
        return self._of_all(samples, lambda panel, heard: panel.parts(heard))

    def weights(self, samples: Samples) -> Array:
        return self.trust(samples)

    def trust(self, samples: Samples) -> Array:
        """Probability that each kernel speaks to the matter, the mean over several targets."""
        return self._mean(samples, lambda panel, heard: panel.trust(heard))

    def disagreement(self, samples: Samples) -> Array:
        """How far kernels contradict each other, (n_samples,)."""
        return self._mean(samples, lambda panel, heard: panel.disagreement(heard))

    def familiar(self, samples: Samples) -> Array:
        """How far kernels know samples like these, (n_samples, n_kernels)."""
        return np.concatenate([heard.familiar for heard in self._heard(samples)])

    def opinions(self, samples: Samples) -> Array:
        """Probabilities of the classes by each kernel alone, (n_samples, n_kernels, n_classes)."""

        def ask(panel: Panel, heard: Heard) -> Array:
            assert isinstance(panel.outcomes, Classes), "numeric targets have no classes"
            return panel.outcomes.of_all_classes(panel.opinions(heard))

        return self._of_all(samples, ask)

    def _of_all(self, samples: Samples, ask: Callable[[Panel, Heard], Array]) -> Array:
        """Answers of all panels side by side, block by block."""
        blocks = [
            np.concatenate([ask(panel, heard) for panel in self.panels], axis=-1)
            for heard in self._heard(samples)
        ]
        return np.concatenate(blocks)

    def _mean(self, samples: Samples, ask: Callable[[Panel, Heard], Array]) -> Array:
        blocks = [
            np.mean([ask(panel, heard) for panel in self.panels], axis=0)
            for heard in self._heard(samples)
        ]
        return np.concatenate(blocks)

    def _heard(self, samples: Samples) -> Iterator[Heard]:
        """What the machines say, some samples at a time."""
        known = [expert.known.n_samples for expert in self.experts if expert.known is not None]
        outcomes = max(len(panel.outcomes.prior) for panel in self.panels)
        size = max(*known, len(self.experts) * outcomes, 1)
        step = int(np.clip(_BLOCK // size, _FEWEST, _MOST))
        for start in range(0, max(samples.n_samples, 1), step):
            rows = np.arange(start, min(start + step, samples.n_samples))
            yield self.hear(samples.take(rows))

    def hear(self, samples: Samples) -> Heard:
        """Ask the machines of all kernels."""
        n, m = samples.n_samples, len(self.experts)
        present = np.ones((n, m), bool) if samples.present is None else samples.present
        heard = blank(present, self.n_tasks, len(self.panels), self.base)
        # The gate of the machine of all kernels: views that are there share its trust.
        gate = 1.0 / np.sqrt(present.sum(axis=1))
        for i, expert in enumerate(self.experts):
            rows = samples.rows_seen_by(i)
            said = expert.ask(samples.seen_by(i))
            heard.decision[rows, i] = said.decision
            heard.part[rows, i] = gate[rows, np.newaxis] * said.part
            heard.familiar[rows, i] = expert.familiar(said.neighbours)
            heard.local[rows, i] = expert.local(said.neighbours, len(self.panels))
        return heard

    def attributes(self) -> dict[str, Any]:
        places = self.support.places
        coef = np.zeros((len(self.experts), self.n_tasks, len(places)))
        order = np.argsort(places)
        for i, expert in enumerate(self.experts):
            carried = order[np.searchsorted(places, expert.support, sorter=order)]
            own = expert.coef[(expert.coef != 0).any(axis=1)]
            coef[i][:, carried] = own.T
        return {
            "experts_": self.experts,
            "kernels_": [expert.kernel for expert in self.experts],
            "kernel_names_": [expert.name for expert in self.experts],
            **self.support.attributes(),
            "dual_coef_": coef[:, 0] if self.n_tasks == 1 else coef,
            "intercept_": np.concatenate([panel.outcomes.intercept for panel in self.panels]),
            "weights_": np.mean([panel.weights for panel in self.panels], axis=0),
            "joint_weight_": float(np.mean([panel.joint_weight for panel in self.panels])),
            "prior_weight_": float(np.mean([panel.prior_weight for panel in self.panels])),
            "kernel_residual_": np.concatenate([expert.residual for expert in self.experts]),
            "history_": np.array([self.objective]),
            "n_iter_": self.n_iter,
        }


def blank(present: Array, n_tasks: int, n_panels: int, base: Array) -> Heard:
    """Return room for what machines say about samples that have some views."""
    n, m = present.shape
    return Heard(
        np.zeros((n, m, n_tasks)),
        np.zeros((n, m, n_tasks)),
        np.broadcast_to(base, (n, n_tasks)),
        np.zeros((n, m)),
        present,
        np.zeros((n, m, n_panels)),
    )
