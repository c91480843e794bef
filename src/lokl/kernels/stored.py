"""Kernels that users bring: stored matrices, functions, and scikit-learn's kernel objects."""

import sys
from collections.abc import Callable as Function
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array

from lokl._arrays import Array, as_dense, as_samples
from lokl.kernels.base import Kernel, Lookup

# Difference of mirrored entries that counts as rounding, as a share of the largest entry.
_ASYMMETRY = 1e-6


class Precomputed(Kernel):
    """A stored symmetric matrix over all samples; a sample is its row index.

    The data is the index column that :func:`precomputed` returns, so splitters, pipelines and grid
    searches work as with any other data. Copies share the matrix.

    Parameters
    ----------
    gram : array of shape (n_all, n_all)
        Kernel values of all pairs of samples, training and test.

    See Also
    --------
    lokl.kernels.precomputed : Makes such kernels, and the data that goes with them.
    lokl.kernels.Callable : Any function of two blocks of samples.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.kernels import Precomputed
    >>> kernel = Precomputed(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> kernel([[1]], [[0], [1]])
    array([[1., 3.]])
    """

    label = "precomputed"
    is_stored = True

    def __init__(self, gram: Any):
        self.gram = gram

    def __sklearn_clone__(self) -> "Precomputed":
        return Precomputed(self.gram)

    def __deepcopy__(self, memo: Any) -> "Precomputed":
        return Precomputed(self.gram)

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        gram = check_gram(self.gram)
        self._rows(X)
        return self if gram is self.gram else Precomputed(gram)

    def lookup(self, X: Any) -> Lookup:
        rows = self._rows(X)
        return Lookup(np.asarray(self.gram), rows, normalizers=np.ones(len(rows)))

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = self._rows(X)
        right = left if Z is None else self._rows(Z)
        values = np.asarray(self.gram)[np.ix_(left, right)]
        _check_finite(values, left, right)
        return values

    def diag(self, X: Any) -> Array:
        rows = self._rows(X)
        values = np.asarray(self.gram)[rows, rows]
        _check_finite(values[:, np.newaxis], rows)
        return values

    def _rows(self, X: Any) -> Array:
        """Return row indices (n_samples,) from the index column (n_samples, 1)."""
        X = as_dense(X)
        size = np.shape(self.gram)[0]
        if X.ndim != 2 or X.shape[1] != 1:
            raise ValueError(
                f"a precomputed kernel takes one column of row indices, got shape {X.shape}; "
                "use X from lokl.kernels.precomputed, or .on(column)"
            )
        rows = X[:, 0].astype(np.float64)
        bad = ~((rows >= 0) & (rows < size)) | (np.floor(rows) != rows)
        if bad.any():
            raise ValueError(
                f"row index {rows[bad][0]:g} is not in the stored {size} x {size} kernel matrix"
            )
        return rows.astype(np.intp)


class Callable(Kernel):
    """Any function of two blocks of samples: ``function(X, Z)`` returns the (n, p) values.

    Parameters
    ----------
    function : callable
        Symmetric and positive semidefinite. A model can be pickled if its functions can be.

    See Also
    --------
    lokl.kernels.DotKernel : Base for kernels that are functions of inner products.
    lokl.kernels.Precomputed : A stored matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.kernels import Callable
    >>> def overlap(X, Z):
    ...     return np.minimum(X[:, np.newaxis], Z[np.newaxis]).sum(axis=2)
    >>> Callable(overlap)(np.array([[1.0, 2.0], [3.0, 0.0]]))
    array([[3., 1.],
           [1., 3.]])
    """

    def __init__(self, function: Function[[Any, Any], Any]):
        self.function = function

    def __call__(self, X: Any, Z: Any = None) -> Array:
        Z = X if Z is None else Z
        values = np.asarray(self.function(X, Z), dtype=float)
        if values.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"the kernel function returned shape {values.shape} for "
                f"{X.shape[0]} and {Z.shape[0]} samples"
            )
        if not np.isfinite(values).all():
            raise ValueError("the kernel function returned NaN or infinity")
        return values

    def diag(self, X: Any) -> Array:
        return np.array([self(X[j : j + 1])[0, 0] for j in range(X.shape[0])])

    @property
    def label(self) -> str:
        return getattr(self.function, "__name__", "callable").strip("<>")


