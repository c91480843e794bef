"""Which kernel is trusted where, for samples in the plane."""

from typing import Any

import numpy as np

from lokl.inspection.plotting import pyplot

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
        trust = model.gate(grid)
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
