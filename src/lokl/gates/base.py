"""Gating functions: how much each kernel counts at each sample.

A gate gives values ``h_i(x) >= 0`` with which the kernels are combined. This module has the
protocol of all gates, gates with parameters (constant, softmax, sigmoid, Gaussian, one row per
group), gates whose shape is known and whose weights are learned, and the helpers that treat missing
views. Gate values and their gradients are (n_samples, n_kernels). `X` has 0 instead of NaN before
it is used.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator

from lokl._arrays import Array, Samples, as_dense, squared_norms

# Smallest width of a Gaussian gate; scores divide by its square.
_MIN_WIDTH = 1e-3


class Gate(BaseEstimator, ABC):
    """Gating function ``h_i(x) >= 0`` of every kernel at every sample.

    The gated kernel is ``k(x, z) = sum_i <h_i(x), h_i(z)> k_i(x, z)``, where ``h_i(x)`` is a
    number (rank 1) or a vector of `rank` numbers. A gate stores settings only. Learned parameters
    are arrays that the caller keeps and passes to every call.

    Attributes
    ----------
    sums_to_one : bool
        Whether the gate values of a sample sum to one over the kernels.
    is_constant : bool
        Whether gate values are equal for all samples that have all views.

    See Also
    --------
    lokl.gates.SoftmaxGate : Kernels compete, linear in the sample.
    lokl.gates.SigmoidGate : Kernels do not compete.
    lokl.gates.GaussianGate : Kernels compete by distance to centres.
    lokl.gates.RepresentationGate : A gate on a representation of the samples.
    lokl.LMKLClassifier : Learns a gate together with the SVM.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gates import SoftmaxGate
    >>> gate, X = SoftmaxGate(), np.array([[-1.0], [1.0]])
    >>> params = gate.init(X, n_kernels=2, rng=np.random.RandomState(0))
    >>> params.shape
    (2, 2)
    >>> gate(X, params).sum(axis=1)
    array([1., 1.])
    """

    sums_to_one = False
    is_constant = False

    @abstractmethod
    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        """Return start parameters for gating samples like `X`."""

    @abstractmethod
    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        """Return gate values, (n_samples, n_kernels) or (n_samples, n_kernels, rank).

        Parameters
        ----------
        X : {array, CSR matrix} of shape (n_samples, n_features)
            NaN for missing views.
        params : array
            As made by :meth:`init`.
        present : boolean array of shape (n_samples, n_kernels), optional
            False if a sample lacks the view of a kernel. The gate is 0 there, and the other gates
            of the sample are scaled up to make up for it.
        """

    def at(self, samples: Samples, params: Array) -> Array:
        """Return gate values of samples, shaped as in :meth:`__call__`."""
        return self(samples.given, params, samples.present)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        """Return the gradient in the parameters from the gradient in the gate values.

        Parameters
        ----------
        X : {array, CSR matrix} of shape (n_samples, n_features)
        params : array
        H : array of shape (n_samples, n_kernels)
            Gate values at `params`.
        G : array of shape (n_samples, n_kernels)
            Gradient ``dJ/dH``.

        Returns
        -------
        gradient : array with the shape of `params`
        """
        raise TypeError(f"{type(self).__name__} gates are not learned by gradient")

    def project(self, params: Array) -> Array:
        """Return the nearest feasible parameters."""
        return params

    def on(self, columns: Any) -> "GateOn":
        """Return this gate on some columns: names, positions, slice, mask or selector."""
        return GateOn(self, columns)

    def kernel_weights(self, H: Array) -> Array:
        """Return the weight of each kernel, (n_samples, n_kernels), from gate values.

        Weights are not negative. They sum to one only after :func:`normalized_weights`.
        """
        return H if H.ndim == 2 else H.sum(axis=2)


class GateOn(BaseEstimator):
    """A gate and the columns it reads: a setting of methods that learn gates.

    Parameters
    ----------
    gate : Gate
        Gating function of the columns; ``gate.on(columns)`` makes the same object.
    columns : str, int, slice, sequence of them, boolean mask or selector
        Columns that the gate reads. Names need a data frame.

    See Also
    --------
    lokl.gates.Gate : Gates that ``gate.on(columns)`` applies to.
    lokl.LMKLClassifier : Learns a gate together with the SVM.

    Examples
    --------
    >>> from lokl import LMKLClassifier
    >>> from lokl.datasets import make_two_regions
    >>> from lokl.gates import SoftmaxGate
    >>> X, y = make_two_regions(100, random_state=0)
    >>> gate = SoftmaxGate().on([0])
    >>> model = LMKLClassifier(["poly2", "rbf"], gate=gate, random_state=0).fit(X, y)
    >>> model.weights(X).shape
    (100, 2)
    """

    def __init__(self, gate: Gate, columns: Any):
        self.gate = gate
        self.columns = columns


class ComposedGate(Gate):
    """Base of gates that call other learned functions of the samples.

    Such functions need the samples both as given and as the kernels read them. A subclass
    therefore implements :meth:`at` instead of :meth:`__call__`.
    """

    @abstractmethod
    def at(self, samples: Samples, params: Array) -> Array: ...

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        return self.at(Samples.of(X, present), params)


class WeightedGate(ComposedGate):
    """Known gate values times learned weights: ``h_ir(x) = sqrt(w_gi) b_ir(x)``.

    Several methods differ only in the known values ``b``: memberships of clusters (C-LMKL),
    regressed success (SwMKL, LD-MKL), a choice of kernels for each sample (SAMKL), agreement of
    class probabilities (PCK-LMKL), or equal values (the global methods). Parameters are the
    weights, (n_groups, n_kernels).

    Parameters
    ----------
    base : callable
        Takes :class:`~lokl._arrays.Samples` and returns ``b`` of shape (n_samples, n_kernels) or
        (n_samples, n_kernels, rank), 0 for missing views.
    by_rank : bool, default=False
        Whether each rank has its own group of weights. Otherwise all ranks share one group.

    See Also
    --------
    lokl.gates.ConstantGate : Weights alone.
    lokl.gates.GroupGate : One row of weights for each group.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl._arrays import Samples
    >>> from lokl.gates import WeightedGate
    >>> def base(samples):
    ...     return np.full((samples.n_samples, 2), 0.5)
    >>> gate = WeightedGate(base)
    >>> gate.at(Samples.of(np.zeros((1, 3))), np.array([[1.0, 4.0]]))
    array([[0.5, 1. ]])
    """

    def __init__(self, base: Callable[[Samples], Array], by_rank: bool = False):
        self.base = base
        self.by_rank = by_rank

    @property
    def is_constant(self) -> bool:  # type: ignore[override]
        """Whether the known values are equal."""
        return isinstance(self.base, EqualGates)

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        groups = self.base(Samples.of(X[:1])).shape[2] if self.by_rank else 1
        return np.ones((groups, n_kernels))

    def at(self, samples: Samples, params: Array) -> Array:
        return apply_weights(self.base(samples), params)

    def project(self, params: Array) -> Array:
        return np.maximum(params, 0.0)

    def kernel_weights(self, H: Array) -> Array:
        return np.asarray((H**2).sum(axis=2) if H.ndim == 3 else H**2)


@dataclass(frozen=True)
class EqualGates:
    """Gate values of 1 for all kernels at all samples: the known part of a global gate."""

    n_kernels: int

    def __call__(self, samples: Samples) -> Array:
        return rescale_missing(np.ones((samples.n_samples, self.n_kernels)), samples.present)


class ConstantGate(Gate):
    """The same value at every sample: ``h_i = sqrt(mu_i)``.

    Parameters are the weights ``mu`` themselves, (n_kernels,). The gradient in ``h`` is singular
    at 0, the gradient in ``mu`` is not.

    Parameters
    ----------
    weights : array-like of shape (n_kernels,), optional
        Start weights; None is ``1 / n_kernels`` each.

    See Also
    --------
    lokl.gates.WeightedGate : Known values times learned weights.
    lokl.SimpleMKLClassifier : Learns constant weights.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gates import ConstantGate
    >>> ConstantGate()(np.zeros((1, 3)), np.array([0.25, 0.75])).round(3)
    array([[0.5  , 0.866]])
    """

    is_constant = True

    def __init__(self, weights: Any = None):
        self.weights = weights

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        if self.weights is None:
            return np.full(n_kernels, 1.0 / n_kernels)
        weights = np.array(self.weights, dtype=float)
        if weights.shape != (n_kernels,) or not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(
                f"ConstantGate needs {n_kernels} finite weights >= 0, one per kernel, got {weights}"
            )
        return weights

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        mu = np.broadcast_to(params, (X.shape[0], len(params)))
        if present is not None:
            kept = np.where(present, mu, 0.0)
            total = kept.sum(axis=1, keepdims=True)
            mu = kept * np.divide(params.sum(), total, out=np.zeros_like(total), where=total > 0)
        return np.sqrt(mu)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        # With h = sqrt(mu): dJ/dmu = dJ/dh / (2 h). At h = 0 the quotient is 0/0; gradients in h
        # never move a weight away from zero.
        slope = np.divide(0.5 * G, H, out=np.zeros_like(G), where=H > 0)
        # A sample that lacks views has mu_i T / P, with T the sum of all weights and P the sum of
        # the present ones. For complete samples T = P, and only the slope is left.
        present = (H > 0) | (params == 0)
        total, kept = params.sum(), (present * params).sum(axis=1, keepdims=True)
        inverse = np.divide(1.0, kept, out=np.zeros_like(kept), where=kept > 0)
        common = (slope * params).sum(axis=1, keepdims=True) * inverse
        gradient = slope * total * inverse + common * (1.0 - total * inverse * present)
        return np.asarray(gradient.sum(axis=0))

    def project(self, params: Array) -> Array:
        return np.maximum(params, 0.0)

    def kernel_weights(self, H: Array) -> Array:
        return np.asarray(H**2)


class LinearGate(Gate):
    """Base of gates that are functions of linear scores ``<v_i, x> + v_i0``.

    Parameters of the gate are (n_features + 1, n_kernels) with the intercepts in the last row.

    Parameters
    ----------
    scale : float, default=1e-2
        Start values are uniform on ``[-scale, scale]``; the small noise breaks the symmetry of
        equal kernels.
    """

    def __init__(self, scale: float = 1e-2):
        self.scale = scale

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        size = (X.shape[1] + 1, n_kernels)
        return np.asarray(rng.uniform(-self.scale, self.scale, size=size))

    @staticmethod
    def scores(X: Any, params: Array) -> Array:
        """Return ``<v_i, x> + v_i0``, (n_samples, n_kernels)."""
        return np.asarray(fill_missing(X) @ params[:-1] + params[-1])

    @staticmethod
    def scores_pullback(X: Any, D: Array) -> Array:
        """Return the gradient in the parameters from the gradient `D` in the scores."""
        return np.vstack([fill_missing(X).T @ D, D.sum(axis=0)])


class SoftmaxGate(LinearGate):
    """Kernels compete: ``h_i(x) = softmax_i(<v_i, x> + v_i0)``.

    Parameters
    ----------
    scale : float, default=1e-2
        Start values are uniform on ``[-scale, scale]``; the small noise breaks the symmetry of
        equal kernels.

    See Also
    --------
    lokl.gates.SigmoidGate : Kernels do not compete.
    lokl.gates.GaussianGate : Kernels compete by distance to centres.
    lokl.LMKLClassifier : Learns a gate together with the SVM.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gates import SoftmaxGate
    >>> gate = SoftmaxGate()
    >>> gate(np.array([[-1.0], [1.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])).round(3)
    array([[0.269, 0.731],
           [0.731, 0.269]])
    """

    sums_to_one = True

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        return masked_softmax(self.scores(X, params), present)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        return self.scores_pullback(X, softmax_pullback(H, G))


class SigmoidGate(LinearGate):
    """Kernels do not compete: ``h_i(x) = 1 / (1 + exp(-<v_i, x> - v_i0))``.

    Parameters
    ----------
    scale : float, default=1e-2
        Start values are uniform on ``[-scale, scale]``.

    See Also
    --------
    lokl.gates.SoftmaxGate : Kernels compete, linear in the sample.
    lokl.gates.GaussianGate : Kernels compete by distance to centres.
    lokl.LMKLClassifier : Learns a gate together with the SVM.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gates import SigmoidGate
    >>> gate = SigmoidGate()
    >>> gate(np.array([[-1.0], [1.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])).round(3)
    array([[0.269, 0.5  ],
           [0.731, 0.5  ]])
    """

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        H = expit(self.scores(X, params))
        return np.asarray(H if present is None else np.where(present, H, 0.0))

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        return self.scores_pullback(X, G * H * (1.0 - H))


class GaussianGate(Gate):
    """Kernels compete by distance to a centre: ``h_i(x) = softmax_i(-|x - c_i|^2 / s_i^2)``.

    Parameters of the gate are the centres with the widths in the last row,
    (n_features + 1, n_kernels).

    Parameters
    ----------
    width : float, default=1.0
        Start value of every width ``s_i``. Centres start at distinct random samples.

    See Also
    --------
    lokl.gates.SoftmaxGate : Kernels compete, linear in the sample.
    lokl.gates.SigmoidGate : Kernels do not compete.
    lokl.LMKLClassifier : Learns a gate together with the SVM.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gates import GaussianGate
    >>> gate = GaussianGate()
    >>> gate(np.array([[-1.0], [1.0]]), np.array([[-1.0, 1.0], [1.0, 1.0]])).round(3)
    array([[0.982, 0.018],
           [0.018, 0.982]])
    """

    sums_to_one = True

    def __init__(self, width: float = 1.0):
        self.width = width

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        rows = rng.choice(X.shape[0], size=n_kernels, replace=n_kernels > X.shape[0])
        centres = as_dense(fill_missing(X)[rows])
        return np.vstack([centres.T, np.full(n_kernels, float(self.width))])

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        X = fill_missing(X)
        return masked_softmax(-_squared_distances(X, params[:-1]) / params[-1] ** 2, present)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        X, centres, widths = fill_missing(X), params[:-1], params[-1]
        D = softmax_pullback(H, G)
        towards = X.T @ D - centres * D.sum(axis=0)
        spread = (D * _squared_distances(X, centres)).sum(axis=0)
        return np.vstack([2.0 * towards / widths**2, 2.0 * spread / widths**3])

    def project(self, params: Array) -> Array:
        projected = params.copy()
        projected[-1] = np.maximum(params[-1], _MIN_WIDTH)
        return projected


def _squared_distances(X: Any, centres: Array) -> Array:
    """Return squared distances (n_samples, n_kernels) to centres (n_features, n_kernels)."""
    norms = X.squared_norms() if hasattr(X, "squared_norms") else squared_norms(X)
    norms = norms[:, np.newaxis] + (centres**2).sum(axis=0)
    return np.maximum(norms - 2.0 * (X @ centres), 0.0)


class GroupGate(Gate):
    """One row of weights for each group of samples: ``h_i(x) = w_{c(x), i}``, summing to one.

    Its input is the group ``c(x)`` of each sample, an array of integers of shape (n_samples,), as
    a :class:`~lokl.gates.RepresentationGate` provides it. Parameters are the weights,
    (n_groups, n_kernels).

    Parameters
    ----------
    n_groups : int
        Number of groups, which is the number of rows of the weights.

    See Also
    --------
    lokl.gates.RepresentationGate : Computes the group of each sample.
    lokl.GSMKLClassifier : Learns the weights of each group.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gates import GroupGate
    >>> weights = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> GroupGate(n_groups=2)(np.array([0, 1, 1]), weights).round(3)
    array([[0.9, 0.1],
           [0.2, 0.8],
           [0.2, 0.8]])
    """

    sums_to_one = True

    def __init__(self, n_groups: int):
        self.n_groups = n_groups

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        return np.full((self.n_groups, n_kernels), 1.0 / n_kernels)

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        H = params[X]
        if present is None:
            return np.asarray(H)
        # If the group has weights only for views that the sample lacks, its views count equally.
        shared = normalized_weights(np.where(present, H, 0.0), present)
        return np.where(present.all(axis=1, keepdims=True), H, shared)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        weights = params[X]
        present = (H > 0) | (weights == 0)
        total = (weights * present).sum(axis=1, keepdims=True)
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        # The weights of a sample that lacks views are divided by the sum of the present ones.
        through = present * inverse * (G - (G * H).sum(axis=1, keepdims=True))
        slopes = np.where(present.all(axis=1, keepdims=True), G, through)
        gradient = np.zeros_like(params)
        np.add.at(gradient, X, slopes)
        return gradient

    def project(self, params: Array) -> Array:
        return project_simplex(params)


def project_simplex(rows: Array) -> Array:
    """Return the nearest points with non-negative entries that sum to one, row by row."""
    ordered = -np.sort(-rows, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = (ordered > excess).sum(axis=1) - 1
    return np.maximum(rows - excess[np.arange(len(rows)), last][:, np.newaxis], 0.0)


def apply_weights(base: Array, weights: Array) -> Array:
    """Return ``sqrt(w_gi) b_ir``.

    Parameters
    ----------
    base : array of shape (n_samples, n_kernels) or (n_samples, n_kernels, rank)
    weights : array of shape (n_groups, n_kernels)
        One group for each rank, or one group for all ranks.
    """
    if base.ndim == 2:
        return np.asarray(base * np.sqrt(weights[0]))
    return np.asarray(base * np.sqrt(weights.T))


def rescale_missing(base: Array, present: Array | None) -> Array:
    """Return gate values with 0 for missing views and the rest scaled up to the same norm.

    The factor is ``sqrt(m / m_x)`` for a sample with ``m_x`` of ``m`` views. It does not depend on
    learned weights, so problems that are convex in the weights stay convex.

    Parameters
    ----------
    base : array of shape (n_samples, n_kernels) or (n_samples, n_kernels, rank)
    present : boolean array of shape (n_samples, n_kernels), optional
    """
    if present is None:
        return base
    n_present = present.sum(axis=1)
    factor = present * np.sqrt(present.shape[1] / np.maximum(n_present, 1))[:, np.newaxis]
    return np.asarray(base * (factor if base.ndim == 2 else factor[:, :, np.newaxis]))


def normalized_weights(weights: Array, present: Array | None) -> Array:
    """Scale the kernel weights of every sample, (n_samples, n_kernels), to sum one.

    If all weights of a sample are zero, which gates that do not sum to one allow, the kernels
    whose views the sample has get equal weights.
    """
    total = weights.sum(axis=1, keepdims=True)
    available = np.ones(weights.shape) if present is None else present
    equal = available / np.maximum(available.sum(axis=1, keepdims=True), 1)
    return np.divide(weights, total, out=equal, where=total > 0)


def fill_missing(X: Any) -> Any:
    """Return samples with 0 for NaN: a view that a sample lacks does not affect its gate."""
    if isinstance(X, np.ndarray) and np.isnan(X).any():
        return np.where(np.isnan(X), 0.0, X)
    return X


def masked_softmax(scores: Array, present: Array | None) -> Array:
    """Return the row-wise softmax of scores over the present kernels, exactly 0 for the others."""
    if present is not None:
        scores = np.where(present, scores, -np.inf)
    return np.asarray(softmax(scores, axis=1))


def softmax_pullback(H: Array, G: Array) -> Array:
    """Return ``dJ/dscores`` from ``dJ/dH`` for a row-wise softmax `H`, (n_samples, n_kernels)."""
    return np.asarray(H * (G - (G * H).sum(axis=1, keepdims=True)))