def precomputed(grams: Sequence[Any]) -> tuple[list[Precomputed], Array]:
    """Return kernels of stored matrices, and the index column that stands for the samples.

    Parameters
    ----------
    grams : sequence of arrays of shape (n, n)
        One symmetric matrix per kernel, over all samples.

    Returns
    -------
    kernels : list of Precomputed
        One for each matrix.
    X : array of shape (n, 1)
        Row indices; split it like any data.

    See Also
    --------
    lokl.kernels.Precomputed : The kernels that it returns.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.kernels import precomputed
    >>> kernels, X = precomputed([np.eye(3), np.ones((3, 3))])
    >>> X.ravel()
    array([0., 1., 2.])
    """
    if hasattr(grams, "shape") and len(grams.shape) == 2:
        raise ValueError("pass matrices as a list: precomputed([gram])")
    checked = [check_gram(gram) for gram in grams]
    sizes = {gram.shape[0] for gram in checked}
    if not sizes:
        raise ValueError(
            "kernel matrices over the same samples have one size, but there is no matrix; pass at "
            "least one: precomputed([gram])"
        )
    if len(sizes) != 1:
        raise ValueError(f"kernel matrices over the same samples have one size, got {sizes}")
    return [Precomputed(g) for g in checked], np.arange(sizes.pop(), dtype=float)[:, np.newaxis]


def check_gram(gram: Any) -> Array:
    """Return a stored matrix as an array; raise ValueError unless square, finite, symmetric."""
    gram = check_array(
        gram, dtype=[np.float64, np.float32], ensure_all_finite=False, input_name="gram"
    )
    if gram.shape[0] != gram.shape[1]:
        raise ValueError(
            "a precomputed kernel matrix must be square over all samples, got shape "
            f"{gram.shape}; store training and test samples in one matrix and split the index "
            "column"
        )
    _check_finite(gram, np.arange(len(gram)), np.arange(len(gram)))
    difference = np.abs(gram - gram.T).max()
    if difference > _ASYMMETRY * max(np.abs(gram).max(), np.finfo(float).tiny):
        raise ValueError(
            f"a precomputed kernel matrix must be symmetric, entries differ by {difference:.3g}; "
            "use (gram + gram.T) / 2 if that is rounding"
        )
    return np.asarray(gram)


def _check_finite(values: Array, rows: Array, columns: Array | None = None) -> None:
    """Raise ValueError if a block of a stored matrix, or its diagonal, has NaN or infinity.

    `rows` and `columns` are the indices of the block in the matrix; without `columns`, `values` is
    the diagonal as one column.
    """
    # A sum is not finite if an entry is not, and much cheaper than a test of each of them.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    bad = np.argwhere(~np.isfinite(values))
    if len(bad) == 0:
        return
    i, j = bad[0]
    row = rows[i]
    column = row if columns is None else columns[j]
    raise ValueError(
        f"a precomputed kernel matrix must be finite, but row {row}, column {column} is "
        f"{values[i, j]}; leave that sample out, or fill in its kernel values"
    )


class GaussianProcess(Kernel):
    """A kernel of ``sklearn.gaussian_process.kernels`` with its hyperparameters.

    Nothing is learned from data: an anisotropic or fitted kernel is used as it is, and its
    hyperparameters can be searched like any others, as ``kernel__length_scale``.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Without ``WhiteKernel``, which is noise and not a similarity of two samples. Estimators
        also take such a kernel without this class around it.

    See Also
    --------
    lokl.kernels.Matern : Without scikit-learn, and on shared distances.
    lokl.kernels.Callable : Any function of two blocks of samples.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> from lokl.kernels import GaussianProcess
    >>> GaussianProcess(Matern(nu=0.5))([[0.0], [0.0]])
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(self, kernel: Any):
        self.kernel = kernel

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        self._similarity()
        return self

    def __call__(self, X: Any, Z: Any = None) -> Array:
        X = as_dense(as_samples(X))
        return np.asarray(self._similarity()(X, X if Z is None else as_dense(as_samples(Z))))

    def diag(self, X: Any) -> Array:
        return np.asarray(self._similarity().diag(as_dense(as_samples(X))), dtype=float)

    @property
    def label(self) -> str:
        return str(self.kernel)

    def _similarity(self) -> Any:
        """Return the kernel; raise ValueError if it is not a similarity of two samples."""
        if not is_gaussian_process_kernel(self.kernel):
            raise ValueError(
                "GaussianProcess wraps a kernel of sklearn.gaussian_process.kernels, "
                f"got {self.kernel!r}"
            )
        for part in (self.kernel, *self.kernel.get_params(deep=True).values()):
            kind = type(part).__name__
            if kind == "WhiteKernel":
                raise ValueError(
                    f"{self.kernel} contains WhiteKernel, which is noise and not a similarity of "
                    "two samples; leave it out, noise is modelled by C"
                )
            if kind == "CompoundKernel":
                raise ValueError(
                    f"{self.kernel} is several kernels at once; pass them as a list, "
                    "kernels=compound.kernels"
                )
        return self.kernel


def is_gaussian_process_kernel(value: Any) -> bool:
    """Whether an object is a kernel of scikit-learn's Gaussian processes."""
    # Such a kernel exists only if its module is imported; other users do not pay for the import.
    module = sys.modules.get("sklearn.gaussian_process.kernels")
    return module is not None and isinstance(value, module.Kernel)
