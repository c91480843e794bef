"""PCK-LMKL: pairs count where a kernel's class probabilities agree."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.estimators.base import Training
from lokl.estimators.learned_gate import LearnedGate
from lokl.estimators.machine import Fitted, GatedClassifier
from lokl.estimators.validation import check_norm
from lokl.gates import Constant, Weighted
from lokl.gates.weighted import share_missing, weigh
from lokl.gram import Expansion, GatedGram, GatedKernel
from lokl.kernels import Kernel
from lokl.optimizers import closed_form


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Class probabilities by a kernel density estimate with each kernel: rank = classes.

    ``p_ic(x)`` is the mean similarity of kernel `i` to class `c`, over the sum of these means.
    Kernels with negative values are turned into ``(1 + cosine) / 2`` first.

    Attributes
    ----------
    densities : list of Expansion
        Mean similarity to every class, one for each kernel.
    signed : tuple of bool
        Whether a kernel has negative values.
    """

    densities: list[Expansion]
    signed: tuple[bool, ...]

    def __call__(self, X: Any, present: Array | None = None) -> Array:
        seen = np.ones((X.shape[0], len(self.densities)), bool) if present is None else present
        n_classes = self.densities[0].coef.shape[1]
        p = np.zeros((X.shape[0], len(self.densities), n_classes))
        for i, density in enumerate(self.densities):
            rows = np.flatnonzero(seen[:, i])
            if len(rows):
                p[rows, i] = _shares(density(X[rows]), self.signed[i])
        return share_missing(p, present)


@dataclass(eq=False, repr=False, kw_only=True)
class _PCKLMKL(LearnedGate):
    """Weights of the kernels in closed form, gates from densities."""

    p: float = 2.0

    def _check(self) -> None:
        super()._check()
        check_norm("p", self.p)

    def _learn(self, training: Training) -> Fitted:
        member = _members(training)
        densities, signed, own = [], [], []
        for i, kernel in enumerate(training.kernels):
            rows = training.with_view(i)
            density, is_signed, probabilities = _density(kernel, training, rows, member[rows])
            densities.append(density)
            signed.append(is_signed)
            full = np.zeros((training.n_samples, member.shape[1]))
            full[rows] = probabilities
            own.append(full)
        gate = Weighted(Probabilities(densities, tuple(signed)))
        # Training samples do not vote on themselves, as new samples do not.
        base = share_missing(np.stack(own, axis=1), training.present)
        m = len(training.kernels)
        start = np.full((1, m), m ** (-1.0 / self.p))
        machines = self._machines(training, weigh(base, start))
        path = closed_form(machines, base, p=float(self.p), tol=self.learn_tol, start=start)
        fitted = self._walk(path, machines, gate)
        self.weights_ = fitted.params[0]
        return fitted


def _members(training: Training) -> Array:
    """Weights of the samples in the column of their class, (n_samples, n_classes)."""
    targets = np.column_stack([problem.target for problem in training.problems])
    if targets.shape[1] == 1:
        targets = np.hstack([-targets, targets])
    return np.asarray((targets > 0) * training.weight[:, np.newaxis])


def _density(
    kernel: Kernel, training: Training, rows: Array, member: Array
) -> tuple[Expansion, bool, Array]:
    """Density of every class under one kernel, and leave-one-out shares of its own samples."""
    gate = Constant()
    X = training.X[rows]
    plain = GatedGram([kernel], X, np.ones((len(rows), 1)), dtype="float64")
    signed = _has_negative(plain)
    if signed:
        kernel = kernel.normalized("unit_diag").bind(X, training.weight[rows])
        plain = GatedGram([kernel], X, np.ones((len(rows), 1)), dtype="float64")
    totals = member.sum(axis=0)
    coef = np.divide(member, totals, out=np.zeros_like(member), where=totals > 0)
    expansion = Expansion.make(
        GatedKernel([kernel], gate, np.ones(1)), plain, coef, np.zeros(member.shape[1])
    )
    # One sample less in its own class: its mass and its similarity to itself are taken out.
    unit = member / np.maximum(training.weight[rows], np.finfo(float).tiny)[:, np.newaxis]
    sums = plain.dot(coef) * totals - unit * plain.diag()[:, np.newaxis]
    rest = totals - unit
    means = np.divide(sums, rest, out=np.zeros_like(sums), where=rest > 1e-9)
    return expansion, signed, _shares(means, signed)


def _has_negative(gram: GatedGram) -> bool:
    """Whether a sample of the kernel's values has negative ones."""
    some = np.linspace(0, gram.n_samples - 1, min(gram.n_samples, 500)).astype(np.intp)
    return bool((gram.block(some) < 0).any())


def _shares(means: Array, signed: bool) -> Array:
    """Class probabilities from mean similarities; equal where there is no density."""
    means = 0.5 * (1.0 + means) if signed else np.maximum(means, 0.0)
    total = means.sum(axis=1, keepdims=True)
    even = np.full_like(means, 1.0 / means.shape[1])
    return np.asarray(np.divide(means, total, out=even, where=total > 0))


@dataclass(eq=False, repr=False)
class PCKLMKLClassifier(_PCKLMKL, GatedClassifier):
    """Localized multiple kernel learning with probability confidence kernels."""
