"""Displays: regions of a plane by kernel, weights of samples, contributions to one prediction."""

from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._exports import need
from lokl.explain.by_view import explain
from lokl.explain.explanation import Explanation

# Points of the grid in each direction.
_GRID = 160
# Margins of an expert are drawn at points with at least this share of the mean weight.
_WEIGHTY = 0.9
# Longest name on an axis that does not overlap its neighbour.
_NAME = 24


def pyplot() -> Any:
    """Return matplotlib's pyplot, with a backend that needs no screen unless one is in use."""
    need("matplotlib", "a plot").use("Agg", force=False)
    return need("matplotlib.pyplot", "a plot")


def plot_regions(models: Any, X: Any, y: Any) -> Any:
    """Draw decision boundary, margins, support vectors and leading kernels of some models.

    Parameters
    ----------
    models : mapping of str to fitted classifier
        Classifiers of two classes, on samples of two columns.
    X : array of shape (n_samples, 2)
    y : array of shape (n_samples,)

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each model. Colours show the weights of the kernels at a point, the solid
        line the decision boundary, dotted lines the margins. A model of experts has the margins of
        every expert, in the colour of its kernel, at points where its weight is large.
    """
    plt = pyplot()
    from matplotlib.colors import to_rgb

    X, y = np.asarray(X, dtype=float), np.asarray(y)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have two columns, got shape {X.shape}")
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    axes = [np.linspace(low[k], high[k], _GRID) for k in range(2)]
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(*axes)])
    figure, panels = plt.subplots(
        1, len(models), figsize=(5.5 * len(models), 4.6), squeeze=False, constrained_layout=True
    )
    for panel, (name, model) in zip(panels[0], models.items(), strict=True):
        weights = model.weights(grid)
        colours = np.array([to_rgb(f"C{i}") for i in range(weights.shape[1])])
        _draw_weights(panel, axes, weights, colours)
        _draw_lines(panel, axes, model, grid, _margins(model, grid, weights, colours))
        _draw_samples(panel, X, y, model.support_vectors_)
        accuracy, count = 100 * float(np.mean(model.predict(X) == y)), len(model.support_vectors_)
        panel.set_title(f"{name}: {count} support vectors, {accuracy:.1f} % right")
        handles = [
            plt.Line2D([], [], marker="s", linestyle="", color=colour, label=kernel)
            for kernel, colour in zip(model.kernel_names_, colours, strict=True)
        ]
        panel.legend(handles=handles, loc="upper right", title="kernel")
    return figure


def _draw_weights(panel: Any, axes: Any, weights: Array, colours: Array) -> None:
    """Mix the colours of the kernels by their weights, and whiten the mix."""
    share = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    image = np.clip(0.35 * (share @ colours) + 0.65, 0, 1).reshape(_GRID, _GRID, 3)
    extent = (axes[0][0], axes[0][-1], axes[1][0], axes[1][-1])
    panel.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="none")


def _draw_lines(panel: Any, axes: Any, model: Any, grid: Any, margins: Any) -> None:
    decision = model.decision_function(grid).reshape(_GRID, _GRID)
    panel.contour(*axes, decision, levels=[0.0], colors="black", linewidths=1.5)
    for values, colour in margins:
        # Decisions that are all beyond one margin have no line to draw.
        if np.nanmin(values) < 1.0 and np.nanmax(values) > -1.0:
            dotted = {"levels": [-1.0, 1.0], "linewidths": 1.0, "linestyles": ":"}
            panel.contour(*axes, values.reshape(_GRID, _GRID), colors=[colour], **dotted)


def _draw_samples(panel: Any, X: Any, y: Any, support: Any) -> None:
    for label, marker in zip(np.unique(y), "ox", strict=False):
        own = X[y == label]
        panel.scatter(own[:, 0], own[:, 1], s=12, marker=marker, color="0.25", linewidths=0.8)
    ring = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.6}
    panel.scatter(support[:, 0], support[:, 1], s=60, **ring)


def _margins(model: Any, grid: Array, weights: Array, colours: Array) -> list[tuple[Any, Any]]:
    """Return values on the grid whose levels -1 and 1 are margins, each with a colour."""
    if not hasattr(model, "experts_"):
        return [(model.decision_function(grid), "black")]
    margins = []
    for i, (expert, colour) in enumerate(zip(model.experts_, colours, strict=True)):
        weighty = weights[:, i] >= _WEIGHTY / weights.shape[1]
        if weighty.any():
            decision = expert.decide(grid, weights.shape[1] * weights[:, i])[:, 0]
            margins.append((np.where(weighty, decision, np.nan), 0.7 * colour))
    return margins


