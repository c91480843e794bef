"""PCK-LMKL: pairs count where a kernel's class probabilities agree."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lokl._arrays import Array, Samples, sample_weight
from lokl.base import Classifier, IterativeEstimator, Training, setting, settings
from lokl.base.model import CERTIFIED, FALLING, WEIGHTS_OF_NORM_ONE, AttributeDocs, GatedMachine
from lokl.base.settings import NORM, POSITIVE
from lokl.gates import WeightedGate
from lokl.gates.base import rescale_missing
from lokl.gram import Expansion, GatedGram
from lokl.gram.gated_kernel import average_kernel
from lokl.kernels import Kernel
from lokl.optimizers import NormBall, alternating
from lokl.solvers import Solver

# Of so many samples, evenly spaced, kernel values are looked at to see whether any is negative.
_LOOKED_AT = 500


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
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

    def __call__(self, samples: Samples) -> Array:
        n_classes = self.densities[0].n_functions
        p = np.zeros((samples.n_samples, len(self.densities), n_classes))
        for i, density in enumerate(self.densities):
            means = density(samples.seen_by(i))
            p[samples.rows_seen_by(i), i] = _shares(means, self.signed[i])
        return rescale_missing(p, samples.present)


@settings
class PCKLMKLClassifier(IterativeEstimator, Classifier):
    """Localized kernel learning with probability confidence kernels.

    ``k(x, z) = sum_i w_i <p_i(x), p_i(z)> k_i(x, z)``, where ``p_i(x)`` are class probabilities by
    a density estimate with kernel `i`: a kernel counts for a pair where it finds both in the same
    class. Weights of the kernels are learned as in l_p-norm MKL.

    Notes
    -----
    Training samples have no part in their own probabilities. Kernels with negative values are
    turned into cosines between 0 and 1 for the densities.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import PCKLMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = PCKLMKLClassifier(random_state=0).fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.95)
    True
    """

    p: float = setting(2.0, NORM, "Norm of the weights: 1 is sparse, larger is more even.")
    learn_tol: float = setting(
        1e-3, POSITIVE, "Relative duality gap of the weights that ends the rounds."
    )

    _weights_use_labels = True
    _own_attributes: ClassVar[AttributeDocs] = {
        "weights_": WEIGHTS_OF_NORM_ONE,
        "history_": FALLING,
        "duality_gap_": CERTIFIED,
    }

    def _learn(self, training: Training) -> GatedMachine:
        probabilities, own = training.cache.cached(
            "probabilities", lambda: _learn_probabilities(training)
        )
        # A new sample has no part in its own density, so a training sample has none either.
        base = rescale_missing(own, training.samples.present)
        objective = NormBall(
            machines=training.machines(resume="weights"),
            gram=training.gram(base, keep=True),
            base=base,
            p=float(self.p),
            first=training.cache.warm_start("weights"),
        )
        trace = self._run(alternating(objective, self.learn_tol))
        params = trace.last.params
        training.cache.store("weights", params)
        return training.model(
            WeightedGate(probabilities),
            params,
            trace.last.solution,
            weights_=params[0],
            **trace.summary(),
        )


def _learn_probabilities(training: Training) -> tuple[ClassProbabilities, Array]:
    """Densities of all kernels, and probabilities (n, n_kernels, n_classes) without oneself."""
    targets = training.targets
    if targets.shape[1] == 1:
        targets = np.hstack([-targets, targets])
    # Weights of the samples in the column of their class.
    member = (targets > 0) * training.weight[:, np.newaxis]
    own = np.zeros((training.n_samples, training.n_kernels, member.shape[1]))
    densities, signed = [], []
    for i, kernel in enumerate(training.kernels):
        rows = training.samples.rows_seen_by(i)
        samples = training.samples.seen_by(i)
        density, has_negative, probabilities = _density(
            kernel, samples, member[rows], training.solver
        )
        densities.append(density)
        signed.append(has_negative)
        own[rows, i] = probabilities
    return ClassProbabilities(densities, tuple(signed)), own


def _density(
    kernel: Kernel, samples: Samples, member: Array, solver: Solver
) -> tuple[Expansion, bool, Array]:
    """Density of every class under one kernel, and leave-one-out shares of its own samples."""
    inner = solver.inner_products(samples.filled)
    gram = inner.gated([kernel])
    signed = _has_negative(gram.exact)
    weight = sample_weight(samples)
    if signed:
        gram = inner.gated([kernel.normalized("unit_diag").bind(samples.filled, weight)])
    alone = average_kernel(gram.kernels)
    totals = member.sum(axis=0)
    coef = np.divide(member, totals, out=np.zeros_like(member), where=totals > 0)
    density = Expansion.make(alone, gram, coef, np.zeros(member.shape[1]))
    # Without the sample itself its class has less mass and lacks its similarity to itself.
    unit = member / np.maximum(weight, np.finfo(float).tiny)[:, np.newaxis]
    sums = gram.dot(coef) * totals - unit * gram.diag()[:, np.newaxis]
    rest = totals - unit
    means = np.divide(sums, rest, out=np.zeros_like(sums), where=rest > 1e-9)
    return density, signed, _shares(means, signed)


def _has_negative(gram: GatedGram) -> bool:
    """Whether a sample of the kernel's values has negative ones."""
    count = min(gram.n_samples, _LOOKED_AT)
    some = np.linspace(0, gram.n_samples - 1, count).astype(np.intp)
    return bool((gram.block(some) < 0).any())


def _shares(means: Array, signed: bool) -> Array:
    """Class probabilities from mean similarities; equal where there is no density."""
    means = 0.5 * (1.0 + means) if signed else np.maximum(means, 0.0)
    total = means.sum(axis=1, keepdims=True)
    even = np.full_like(means, 1.0 / means.shape[1])
    return np.asarray(np.divide(means, total, out=even, where=total > 0))
