"""One self-contained HTML file about a model or a comparison of models."""

from lokl.report.content import (
    Candidate,
    Cases,
    Finding,
    Interval,
    Report,
    Subset,
    ViewWorth,
)
from lokl.report.gather import cases_of
from lokl.report.page import render, write

__all__ = [
    "Candidate",
    "Cases",
    "Finding",
    "Interval",
    "Report",
    "Subset",
    "ViewWorth",
    "cases_of",
    "render",
    "write",
]
