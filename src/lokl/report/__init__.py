"""One self-contained HTML file about a model or a comparison of models."""

from lokl.explain.similarity import Alignment
from lokl.report.content import (
    Candidate,
    Cases,
    Finding,
    Interval,
    Report,
    Source,
    Subset,
    Support,
    ViewWorth,
)
from lokl.report.gather import (
    about,
    alignment_of,
    cases_from,
    cases_of,
    subsets_of,
    view_names,
    worth_of,
)
from lokl.report.page import render, write

__all__ = [
    "Alignment",
    "Candidate",
    "Cases",
    "Finding",
    "Interval",
    "Report",
    "Source",
    "Subset",
    "Support",
    "ViewWorth",
    "about",
    "alignment_of",
    "cases_from",
    "cases_of",
    "render",
    "subsets_of",
    "view_names",
    "worth_of",
    "write",
]
