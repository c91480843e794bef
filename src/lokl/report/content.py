"""Content of a report as plain data, independent of how it is drawn."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lokl._arrays import Array
from lokl._text import html_table
from lokl.explain.explanation import Explanation
from lokl.explain.results import Interval, SummaryTable
from lokl.explain.similarity import KernelAlignment

# Models that a notebook shows.
_ROWS = 10


@dataclass(frozen=True)
class LeaderboardEntry:
    """One model on the leaderboard.

    Attributes
    ----------
    name : str
    score : Interval or None
        None for a model that failed; `note` gives the reason.
    seconds : float
        Time of one fit.
    support : float or None
        Share of the training samples that are support samples.
    chosen, baseline : bool
    note : str
    behind : Interval or None
        Loss against the chosen model, paired by fold; negative if this model is better.
    other_scores : dict of str to Interval
        Other scores by name, such as "balanced accuracy", "AUROC", "log loss" or "sensitivity".

    See Also
    --------
    lokl.report.Report : Contains it.

    Examples
    --------
    >>> from lokl.report import Interval, LeaderboardEntry
    >>> entry = LeaderboardEntry("forest", Interval(0.92, 0.90, 0.94), seconds=0.3, baseline=True)
    >>> entry.name, entry.score.mean
    ('forest', 0.92)
    """

    name: str
    score: Interval | None
    seconds: float
    support: float | None = None
    chosen: bool = False
    baseline: bool = False
    note: str = ""
    behind: Interval | None = None
    other_scores: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def ahead(self) -> Interval | None:
        """Gain against the chosen model; None for the chosen model itself."""
        return None if self.behind is None or self.chosen else -self.behind


@dataclass(frozen=True)
class ViewSummary:
    """Value of one view.

    Attributes
    ----------
    name : str
    columns : int
        Number of its columns.
    alone : Interval or None
        Score of a model of this view only.
    loss : Interval or None
        Loss of the score when the view is removed; negative if the model is better without it.
    missing : float
        Share of the samples without the view.
    without : Interval or None
        Score of a model without the view.

    See Also
    --------
    lokl.report.Report : Contains it.
    lokl.report.view_summaries : Computes it.

    Examples
    --------
    >>> from lokl.report import Interval, ViewSummary
    >>> view = ViewSummary("blood", 12, alone=Interval(0.81, 0.77, 0.85), missing=0.1)
    >>> view.columns, view.missing
    (12, 0.1)
    """

    name: str
    columns: int
    alone: Interval | None = None
    loss: Interval | None = None
    missing: float = 0.0
    without: Interval | None = None


@dataclass(frozen=True)
class ViewSubset:
    """Score of a model of some views.

    Attributes
    ----------
    views : tuple of str
        Names of the views.
    score : Interval
        Score of a model of these views.

    See Also
    --------
    lokl.report.Report : Contains it.
    lokl.report.view_subsets : Computes it.

    Examples
    --------
    >>> from lokl.report import Interval, ViewSubset
    >>> ViewSubset(("blood", "scan"), Interval(0.9, 0.86, 0.94)).views
    ('blood', 'scan')
    """

    views: tuple[str, ...]
    score: Interval


@dataclass(frozen=True, eq=False)
class SupportSamples:
    """Support samples of a model, which are neighbours of the explained samples.

    Attributes
    ----------
    ids : list of str
    truth : array of shape (n_support,)
        Class labels, or targets.
    similarities : list of list of float
        Similarities of the neighbours of each explained sample; 1 means equal.

    See Also
    --------
    lokl.report.SampleMap : Contains them.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.report import SupportSamples
    >>> support = SupportSamples(["P1", "P2"], np.array([0, 1]), similarities=[[0.9], [0.4]])
    >>> support.ids
    ['P1', 'P2']
    """

    ids: list[str]
    truth: Array
    similarities: list[list[float]]


@dataclass(frozen=True, eq=False)
class SampleMap:
    """Samples in the plane, in which similar samples are close, and their neighbours.

    Attributes
    ----------
    positions : array of shape (n_samples, 2)
    neighbours : list of list of int
        Positions of the most similar samples, nearest first: among the support samples if there
        are any, else among the explained samples.
    support : SupportSamples or None
    explained : float or None
        Share of the variance in the plane.

    See Also
    --------
    lokl.report.Report : Contains it.
    lokl.report.sample_map : Computes it.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.report import SampleMap
    >>> SampleMap(np.zeros((2, 2)), neighbours=[[1], [0]]).neighbours
    [[1], [0]]
    """

    positions: Array
    neighbours: list[list[int]]
    support: SupportSamples | None = None
    explained: float | None = None


@dataclass(frozen=True)
class SourceFile:
    """An input file.

    Attributes
    ----------
    name : str
        Name of the file.
    rows, columns : int or None
        Its size.
    missing : float or None
        Share of empty cells.
    sha256 : str
        Checksum.

    See Also
    --------
    lokl.report.Report : Contains it.

    Examples
    --------
    >>> from lokl.report import SourceFile
    >>> SourceFile("mrna.csv", rows=150, columns=200, missing=0.0).rows
    150
    """

    name: str
    rows: int | None = None
    columns: int | None = None
    missing: float | None = None
    sha256: str = ""


@dataclass(frozen=True)
class Finding:
    """A remark that affects how far the results can be relied on.

    Attributes
    ----------
    code : str
        Such as ``LOKL003``, the same in every version.
    text : str
        One or two sentences.

    See Also
    --------
    lokl.report.Report : Contains it.

    Examples
    --------
    >>> from lokl.report import Finding
    >>> Finding("LOKL003", "A single view may be as good.").code
    'LOKL003'
    """

    code: str
    text: str


@dataclass(frozen=True, repr=False)
class Report:
    """Everything on the page.

    Attributes
    ----------
    title : str
    verdict : str
        Two sentences; if empty, they are made from the leaderboard or the explanation.
    test : list of LeaderboardEntry
        The same models on a test cohort that nothing was chosen on.
    choice : str
        Why the model was chosen among the models of lokl, and whether all views count equally.
    score_name : str
        Such as "accuracy".
    classes : list of str
        Empty for regression.
    views : list of ViewSummary
    leaderboard : list of LeaderboardEntry
        Best first.
    findings : list of Finding
    subsets : list of ViewSubset
    explanation : Explanation or None
        Predictions for samples that the model was not fitted on.
    sample_map : SampleMap or None
        Needed with an explanation.
    audit : dict of str to str
        Provenance: rows, versions, seed, checksums.
    command : str
        Command that makes this report again; empty for reports from Python.
    percent : bool or None
        Whether scores are shown as percentages; None for classification only.
    alignment : KernelAlignment or None
    sources : list of SourceFile
    gene_sets : SummaryTable or None
        From :func:`lokl.explain.gene_set_importance`, if the model has gene sets.

    See Also
    --------
    lokl.report.report_from_model : Makes it.
    lokl.report.write : Writes the page.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.report import report_from_model
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels, C=10).fit(X[::2], y[::2])
    >>> report = report_from_model(model, X[1::2], y[1::2], title="Wine")
    >>> report.title, report.classes, [view.name for view in report.views]
    ('Wine', ['0', '1', '2'], ['acids', 'colours'])
    """

    title: str
    verdict: str
    score_name: str
    classes: list[str]
    views: list[ViewSummary]
    leaderboard: list[LeaderboardEntry] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    subsets: list[ViewSubset] = field(default_factory=list)
    explanation: Explanation | None = None
    sample_map: SampleMap | None = None
    audit: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    percent: bool | None = None
    alignment: KernelAlignment | None = None
    sources: list[SourceFile] = field(default_factory=list)
    choice: str = ""
    test: list[LeaderboardEntry] = field(default_factory=list)
    gene_sets: SummaryTable | None = None

    def __post_init__(self) -> None:
        explanation = self.explanation
        if explanation is None:
            return
        n, m, c = len(explanation), len(explanation.views), len(self.classes)
        if len(self.views) != m:
            raise ValueError(f"the explanation has {m} views, but views has {len(self.views)}")
        if c != (0 if explanation.classes is None else len(explanation.classes)):
            raise ValueError(f"classes has {c} names, which are not those of the explanation")
        if self.sample_map is None or len(self.sample_map.neighbours) != n:
            raise ValueError(f"an explanation of {n} samples needs a sample_map of {n} samples")

    def __repr__(self) -> str:
        n_samples = 0 if self.explanation is None else len(self.explanation)
        parts = [(len(self.views), "views"), (len(self.leaderboard), "models")]
        counts = ", ".join(f"{n} {name}" for n, name in [(n_samples, "samples"), *parts])
        return f"<Report {self.title!r}: {counts}>"

    def _repr_html_(self) -> str:
        """Return the verdict and the best models, or the explanation, for notebooks."""
        # Formats are chosen for a report, so that their module comes later.
        from lokl.report.formatting import Formatter

        scale = Formatter.of(self).scale
        rows = [
            [entry.name + " (chosen)" * entry.chosen, scale.with_limits(entry.score)]
            for entry in self.leaderboard[:_ROWS]
        ]
        text = html_table(f"{repr(self)[1:-1]}. {self.verdict}", ["model", self.score_name], rows)
        return text if rows or self.explanation is None else self.explanation._repr_html_()
