"""matplotlib, where it is installed.

Which kernel is trusted where, for samples in the plane.

Whom a model trusts for whom: samples down, kernels across; and what decided one sample.
"""

from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.kernels.samples import split_missing


def pyplot() -> Any:
    """Return matplotlib's pyplot, with a backend that needs no screen unless one is in use."""
    try:
        import matplotlib

        matplotlib.use("Agg", force=False)
        import matplotlib.pyplot as plt
    except ImportError as reason:
        raise ImportError(
            "plots need matplotlib; install it with: pip install 'lokl[plot]'"
        ) from reason
    return plt


_GRID = 160
# Margins of a kernel are drawn where its trust is at least this share of 1 / number of kernels.
_TRUSTED = 0.9


def plot_regions(models: Any, X: Any, y: Any) -> Any:
    """Draw decision boundary, margins, support points and the trusted kernel of some models.

    Parameters
    ----------
    models : mapping of str to fitted classifier
        Of two classes, on samples of two columns.
    X : array of shape (n_samples, 2)
    y : array of shape (n_samples,)

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each model. Colour: which kernel is trusted at a point. Solid line: the
        decision. Dotted lines: the margins. A model of experts, one for each kernel, has the
        margins of every expert, in the colour of its kernel and where that is trusted.
    """
    plt = pyplot()
    from matplotlib.colors import to_rgb

    palette = [to_rgb(colour) for colour in plt.rcParams["axes.prop_cycle"].by_key()["color"]]
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"regions are drawn in the plane: X has two columns, got shape {X.shape}")
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    axes = [np.linspace(low[k], high[k], _GRID) for k in range(2)]
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(*axes)])
    figure, panels = plt.subplots(
        1, len(models), figsize=(5.5 * len(models), 4.6), squeeze=False, constrained_layout=True
    )
    for panel, (name, model) in zip(panels[0], models.items(), strict=True):
        trust = model.weights(grid)
        colours = np.array([palette[i % len(palette)] for i in range(trust.shape[1])])
        _draw_trust(panel, axes, trust, colours)
        _draw_lines(panel, axes, model, grid, _margins(model, grid, trust, colours))
        _draw_samples(panel, X, y, model.support_vectors_)
        right = float(np.mean(model.predict(X) == y))
        count = len(model.support_vectors_)
        panel.set_title(f"{name}: {count} support points, {100 * right:.1f} % right")
        handles = [
            plt.Line2D([], [], marker="s", linestyle="", color=colour, label=kernel)
            for kernel, colour in zip(model.kernel_names_, colours, strict=True)
        ]
        panel.legend(handles=handles, loc="upper right", title="trusted kernel")
    return figure


def _draw_trust(panel: Any, axes: Any, trust: Any, colours: Any) -> None:
    """Mix the colours of the kernels by their shares of the trust, and whiten the mix."""
    share = trust / np.maximum(trust.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    image = np.clip(0.35 * (share @ colours) + 0.65, 0, 1).reshape(_GRID, _GRID, 3)
    extent = (axes[0][0], axes[0][-1], axes[1][0], axes[1][-1])
    panel.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="none")


def _draw_lines(panel: Any, axes: Any, model: Any, grid: Any, margins: Any) -> None:
    decision = model.decision_function(grid).reshape(_GRID, _GRID)
    panel.contour(*axes, decision, levels=[0.0], colors="black", linewidths=1.5)
    for values, colour in margins:
        # Decisions that are all on one side of both margins have no line to draw.
        if np.nanmin(values) < 1.0 and np.nanmax(values) > -1.0:
            dotted = {"levels": [-1.0, 1.0], "linewidths": 1.0, "linestyles": ":"}
            panel.contour(*axes, values.reshape(_GRID, _GRID), colors=[colour], **dotted)


def _draw_samples(panel: Any, X: Any, y: Any, support: Any) -> None:
    for label, marker in zip(np.unique(y), "ox", strict=False):
        own = X[y == label]
        panel.scatter(own[:, 0], own[:, 1], s=12, marker=marker, color="0.25", linewidths=0.8)
    ring = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.6}
    panel.scatter(support[:, 0], support[:, 1], s=60, **ring)


def _margins(model: Any, grid: Any, trust: Any, colours: Any) -> list[tuple[Any, Any]]:
    """Return values on the grid whose levels -1 and 1 are margins, each with a colour."""
    if not hasattr(model, "experts_"):
        return [(model.decision_function(grid), "black")]
    found = []
    for i, (expert, colour) in enumerate(zip(model.experts_, colours, strict=True)):
        trusted = trust[:, i] >= _TRUSTED / trust.shape[1]
        if trusted.any():
            said = expert.decide(grid, trust.shape[1] * trust[:, i])[:, 0]
            found.append((np.where(trusted, said, np.nan), 0.7 * colour))
    return found


# Longest name on an axis that does not run into its neighbour.
_NAME = 24


def plot_trust(model: Any, X: Any, y: Any = None, *, marked: Any = None, ax: Any = None) -> Any:
    """Draw how far each kernel is trusted at each sample.

    Parameters
    ----------
    model : fitted estimator
        Its ``trust(X)`` is drawn, or ``weights(X)`` where it has none.
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
    trust = np.asarray(model.trust(X) if hasattr(model, "trust") else model.weights(X))
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
