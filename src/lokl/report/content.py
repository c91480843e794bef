"""What a report says, as plain numbers and words; nothing here knows how it is drawn."""

from dataclasses import dataclass, field
from typing import Any

from lokl._arrays import Array


@dataclass(frozen=True)
class Interval:
    """A mean and the limits of its 95 % interval, None where there is none."""

    mean: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Candidate:
    """A row of the leaderboard.

    Attributes
    ----------
    name : str
    score : Interval or None
        None for a candidate that failed; `note` says why.
    seconds : float
        Of one fit.
    support : float or None
        Share of the training samples that carry the model.
    chosen, baseline : bool
    note : str
    """

    name: str
    score: Interval | None
    seconds: float
    support: float | None = None
    chosen: bool = False
    baseline: bool = False
    note: str = ""


@dataclass(frozen=True)
class ViewWorth:
    """What one view is worth.

    Attributes
    ----------
    name : str
    columns : int
    alone : Interval or None
        Score of a model of this view only.
    withheld : Interval or None
        What the score loses without the view; below 0 the model is better without it.
    contribution : float
        Mean absolute part in the decisions.
    trust : float
        Mean over the samples that have the view.
    missing : float
        Share of the samples that lack it.
    """

    name: str
    columns: int
    alone: Interval | None
    withheld: Interval | None
    contribution: float
    trust: float
    missing: float


@dataclass(frozen=True)
class Subset:
    """Score of a model of some views."""

    views: tuple[str, ...]
    score: Interval


@dataclass(frozen=True, eq=False)
class Cases:
    """Answers about samples that the model had not learned from.

    Attributes
    ----------
    ids : list of str
    truth : array of shape (n_samples,)
        Number of the class, or the target; -1 or NaN where it is not known.
    predicted : array of shape (n_samples,)
    probabilities : array of shape (n_samples, n_classes), or None for regressions
    trust : array of shape (n_samples, n_views)
    parts : array of shape (n_samples, n_views)
        Of the decision for the predicted class against the runner-up, or of the prediction.
    start : array of shape (n_samples,)
        That decision before any view has spoken.
    says : array of shape (n_samples, n_views)
        Number of the class (or the value) that each view alone would predict; -1 where it cannot.
    sure : array of shape (n_samples, n_views)
        Probability of that class; NaN where there is none.
    disagreement : array of shape (n_samples,)
    present : boolean array of shape (n_samples, n_views)
    place : array of shape (n_samples, 2)
        In a picture where similar samples lie together.
    near : list of list of int
        Numbers of the most similar samples, for each sample.
    """

    ids: list[str]
    truth: Array
    predicted: Array
    probabilities: Array | None
    trust: Array
    parts: Array
    start: Array
    says: Array
    sure: Array
    disagreement: Array
    present: Array
    place: Array
    near: list[list[int]]

    @property
    def wrong(self) -> Array:
        """Whether the prediction is known to be wrong; never for regressions."""
        if self.probabilities is None:
            return self.truth != self.truth
        return (self.truth >= 0) & (self.truth != self.predicted)


@dataclass(frozen=True)
class Finding:
    """Something a reader should know before believing the rest.

    Attributes
    ----------
    code : str
        Such as ``LOKL003``; it stays the same from version to version.
    text : str
    """

    code: str
    text: str


@dataclass(frozen=True)
class Report:
    """Everything on the page.

    Attributes
    ----------
    title : str
    verdict : str
        Two sentences.
    score_name : str
        Such as "accuracy".
    classes : list of str
        Empty for regressions.
    views : list of ViewWorth
    leaderboard : list of Candidate
        Best first.
    findings : list of Finding
    subsets : list of Subset
    cases : Cases or None
    audit : dict of str to str
        How this was made: rows, versions, seed, checksums.
    command : str
        What makes this report again; empty where it was made from Python.
    """

    title: str
    verdict: str
    score_name: str
    classes: list[str]
    views: list[ViewWorth]
    leaderboard: list[Candidate] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    subsets: list[Subset] = field(default_factory=list)
    cases: Cases | None = None
    audit: dict[str, Any] = field(default_factory=dict)
    command: str = ""
