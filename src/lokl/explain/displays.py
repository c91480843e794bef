"""Displays of explanations: trust, one prediction, reliability, risk against coverage, a map."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from lokl._arrays import Array
from lokl._exports import need
from lokl._frames import as_pandas
from lokl._text import shortened
from lokl.base.model import unwrap
from lokl.explain.by_view import explain
from lokl.explain.explanation import Explanation, SampleExplanation
from lokl.explain.reliability import (
    CalibrationBin,
    RiskCoverage,
    calibration_bins,
    risk_coverage,
)
from lokl.explain.similarity import kernel_pca, sample_similarity
from lokl.search.calibration import check_probabilities, expected_calibration_error

# Colours of Okabe and Ito, which people with any colour vision can tell apart; grey for yellow.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#000000",
)  # fmt: skip
MARKERS = "osD^vP*X"
# Characters of the longest name on an axis.
NAME = 24
# Weights that differ by less are equal, and say nothing about single samples.
_EQUAL = 1e-6


def pyplot() -> Any:
    """Return matplotlib's pyplot; its backend stays as the user has set it."""
    return need("matplotlib.pyplot", "a plot")


def colour(k: int) -> str:
    """Return the colour of a class, view or line."""
    return COLOURS[k % len(COLOURS)]


@dataclass(eq=False, repr=False)
class Display(ABC):
    """Base of displays: computed values, and how they are drawn on axes of matplotlib.

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes of the last drawing.
    figure_ : matplotlib figure
        Figure of these axes.
    """

    def plot(self, ax: Any = None) -> Any:
        """Draw on axes.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None creates a figure.

        Returns
        -------
        self : Display
            With the axes as ``ax_`` and their figure as ``figure_``.
        """
        if ax is None:
            _, ax = pyplot().subplots(figsize=self._size(), layout="constrained")
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw on axes."""

    def _size(self) -> tuple[float, float]:
        """Return the width and height of a new figure in inches."""
        return 6.0, 4.0


class ExplanationDisplay(Display):
    """Base of displays that are drawn from an explanation."""

    @classmethod
    @abstractmethod
    def from_explanation(cls, explanation: Explanation, *, ax: Any = None, **options: Any) -> Any:
        """Draw an explanation.

        Parameters
        ----------
        explanation : Explanation
        ax : matplotlib axes, optional
            None creates a figure.
        **options
            Further parameters of the display.

        Returns
        -------
        display : Display
        """

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        views: Any = None,
        ids: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> Any:
        """Explain predictions of a fitted estimator, and draw the explanation.

        Parameters
        ----------
        estimator : fitted estimator
            An estimator of lokl, alone or inside pipelines and searches.
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            True classes or targets.
        views, ids
            As in :func:`lokl.explain.explain`.
        ax : matplotlib axes, optional
            None creates a figure.
        **options
            Further parameters of the display.

        Returns
        -------
        display : Display
        """
        explanation = explain(estimator, X, y, views=views, ids=ids)
        return cls.from_explanation(explanation, ax=ax, **options)


def _check_views(explanation: Explanation) -> Explanation:
    if not explanation.views:
        raise TypeError("the model has no views to draw; give an estimator of lokl")
    return explanation


@dataclass(eq=False, repr=False)
class TrustDisplay(ExplanationDisplay):
    """Trust in each view at each sample, or its weight if the model has no trust.

    Samples of a class stand together if the truth is known. Missing views are hatched. Equal
    weights are not drawn: a sentence says that all views count equally.

    Parameters
    ----------
    explanation : Explanation
        Explanation of the samples.
    marked : bool array of shape (n_samples, n_views), optional
        Entries with a dot, such as views that are known to be wrong.

    See Also
    --------
    lokl.explain.ContributionDisplay : One sample.
    lokl.explain.explain : The numbers.

    Examples
    --------
    >>> from lokl import TrustedVoteClassifier
    >>> from lokl.datasets import make_views
    >>> from lokl.explain import TrustDisplay
    >>> from lokl.kernels import RBF, per_view
    >>> X, y, views, _ = make_views(120, 3, missing=0.2, random_state=0)
    >>> model = TrustedVoteClassifier(per_view(RBF("scale"), views), random_state=0).fit(X, y)
    >>> display = TrustDisplay.from_estimator(model, X, y)
    >>> display.ax_.get_ylabel()
    'samples by class'
    """

    explanation: Explanation
    marked: Any = None

    @classmethod
    def from_explanation(cls, explanation: Explanation, *, ax: Any = None, **options: Any) -> Any:
        return cls(_check_views(explanation), **options).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 1.8 + 1.1 * len(self.explanation.views), 5.0

    def _draw(self, ax: Any) -> None:
        explanation = self.explanation
        values, missing = np.asarray(explanation.trust_or_weights), ~explanation.presence
        complete = values[~missing.any(axis=1)]
        if explanation.trust is None and len(complete) and np.ptp(complete) < _EQUAL:
            ax.text(0.5, 0.5, "All views\ncount equally.", ha="center", va="center")
            ax.set(xlim=(0, 1), ylim=(0, 1))
            ax.set_axis_off()
            return
        truth = explanation.truth
        order = np.arange(len(explanation)) if truth is None else np.argsort(truth, kind="stable")
        ax.set_facecolor("white")
        ax.patch.set(hatch="////", edgecolor="0.6")
        shown = np.ma.array(values[order], mask=missing[order])
        image = ax.imshow(
            shown, aspect="auto", vmin=0, vmax=1, cmap="cividis", interpolation="none"
        )
        ax.set_xticks(range(values.shape[1]), [shortened(v, NAME) for v in explanation.views])
        ax.set_ylabel("samples")
        if truth is not None and explanation.is_regression:
            ax.set_ylabel("samples by target")
        elif truth is not None:
            self._name_classes(ax, truth[order])
        if self.marked is not None:
            rows, views = np.nonzero(np.asarray(self.marked, dtype=bool)[order])
            dots = {"marker": "o", "markersize": 4, "color": "#D55E00", "markeredgecolor": "white"}
            ax.plot(views, rows, linestyle="", markeredgewidth=0.6, **dots)
        kind = "weight" if explanation.trust is None else "trust"
        ax.figure.colorbar(image, ax=ax, label=kind)

    @staticmethod
    def _name_classes(ax: Any, truth: Array) -> None:
        """Name each class at the middle of its samples, with lines between classes."""
        ax.set_ylabel("samples by class")
        classes, first, count = np.unique(truth, return_index=True, return_counts=True)
        ax.set_yticks(first + (count - 1) / 2, [shortened(str(c), NAME) for c in classes])
        for row in first[1:]:
            ax.axhline(row - 0.5, color="white", linewidth=1.0)


@dataclass(eq=False, repr=False)
class ContributionDisplay(ExplanationDisplay):
    """Contribution of each view to one prediction, as a waterfall.

    Each bar starts at the end of the one before; the last end, a dotted line, is the decision. For
    classifiers, the predicted class is compared with the runner-up. For regressors, bars start at
    the base value, the prediction without any view.

    Parameters
    ----------
    sample : SampleExplanation
        Explanation of one prediction.

    See Also
    --------
    lokl.explain.TrustDisplay : All samples.
    lokl.explain.SampleExplanation : The numbers.

    Examples
    --------
    >>> from lokl import TrustedVoteClassifier
    >>> from lokl.datasets import make_views
    >>> from lokl.explain import ContributionDisplay
    >>> from lokl.kernels import RBF, per_view
    >>> X, y, views, _ = make_views(120, 3, random_state=0)
    >>> model = TrustedVoteClassifier(per_view(RBF("scale"), views), random_state=0).fit(X, y)
    >>> display = ContributionDisplay.from_estimator(model, X, sample=7)
    >>> display.ax_.get_xlabel()
    'log-odds'
    """

    sample: SampleExplanation

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, sample: Any = None, ax: Any = None, **options: Any
    ) -> Any:
        """Draw one sample of an explanation.

        Parameters
        ----------
        explanation : Explanation
        sample : str or int, optional
            Id of the sample: index of the data frame, or row number. Only needed if there are
            several.
        ax : matplotlib axes, optional
            None creates a figure.
        """
        _check_views(explanation)
        if sample is None and len(explanation) != 1:
            raise ValueError(
                f"one sample is drawn, got {len(explanation)}; name it, for example with "
                f"sample={explanation.ids[0]!r}"
            )
        chosen = explanation.sample_at(0) if sample is None else explanation.sample(sample)
        return cls(chosen, **options).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 6.5, 1.4 + 0.45 * (1 + len(self.sample.views))

    def _draw(self, ax: Any) -> None:
        sample = self.sample
        sizes = [own.contribution or 0.0 for own in sample.views]
        names, start = [], sample.base_value
        for own in sample.views:
            state = " (missing)" if not own.present else " (decisive)" if own.decisive else ""
            names.append(shortened(own.view, NAME) + state)
        colours = [COLOURS[0] if size >= 0 else COLOURS[5] for size in sizes]
        if sample.runner_up is not None:
            names, sizes, colours = ["base value", *names], [start, *sizes], ["0.6", *colours]
            start = 0.0
        ends, rows = start + np.cumsum(sizes), np.arange(len(names))
        bars = ax.barh(rows, sizes, left=ends - sizes, color=colours)
        # A bar alone does not show its direction.
        ax.bar_label(bars, [f"{size:+.2g}" for size in sizes], padding=3, fontsize=8)
        ax.axvline(start, color="black", linewidth=0.8)
        ax.axvline(ends[-1], color="black", linewidth=0.8, linestyle=":")
        ax.use_sticky_edges = False  # room for the labels inside the frame
        ax.margins(x=0.18)
        ax.set_yticks(rows, names)
        ax.invert_yaxis()
        ax.set_title(sample.title, fontsize="medium")
        value = f"prediction, from the base value {start:.4g}"
        ax.set_xlabel(value if sample.runner_up is None else sample.unit or "decision")


def _judged(explanation: Explanation, *, needs: str) -> Array:
    """Return the samples whose truth is known; warn if the model has learned from them."""
    if not explanation.known.any():
        raise ValueError(f"{needs} needs the true values; pass y")
    if explanation.learned is not None and explanation.learned[explanation.known].any():
        warnings.warn(
            f"the model has learned from {int(explanation.learned.sum())} of these samples, on "
            f"which it looks better than it is; draw {needs} on others",
            UserWarning,
            stacklevel=5,  # the caller of from_estimator
        )
    return explanation.known


def _check_predictions(y_true: Any, y_proba: Any, classes: Any) -> tuple[Array, Array, Array]:
    """Return true classes, probabilities of shape (n_samples, n_classes), and the classes."""
    truth = np.asarray(y_true)
    proba = check_probabilities(y_proba, len(truth))
    classes = np.unique(truth) if classes is None else np.asarray(classes)
    if len(classes) != proba.shape[1]:
        raise ValueError(
            f"y_proba has {proba.shape[1]} columns for {len(classes)} classes; pass the classes of "
            "the columns: classes=model.classes_"
        )
    return truth, proba, classes


class PredictionDisplay(ExplanationDisplay):
    """Base of displays that are drawn from predictions and the truth."""

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_proba: Any, *, classes: Any = None, ax: Any = None, **options: Any
    ) -> Any:
        """Draw predicted probabilities next to the truth.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, n_classes), or (n_samples,)
            Probabilities of the classes, or of the second of two.
        classes : array-like of shape (n_classes,), optional
            Classes in the order of the columns; the sorted values of `y_true` by default.
        ax : matplotlib axes, optional
            None creates a figure.
        **options
            Further parameters of the display.

        Returns
        -------
        display : PredictionDisplay
        """
        truth, proba, classes = _check_predictions(y_true, y_proba, classes)
        return cls._of(truth, proba, classes, **options).plot(ax)

    @classmethod
    @abstractmethod
    def _of(cls, truth: Array, proba: Array, classes: Array, **options: Any) -> Any:
        """Return the display of checked predictions."""


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(PredictionDisplay):
    """Share of correct predictions against the probability that was predicted for them.

    Every dot has at least 20 samples, whose number stands below it, and a 95 % interval. Reliable
    probabilities are on the diagonal.

    Parameters
    ----------
    bins : list of CalibrationBin
        From low to high probabilities.
    error : float or None
        Expected calibration error over all classes.

    See Also
    --------
    lokl.search.calibrated : Probabilities from held-out decisions.
    lokl.explain.RiskCoverageDisplay : Errors of confident predictions.
    sklearn.calibration.CalibrationDisplay : The same for two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.explain import ReliabilityDisplay
    >>> y_true, y_proba = np.tile([0, 1], 50), np.tile([0.2, 0.8], 50)
    >>> display = ReliabilityDisplay.from_predictions(y_true, y_proba)
    >>> [(b.n_samples, round(b.stated, 2), round(b.right.mean, 2)) for b in display.bins]
    [(100, 0.8, 1.0)]
    """

    bins: Sequence[CalibrationBin]
    error: float | None = None

    @classmethod
    def from_explanation(cls, explanation: Explanation, *, ax: Any = None, **options: Any) -> Any:
        if explanation.probabilities is None:
            raise ValueError("the model has no probabilities; see lokl.search.calibrated")
        known = _judged(explanation, needs="reliability")
        y_proba = explanation.probabilities[known]
        codes, classes = explanation.truth_codes[known], np.arange(y_proba.shape[1])
        return cls.from_predictions(codes, y_proba, classes=classes, ax=ax, **options)

    @classmethod
    def _of(cls, truth: Array, proba: Array, classes: Array, **options: Any) -> Any:
        bins = calibration_bins(proba.max(axis=1), classes[proba.argmax(axis=1)] == truth)
        error = expected_calibration_error(truth, proba, classes=classes)
        return cls(bins, error, **options)

    def _size(self) -> tuple[float, float]:
        return 4.8, 4.4

    def _draw(self, ax: Any) -> None:
        low = min(0.5, *(b.low for b in self.bins)) if self.bins else 0.0
        ax.plot([low, 1], [low, 1], color="0.6", linestyle=":", label="reliable")
        stated = [b.stated for b in self.bins]
        right = np.array([b.right for b in self.bins])
        reach = np.abs(right[:, 1:] - right[:, :1]).T
        label = "95 % interval, number of samples"
        dots = {"fmt": "o", "color": COLOURS[0], "capsize": 2, "label": label}
        ax.errorbar(stated, right[:, 0], yerr=reach, **dots)
        for b in self.bins:
            place = {"xytext": (0, -10), "textcoords": "offset points", "fontsize": 8}
            ax.annotate(str(b.n_samples), (b.stated, b.right.low), ha="center", **place)
        ax.margins(y=0.1)
        ax.set(xlabel="predicted probability", ylabel="share of correct predictions")
        ax.set_xlim(low - 0.02, 1.06)
        if self.error is not None:
            title = f"expected calibration error {self.error:.3f}"
            ax.set_title(title, fontsize="medium")
        ax.legend(loc="upper left", frameon=False, fontsize=8)


@dataclass(eq=False, repr=False)
class RiskCoverageDisplay(PredictionDisplay):
    """Error of the most confident predictions against their share.

    A model that abstains from its least confident predictions has a coverage below 1. If the
    confidence is useful, the line rises from left to right.

    Parameters
    ----------
    curve : RiskCoverage
        Risk at every coverage.
    loss : str
        Name of the risk, such as "error rate".
    confidence : str
        What ranks predictions, such as "probability".

    See Also
    --------
    lokl.explain.risk_coverage : The numbers.
    lokl.explain.ReliabilityDisplay : Whether probabilities are right.

    Examples
    --------
    >>> from lokl.explain import RiskCoverageDisplay
    >>> y_true, y_proba = [1, 0, 1, 1], [0.9, 0.6, 0.8, 0.7]
    >>> display = RiskCoverageDisplay.from_predictions(y_true, y_proba)
    >>> display.curve.risk.tolist()
    [0.0, 0.0, 0.0, 0.25]
    """

    curve: RiskCoverage
    loss: str = "error rate"
    confidence: str = "probability"

    @classmethod
    def from_explanation(cls, explanation: Explanation, *, ax: Any = None, **options: Any) -> Any:
        known = _judged(explanation, needs="risk against coverage")
        if explanation.is_regression:
            loss, confidence = explanation.absolute_errors, -explanation.disagreement
            names = {"loss": "mean absolute error", "confidence": "agreement of the views"}
        else:
            loss, confidence = explanation.wrong, explanation.predicted_probability
            names = {"confidence": "probability"}
        if explanation.probabilities is None and not explanation.is_regression:
            confidence = explanation.base_values + explanation.contributions.sum(axis=1)
            names["confidence"] = "decision"
        if not np.isfinite(confidence[known]).all():
            raise ValueError("the model has no confidence that ranks its predictions")
        return cls(risk_coverage(loss[known], confidence[known]), **{**names, **options}).plot(ax)

    @classmethod
    def _of(cls, truth: Array, proba: Array, classes: Array, **options: Any) -> Any:
        wrong = classes[proba.argmax(axis=1)] != truth
        return cls(risk_coverage(wrong, proba.max(axis=1)), **options)

    def _draw(self, ax: Any) -> None:
        ax.step(self.curve.coverage, self.curve.risk, where="post", color=COLOURS[0])
        ax.axhline(self.curve.risk[-1], color="0.6", linestyle=":", label="all predictions")
        ax.set(xlabel=f"coverage: share with the highest {self.confidence}", ylabel=self.loss)
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(bottom=0.0)
        ax.legend(frameon=False, fontsize=8)


@dataclass(eq=False, repr=False)
class KernelMapDisplay(Display):
    """Samples in the plane of the two principal components of the learned kernel.

    Neighbours on the map are similar to the model.

    Parameters
    ----------
    positions : array of shape (n_samples, 2)
        Coordinates of the samples.
    explained : float or None
        Share of the variance of the kernel in the plane.
    y : array of shape (n_samples,), optional
        Classes or values, shown as colours.
    has_classes : bool
        Whether `y` has classes rather than values.

    See Also
    --------
    lokl.explain.nearest_samples : Neighbours of one sample.
    lokl.explain.KernelAlignmentDisplay : Similarity of kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import KernelMapDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = UniformMKLClassifier(["rbf"]).fit(X, y)
    >>> KernelMapDisplay.from_estimator(model, X, y).positions.shape
    (150, 2)
    """

    positions: Array
    explained: float | None = None
    y: Any = None
    has_classes: bool = True

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None, **options: Any
    ) -> Any:
        """Draw samples as the kernel of a fitted estimator sees them.

        Parameters
        ----------
        estimator : fitted estimator
            An estimator of lokl, alone or inside pipelines and searches.
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Classes or values; the predictions by default.
        ax : matplotlib axes, optional
            None creates a figure.
        **options
            Further parameters of the display.

        Returns
        -------
        display : KernelMapDisplay
        """
        X = as_pandas(X)
        y = np.asarray(estimator.predict(X) if y is None else y)
        similarity = sample_similarity(*unwrap(estimator, X))
        positions, explained = kernel_pca(similarity, len(similarity.diag))
        return cls(positions, explained, y, is_classifier(estimator), **options).plot(ax)

    def _draw(self, ax: Any) -> None:
        x, y = self.positions.T
        if self.y is None or not self.has_classes:
            dots = ax.scatter(x, y, s=24, c=self.y, cmap="cividis", linewidths=0)
            if self.y is not None:
                ax.figure.colorbar(dots, ax=ax, label="target")
        else:
            for k, label in enumerate(np.unique(self.y)):
                # Beyond eight classes, colours have other markers.
                own, marker = self.y == label, MARKERS[(k + k // len(COLOURS)) % len(MARKERS)]
                named = {"color": colour(k), "marker": marker, "label": shortened(str(label), NAME)}
                ax.scatter(x[own], y[own], s=24, alpha=0.8, linewidths=0, **named)
            ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        ax.set(xlabel="first component", ylabel="second component", xticks=[], yticks=[])
        if self.explained is not None:
            title = f"{100 * self.explained:.0f} % of the variance of the kernel"
            ax.set_title(title, fontsize="medium")
