"""One self-contained HTML file about a model or a comparison of models."""

from lokl.explain.results import Interval
from lokl.explain.similarity import KernelAlignment
from lokl.report.content import (
    Finding,
    LeaderboardEntry,
    Report,
    SampleMap,
    SourceFile,
    SupportSamples,
    ViewSubset,
    ViewSummary,
)
from lokl.report.from_model import (
    report_from_model,
    sample_map,
    view_subsets,
    view_summaries,
)
from lokl.report.page import render, write

__all__ = [
    "Finding",
    "Interval",
    "KernelAlignment",
    "LeaderboardEntry",
    "Report",
    "SampleMap",
    "SourceFile",
    "SupportSamples",
    "ViewSubset",
    "ViewSummary",
    "render",
    "report_from_model",
    "sample_map",
    "view_subsets",
    "view_summaries",
    "write",
]