def plot_trust(model: Any, X: Any, y: Any = None, *, marked: Any = None, ax: Any = None) -> Any:
    """Draw the trust in each view, or its weight, at each sample.

    Parameters
    ----------
    model : fitted estimator
        An estimator of lokl, alone or inside pipelines and searches. Weights are drawn if it has no
        ``trust(X)``.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    y : array of shape (n_samples,), default=None
        Samples of a class stand together.
    marked : boolean array of shape (n_samples, n_views), default=None
        Entries with a dot, such as views that are known to be wrong.
    ax : matplotlib axes, default=None
        None creates a figure.

    Returns
    -------
    matplotlib.axes.Axes
        Missing views are hatched.
    """
    plt = pyplot()
    explanation = _explain_views(model, X)
    n, m = explanation.presence.shape
    order, labels = _order_by_class(y, n)
    if ax is None:
        _, ax = plt.subplots(figsize=(1.2 + 1.1 * m, 5.0), constrained_layout=True)
    ax.set_facecolor("white")
    ax.patch.set(hatch="////", edgecolor="0.6")
    missing = ~explanation.presence
    shown = np.ma.array(np.asarray(explanation.trust_or_weights)[order], mask=missing[order])
    image = ax.imshow(shown, aspect="auto", vmin=0, vmax=1, cmap="viridis", interpolation="none")
    ax.set_xticks(range(m), [name[:_NAME] for name in explanation.views])
    ax.set_ylabel("samples" if labels is None else "samples by class")
    if labels is not None:
        # Each class is named at the middle of its samples, with lines between classes.
        classes, first, count = np.unique(labels, return_index=True, return_counts=True)
        ax.set_yticks(first + (count - 1) / 2, [str(label)[:_NAME] for label in classes])
        for row in first[1:]:
            ax.axhline(row - 0.5, color="white", linewidth=1.0)
    if marked is not None:
        rows, views = np.nonzero(np.asarray(marked, dtype=bool)[order])
        ax.plot(views, rows, linestyle="", marker="o", markersize=3, color="tab:red")
    label = "weight" if explanation.trust is None else "trust"
    ax.figure.colorbar(image, ax=ax, label=label)
    return ax


def plot_sample(model: Any, x: Any, *, ax: Any = None) -> Any:
    """Draw the contribution of each view to the prediction of one sample.

    Parameters
    ----------
    model : fitted estimator
        An estimator of lokl, alone or inside pipelines and searches.
    x : {array-like, sparse matrix, data frame} of shape (1, n_features)
        One sample.
    ax : matplotlib axes, default=None
        None creates a figure.

    Returns
    -------
    matplotlib.axes.Axes
        A bar for the base value and for each view; each bar starts at the end of the one before.
        For classifiers, the predicted class is compared with the runner-up.
    """
    plt = pyplot()
    explanation = _explain_views(model, x)
    if len(explanation) != 1:
        raise ValueError(f"one sample is drawn, got {len(explanation)}; take one with X[[row]]")
    sizes = np.concatenate([explanation.base_values, explanation.contributions[0]])
    names = ["base value", *(name[:_NAME] for name in explanation.views)]
    if ax is None:
        _, ax = plt.subplots(figsize=(6.0, 0.9 + 0.45 * len(names)), constrained_layout=True)
    starts = np.concatenate([[0.0], np.cumsum(sizes)[:-1]])
    colours = ["0.6", *(f"C{k}" for k in range(len(names) - 1))]
    bars = ax.barh(np.arange(len(names)), sizes, left=starts, color=colours)
    # A bar alone does not show its direction.
    ax.bar_label(bars, [f"{size:+.2g}" for size in sizes], padding=3, fontsize=8)
    end = float(np.sum(sizes))
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.axvline(end, color="black", linewidth=0.8, linestyle=":")
    ax.use_sticky_edges = False  # room for the labels inside the frame
    ax.margins(x=0.18)
    ax.set_yticks(np.arange(len(names)), names)
    ax.invert_yaxis()
    title = "prediction"
    if explanation.runner_up is not None:
        title = f"{explanation.predictions[0]} rather than {explanation.runner_up[0]}"
    ax.set_title(title)
    ax.set_xlabel(f"decision {end:.3g}")
    return ax


def _explain_views(model: Any, X: Any) -> Explanation:
    explanation = explain(model, X)
    if not explanation.views:
        raise TypeError(f"{type(model).__name__} has no views to draw; give an estimator of lokl")
    return explanation


def _order_by_class(y: Any, n: int) -> tuple[Array, Array | None]:
    """Return samples ordered by class, and their classes."""
    if y is None:
        return np.arange(n), None
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must have one class for each of {n} samples, got shape {y.shape}")
    order = np.argsort(y, kind="stable")
    return order, y[order]
