"""Weights of single columns in models of linear kernels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, slices
from lokl._frames import need_pandas
from lokl.explain.results import SummaryTable
from lokl.explain.views import feature_names, last_step
from lokl.kernels import Kernel, Linear, Normalized, Sum, View

_SHOWN = 10
# Residual of a kernel that is rounding alone; columns that are computed at a time.
_ROUNDING, _BLOCK = 1e-6, 1024


@dataclass(frozen=True, eq=False)
class FeatureWeights:
    """Weights of columns: ``decision = X @ coef.T + intercept`` for samples with all views.

    Attributes
    ----------
    coef : array of shape (n_tasks, n_features)
        Signed weight of each column. A task is the second of two classes, a class against the rest,
        or a target.
    intercept : array of shape (n_tasks,)
    parts : array of shape (n_kernels, n_tasks, n_features)
        Weights by kernel, 0 for columns that a kernel does not read; their sum is `coef`.
    kernels, features : tuple of str
        Names of kernels and of columns.
    tasks : tuple
        Names of the classes, or indices of the targets.
    kind : {"class", "target"}
    reads : tuple of tuple of int
        Columns that each kernel reads.

    See Also
    --------
    lokl.explain.feature_weights : Computes them.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import feature_weights
    >>> from lokl.kernels import Linear, per_view
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> X[:] = scale(X)
    >>> kernels = per_view(Linear(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> weights = feature_weights(UniformMKLClassifier(kernels).fit(X, y))
    >>> weights.coef.shape
    (3, 13)
    >>> list(weights.largest(2).rows)
    ['color_intensity', 'proline']
    """

    coef: Array
    intercept: Array
    parts: Array
    kernels: tuple[str, ...]
    features: tuple[str, ...]
    tasks: tuple[Any, ...]
    kind: str
    reads: tuple[tuple[int, ...], ...]

    def to_frame(self) -> Any:
        """Return a data frame (pandas): kernel and column down, classes or targets across."""
        pandas = need_pandas("to_frame")
        rows = [(i, c) for i, own in enumerate(self.reads) for c in own]
        index = pandas.MultiIndex.from_tuples(
            [(self.kernels[i], self.features[c]) for i, c in rows], names=["kernel", "column"]
        )
        values = np.array([self.parts[i, :, c] for i, c in rows])
        return pandas.DataFrame(values, index, pandas.Index(self.tasks, name=self.kind))

    def largest(self, count: int = _SHOWN) -> SummaryTable:
        """Return the columns with the largest weights, over all kernels and classes."""
        order = np.argsort(-np.abs(self.coef).max(axis=0), kind="stable")[:count]
        return SummaryTable(
            f"Weights of the {len(order)} leading columns of {len(self.features)}, by {self.kind}",
            "column",
            tuple(self.features[c] for c in order),
            {str(task): self.coef[t, order] for t, task in enumerate(self.tasks)},
        )

    def __str__(self) -> str:
        return str(self.largest())

    __repr__ = __str__


def feature_weights(model: Any) -> FeatureWeights:
    """Return signed weights of single columns in the decisions of a model of linear kernels.

    With linear kernels and the same weights for all samples (UniformMKL, LpMKL, SimpleMKL, GMKL,
    EasyMKL, MWUMKL) the decision is linear in the columns. Scales that kernels have learned
    (``normalized("mean_diag")`` or ``"trace"``) are undone: weights refer to the columns that the
    estimator receives. In a pipeline these are the transformed columns; if they are standardised,
    weights are comparable.

    Parameters
    ----------
    model : fitted estimator of lokl, or a fitted pipeline that ends in one
        All kernels are ``Linear()``, alone or on columns, in sums, or normalised by a number.
        ``normalized("unit_diag")`` and ``Cosine()`` divide each sample by its own norm, so that the
        weight of a column differs between samples; they raise ValueError.

    Returns
    -------
    weights : FeatureWeights
        ``weights.coef`` is an array like ``coef_`` of scikit-learn, ``weights.to_frame()`` a table.

    See Also
    --------
    lokl.explain.column_contributions : For all other kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import feature_weights
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> from lokl.kernels import Linear
    >>> model = UniformMKLClassifier({"acids": Linear().on([0, 1, 2, 3, 4])}).fit(X, y == 0)
    >>> feature_weights(model).coef.round(1)
    array([[ 1.3, -0.3,  1.2, -1.7,  0.1,  0. ,  0. ,  0. ,  0. ,  0. ,  0. ,
             0. ,  0. ]])
    """
    estimator: Any = last_step(model)
    check_is_fitted(estimator)
    learned = getattr(estimator, "kernel_", None)
    if learned is None or not learned.gate.is_constant:
        raise ValueError(
            f"{type(estimator).__name__} weights kernels differently for each sample, so that the "
            "weight of a column is not constant; use contributions(X) for each kernel, or "
            "UniformMKL, LpMKL or another global method"
        )
    n_features = int(estimator.n_features_in_)
    for kernel, name in zip(estimator.kernels_, estimator.kernel_names_, strict=True):
        _check_linear(kernel, name)
    if (estimator.kernel_residual_ > _ROUNDING).any():
        # Low-rank features are linear in the columns, but differ from those of the kernel.
        parts = _column_contributions(estimator, n_features)
    else:
        samples = learned.samples(estimator.support_vectors_)
        gates = learned.gates(samples).reshape(samples.n_samples, -1)
        # All samples with all views have the same gate values, (n_kernels,).
        complete = learned.samples(np.zeros((1, n_features)))
        gate = np.asarray(learned.gates(complete)).ravel()
        # f(x) = sum_i h_i(x) sum_j u_j h_i(x_j) <x_j, D_i x>, and D_i is k_i at the unit vectors.
        units = sparse.eye_array(n_features, format="csr")
        parts = np.array(
            [
                gate[i]
                * kernel.diag(units)
                * np.asarray((estimator.dual_coef_ * gates[:, i]) @ samples.filled)
                for i, kernel in enumerate(estimator.kernels_)
            ]
        )
    kind, tasks = estimator._tasks()
    return FeatureWeights(
        parts.sum(axis=0),
        np.asarray(estimator.intercept_, dtype=float),
        parts,
        tuple(estimator.kernel_names_),
        feature_names(model, n_features),
        tuple(tasks)[-parts.shape[1] :],
        kind,
        tuple(_reads(kernel, n_features) for kernel in estimator.kernels_),
    )


def _column_contributions(estimator: Any, n_features: int) -> Array:
    """Return contributions of kernels at the unit vectors, (n_kernels, n_tasks, n_features)."""
    blocks = []
    for block in slices(n_features, _BLOCK):
        units = np.eye(block.stop - block.start, n_features, block.start)
        samples = estimator.kernel_.samples(units)
        blocks.append(estimator._model.contributions(samples))
    return np.concatenate(blocks).transpose(1, 2, 0)


def _reads(kernel: Kernel, n_features: int) -> tuple[int, ...]:
    used = kernel.columns_used()
    return tuple(range(n_features)) if used is None else tuple(used)


def _check_linear(kernel: Kernel, name: str) -> None:
    """Raise ValueError unless ``k(x, z) = sum_c d_c x_c z_c``."""
    if isinstance(kernel, Normalized) and kernel.how == "unit_diag":
        raise ValueError(
            f"kernel {name!r} divides each sample by its own norm, so that the weight of a "
            "column is not constant; use normalized('mean_diag'), or Linear() after "
            "sklearn.preprocessing.Normalizer in a pipeline"
        )
    if isinstance(kernel, Normalized | View):
        _check_linear(kernel.kernel, name)
    # Products of kernels derive from sums.
    elif type(kernel) is Sum:
        _check_linear(kernel.left, name)
        _check_linear(kernel.right, name)
    elif not isinstance(kernel, Linear):
        raise ValueError(
            f"feature_weights needs linear kernels, and {name!r} is {type(kernel).__name__}; use "
            "Linear(), or view_importance(model, X, y, of='columns') for any kernel"
        )
