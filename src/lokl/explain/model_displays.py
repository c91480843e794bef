"""Displays of models: values of views and columns, stability, search, convergence, boundary."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier

from lokl._arrays import Array
from lokl._frames import as_pandas
from lokl._text import shortened
from lokl.base.model import model_layers, unwrap
from lokl.explain.by_view import explain
from lokl.explain.columns import column_importance
from lokl.explain.displays import (
    COLOURS,
    MARKERS,
    NAME,
    Display,
    ExplanationDisplay,
    colour,
    pyplot,
)
from lokl.explain.explanation import Explanation
from lokl.explain.similarity import kernel_alignment
from lokl.explain.stability import WeightStability, weight_stability
from lokl.explain.view_scores import ViewValue, view_value
from lokl.explain.views import views_of
from lokl.methods.ldmkl import LDMKLClassifier

# Points of a grid in each direction, and its margin in shares of the range of the samples.
_GRID, _MARGIN = 160, 0.08
_GREYS = ("0.2", "1.0", "0.6")
# Margins of an expert are drawn at points with at least this share of the mean weight.
_WEIGHTY = 0.9
# Characters of the longest title, and of the longest name of a candidate or set.
_LINE, _LONG = 60, 48


def _draw_intervals(ax: Any, names: Any, values: Array, reach: Any, chosen: Any = ()) -> None:
    """Draw a dot with an interval for each name, from top to bottom; chosen ones in orange."""
    rows = np.arange(len(names))
    for k in rows:
        dot = {"fmt": "o", "capsize": 2, "color": COLOURS[5] if k in chosen else COLOURS[0]}
        ax.errorbar(values[k], k, xerr=None if reach is None else reach[:, [k]], **dot)
    ax.set_yticks(rows, [shortened(str(name), _LONG) for name in names])
    ax.invert_yaxis()
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)


class RefitDisplay(Display):
    """Base of displays whose values come from refits of an estimator."""

    _compute: ClassVar[Callable[..., Any]]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **options: Any
    ) -> Any:
        """Refit an estimator on parts of the samples, and draw the result.

        Parameters
        ----------
        estimator : estimator of lokl, pipeline, or fitted search
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        ax : matplotlib axes, optional
            None creates a figure.
        **options
            Further parameters of the function that computes the values:
            :func:`lokl.explain.view_value` or :func:`lokl.explain.weight_stability`.

        Returns
        -------
        display : RefitDisplay
        """
        return cls(cls._compute(estimator, X, y, **options)).plot(ax)  # type: ignore[call-arg]


@dataclass(eq=False, repr=False)
class ViewValueDisplay(RefitDisplay):
    """Score of a model with each set of views, best first, with 95 % intervals.

    The dotted line is the score of all views: sets to the right of it do without the others.

    Parameters
    ----------
    value : ViewValue
        Scores of sets of views.

    See Also
    --------
    lokl.explain.view_value : The numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import ViewValueDisplay
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> display = ViewValueDisplay.from_estimator(UniformMKLClassifier(kernels, C=10), scale(X), y)
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['all views', 'colours', 'acids']
    """

    value: ViewValue

    _compute = staticmethod(view_value)

    def _size(self) -> tuple[float, float]:
        return 6.5, 1.6 + 0.3 * len(self.value.subsets.rows)

    def _draw(self, ax: Any) -> None:
        sets = self.value.subsets
        order = np.argsort(-sets["score"], kind="stable")
        score = sets["score"][order]
        # Intervals of means may leave the range of a score.
        high = np.maximum(np.minimum(sets["score_high"][order], 1.0), score)
        reach = np.array([score - sets["score_low"][order], high - score])
        names = [sets.rows[k] for k in order]
        whole = names.index("all views")
        _draw_intervals(ax, names, score, reach, [whole])
        ax.axvline(score[whole], color=COLOURS[5], linestyle=":", linewidth=1.0)
        ax.set_xlabel(sets.title.partition(": ")[2].partition(",")[0] or "score")


@dataclass(eq=False, repr=False)
class WeightStabilityDisplay(RefitDisplay):
    """Mean weight of each kernel, with its spread between samples and its change between refits.

    Parameters
    ----------
    stability : WeightStability
        Weights and their changes.

    See Also
    --------
    lokl.explain.weight_stability : The numbers.

    Examples
    --------
    >>> from lokl import LMKLClassifier
    >>> from lokl.datasets import make_views
    >>> from lokl.explain import WeightStabilityDisplay
    >>> from lokl.kernels import Linear, per_view
    >>> X, y, views, _ = make_views(120, random_state=0)
    >>> model = LMKLClassifier(per_view(Linear(), views), random_state=0)
    >>> display = WeightStabilityDisplay.from_estimator(model, X, y, n_repeats=2, cv=3)
    >>> display.ax_.get_xlabel()
    'weight'
    """

    stability: WeightStability

    _compute = staticmethod(weight_stability)

    def _size(self) -> tuple[float, float]:
        return 6.5, 2.2 + 0.4 * len(self.stability.kernels.rows)

    def _draw(self, ax: Any) -> None:
        kernels = self.stability.kernels
        rows, weight = np.arange(len(kernels.rows)), kernels["weight"]
        wide = {"fmt": "none", "ecolor": COLOURS[4], "elinewidth": 7, "alpha": 0.6}
        ax.errorbar(weight, rows, xerr=kernels["spread"], label="spread between samples", **wide)
        thin = {"fmt": "o", "color": COLOURS[0], "capsize": 3, "label": "change between refits"}
        ax.errorbar(weight, rows, xerr=kernels["change"], **thin)
        ax.set_yticks(rows, [shortened(name, NAME) for name in kernels.rows])
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.set_xlim(min(0.0, ax.get_xlim()[0]), 1.05 * ax.get_xlim()[1])
        ax.set_xlabel("weight")
        ax.set_title(fill(self.stability.verdict, _LINE), fontsize=9, loc="left")
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "frameon": False}
        ax.legend(ncols=2, fontsize=8, **below)


@dataclass(eq=False, repr=False)
class ColumnDisplay(ExplanationDisplay):
    """Importance of single columns, or their contributions to one prediction, largest first.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    importance : array of shape (n_columns,)
        For one prediction, signed contributions.
    limits : array of shape (2, n_columns), optional
        Lower and upper limits of the intervals.
    quantity : str
        Meaning of an importance, on the axis.
    title : str
        Title of the figure.
    n_largest : int
        Columns that are drawn.

    See Also
    --------
    lokl.explain.column_importance : The numbers.
    lokl.explain.column_contributions : For each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import ColumnDisplay
    >>> X = np.random.RandomState(0).normal(size=(100, 20))
    >>> model = UniformMKLClassifier(["rbf"], C=10).fit(X, X[:, 3] + X[:, 7] > 0)
    >>> display = ColumnDisplay.from_estimator(model, X, random_state=0)
    >>> sorted(display.columns[:2])
    ['x3', 'x7']
    """

    columns: Any
    importance: Array
    limits: Array | None = None
    quantity: str = "importance"
    title: str = ""
    n_largest: int = 15

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, sample: Any = None, ax: Any = None, **options: Any
    ) -> Any:
        """Draw the columns of an explanation.

        Parameters
        ----------
        explanation : Explanation
            With contributions of columns: ``explain(model, X, columns=True)``.
        sample : str or int, optional
            Id of one sample; the mean absolute contribution to all predictions by default.
        ax : matplotlib axes, optional
            None creates a figure.
        **options
            Further parameters of the display.

        Returns
        -------
        display : ColumnDisplay
        """
        if explanation.columns is None:
            raise ValueError(
                "the explanation has no contributions of columns; use explain(model, X, "
                "columns=True) with an estimator of lokl"
            )
        found = explanation.columns.merged()
        if sample is None:
            values, quantity = np.abs(found.values).mean(axis=0), "mean absolute contribution"
            return cls(found.labels, values, None, quantity, **options).plot(ax)
        own = explanation.sample(sample)
        values = found.values[explanation.ids.index(own.id)]
        quantity = f"contribution{own.unit and f', {own.unit}'}"
        return cls(found.labels, values, None, quantity, own.title, **options).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sample: Any = None,
        views: Any = None,
        ids: Any = None,
        random_state: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> Any:
        """Compute and draw the importance of the columns of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            An estimator of lokl, alone or inside pipelines and searches.
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : ignored
        sample : str or int, optional
            Id of one sample: index of the data frame, or row number. By default the mean absolute
            contributions to all predictions are drawn, with bootstrap intervals.
        views, ids
            As in :func:`lokl.explain.explain`.
        random_state : int, RandomState or None
            Seed of the bootstrap.
        ax : matplotlib axes, optional
            None creates a figure.
        **options
            Further parameters of the display.

        Returns
        -------
        display : ColumnDisplay
        """
        if sample is not None:
            found = explain(estimator, X, views=views, ids=ids, columns=True)
            return cls.from_explanation(found, sample=sample, ax=ax, **options)
        table = column_importance(estimator, X, views=views, random_state=random_state)
        limits = np.array([table["importance_low"], table["importance_high"]])
        quantity = "mean absolute contribution"
        return cls(table.rows, table["importance"], limits, quantity, **options).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 6.0, 1.4 + 0.28 * min(self.n_largest, len(self.importance))

    def _draw(self, ax: Any) -> None:
        importance = np.asarray(self.importance, dtype=float)
        order = np.argsort(-np.abs(importance), kind="stable")[: self.n_largest]
        shown = importance[order]
        reach = None
        if self.limits is not None:
            # A bootstrap interval need not contain the mean.
            reach = np.maximum([shown - self.limits[0][order], self.limits[1][order] - shown], 0.0)
        _draw_intervals(ax, [self.columns[k] for k in order], shown, reach)
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_xlabel(self.quantity)
        count = f"{len(order)} of {len(importance)} columns" * (len(order) < len(importance))
        ax.set_title("; ".join(filter(None, [self.title, count])), fontsize="medium")


@dataclass(eq=False, repr=False)
class SearchDisplay(Display):
    """Mean scores of the best candidates of a search, with standard errors.

    Parameters
    ----------
    candidates : sequence of str
        Names of the candidates, best first.
    scores : array of shape (n_candidates,)
        Mean scores.
    errors : array of shape (n_candidates,)
        Standard errors.
    chosen : int or None
        Position of the chosen candidate.

    See Also
    --------
    lokl.search.KernelSearchCV : Grid search on shared work.
    lokl.AutoMKLClassifier : Chooses everything.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import KernelSearchCV, UniformMKLClassifier
    >>> from lokl.explain import SearchDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> search = KernelSearchCV(UniformMKLClassifier(["rbf"]), {"C": [1, 10, 100]}).fit(X, y)
    >>> SearchDisplay.from_estimator(search).candidates
    ['C=10', 'C=100', 'C=1']
    """

    candidates: Any
    scores: Array
    errors: Array
    chosen: int | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_best: int = 15, ax: Any = None) -> Any:
        """Draw the candidates of a fitted search.

        Parameters
        ----------
        estimator : fitted search
            ``KernelSearchCV``, AutoMKL, a search of scikit-learn, or a pipeline that ends in one.
        n_best : int, default=15
            Candidates that are drawn.
        ax : matplotlib axes, optional
            None creates a figure.

        Returns
        -------
        display : SearchDisplay
        """
        for layer, _ in model_layers(estimator):
            if hasattr(layer, "cv_results_"):
                return cls._of(*_grid_candidates(layer), n_best).plot(ax)
            if hasattr(layer, "leaderboard_"):
                return cls._of(*_leaderboard_candidates(layer), n_best).plot(ax)
        raise TypeError(f"{type(estimator).__name__} is not a fitted search and contains none")

    @classmethod
    def _of(cls, names: list[str], scores: Array, errors: Array, chosen: int, n_best: int) -> Any:
        order = np.argsort(-scores, kind="stable")
        order = order[np.isfinite(scores[order])]
        shown = order[:n_best]
        # The chosen candidate may be a simpler one with a lower score.
        shown = shown if chosen in shown else np.append(shown[: n_best - 1], chosen)
        position = int(np.flatnonzero(shown == chosen)[0])
        return cls([names[k] for k in shown], scores[shown], errors[shown], position)

    def _size(self) -> tuple[float, float]:
        return 8.0, 1.4 + 0.28 * len(self.candidates)

    def _draw(self, ax: Any) -> None:
        errors = np.nan_to_num(np.asarray(self.errors, dtype=float))[None, :]
        chosen = [] if self.chosen is None else [self.chosen]
        _draw_intervals(ax, self.candidates, np.asarray(self.scores), errors, chosen)
        ax.set_xlabel("held-out score ± standard error")
        if chosen:
            ax.get_yticklabels()[chosen[0]].set_fontweight("bold")


def _grid_candidates(search: Any) -> tuple[list[str], Array, Array, int]:
    """Return names, scores, standard errors and the position of the chosen candidate of a grid."""
    results = search.cv_results_
    metric = "score"
    if f"mean_test_{metric}" not in results:
        first = next(name for name in results if name.startswith("mean_test_"))
        metric = search.refit if isinstance(search.refit, str) else first[len("mean_test_") :]
    scores = np.asarray(results[f"mean_test_{metric}"], dtype=float)
    errors = np.asarray(results[f"std_test_{metric}"]) / np.sqrt(search.n_splits_)
    keys = {key for params in results["params"] for key in params}
    short = {key: key.rpartition("__")[2] for key in keys}
    if len(set(short.values())) < len(short):
        short = {key: key for key in keys}
    names = [
        ", ".join(f"{short[key]}={value}" for key, value in params.items()) or "as given"
        for params in results["params"]
    ]
    return names, scores, errors, int(getattr(search, "best_index_", np.nanargmax(scores)))


def _leaderboard_candidates(model: Any) -> tuple[list[str], Array, Array, int]:
    """Return the same of AutoMKL."""
    rows = model._rows
    names = [
        f"{row.method}: {row.kernels}" + ("" if row.C is None else f", C={row.C:.3g}")
        for row in rows
    ]
    scores = np.array([row.score for row in rows], dtype=float)
    errors = np.array([row.score_error for row in rows], dtype=float)
    chosen = next(k for k, row in enumerate(rows) if row.method == model.best_method_)
    return names, scores, errors, chosen


@dataclass(eq=False, repr=False)
class KernelAlignmentDisplay(Display):
    """Similarity of the kernels of the views to each other, and to the target.

    Parameters
    ----------
    between : array of shape (n_views, n_views)
        Centred alignments, from 0 to 1.
    views : sequence of str
        Names of the views.
    target : array of shape (n_views,), optional
        Alignments with the target.

    See Also
    --------
    lokl.explain.kernel_alignment : The numbers.
    lokl.explain.KernelMapDisplay : Similarity of samples.

    Examples
    --------
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.datasets import make_views
    >>> from lokl.explain import KernelAlignmentDisplay
    >>> from lokl.kernels import RBF, per_view
    >>> X, y, views, _ = make_views(120, 3, random_state=0)
    >>> model = UniformMKLClassifier(per_view(RBF("scale"), views)).fit(X, y)
    >>> KernelAlignmentDisplay.from_estimator(model, X, y).between.shape
    (3, 3)
    """

    between: Array
    views: Any
    target: Array | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None) -> Any:
        """Compute and draw the alignment of the kernels of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            An estimator of lokl, alone or inside pipelines and searches.
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Classes or targets.
        ax : matplotlib axes, optional
            None creates a figure.

        Returns
        -------
        display : KernelAlignmentDisplay
        """
        truth = None
        if y is not None:
            codes = is_classifier(estimator)
            truth = np.unique(y, return_inverse=True)[1] if codes else np.asarray(y, dtype=float)
        found = kernel_alignment(estimator, X, truth)
        if found is None:
            raise TypeError("the model does not have two views with kernels of their own")
        names = [view.name for view in views_of(unwrap(estimator)[0])]
        return cls(found.between, names, found.target).plot(ax)

    def _size(self) -> tuple[float, float]:
        side = 1.9 + 0.75 * len(self.views)
        return side + 1.4 + (0.0 if self.target is None else 0.75), side

    def _draw(self, ax: Any) -> None:
        names = [shortened(name, NAME // 2) for name in self.views]
        shown, columns = self.between, [*names]
        if self.target is not None:
            shown, columns = np.column_stack([self.between, self.target]), [*names, "target"]
        image = ax.imshow(shown, vmin=0, vmax=1, cmap="cividis")
        for (i, j), value in np.ndenumerate(shown):
            text = "" if np.isnan(value) else f"{value:.2f}"
            ax.text(j, i, text, ha="center", va="center", color="white" if value < 0.5 else "black")
        ax.set_xticks(range(len(columns)), columns, rotation=30, ha="right", rotation_mode="anchor")
        ax.set_yticks(range(len(names)), names)
        if self.target is not None:
            ax.axvline(len(names) - 0.5, color="white", linewidth=3)
        ax.figure.colorbar(image, ax=ax, label="centred alignment")


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """Objective of a fit after every step.

    Parameters
    ----------
    history : array of shape (n_steps,)
        Objective after every step.
    gap : float or None
        Final duality gap.

    See Also
    --------
    lokl.explain.WeightStabilityDisplay : Whether weights are stable.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import SimpleMKLClassifier
    >>> from lokl.explain import ConvergenceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SimpleMKLClassifier(["linear", "rbf"]).fit(X, y)
    >>> ConvergenceDisplay.from_estimator(model).ax_.get_xlabel()
    'step'
    """

    history: Array
    gap: float | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Any:
        """Draw the objective of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            An estimator of lokl, alone or inside pipelines and searches.
        ax : matplotlib axes, optional
            None creates a figure.

        Returns
        -------
        display : ConvergenceDisplay
        """
        model, _ = unwrap(estimator)
        history = getattr(model, "history_", None)
        if history is None:
            raise TypeError(f"{type(model).__name__} has no history_ to draw")
        gap = getattr(model, "duality_gap_", None)
        return cls(np.asarray(history), None if gap is None else float(np.max(gap))).plot(ax)

    def _draw(self, ax: Any) -> None:
        steps = np.arange(1, len(self.history) + 1)
        ax.plot(steps, self.history, marker="o", markersize=3, color=COLOURS[0])
        ax.set(xlabel="step", ylabel="objective")
        ax.xaxis.get_major_locator().set_params(integer=True)
        if self.gap is not None and np.isfinite(self.gap):
            ax.set_title(f"duality gap {self.gap:.2g}", fontsize="medium")


@dataclass(eq=False, repr=False)
class BoundaryDisplay(Display):
    """Decision boundary, margins and weights of a classifier in a plane, with samples.

    Colours are the weights of the kernels at a point, the solid line is the boundary between
    classes, and dotted lines are the margins of two classes. A model of experts has the margins of
    every expert, in the colour of its kernel, at points where its weight is large. Support vectors
    have a ring.

    Parameters
    ----------
    estimator : fitted classifier
        A classifier of lokl on samples of two columns, alone or inside pipelines and searches.
    X : array of shape (n_samples, 2)
        Samples to draw.
    y : array of shape (n_samples,)
        Classes.

    See Also
    --------
    sklearn.inspection.DecisionBoundaryDisplay : For any classifier.
    lokl.datasets.make_two_regions : Data in the plane.

    Examples
    --------
    >>> from lokl import LMKLClassifier
    >>> from lokl.datasets import make_two_regions
    >>> from lokl.explain import BoundaryDisplay
    >>> X, y = make_two_regions(100, random_state=0)
    >>> model = LMKLClassifier(["poly2", "rbf"], random_state=0).fit(X, y)
    >>> len(BoundaryDisplay.from_estimator(model, X, y).ax_.images)
    1
    """

    estimator: Any
    X: Any
    y: Any

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> Any:
        """Draw a fitted classifier and samples.

        Parameters
        ----------
        estimator : fitted classifier
            A classifier of lokl on samples of two columns, alone or inside pipelines and searches.
        X : {array-like, data frame} of shape (n_samples, 2)
        y : array-like of shape (n_samples,)
        ax : matplotlib axes, optional
            None creates a figure.

        Returns
        -------
        display : BoundaryDisplay
        """
        X = as_pandas(X)
        if len(np.shape(X)) != 2 or np.shape(X)[1] != 2:
            raise ValueError(f"X must have two columns, got shape {np.shape(X)}")
        if not is_classifier(estimator):
            raise TypeError(f"a boundary needs a classifier, got {type(estimator).__name__}")
        return cls(estimator, X, y).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 6.4, 4.6

    def _draw(self, ax: Any) -> None:
        points, y = np.asarray(self.X, dtype=float), np.asarray(self.y)
        low, high = points.min(axis=0), points.max(axis=0)
        low, high = low - _MARGIN * (high - low), high + _MARGIN * (high - low)
        axes = [np.linspace(low[k], high[k], _GRID) for k in range(2)]
        grid: Any = np.column_stack([axis.ravel() for axis in np.meshgrid(*axes)])
        if hasattr(self.X, "iloc"):
            grid = type(self.X)(grid, columns=self.X.columns)
        model, seen = unwrap(self.estimator, grid)
        weights = np.asarray(model.weights(seen))
        weights = weights if weights.ndim == 2 else weights.mean(axis=1)
        colours = [colour(i) for i in range(weights.shape[1])]
        _draw_weights(ax, axes, weights, colours)
        self._draw_lines(ax, axes, grid, _margins(model, seen, weights, colours))
        self._draw_samples(ax, points, y, model if seen is grid else None)
        key = partial(pyplot().Line2D, [], [], marker="s", linestyle="")
        names = [shortened(str(name), NAME) for name in model.kernel_names_]
        handles = [key(color=own, label=n) for n, own in zip(names, colours, strict=True)]
        handles += ax.get_legend_handles_labels()[0]
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
        ax.legend(handles=handles, fontsize=8, **place)
        if hasattr(self.X, "iloc"):
            ax.set(xlabel=self.X.columns[0], ylabel=self.X.columns[1])

    def _draw_lines(self, ax: Any, axes: Any, grid: Any, margins: Any) -> None:
        decision = np.asarray(self.estimator.decision_function(grid))
        line = {"colors": "black", "linewidths": 1.5}
        if decision.ndim == 2:
            for k in np.unique(decision.argmax(axis=1)):
                ahead = decision[:, k] - np.delete(decision, k, axis=1).max(axis=1)
                if ahead.min() < 0.0 < ahead.max():
                    ax.contour(*axes, ahead.reshape(_GRID, _GRID), levels=[0.0], **line)
            return
        ax.contour(*axes, decision.reshape(_GRID, _GRID), levels=[0.0], **line)
        for values, own in margins:
            # Decisions that are all beyond one margin have no line to draw.
            if np.nanmin(values) < 1.0 and np.nanmax(values) > -1.0:
                dotted = {"levels": [-1.0, 1.0], "linewidths": 1.0, "linestyles": ":"}
                ax.contour(*axes, values.reshape(_GRID, _GRID), colors=[own], **dotted)

    def _draw_samples(self, ax: Any, points: Array, y: Array, model: Any) -> None:
        """Draw samples, and support vectors if the model received points of this plane."""
        for k, label in enumerate(np.unique(y)):
            own = points[y == label]
            # Shapes and greys, since colours are kernels.
            look = {"marker": MARKERS[k % len(MARKERS)], "color": _GREYS[k % len(_GREYS)]}
            edge = {"edgecolors": "black", "linewidths": 0.5, "s": 16}
            name = shortened(str(label), NAME)
            ax.scatter(own[:, 0], own[:, 1], label=name, **look, **edge)
        title = f"{100 * float(np.mean(self.estimator.predict(self.X) == y)):.1f} % right"
        support = getattr(model, "support_vectors_", None)
        if support is not None:
            ring = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.6}
            ax.scatter(support[:, 0], support[:, 1], s=60, **ring)
            title = f"{len(support)} support vectors, {title}"
        ax.set_title(title, fontsize="medium")


def _draw_weights(ax: Any, axes: Any, weights: Array, colours: Any) -> None:
    """Mix the colours of the kernels by their weights, and whiten the mix."""
    from matplotlib.colors import to_rgb

    share = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    mixed = share @ np.array([to_rgb(own) for own in colours])
    image = np.clip(0.35 * mixed + 0.65, 0, 1).reshape(_GRID, _GRID, 3)
    extent = (axes[0][0], axes[0][-1], axes[1][0], axes[1][-1])
    ax.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="none")


def _margins(model: Any, grid: Any, weights: Array, colours: Any) -> list[tuple[Array, str]]:
    """Return values on the grid whose levels -1 and 1 are margins, each with a colour."""
    if hasattr(model, "kernel_"):
        return [(np.asarray(model.decision_function(grid)), "black")]
    margins: list[tuple[Array, str]] = []
    # Decisions of other votes have no margin.
    if not isinstance(model, LDMKLClassifier):
        return margins
    for i, (expert, own) in enumerate(zip(model.experts_, colours, strict=True)):
        weighty = weights[:, i] >= _WEIGHTY / weights.shape[1]
        if weighty.any():
            decision = expert.decide(grid, weights.shape[1] * weights[:, i])[:, 0]
            margins.append((np.where(weighty, decision, np.nan), own))
    return margins
