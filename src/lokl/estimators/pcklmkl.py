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
        fitted = self._walk(path, machines.gram, gate)
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
    """Localized kernel learning with probability confidence kernels.

    ``k(x, z) = sum_i w_i <p_i(x), p_i(z)> k_i(x, z)``, where ``p_i(x)`` are class probabilities by
    a density estimate with kernel `i`: a kernel counts for a pair where it finds both in the same
    class. Weights of the kernels are learned as in l_p-norm MKL.

    Parameters
    ----------
    kernels : list or mapping of kernels, str or None, default=None
        None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`).
        A mapping gives the kernels names.
    C : float, default=1.0
        Cost of margin violations.
    p : float, default=2.0
        Norm of the weights: 1 is sparse, larger is more even.
    solver : {"exact", "libsvm", "mwu"} or Solver, default="exact"
    tol : float, default=1e-3
        Largest violation of the optimality conditions that a machine leaves.
    max_iter : int, default=100
        Limit on the rounds of the method, -1 for none.
    learn_tol : float, default=1e-3
        Relative duality gap of the weights that ends the rounds.
    callback : callable, optional
        Called with every :class:`~lokl.optimizers.Step`; the method stops when it returns True.
    cache_size : float, default=512
        Megabytes for rows of the Gram matrix.
    class_weight : dict, "balanced" or None, default=None
        Factors of `C` by class.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Not used by this method; common to all.
    verbose : int, default=0
        1 logs a line for every round to the logger ``lokl``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    kernel_ : GatedKernel
        The learned kernel, usable wherever a kernel is: ``SVC(kernel=model.kernel_)``.
    kernels_, kernel_names_ : list
        Kernels with learned settings, and their names.
    support_ : array of shape (n_support,)
        Rows of the training samples that carry a machine.
    support_vectors_ : {array, CSR matrix} of shape (n_support, n_features)
    dual_coef_ : array of shape (n_machines, n_support)
        Signed coefficients; one machine for two classes, else one for each class.
    intercept_ : array of shape (n_machines,)
    support_fraction_ : float
    weights_ : array of shape (n_kernels,)
    history_ : array
        Objective after every round, falling.
    duality_gap_ : float
        Certified distance from the optimum of machines and weights together.
    n_iter_ : int
        Rounds.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the training samples came with column names.

    Notes
    -----
    Training samples have no part in their own probabilities. Kernels with negative values are
    turned into cosines between 0 and 1 for the densities.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lokl import PCKLMKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), PCKLMKLClassifier(random_state=0)).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """
