"""Classes: what labels there are, and which sample has which."""

from numbers import Real

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from lokl._arrays import Array


def learned_classes(who: str, y: Array, weight: Array) -> tuple[Array, Array, int]:
    """Sort the classes; return them, the number of the class of every sample, and that of ties.

    Parameters
    ----------
    who : str
        The estimator that needs two classes, for the error.
    y : array of labels
    weight : array of shape (n_samples,)
    """
    y = column_or_1d(y, warn=True) if y.ndim == 2 else y
    classes, codes = sorted_classes(y)
    counts = np.bincount(codes, weights=weight, minlength=len(classes))
    if (counts > 0).sum() < 2:
        others = "; all other samples have a sample_weight of 0" if len(classes) > 1 else ""
        raise ValueError(
            f"{who} needs samples of two or more classes; the data has one class: "
            f"{classes[int(np.argmax(counts))]}{others}"
        )
    # Decision values of exactly zero go to the larger class, the later one of equal classes.
    tie = int(len(counts) - 1 - np.argmax(counts[::-1]))
    return classes, codes, tie


def decided_classes(decision: Array, classes: Array, tie: int) -> Array:
    """Return the classes that decisions (n_samples, n_tasks) are for."""
    if decision.shape[1] > 1:
        return np.asarray(classes[decision.argmax(axis=1)])
    chosen = np.where(decision[:, 0] == 0, tie, decision[:, 0] > 0)
    return np.asarray(classes[chosen.astype(np.intp)])


def sorted_classes(y: Array) -> tuple[Array, Array]:
    """Sort the classes; return them, and the number of the class of every sample."""
    if y.dtype == object:
        kinds = sorted({type(label).__name__ for label in y})
        if len(kinds) > 1 and not all(isinstance(label, Real) for label in y):
            raise ValueError(
                f"labels are of several types that have no common order: {', '.join(kinds)}; "
                "convert them to one type, for instance with y.astype(str)"
            )
        # Numbers as objects, as some tables have them, become numbers.
        y = np.array(y.tolist())
    # Whole numbers and words are labels without a doubt. Others are looked at by scikit-learn,
    # which takes half a millisecond, as long as a small machine takes to learn.
    discrete = y.dtype.kind in "biuUS" or (y.dtype.kind == "f" and bool((y == np.rint(y)).all()))
    if not discrete:
        check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    # All that can be said against these is that they are too many.
    if discrete and 2 * len(classes) > len(y):
        check_classification_targets(y)
    return classes, codes
