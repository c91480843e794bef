"""Whom a model trusts for whom: samples down, kernels across; and what decided one sample."""

from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.inspection.plotting import pyplot
from lokl.kernels.presence import split_missing

# Longest name on an axis that does not run into its neighbour.
_NAME = 24


def plot_trust(model: Any, X: Any, y: Any = None, *, marked: Any = None, ax: Any = None) -> Any:
    """Draw how far each kernel is trusted at each sample.

    Parameters
    ----------
    model : fitted estimator
        Its ``trust(X)`` is drawn, or ``gate(X)`` where it has none.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array of shape (n_samples,), default=None
        Samples of a class stand together.
    marked : boolean array of shape (n_samples, n_kernels), default=None
        Places with a dot, such as views that are known to be wrong.
    ax : matplotlib axes, default=None
        Where to draw; None is a figure of its own.

    Returns
    -------
    matplotlib.axes.Axes
        Views that a sample lacks are hatched.
    """
    plt = pyplot()
    trust, names = _trust(model, X), list(model.kernel_names_)
    order, labels = _by_class(y, len(trust))
    if ax is None:
        _, ax = plt.subplots(figsize=(1.2 + 1.1 * len(names), 5.0), constrained_layout=True)
    absent = _absent(model, X, trust.shape)
    ax.set_facecolor("white")
    ax.patch.set(hatch="////", edgecolor="0.6")
    shown = np.ma.array(trust[order], mask=absent[order])
    image = ax.imshow(shown, aspect="auto", vmin=0, vmax=1, cmap="viridis", interpolation="none")
    ax.set_xticks(range(len(names)), [str(name)[:_NAME] for name in names])
    ax.set_ylabel("samples" if labels is None else "samples by class")
    _mark_classes(ax, labels)
    if marked is not None:
        rows, kernels = np.nonzero(np.asarray(marked, dtype=bool)[order])
        ax.plot(kernels, rows, linestyle="", marker="o", markersize=3, color="tab:red")
    ax.figure.colorbar(image, ax=ax, label="trust" if hasattr(model, "trust") else "gate")
    return ax


def plot_sample(model: Any, x: Any, *, ax: Any = None) -> Any:
    """Draw what each kernel contributes to the decision about one sample.

    Parameters
    ----------
    model : fitted classifier or regressor
    x : {array-like, sparse matrix} of shape (1, n_features)
        One sample.
    ax : matplotlib axes, default=None
        Where to draw; None is a figure of its own.

    Returns
    -------
    matplotlib.axes.Axes
        A bar for the intercept and each kernel, each of which starts where the last one ended. Of
        several classes, the predicted one against the runner-up.
    """
    plt = pyplot()
    parts = np.asarray(model.contributions(x))
    if len(parts) != 1:
        raise ValueError(f"one sample is drawn, got {len(parts)}; take one with X[[number]]")
    heights, title = _towards(model, x, parts[0])
    names = ["start", *(str(name)[:_NAME] for name in model.kernel_names_)]
    if ax is None:
        _, ax = plt.subplots(figsize=(6.0, 0.9 + 0.45 * len(names)), constrained_layout=True)
    begins = np.concatenate([[0.0], np.cumsum(heights)[:-1]])
    colours = ["0.6", *(f"C{k % 10}" for k in range(len(names) - 1))]
    places = np.arange(len(names))
    bars = ax.barh(places, heights, left=begins, color=colours)
    # A bar alone does not show which way it leads.
    ax.bar_label(bars, [f"{height:+.2g}" for height in heights], padding=3, fontsize=8)
    end = float(np.sum(heights))
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.axvline(end, color="black", linewidth=0.8, linestyle=":")
    ax.use_sticky_edges = False  # bars end inside of the frame, with room for their labels
    ax.margins(x=0.18)
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.set_title(title)
    ax.set_xlabel(f"decision {end:.3g}")
    return ax


def _towards(model: Any, x: Any, parts: Array) -> tuple[Array, str]:
    """Return intercept and parts of the decision that is drawn, and what it is about."""
    intercept = np.atleast_1d(model.intercept_)
    if not hasattr(model, "classes_"):
        return np.concatenate([intercept[:1], parts.reshape(-1, parts.shape[-1])[0]]), "prediction"
    classes = model.classes_
    if parts.ndim == 1:
        sign = 1.0 if np.ravel(model.decision_function(x))[0] >= 0 else -1.0
        first, second = (1, 0) if sign > 0 else (0, 1)
        heights = sign * np.concatenate([intercept[:1], parts])
    else:
        second, first = np.argsort(model.decision_function(x)[0], kind="stable")[-2:]
        heights = np.concatenate(
            [[intercept[first] - intercept[second]], parts[first] - parts[second]]
        )
    return heights, f"{classes[first]} rather than {classes[second]}"


def _trust(model: Any, X: Any) -> Array:
    trust = np.asarray(model.trust(X) if hasattr(model, "trust") else model.gate(X))
    # Gates of several classes are drawn as their mean.
    return trust if trust.ndim == 2 else trust.mean(axis=1)


def _absent(model: Any, X: Any, shape: tuple[int, ...]) -> Array:
    """Views that samples lack, whose trust of 0 is no judgement."""
    values = X.to_numpy(dtype=float) if hasattr(X, "to_numpy") else X
    _, present = split_missing(model.kernels_, model.kernel_names_, values)
    return np.zeros(shape, dtype=bool) if present is None else ~present


def _by_class(y: Any, n: int) -> tuple[Array, Array | None]:
    if y is None:
        return np.arange(n), None
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must have one class for each of {n} samples, got shape {y.shape}")
    order = np.argsort(y, kind="stable")
    return order, y[order]


def _mark_classes(ax: Any, labels: Array | None) -> None:
    """Name every class at the middle of its samples, with lines between classes."""
    if labels is None:
        return
    classes, first, count = np.unique(labels, return_index=True, return_counts=True)
    ax.set_yticks(first + (count - 1) / 2, [str(label)[:_NAME] for label in classes])
    for place in first[1:]:
        ax.axhline(place - 0.5, color="white", linewidth=1.0)
