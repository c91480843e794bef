"""LMKL: a gate learned by gradient, together with the SVM."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lokl._arrays import Array, Samples, sample_weight
from lokl._parameters import check_choice, check_not_negative
from lokl.base import Classifier, IterativeEstimator, Regressor, Training, setting, settings
from lokl.base.model import GatedMachine
from lokl.base.settings import FLAG, Rule, anything, check_unless, learning_tolerance
from lokl.gates import Gate, GateOn, GaussianGate, RepresentationGate, SigmoidGate, SoftmaxGate
from lokl.gates.representation import OfGiven, Quadratic, Standardized
from lokl.gram import Expansion
from lokl.gram.gated_kernel import average_kernel
from lokl.kernels import Kernel
from lokl.kernels.columns import resolve_columns
from lokl.optimizers import GateObjective, line_search
from lokl.solvers import Solver

_GATES: dict[str, Any] = {"softmax": SoftmaxGate, "sigmoid": SigmoidGate, "gaussian": GaussianGate}
_GATINGS = ("auto", "input", "quadratic", "kernel_pca")
# With `snap`, smaller weights become 0.
_SNAP = 1e-3
# The smallest power of ten at which gates on kernel-PCA scores are the same for every seed and the
# models about as accurate as the average of the kernels, on four multi-view sets with more columns
# than samples.
_RIDGE = 1e3
# Samples that span the components of kernel PCA; of more samples, some are drawn.
_PCA_SAMPLES = 500
# Components with less than this share of the largest variance are rounding.
_PCA_NOISE = 1e-9


@settings
class _LMKL(IterativeEstimator):
    """Minimise the optimal dual objective over the parameters ``V`` of a gate.

    Attributes
    ----------
    history_ : array
        Objective after every round, falling.
    duality_gap_ : float
        NaN: the problem is not convex, so the distance from the optimum is unknown.
    """

    gate: Any = setting(
        "softmax",
        anything('{"softmax", "sigmoid", "gaussian"} or Gate'),
        "Kind of gate. ``SoftmaxGate().on(columns)`` looks at some columns only.",
    )
    gating: Any = setting(
        "auto",
        anything('{"auto", "input", "quadratic", "kernel_pca"} or callable'),
        "Input of the gate: the standardised columns; these with their squares and products; or "
        'leading kernel-PCA scores under the average kernel. "auto" is "input", or "kernel_pca" '
        "if columns outnumber samples or samples are row numbers of precomputed kernels. A "
        "function receives the samples.",
    )
    snap: bool = setting(True, FLAG, "Whether weights below 0.001 become 0, above 0.999 one.")
    ridge: Any = setting(
        "auto",
        Rule('float or "auto"', partial(check_unless, check_not_negative, "auto")),
        'Penalty ``ridge / 2 |V|^2`` on the parameters of the gate. "auto" is 0, or 1000 for '
        "kernel-PCA scores if columns outnumber samples: such a gate would memorise the labels.",
    )
    learn_tol: float = learning_tolerance()

    _weights_use_labels = True

    def _check_combinations(self, solver: Solver) -> None:
        super()._check_combinations(solver)
        self._gate_and_columns()
        if not callable(self.gating):
            check_choice("gating", self.gating, _GATINGS)

    def _gate_and_columns(self) -> tuple[Gate, Any]:
        """Return the gate and the columns of its input, None for the default."""
        given = self.gate
        columns = None
        if isinstance(given, GateOn):
            given, columns = given.gate, given.columns
        if isinstance(given, str) and given in _GATES:
            given = _GATES[given]()
        if not isinstance(given, Gate):
            known = ", ".join(_GATES)
            raise ValueError(f"gate must be a Gate or one of {known}, got {given!r}")
        return given, columns

    def _learn(self, training: Training) -> GatedMachine:
        kind, columns = self._gate_and_columns()
        gating, positions = self._gate_input(training, columns)
        representation = self._representation(training, gating, positions)
        gate = RepresentationGate(kind, representation, _SNAP if self.snap else 0.0)
        Z = representation(training.samples)
        start = kind.project(kind.init(Z, training.n_kernels, training.rng))
        present, ridge = training.samples.present, self._penalty(training, gating)
        gram = training.gram(gate.values(Z, start, present), keep=True)
        objective = GateObjective(training.machines(), gram, gate, Z, present, start, ridge)
        trace = self._run(line_search(objective, self.learn_tol))
        return trace.model(training, gate)

    def _gate_input(self, training: Training, columns: Any) -> tuple[Any, Array | None]:
        """Return the kind of gate input, never "auto", and the positions of its columns."""
        samples, gating = training.samples, self.gating
        if callable(gating) or (gating == "kernel_pca" and columns is None):
            return gating, None
        if columns is not None:
            positions = resolve_columns(columns, samples.table)
            return "input" if gating == "auto" else gating, positions
        numbers = _row_numbers(training)
        features = [j for j in range(samples.n_features) if j not in numbers]
        if gating == "auto":
            pca = not features or _few(training, len(features))
            gating = "kernel_pca" if pca else "input"
        elif not features:
            raise ValueError(
                f"gating={gating!r} cannot look at row numbers of precomputed kernels; use "
                "gating='kernel_pca', or add columns of features and give gate.on(columns)"
            )
        return gating, np.array(features, dtype=np.intp) if numbers else None

    def _representation(self, training: Training, gating: Any, positions: Array | None) -> Any:
        """Return the input of the gate as a function of samples."""
        samples = training.samples
        if callable(gating):
            return OfGiven(gating)
        if gating == "kernel_pca":
            return KernelScores.learn(training.kernels, samples, training.rng)
        kind = Quadratic if gating == "quadratic" else Standardized
        return OfGiven(kind.learn(samples.given, training.weight, positions))

    def _penalty(self, training: Training, gating: Any) -> float:
        """Return the ridge penalty."""
        if self.ridge != "auto":
            return float(self.ridge)
        few = gating == "kernel_pca" and _few(training, training.samples.n_features)
        return _RIDGE if few else 0.0


def _few(training: Training, n_columns: int) -> bool:
    """Return whether columns outnumber samples; a weight of 2 equals a repeated row."""
    return bool(n_columns > training.weight.sum())


def _row_numbers(training: Training) -> set[int]:
    """Return the columns that are row numbers of stored matrices."""
    every = range(training.samples.n_features)
    stored = (kernel.columns_used() for kernel in training.kernels if kernel.is_stored)
    return {column for columns in stored for column in (every if columns is None else columns)}


@settings
class LMKLClassifier(_LMKL, Classifier):
    """Localized multiple kernel learning: a gate learned together with the SVM.

    ``f(x) = sum_j u_j sum_i h_i(x_j) h_i(x) k_i(x_j, x) + b``, where the gate ``h_i(x)`` weights
    kernel `i` at `x`. The optimal dual objective is minimised over the parameters of the gate by
    gradient descent with line search. Every step solves the SVMs again, from a warm start.

    Notes
    -----
    The problem is not convex; another `random_state` may lead to another solution. With several
    classes or targets all SVMs share one gate.

    References
    ----------
    .. [1] M. Gönen, E. Alpaydin. Localized Multiple Kernel Learning. International Conference on
       Machine Learning (ICML), 2008.
    .. [2] M. Gönen, E. Alpaydin. Localized Algorithms for Multiple Kernel Learning. Pattern
       Recognition 46:795-807, 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import LMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = LMKLClassifier(gating="kernel_pca", random_state=0).fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    1.0
    >>> model.weights(scale(X)).shape
    (178, 3)
    """


@settings
class LMKLRegressor(_LMKL, Regressor):
    """Localized multiple kernel learning for one or several numeric targets.

    References
    ----------
    .. [1] M. Gönen, E. Alpaydin. Localized Multiple Kernel Learning. International Conference on
       Machine Learning (ICML), 2008.
    .. [2] M. Gönen, E. Alpaydin. Localized Algorithms for Multiple Kernel Learning. Pattern
       Recognition 46:795-807, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import LMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = LMKLRegressor(["linear", "rbf"], C=10, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> round(model.score(X, np.sin(X[:, 0])), 2)
    0.99
    """


@dataclass(frozen=True, eq=False)
class KernelScores:
    """Leading kernel-PCA scores under the average kernel, standardised.

    Attributes
    ----------
    components : Expansion
        Scores of a sample.
    scale : Standardized
    """

    components: Expansion
    scale: Standardized

    @classmethod
    def learn(
        cls,
        kernels: Sequence[Kernel],
        samples: Samples,
        rng: np.random.RandomState,
        n_components: int = 10,
    ) -> "KernelScores":
        """Learn components from at most 500 samples, drawn by their weight."""
        n, weight = samples.n_samples, sample_weight(samples)
        kernel = average_kernel(kernels)
        gram = kernel.gram(samples, dtype="float64")
        rows, row_weight = np.arange(n), weight
        if n > _PCA_SAMPLES:
            share = weight / weight.sum()
            rows = np.sort(rng.choice(n, size=_PCA_SAMPLES, replace=False, p=share))
            row_weight = np.ones(_PCA_SAMPLES)
        loads, offset = principal_components(gram.block(rows), row_weight, n_components)
        coef = np.zeros((n, loads.shape[1]))
        coef[rows] = loads
        components = gram.expansion(kernel, coef, offset)
        return cls(components, Standardized.learn(components(samples), weight))

    def __call__(self, samples: Samples) -> Array:
        return np.asarray(self.scale(self.components(samples)))


def principal_components(K: Array, weight: Array, n_components: int) -> tuple[Array, Array]:
    """Compute leading principal components in feature space from a kernel matrix.

    Parameters
    ----------
    K : array of shape (n_samples, n_samples)
    weight : array of shape (n_samples,)
        A weight of 2 counts like the sample written twice.
    n_components : int
        Number of components at most; components without variance are left out.

    Returns
    -------
    coef : array of shape (n_samples, n_components)
    offset : array of shape (n_components,)
        The scores of a sample with kernel values ``k``, (n_samples,), are ``k @ coef + offset``.
    """
    share = weight / weight.sum()
    means = K @ share
    centred = K - means - means[:, np.newaxis] + share @ means
    root = np.sqrt(share)
    values, vectors = np.linalg.eigh(root[:, np.newaxis] * centred * root)
    keep = np.flatnonzero(values > _PCA_NOISE * max(values[-1], 0.0))[::-1][:n_components]
    loads = root[:, np.newaxis] * vectors[:, keep] / np.sqrt(values[keep])
    # Signs of eigenvectors are arbitrary: the largest score is made positive. Scores, unlike loads,
    # do not depend on whether a row is written twice or has a weight of 2.
    scores = loads / share[:, np.newaxis]
    loads *= np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(len(keep))])
    coef = loads - np.outer(share, loads.sum(axis=0))
    return coef, -(means @ coef)
