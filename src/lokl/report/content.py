"""What a report says, as plain numbers and words; nothing here knows how it is drawn."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.explain.similarity import Alignment


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
    behind : Interval or None
        How far it falls behind the chosen one, fold by fold; below 0 it is better.
    """

    name: str
    score: Interval | None
    seconds: float
    support: float | None = None
    chosen: bool = False
    baseline: bool = False
    note: str = ""
    behind: Interval | None = None


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
class Support:
    """Samples that a model learned from and that carry it, as neighbours of the cases.

    Attributes
    ----------
    ids : list of str
    truth : array of shape (n_support,)
        Number of the class, or the target; -1 or NaN where it is not known.
    near : list of list of int
        For each case, the numbers of the most similar support samples, the nearest first.
    alike : list of list of float
        How similar they are: 1 is the same sample, 0 has nothing in common.
    """

    ids: list[str]
    truth: Array
    near: list[list[int]]
    alike: list[list[float]]


@dataclass(frozen=True, eq=False)
class Cases:
    """Answers about samples that the model had not learned from.

    Attributes
    ----------
    ids : list of str
    truth : array of shape (n_samples,)
        Number of the class, or the target; -1 or NaN where it is not known.
    predicted : array of shape (n_samples,)
    probabilities : array of shape (n_samples, n_classes) or None
        None for regressions, and for models that give none.
    trust : array of shape (n_samples, n_views)
        From 0 to 1; NaN where the model does not tell.
    parts : array of shape (n_samples, n_views)
        Of the decision for the predicted class against the runner-up, or of the prediction.
    start : array of shape (n_samples,)
        That decision before any view has spoken.
    says : array of shape (n_samples, n_views)
        Number of the class (or the value) that each view alone would predict; -1 where it cannot.
    sure : array of shape (n_samples, n_views)
        Probability of that class; NaN where there is none.
    disagreement : array of shape (n_samples,)
        From 0, all views say the same, to 1; NaN where the model does not tell.
    present : boolean array of shape (n_samples, n_views)
    place : array of shape (n_samples, 2)
        In a picture where similar samples lie together.
    near : list of list of int
        Numbers of the most similar samples, for each sample; `support` comes before them.
    support : Support or None
        The most similar samples of those that carry the model.
    shares : bool
        Whether trust is divided between the views of a sample, so that it sums to one.
    familiar : array of shape (n_samples, n_views) or None
        How far samples are like those that the model learned from, from 0 to 1; NaN or None where
        it does not tell.
    explained : float or None
        Share of the variation that the two directions of the picture hold.
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
    support: Support | None = None
    shares: bool = False
    familiar: Array | None = None
    explained: float | None = None

    @property
    def classifies(self) -> bool:
        """Whether predictions are numbers of classes."""
        return self.predicted.dtype.kind in "iu"

    @property
    def divided(self) -> bool:
        """Whether trust is shares, told or seen: it sums to one at every sample."""
        sums = np.where(self.present, self.trust, 0.0).sum(axis=1)
        return self.shares or (self.trust.shape[1] > 1 and bool(np.allclose(sums, 1.0, atol=1e-6)))

    @property
    def uniform(self) -> bool:
        """Whether samples that have the same views are all trusted alike."""
        patterns, code = np.unique(self.present, axis=0, return_inverse=True)
        groups = [self.trust[code.ravel() == k] for k in range(len(patterns))]
        return all(bool(np.allclose(own, own[0], atol=1e-6)) for own in groups)

    @property
    def known(self) -> Array:
        """Whether the truth about a sample is known."""
        truth = np.asarray(self.truth, dtype=float)
        return truth >= 0 if self.classifies else np.isfinite(truth)

    @property
    def wrong(self) -> Array:
        """Whether the prediction is known to be wrong; never for regressions."""
        if not self.classifies:
            return np.zeros(len(self.ids), dtype=bool)
        return np.asarray(self.known & (self.truth != self.predicted))


@dataclass(frozen=True)
class Source:
    """A table that went in.

    Attributes
    ----------
    name : str
    rows, columns : int or None
    missing : float or None
        Share of its cells that are empty.
    sha256 : str
        Of the file; empty where there is none.
    """

    name: str
    rows: int | None = None
    columns: int | None = None
    missing: float | None = None
    sha256: str = ""


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
        Two sentences; where it is empty, they are made from the leaderboard or the cases.
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
    percent : bool or None
        Whether scores are shares that read best as percentages; None says so of classifications.
    alignment : Alignment or None
    sources : list of Source
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
    percent: bool | None = None
    alignment: Alignment | None = None
    sources: list[Source] = field(default_factory=list)
