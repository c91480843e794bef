"""PCK-LMKL: a kernel counts for a pair of samples if its class probabilities agree."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array, Samples, evenly_spaced, sample_weight
from lokl.base import Classifier, Training, settings
from lokl.base.model import GatedMachine
from lokl.gates import WeightedGate
from lokl.gates.base import normalized_weights, rescale_missing
from lokl.gram import Expansion, GatedGram
from lokl.gram.gated_kernel import average_kernel
from lokl.kernels import Kernel
from lokl.methods.lpmkl import LpMKL
from lokl.solvers import Solver

# Number of evenly spaced samples among which negative kernel values are looked for.
_SIGN_ROWS = 500


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
    """Class probabilities by a kernel density estimate with each kernel: rank = classes.

    ``p_ic(x)`` is the mean similarity of `x` to class `c` under kernel `i`, divided by the sum over
    all classes. Kernels with negative values are first replaced by ``(1 + cosine) / 2``.

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
        pairs = zip(self.densities, self.signed, strict=True)
        probabilities = [
            _normalized(density(samples.seen_by(i)), signed)
            for i, (density, signed) in enumerate(pairs)
        ]
        return rescale_missing(samples.by_kernel(probabilities), samples.present)


@settings
class PCKLMKLClassifier(LpMKL, Classifier):
    """Localized kernel learning with probability confidence kernels.

    ``k(x, z) = sum_i w_i <p_i(x), p_i(z)> k_i(x, z)``, where ``p_i(x)`` are class probabilities by
    a density estimate with kernel `i`. A kernel counts for a pair if it assigns both samples to the
    same class. Weights of the kernels are learned as in l_p-norm MKL.

    Notes
    -----
    Probabilities of training samples are leave-one-out estimates. For the densities, kernels with
    negative values are replaced by cosines scaled to [0, 1].

    References
    ----------
    .. [1] Y. Han, G. Liu. Probability-Confidence-Kernel-Based Localized Multiple Kernel Learning
       With Lp Norm. IEEE Transactions on Systems, Man, and Cybernetics, Part B 42, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import PCKLMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = PCKLMKLClassifier(random_state=0).fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    1.0
    """

    max_iter: int = 100

    _weights_use_labels = True

    def _learn(self, training: Training) -> GatedMachine:
        probabilities, left_out = training.cache.cached(
            "probabilities", lambda: _learn_probabilities(training)
        )
        # A new sample does not contribute to its density; training samples are treated the same.
        base = rescale_missing(left_out, training.samples.present)
        gate = WeightedGate(probabilities)
        return self._learn_weights(training, self._steps, gate=gate, base=base)


def _learn_probabilities(training: Training) -> tuple[ClassProbabilities, Array]:
    """Return densities of all kernels, and leave-one-out probabilities of the training samples.

    Probabilities are (n_samples, n_kernels, n_classes).
    """
    targets = training.targets
    if targets.shape[1] == 1:
        targets = np.hstack([-targets, targets])
    # Weights of the samples in the column of their class.
    member = (targets > 0) * training.weight[:, np.newaxis]
    samples = training.samples
    learned = [
        _density(kernel, samples.seen_by(i), member[samples.rows_seen_by(i)], training.solver)
        for i, kernel in enumerate(training.kernels)
    ]
    densities, signed, left_out = zip(*learned, strict=True)
    return ClassProbabilities(list(densities), signed), samples.by_kernel(left_out)


def _density(
    kernel: Kernel, samples: Samples, member: Array, solver: Solver
) -> tuple[Expansion, bool, Array]:
    """Return densities of the classes under one kernel, and leave-one-out probabilities."""
    inner = solver.inner_products(samples.filled)
    gram = inner.gated([kernel])
    signed = _has_negative(gram.exact)
    weight = sample_weight(samples)
    if signed:
        gram = inner.gated([kernel.normalized("unit_diag").bind(samples.filled, weight)])
    alone = average_kernel(gram.kernels)
    totals = member.sum(axis=0)
    coef = np.divide(member, totals, out=np.zeros_like(member), where=totals > 0)
    density = gram.expansion(alone, coef, np.zeros(member.shape[1]))
    # Without the sample itself its class has less mass and lacks its similarity to itself.
    unit = member / np.maximum(weight, np.finfo(float).tiny)[:, np.newaxis]
    sums = gram.dot(coef) * totals - unit * gram.diag()[:, np.newaxis]
    rest = totals - unit
    means = np.divide(sums, rest, out=np.zeros_like(sums), where=rest > 1e-9)
    return density, signed, _normalized(means, signed)


def _has_negative(gram: GatedGram) -> bool:
    """Return whether a kernel has negative values among some samples."""
    return bool((gram.block(evenly_spaced(gram.n_samples, _SIGN_ROWS)) < 0).any())


def _normalized(means: Array, signed: bool) -> Array:
    """Return class probabilities from mean similarities; equal if all densities are zero."""
    means = 0.5 * (1.0 + means) if signed else np.maximum(means, 0.0)
    return normalized_weights(means, None)
