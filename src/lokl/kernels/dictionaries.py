"""Lists of kernels: ready-made dictionaries, and the kernels that users pass to an estimator.

A user may pass kernels, words such as "rbf", functions of two arrays, and kernels of scikit-learn's
Gaussian processes. :func:`named_kernels` turns all of them into kernels with unique names.
"""

from collections import Counter
from collections.abc import Callable as Function
from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.base import clone
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from lokl.kernels.base import Kernel
from lokl.kernels.columns import column_names
from lokl.kernels.dot import RBF, Chi2, Cosine, Laplacian, Linear, Polynomial, Sigmoid
from lokl.kernels.stored import Callable, GaussianProcess, is_gaussian_process_kernel

# Words stand for kernels that also suit unscaled columns.
_WORDS: dict[str, Function[[], Kernel]] = {
    "linear": Linear,
    "poly2": lambda: Polynomial(2, "scale"),
    "poly3": lambda: Polynomial(3, "scale"),
    "poly": lambda: Polynomial(3, "scale"),
    "polynomial": lambda: Polynomial(3, "scale"),
    "rbf": RBF,
    "laplacian": Laplacian,
    "cosine": Cosine,
    "sigmoid": lambda: Sigmoid("scale"),
    "chi2": Chi2,
}
WORDS = (*_WORDS, *sorted(PAIRWISE_KERNEL_FUNCTIONS.keys() - _WORDS.keys()))


def is_one_kernel(value: Any) -> bool:
    """Whether a value stands for one kernel and not for a list or mapping of kernels."""
    if isinstance(value, str | Kernel) or is_gaussian_process_kernel(value):
        return True
    return callable(value) and not isinstance(value, type | Mapping | Iterable)


def as_kernel(value: Any) -> Kernel:
    """Return the kernel that a value stands for; raise ValueError if it stands for none."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, str):
        if value in _WORDS:
            return _WORDS[value]()
        if value in PAIRWISE_KERNEL_FUNCTIONS:
            return Callable(PAIRWISE_KERNEL_FUNCTIONS[value])
    if is_gaussian_process_kernel(value):
        return GaussianProcess(value)
    reject_matrix(value)
    if isinstance(value, type):
        raise ValueError(f"unknown kernel {value!r}; pass an object, {value.__name__}()")
    if callable(value):
        return Callable(value)
    raise ValueError(
        f"unknown kernel {value!r}; pass a Kernel, a function of two arrays, or one of "
        f"{', '.join(WORDS)}"
    )


def reject_matrix(value: Any) -> None:
    """Raise ValueError if a matrix is passed instead of kernels."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and not isinstance(value, Kernel):
        raise ValueError(
            f"a kernel matrix of shape {shape} is not a kernel; kernels, X = "
            "lokl.kernels.precomputed([gram]) returns kernels and the samples that go with them"
        )


def rbf_ladder(low: int = -4, high: int = 4) -> list[Kernel]:
    """Return RBF kernels with gamma from ``2^low`` to ``2^high``, a factor of two apart.

    Together they cost little more than one: the values of each are the squares of the values of
    the one before.

    Parameters
    ----------
    low, high : int
        Exponents of the first and the last gamma.

    Returns
    -------
    kernels : list of RBF
        One kernel for each exponent, from the widest to the narrowest.

    See Also
    --------
    lokl.kernels.RBF : Gaussian of the Euclidean distance.
    lokl.kernels.standard : Linear, quadratic and RBF kernels.

    Examples
    --------
    >>> from lokl.kernels import rbf_ladder
    >>> [kernel.gamma for kernel in rbf_ladder(-1, 2)]
    [0.5, 1.0, 2.0, 4.0]
    """
    if high < low:
        raise ValueError(f"rbf_ladder needs low <= high, got low={low}, high={high}")
    return [RBF(2.0**power) for power in range(low, high + 1)]


