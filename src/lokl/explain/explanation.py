"""Explanation of predictions: one object for the terminal, the report, CSV files and notebooks."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

from lokl._arrays import Array
from lokl._frames import need_pandas
from lokl._text import aligned, html_table, shorten_list, shortened
from lokl.explain.columns import ColumnContributions

AGREE, HINGES, CONTRADICT, UNSURE = STATUSES = ("agree", "hinges", "contradict", "unsure")
STATUS_TEXT = {
    AGREE: "All sure views agree.",
    HINGES: "The prediction hinges on one view.",
    CONTRADICT: "Views contradict each other.",
    UNSURE: "No view is sure.",
}
# Disagreement from which on views count as disagreeing.
DISAGREE = 0.5
# Familiarity below which a sample counts as unlike the training samples.
FAMILIAR = 0.5
# Probability from which on a view is said to predict a class without the word "weakly".
_SURE = 2 / 3
# Contributions that are shown as zero, and differences of weights that count as none.
_NOTHING, _EQUAL = 0.005, 1e-3
_STILL = "; next to the other views, it still "
# Arrays of an explanation that are given by view, in the order of the fields of a contribution.
_VIEW_FIELDS = (
    "alone", "alone_probabilities", "weights", "trust", "contributions", "decisive", "familiarity",
    "alone_evidence", "without",
)  # fmt: skip
# Beginnings of the names of columns with numbers from 0 to 1.
_SHARES = ("probability ", "survival ", "trust ", "disagreement")
# Columns of one sample that are listed.
_COLUMNS = 5
# Characters of a line, of the longest bar and of the name of a view, other classes that are listed,
# rows of the HTML table.
_WIDTH, _BAR, _NAME, _OTHERS, _ROWS = 80, 8, 18, 3, 10
# Names with hyphens stay whole.
_wrapped = partial(wrap, width=_WIDTH, break_on_hyphens=False)
# Characters of the name of a gene set.
_SET_NAME = 40


@dataclass(frozen=True)
class Neighbour:
    """A sample that is similar to the explained one; a similarity of 1 means equal."""

    id: str
    prediction: Any
    similarity: float


@dataclass(frozen=True)
class ViewContribution:
    """Role of one view in the prediction of one sample.

    Attributes
    ----------
    view : str
    present : bool
        Whether the sample has the view. If not, all other values are None or empty.
    predicts : class or float, or None
        Prediction from this view alone.
    probability : float or None
        Probability of that class.
    weight, trust : float or None
    contribution : float or None
        Signed contribution to the predicted class against the runner-up, or to the value.
    decisive : bool or None
        Whether the prediction changes if the view is removed.
    familiarity : float or None
    evidence : float or None
        Log-odds of the predicted class against the runner-up from this view alone, in the unit of
        contributions.
    without : class or float, or None
        Prediction if the view is removed.
    survival : tuple of float
        Probability of no event until each time from this view alone, for survival models.

    See Also
    --------
    lokl.explain.SampleExplanation : Has one for each view.

    Examples
    --------
    >>> from lokl.explain import ViewContribution
    >>> view = ViewContribution("blood", present=True, predicts="ill", probability=0.8)
    >>> view.predicts, view.probability
    ('ill', 0.8)
    """

    view: str
    present: bool
    predicts: Any = None
    probability: float | None = None
    weight: float | None = None
    trust: float | None = None
    contribution: float | None = None
    decisive: bool | None = None
    familiarity: float | None = None
    evidence: float | None = None
    without: Any = None
    survival: tuple[float, ...] = ()

    @property
    def trust_or_weight(self) -> float | None:
        """Trust if the model has it, else the weight."""
        return self.weight if self.trust is None else self.trust


class ColumnContribution(NamedTuple):
    """Contribution of one column to the prediction of one sample.

    Attributes
    ----------
    view : str
        Empty if there is only one.
    column : str
    contribution : float
        In the unit of the contributions of views.

    See Also
    --------
    lokl.explain.column_contributions : Computes contributions of columns.
    lokl.explain.SampleExplanation : Lists the largest ones.

    Examples
    --------
    >>> from lokl.explain import ColumnContribution
    >>> ColumnContribution("blood", "iron", 0.4)
    ColumnContribution(view='blood', column='iron', contribution=0.4)
    """

    view: str
    column: str
    contribution: float


@dataclass(frozen=True, repr=False)
class SampleExplanation:
    """Explanation of one prediction, shown as text.

    Attributes
    ----------
    id : str
    prediction : class or float
    probabilities : dict of class to float
        Most probable class first; empty without probabilities.
    runner_up : class or None
        Class that the contributions compare the predicted class with.
    base_value : float
        Decision before any view is added.
    views : tuple of ViewContribution
    status : {"agree", "hinges", "contradict", "unsure"} or None
    disagreement : float or None
    truth : class or float, or None
    prior : float or None
        Frequency of the predicted class in training, or mean of the training targets.
    neighbours : tuple of Neighbour
        Most similar samples, if they were computed.
    unit : {"log-odds", ""}
        Unit of contributions and base value; empty for decision values and for regression.
    learned : bool or None
        Whether the model has learned from this sample; None if unknown.
    columns : tuple of ColumnContribution
        Columns with the largest contributions, if they were computed.
    prediction_set : tuple
        Classes of the prediction set, or limits of the interval.
    coverage : float or None
        Share of the samples whose truth is in their set; None without sets.
    gene_sets : tuple of ColumnContribution
        Gene sets with the largest contributions, if the model has kernels of gene sets.
    times, survival : tuple of float
        Times, and probabilities of no event until each of them, for survival models. `truth` is
        then a tuple: whether the event was observed, and the time.

    See Also
    --------
    lokl.explain.Explanation : All samples.
    lokl.explain.ContributionDisplay : Figure of it.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import explain
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels, C=10).fit(X[::2], y[::2])
    >>> sample = explain(model, X[1::2]).sample("0")
    >>> int(sample.prediction), sample.status
    (0, 'agree')
    >>> [(view.view, round(view.contribution, 2)) for view in sample.views]
    [('acids', 1.29), ('colours', 2.17)]
    """

    id: str
    prediction: Any
    probabilities: dict[Any, float]
    runner_up: Any
    base_value: float
    views: tuple[ViewContribution, ...]
    status: str | None = None
    disagreement: float | None = None
    truth: Any = None
    prior: float | None = None
    neighbours: tuple[Neighbour, ...] = ()
    unit: str = ""
    learned: bool | None = None
    columns: tuple[ColumnContribution, ...] = ()
    prediction_set: tuple[Any, ...] = ()
    coverage: float | None = None
    gene_sets: tuple[ColumnContribution, ...] = ()
    times: tuple[float, ...] = ()
    survival: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that can be written as JSON."""
        plain = asdict(self)
        for name in ("columns", "gene_sets"):
            plain[name] = [own._asdict() for own in getattr(self, name)]
        plain["probabilities"] = {str(c): p for c, p in self.probabilities.items()}
        return plain

    @property
    def title(self) -> str:
        """Id and prediction, against the runner-up if there is one, for a picture."""
        against = "" if self.runner_up is None else f" rather than {_text(self.runner_up)}"
        return f"{self.id}: {_text(self.prediction)}{against}"

    @property
    def unfamiliar(self) -> list[ViewContribution]:
        """Views in which the sample is unlike the training samples."""
        return [
            own for own in self.views if own.familiarity is not None and own.familiarity < FAMILIAR
        ]

    @property
    def weighs_equally(self) -> bool:
        """Whether the views of the sample have equal weights, which are not worth showing."""
        weights = [own.weight for own in self.views if own.present and own.weight is not None]
        learned = any(own.trust is not None for own in self.views)
        return not learned and len(weights) > 1 and max(weights) - min(weights) < _EQUAL

    def view_sentences(
        self,
        outcome: Callable[[Any], str] | None = None,
        added: Callable[[float], str] = "{:+.3g}".format,
    ) -> list[str]:
        """Return a sentence for each view: what it predicts alone, and what it adds.

        Parameters
        ----------
        outcome : callable, optional
            Returns a class, or a value, as text.
        added : callable, optional
            Returns a contribution to a value as text.
        """
        return [self._sentence(own, outcome or _text, added) for own in self.views]

    def view_remarks(self) -> list[str]:
        """Return the sentences of views that predict one class and favour another one.

        The contribution of a view is about two classes, the predicted one and the runner-up, next
        to all other views. Its own prediction may be another class, or the other one of the two.
        """
        sentences = zip(self.views, self.view_sentences(), strict=True)
        return [sentence for own, sentence in sentences if self._differs(own)]

    def _differs(self, own: ViewContribution) -> bool:
        """Return whether a view predicts another class than the one that it adds evidence for."""
        if own.predicts is None or self.runner_up is None or self._adds_nothing(own):
            return False
        return bool(own.predicts != self._favoured(own)[0])

    def _adds_nothing(self, own: ViewContribution) -> bool:
        return abs(own.contribution or 0.0) < _NOTHING

    def _favoured(self, own: ViewContribution) -> tuple[Any, Any]:
        """Return the class that a view adds evidence for, and the other one of the two."""
        both = self.prediction, self.runner_up
        return both if (own.contribution or 0.0) > 0 else both[::-1]

    def _sentence(
        self,
        own: ViewContribution,
        outcome: Callable[[Any], str],
        added: Callable[[float], str],
    ) -> str:
        """Return what a view predicts alone, what it adds, and the prediction without it."""
        if not own.present:
            return f"{own.view} is missing."
        alone = "" if own.predicts is None else f" alone predicts {outcome(own.predicts)}"
        if self.runner_up is None:
            return (
                f"{own.view}{alone}{'; it' if alone else ''} adds {added(own.contribution or 0.0)}."
            )
        if own.probability is not None and own.probability < _SURE:
            alone += " weakly"
        favoured, other = self._favoured(own)
        joint = " and " if alone else " "
        if self._differs(own):
            joint = "; it still " if own.predicts not in (favoured, other) else _STILL
        adds = "adds next to nothing" if self._adds_nothing(own) else "adds evidence"
        without = f" Without it the prediction is {outcome(own.without)}." if own.decisive else ""
        two = f"{outcome(favoured)} over {outcome(other)}"
        return f"{own.view}{alone}{joint}{adds} for {two}.{without}"

    def __str__(self) -> str:
        sentences = [*self._background(), *self._table(), *self._remarks()]
        return "\n".join([self._headline(), *sentences])

    __repr__ = __str__

    def _headline(self) -> str:
        text = f"{self.id} is predicted {_text(self.prediction)}"
        if self.times:
            return f"{self.id} has a predicted risk of {_text(self.prediction)}."
        if not self.probabilities:
            return f"{text}."
        shown = {c: f"{p:.2f}" for c, p in self.probabilities.items()}
        text += f" with probability {shown.pop(self.prediction)}"
        return f"{text} ({shorten_list([f'{c} {p}' for c, p in shown.items()], _OTHERS)})."

    def _background(self) -> Iterator[str]:
        """Yield the set, the truth, frequencies in training, and whether the sample was there."""
        if self.coverage is not None and self.probabilities:
            classes = ", ".join(map(str, self.prediction_set)) or "no class"
            yield from _wrapped(f"{100 * self.coverage:.3g} % prediction set: {classes}.")
        elif self.coverage is not None:
            low, high = (_text(end) for end in self.prediction_set)
            yield f"{100 * self.coverage:.3g} % prediction interval: {low} to {high}."
        if self.times:
            yield from wrap(f"{self._curve_text(self.survival)}.", _WIDTH)
        if self.times and self.truth is not None:
            event, time = self.truth
            yield f"The event was at {time:.4g}." if event else f"Censored at {time:.4g}."
        elif self.truth is not None:
            yield f"The truth is {_text(self.truth)}."
        if self.prior is not None and self.probabilities:
            yield f"{100 * self.prior:.0f} % of the training samples are {self.prediction}."
        elif self.prior is not None:
            yield f"The mean of the training samples is {self.prior:.4g}."
        if self.learned:
            yield "The model has learned from this sample, so it is too sure of its prediction."

    def _curve_text(self, survival: tuple[float, ...]) -> str:
        """Return the median time of a survival curve, and its values at some times."""
        chosen = curve_positions(len(self.times))
        values = [f"until {self.times[k]:.3g} {survival[k]:.2f}" for k in chosen]
        return (
            f"Median time {median_time(self.times, survival)}; probability of no event "
            f"{', '.join(values)}"
        )

    def _table(self) -> Iterator[str]:
        """Yield one line for each view, in columns, with a head."""
        if len(self.views) < 2:
            return
        kind = "weight" if all(own.trust is None for own in self.views) else "trust"
        yield self._what_views_add()
        kind = "" if self.weighs_equally else kind
        alone_head = "alone, median" if self.times else "alone"
        rows = [("", "predicts alone", kind, alone_head, "adds", "")]
        largest = max(abs(own.contribution or 0.0) for own in self.views) or 1.0
        for own in self.views:
            name = shortened(own.view, _NAME)
            if not own.present:
                rows.append((name, "missing", "", "", "", ""))
                continue
            alone = "" if own.predicts is None else _text(own.predicts)
            if own.probability is not None:
                alone += f" {own.probability:.2f}"
            share = f"{own.trust_or_weight:.2f}" if kind and own.trust_or_weight is not None else ""
            contribution = own.contribution or 0.0
            drawn = _bar(contribution / largest) + ("  decisive" if own.decisive else "")
            evidence = "" if own.evidence is None else self._signed(own.evidence)
            if own.survival:
                evidence = median_time(self.times, own.survival)
            rows.append((name, alone, share, evidence, self._signed(contribution), drawn))
        total = self.base_value + sum(own.contribution or 0.0 for own in self.views)
        for name, value in (("base value", self.base_value), ("sum", total)):
            rows.append((name, "", "", "", self._signed(value, is_sum=True), ""))
        used = [any(column[1:]) for column in zip(*rows, strict=True)]
        shown = [[cell for cell, some in zip(row, used, strict=True) if some] for row in rows]
        yield from (f"  {line}" for line in aligned(shown))

    def _what_views_add(self) -> str:
        """Return the caption of the table of views, with the unit of the contributions."""
        if self.runner_up is None:
            return f"Contributions of the views to the {'risk' if self.times else 'value'}:"
        classes = f"{self.prediction} over {self.runner_up}"
        if self.unit == "log-odds":
            return f"Evidence of the views for {classes}, in log-odds:"
        return f"Contributions of the views to the decision for {classes}:"

    def _signed(self, value: float, *, is_sum: bool = False) -> str:
        """Return a contribution as text; sums of a regression are values, without a sign."""
        if self.runner_up is None:
            return f"{value:.4g}" if is_sum else f"{value:+.3g}"
        return f"{value:+.2f}" if abs(value) >= _NOTHING else "0.00"

    def _column_texts(self, parts: tuple[ColumnContribution, ...], room: int = _NAME) -> str:
        """Return columns or sets of them, with names of at most `room` characters, by view."""
        texts: dict[str, list[str]] = {}
        for own in parts:
            name = shortened(own.column, room)
            texts.setdefault(own.view, []).append(f"{name} {self._signed(own.contribution)}")
        return "; ".join(f"{view} {', '.join(own)}".strip() for view, own in texts.items())

    def _remarks(self) -> Iterator[str]:
        for own, text in zip(self.views, self.view_sentences(), strict=True):
            if self._differs(own):
                yield from _wrapped(text, subsequent_indent="  ")
            elif own.decisive:
                yield f"Without {own.view} the prediction is {own.without}."
        if self.weighs_equally:
            yield "All views of the sample count equally."
        if len(self.views) > 1:
            remarks = [] if self.status is None else [STATUS_TEXT[self.status]]
            if self.disagreement is not None:
                remarks.append(f"Disagreement {self.disagreement:.2f} (0 none, 1 complete).")
            if remarks:
                yield " ".join(remarks)
        for own in self.unfamiliar:
            near = f"(familiarity {own.familiarity:.2f})"
            yield f"{own.view} is unlike the training samples {near}."
        if self.gene_sets:
            text = f"Gene sets that matter most: {self._column_texts(self.gene_sets, _SET_NAME)}"
            yield from _wrapped(text, subsequent_indent="  ")
        if self.columns:
            text = f"Columns that matter most: {self._column_texts(self.columns)}"
            yield from _wrapped(text, subsequent_indent="  ")
        if self.neighbours:
            near = ", ".join(f"{own.id} ({_text(own.prediction)})" for own in self.neighbours)
            yield from _wrapped(f"Most similar: {near}", subsequent_indent="  ")


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Predictions for samples, and the role of each view in them; see :func:`explain`.

    Values that need a view are NaN, None or False for samples without it; weights and trust are 0.

    Attributes
    ----------
    ids : list of str
        Index of the data frame, or row numbers.
    views : list of str
        Empty for models without views.
    classes : array of shape (n_classes,) or None
        None for regression.
    predictions : array of shape (n_samples,)
        As returned by ``predict``.
    probabilities : array of shape (n_samples, n_classes) or None
        None for regression and for models without probabilities.
    presence : bool array of shape (n_samples, n_views)
        Whether a sample has a view.
    weights : array of shape (n_samples, n_views) or None
        Non-negative; rows sum to one.
    trust : array of shape (n_samples, n_views) or None
        Probability that a view is informative for a sample. Only the trusted vote has it.
    contributions : array of shape (n_samples, n_views)
        Signed contributions of the views to the predicted class against the runner-up, or to the
        predicted value; `unit` is their unit.
    base_values : array of shape (n_samples,)
        The same without any view: ``base_values + contributions.sum(axis=1)`` is the log-odds of
        the predicted class against the runner-up, their difference in decision values, or the
        predicted value.
    runner_up : array of shape (n_samples,) or None
        Second class; None for regression.
    alone : array of shape (n_samples, n_views)
        Prediction from each view alone, with all others missing. If the model cannot do without
        its views, the class that the view contributes most to.
    alone_probabilities : array of shape (n_samples, n_views)
        Probability of that class according to the view; NaN without probabilities.
    decisive : bool array of shape (n_samples, n_views) or None
        Whether `without` is another class than the prediction. None for regression.
    status : array of str of shape (n_samples,) or None
        One of four, the first that applies; None for regression and for models without views. A
        view is sure if its class alone is at least twice as probable as any other class; without
        probabilities every view is sure.

        - "contradict": two sure views predict different classes.
        - "unsure": no view is sure.
        - "hinges": removing one view changes the prediction.
        - "agree": all sure views predict the same class, and no single view is decisive.
    disagreement : array of shape (n_samples,)
        From 0, all views predict the same, to 1; NaN if not defined.
    familiarity : array of shape (n_samples, n_views) or None
        Similarity of samples to the training samples, from 0 to 1, if the model measures it.
    alone_evidence : array of shape (n_samples, n_views) or None
        Log-odds of the predicted class against the runner-up according to each view alone, in the
        unit of contributions; NaN without probabilities.
    without : array of shape (n_samples, n_views) or None
        Prediction if a view is removed as a missing view; None or NaN for the only view of a
        sample. If the model cannot do without its views, the contribution is subtracted instead.
    unit : {"log-odds", ""}
        Unit of contributions and base values. It is log-odds for models with probabilities; empty
        for decision values, and for regression, whose contributions are parts of the value.
    learned : bool array of shape (n_samples,) or None
        Whether a sample equals a training row of the model; None if the model does not keep
        hashes of its training rows.
    truth : array of shape (n_samples,) or None
        True classes or values; None or NaN if unknown for a sample.
    prior : dict of class to float, float or None
        Class frequencies, or mean of the target, in training, if the model stores them.
    columns : ColumnContributions or None
        Contributions of the columns, which add up to those of their views; with
        ``explain(model, X, columns=True)``.
    sets : bool array of shape (n_samples, n_classes), array of shape (n_samples, 2), or None
        Prediction sets, or lower and upper limits; with ``explain(sets, X)`` of a fitted
        :class:`PredictionSets`.
    coverage : float or None
        Share of the samples whose truth is in their set.
    gene_sets : ColumnContributions or None
        Contributions of kernels on parts of a view, such as gene sets, which add up to the
        contribution of the view; None if no view has such kernels.
    times : array of shape (n_times,) or None
        Times of survival curves. The predictions of survival models are risks, and `truth` is a
        structured array of events and times.
    survival : array of shape (n_samples, n_times) or None
        Probability of no event until each time.
    alone_survival : array of shape (n_samples, n_views, n_times) or None
        The same from each view alone; NaN if the model cannot do without its views.

    See Also
    --------
    lokl.explain.explain : Computes it.
    lokl.explain.TrustDisplay : Figure of all samples.
    lokl.explain.SampleExplanation : One sample.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import TrustedVoteClassifier
    >>> from lokl.explain import explain
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = TrustedVoteClassifier(kernels, C=10, random_state=0).fit(X[::2], y[::2])
    >>> explanation = explain(model, X[1::2], y[1::2])
    >>> explanation.trust.shape
    (89, 2)
    >>> explanation.sample("0").views[1].view
    'colours'
    """

    ids: list[str]
    views: list[str]
    classes: Array | None
    predictions: Array
    presence: Array
    contributions: Array
    base_values: Array
    alone: Array
    alone_probabilities: Array
    disagreement: Array
    probabilities: Array | None = None
    runner_up: Array | None = None
    weights: Array | None = None
    trust: Array | None = None
    familiarity: Array | None = None
    decisive: Array | None = None
    status: Array | None = None
    alone_evidence: Array | None = None
    without: Array | None = None
    unit: str = ""
    learned: Array | None = None
    truth: Array | None = None
    prior: Any = None
    columns: ColumnContributions | None = None
    sets: Array | None = None
    coverage: float | None = None
    gene_sets: ColumnContributions | None = None
    times: Array | None = None
    survival: Array | None = None
    alone_survival: Array | None = None

    def __post_init__(self) -> None:
        n, m = len(self.ids), len(self.views)
        one = (
            *("predictions", "base_values", "disagreement", "runner_up", "status", "truth"),
            "learned",
        )
        n_classes = 0 if self.classes is None else len(self.classes)
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("presence", *_VIEW_FIELDS), (n, m))
        shapes |= {**dict.fromkeys(one, (n,)), "probabilities": (n, n_classes)}
        shapes["sets"] = (n, 2 if self.classes is None else n_classes)
        n_times = 0 if self.times is None else len(self.times)
        shapes |= {"survival": (n, n_times), "alone_survival": (n, m, n_times)}
        values = {name: getattr(self, name) for name in shapes}
        if self.columns is not None:
            values["columns"] = self.columns.values
            shapes["columns"] = (n, len(self.columns.columns))
        for name, expected in shapes.items():
            value = values[name]
            if value is not None and np.shape(value) != expected:
                raise ValueError(
                    f"{n} samples, {m} views: {name} must have shape {expected}, got "
                    f"{np.shape(value)}"
                )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_regression(self) -> bool:
        return self.classes is None

    @property
    def is_survival(self) -> bool:
        return self.times is not None

    @property
    def trust_or_weights(self) -> Array | None:
        """Trust if the model has it, else weights."""
        return self.weights if self.trust is None else self.trust

    @cached_property
    def predicted_codes(self) -> Array:
        """Index of the predicted class in ``classes``; the predicted value for regression."""
        return class_codes(self.predictions, self.classes)

    @cached_property
    def runner_up_codes(self) -> Array:
        """Index of the runner-up in ``classes``."""
        return class_codes(self.runner_up, self.classes)

    @cached_property
    def alone_codes(self) -> Array:
        """Index of the class, or value, that each view predicts alone; -1 or NaN without it."""
        return class_codes(self.alone, self.classes)

    @cached_property
    def truth_codes(self) -> Array:
        """Index of the true class, true value or time; -1 or NaN if it is unknown."""
        if self.is_survival and self.truth is not None:
            return np.asarray(self.truth["time"])
        truth = np.full(len(self), None) if self.truth is None else self.truth
        return class_codes(truth, self.classes)

    @cached_property
    def known(self) -> Array:
        """Whether the truth of each sample is known."""
        codes = self.truth_codes
        return np.asarray(np.isfinite(codes) if self.is_regression else codes >= 0)

    @cached_property
    def judged(self) -> Array:
        """Whether a prediction counts for scores: the truth is known, and was not learned from.

        A risk has no true value.
        """
        if self.is_survival:
            return np.zeros(len(self), dtype=bool)
        learned = np.zeros(len(self), dtype=bool) if self.learned is None else self.learned
        return np.asarray(self.known & ~learned)

    @cached_property
    def wrong(self) -> Array:
        """Whether each prediction counts, and is the wrong class; False for regression."""
        differs = self.truth_codes != self.predicted_codes
        return np.asarray(self.judged & differs & (not self.is_regression))

    @cached_property
    def predicted_probability(self) -> Array:
        """Probability of each predicted class; NaN without probabilities."""
        if self.probabilities is None:
            return np.full(len(self), np.nan)
        return self.probabilities[np.arange(len(self)), self.predicted_codes]

    @cached_property
    def absolute_errors(self) -> Array:
        """Absolute error of each prediction of a regression; 0 if it does not count."""
        return np.abs(np.where(self.judged, self.truth_codes - self.predicted_codes, 0.0))

    def table(self, *, details: bool = True) -> dict[str, Array]:
        """Return columns by name: predictions, probabilities, trust or weights, status.

        Parameters
        ----------
        details : bool, default=True
            Whether to add contributions, predictions of single views, decisive views and
            familiarity.
        """
        columns: dict[str, Any] = {"prediction": self.predictions}
        if self.probabilities is not None and self.classes is not None:
            for label, values in zip(self.classes, self.probabilities.T, strict=True):
                columns[f"probability {label}"] = values
        if self.sets is not None:
            columns |= self._set_columns()
        if self.times is not None and self.survival is not None:
            columns["median time"] = np.array([_median(self.times, own) for own in self.survival])
            for k in curve_positions(len(self.times)):
                columns[f"survival {self.times[k]:.3g}"] = self.survival[:, k]
        if len(self.views) < 2:
            return columns
        groups = {"weight" if self.trust is None else "trust": self.trust_or_weights}
        if details:
            groups |= {
                "contribution": self.contributions,
                "alone": self.alone,
                "alone probability": self.alone_probabilities,
                "alone evidence": self.alone_evidence,
                "without": self.without,
                "decisive": self.decisive,
                "familiarity": self.familiarity,
            }
        for kind, values in groups.items():
            if values is not None:
                columns |= {f"{kind} {view}": values[:, v] for v, view in enumerate(self.views)}
        if np.isfinite(self.disagreement).any():
            columns["disagreement"] = self.disagreement
        return columns if self.status is None else {**columns, "status": self.status}

    def _set_columns(self) -> dict[str, Array]:
        """Return the classes of each prediction set as text, or the limits of each interval."""
        assert self.sets is not None
        if self.classes is None:
            return {"lower": self.sets[:, 0], "upper": self.sets[:, 1]}
        texts = [", ".join(map(str, self._set(k))) for k in range(len(self))]
        return {"prediction set": np.array(texts, dtype=object)}

    def to_frame(self) -> Any:
        """Return a data frame (pandas): one row for each sample, see :meth:`table`."""
        pandas = need_pandas("to_frame")
        columns = self.table()
        if self.truth is not None and self.is_survival:
            columns = {"event": self.truth["event"], "time": self.truth["time"], **columns}
        elif self.truth is not None:
            columns = {"truth": self.truth, **columns}
        return pandas.DataFrame(columns, index=pandas.Index(self.ids, name="id"))

    def write_to(self, container: Any, prefix: str = "lokl") -> None:
        """Write predictions and the role of views into AnnData or MuData, by the ids of samples.

        ``obs`` gets the columns ``PREFIX_prediction``, ``PREFIX_probability CLASS``,
        ``PREFIX_disagreement`` and ``PREFIX_status``, and ``obsm`` the tables ``PREFIX_trust`` or
        ``PREFIX_weight``, and ``PREFIX_contribution``, with a column for each view. Samples that
        were not explained get missing values.

        Parameters
        ----------
        container : AnnData or MuData
            Its ``obs_names`` are the ids. It is changed in place.
        prefix : str, default="lokl"
            Beginning of the names.
        """
        pandas = need_pandas("write_to")
        known = set(map(str, container.obs_names))
        if known.isdisjoint(self.ids):
            raise ValueError(
                f"no id of the {len(self)} explained samples, such as {self.ids[0]!r}, is in "
                f"obs_names, such as {next(iter(container.obs_names), None)!r}"
            )
        rows = container.obs_names.astype(str)
        views = [f"{kind} {view}" for kind in ("trust", "weight") for view in self.views]
        for name, values in self.table(details=False).items():
            if name not in views:
                column = pandas.Series(values, index=self.ids).reindex(rows)
                text = column.dtype.kind not in "biuf"
                column = column.astype(str).where(column.notna(), None) if text else column
                container.obs[f"{prefix}_{name}"] = column.to_numpy()
        kind = "weight" if self.trust is None else "trust"
        tables = {kind: self.trust_or_weights, "contribution": self.contributions}
        for name, table in tables.items():
            if table is not None and self.views:
                frame = pandas.DataFrame(table, index=self.ids, columns=self.views).reindex(rows)
                container.obsm[f"{prefix}_{name}"] = frame.set_axis(container.obs_names, axis=0)

    def sample(self, name: Any) -> SampleExplanation:
        """Return the explanation of one sample.

        Parameters
        ----------
        name : str
            Its id.
        """
        if str(name) not in self.ids:
            raise KeyError(f"no sample {name!r}; the first are {', '.join(self.ids[:3])}")
        return self.sample_at(self.ids.index(str(name)))

    def sample_at(self, k: int) -> SampleExplanation:
        """Return the explanation of the sample at a position."""
        prediction, ranked = plain_value(self.predictions[k]), {}
        if self.probabilities is not None and self.classes is not None:
            order = np.argsort(-self.probabilities[k], kind="stable")
            ranked = {plain_value(self.classes[c]): float(self.probabilities[k, c]) for c in order}
        return SampleExplanation(
            self.ids[k],
            prediction,
            ranked,
            None if self.runner_up is None else plain_value(self.runner_up[k]),
            float(self.base_values[k]),
            tuple(self._view(k, v) for v in range(len(self.views))),
            None if self.status is None else str(self.status[k]),
            plain_value(self.disagreement[k]),
            None if self.truth is None else plain_value(self.truth[k]),
            self.prior.get(prediction) if isinstance(self.prior, dict) else self.prior,
            unit=self.unit,
            learned=None if self.learned is None else bool(self.learned[k]),
            columns=_largest(self.columns, k),
            gene_sets=_largest(self.gene_sets, k),
            prediction_set=self._set(k),
            coverage=self.coverage,
            times=() if self.times is None else tuple(self.times.tolist()),
            survival=() if self.survival is None else tuple(self.survival[k].tolist()),
        )

    def _set(self, k: int) -> tuple[Any, ...]:
        """Return the classes in the set of a sample, or the limits of its interval."""
        if self.sets is None:
            return ()
        chosen = self.sets[k] if self.classes is None else self.classes[self.sets[k]]
        return tuple(plain_value(value) for value in chosen)

    def _view(self, k: int, v: int) -> ViewContribution:
        if not self.presence[k, v]:
            return ViewContribution(self.views[v], False)
        values = (getattr(self, name) for name in _VIEW_FIELDS)
        found: Any = [None if value is None else plain_value(value[k, v]) for value in values]
        curves = self.alone_survival
        known = curves is not None and bool(np.isfinite(curves[k, v]).all())
        curve = tuple(curves[k, v].tolist()) if curves is not None and known else ()
        return replace(ViewContribution(self.views[v], True, *found), survival=curve)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that can be written as JSON."""
        classes = None if self.classes is None else [plain_value(c) for c in self.classes]
        samples = [self.sample_at(k).to_dict() for k in range(len(self))]
        return {"views": self.views, "classes": classes, "samples": samples}

    def __repr__(self) -> str:
        text = f"Explanation of {len(self)} samples by {len(self.views)} views"
        if self.status is None:
            return f"<{text}>"
        counts = [(int((self.status == own).sum()), own) for own in STATUSES]
        return f"<{text}: {', '.join(f'{count} {own}' for count, own in counts if count)}>"

    def _repr_html_(self) -> str:
        """Return a short table of the first samples, for notebooks."""
        columns: dict[str, Any] = {"id": self.ids, **self.table(details=False)}
        texts = {name: _share if name.startswith(_SHARES) else _text for name in columns}
        shown = range(min(len(self), _ROWS))
        rows = [
            [texts[name](plain_value(values[k])) for name, values in columns.items()] for k in shown
        ]
        return html_table(repr(self)[1:-1], list(columns), rows)


def _largest(found: ColumnContributions | None, k: int) -> tuple[ColumnContribution, ...]:
    """Return the largest contributions to the prediction of the sample at position `k`."""
    largest = () if found is None else found.largest(k, _COLUMNS)
    return tuple(ColumnContribution(*own) for own in largest)


def class_codes(labels: Any, classes: Any) -> Array:
    """Return positions of labels in `classes`, -1 for others; floats if `classes` is None."""
    labels = np.asarray(labels)
    if classes is None:
        return labels.astype(float)
    code = {label: k for k, label in enumerate(np.asarray(classes).tolist())}
    flat = [code.get(label, -1) for label in labels.ravel().tolist()]
    return np.array(flat, dtype=np.intp).reshape(labels.shape)


def curve_positions(n_times: int) -> list[int]:
    """Return the positions of three times at which a survival curve is shown as numbers."""
    return sorted({n_times // 4, n_times // 2, 3 * n_times // 4})


def _median(times: Any, survival: Any) -> float:
    """Return the time at which a survival curve passes one half, between two times; NaN if none."""
    times, survival = np.append(0.0, times), np.append(1.0, survival)
    after = int(np.argmax(survival <= 0.5))
    if not after:
        return np.nan
    drop = survival[after - 1] - survival[after]
    share = (survival[after - 1] - 0.5) / drop
    return float(times[after - 1] + share * (times[after] - times[after - 1]))


def median_time(times: Any, survival: Any) -> str:
    """Return the median time of a survival curve as text; it may be after the last time."""
    median = _median(times, survival)
    return f"after {times[-1]:.3g}" if np.isnan(median) else f"{median:.3g}"


def plain_value(value: Any) -> Any:
    """Return a Python value for a numpy scalar, None for NaN."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and np.isnan(value) else value


def _bar(size: float) -> str:
    """Return a bar to the left for negative sizes, to the right for positive ones.

    Parameters
    ----------
    size : float
        -1 to 1.
    """
    drawn = round(_BAR * abs(size))
    if not drawn:
        return ""
    middle = " " * _BAR
    return f"{'◀' + '━' * (drawn - 1):>{_BAR}}" if size < 0 else f"{middle}{'━' * (drawn - 1)}▶"


def _share(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