def standard() -> list[Kernel]:
    """Return linear, quadratic and RBF kernels on scales that also suit unscaled data.

    Returns
    -------
    kernels : list of Kernel
        The default of ``kernels`` in all estimators.

    See Also
    --------
    lokl.kernels.rbf_ladder : RBF kernels of several widths.
    lokl.kernels.per_view : One copy of a kernel for each view.

    Examples
    --------
    >>> from lokl.kernels import standard
    >>> [kernel.label for kernel in standard()]
    ['linear', 'poly2', 'rbf']
    """
    return [Linear().normalized("mean_diag"), Polynomial(2).normalized("mean_diag"), RBF("scale")]


def per_feature(kernel: Kernel, X: Any) -> dict[str, Kernel]:
    """Return one copy of `kernel` for each column of `X`, by the column's name.

    Parameters
    ----------
    kernel : Kernel
        Kernel to copy.
    X : {array, sparse matrix, data frame} of shape (n_samples, n_features)
        Without column names, positions are the names.

    Returns
    -------
    kernels : dict of str to Kernel
        By name of the column.

    See Also
    --------
    lokl.kernels.per_view : One copy of a kernel for each view.
    lokl.kernels.per_gene_set : One copy for each gene set.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.kernels import RBF, per_feature
    >>> list(per_feature(RBF(1.0), np.zeros((5, 3))))
    ['0', '1', '2']
    """
    names = column_names(X) or [str(j) for j in range(X.shape[1])]
    return _unique([(name, clone(kernel).on([j])) for j, name in enumerate(names)])


def per_view(kernel: Kernel, views: Mapping[str, Any]) -> dict[str, Kernel]:
    """Return one copy of `kernel` for each named group of columns.

    Parameters
    ----------
    kernel : Kernel
        Kernel to copy.
    views : mapping of str to columns
        Columns as in :meth:`Kernel.on`, for example from :func:`lokl.join_views`.

    Returns
    -------
    kernels : dict of str to Kernel
        By name of the view, for ``kernels`` of an estimator.

    See Also
    --------
    lokl.kernels.per_feature : One copy for each column.
    lokl.kernels.per_gene_set : One copy for each gene set.
    lokl.join_views : Tables joined by id, with their columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.kernels import Laplacian, per_view
    >>> kernels = per_view(Laplacian("median"), {"sepal": [0, 1], "petal": [2, 3]})
    >>> model = UniformMKLClassifier(kernels).fit(*load_iris(return_X_y=True))
    >>> model.kernel_names_
    ['sepal', 'petal']
    """
    return {name: clone(kernel).on(columns) for name, columns in views.items()}


def named_kernels(kernels: Any) -> dict[str, Kernel]:
    """Return kernels by unique name.

    Parameters
    ----------
    kernels : list, mapping, one kernel, or None
        Values are anything that :func:`as_kernel` takes; None is :func:`standard`.
    """
    if kernels is None:
        kernels = standard()
    if is_one_kernel(kernels):
        kernels = [kernels]
    reject_matrix(kernels)
    if isinstance(kernels, Mapping):
        named = {str(name): as_kernel(kernel) for name, kernel in kernels.items()}
        if len(named) < len(kernels):
            raise ValueError(f"kernels have distinct names, got {[str(name) for name in kernels]}")
    elif isinstance(kernels, Iterable):
        named = _unique([(k if isinstance(k, str) else None, as_kernel(k)) for k in kernels])
    else:
        raise ValueError(f"kernels must be a list or mapping of kernels, got {kernels!r}")
    if not named:
        raise ValueError(
            "kernels is empty; pass at least one kernel, or None for the standard three"
        )
    return named


def _unique(kernels: list[tuple[str | None, Kernel]]) -> dict[str, Kernel]:
    """Return kernels by their given name or label, numbered if several have the same."""
    labels = [given or kernel.label for given, kernel in kernels]
    counts, named = Counter(labels), {}
    for label, (_, kernel) in zip(labels, kernels, strict=True):
        name, suffix = label, 0
        while name in named or counts[label] > 1 > suffix or (suffix and name in counts):
            suffix += 1
            name = f"{label} #{suffix}"
        named[name] = kernel
    return named
