"""One self-contained HTML file about a model or a comparison of models."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.explain.results import Interval as Interval
    from lokl.explain.similarity import KernelAlignment as KernelAlignment
    from lokl.report.content import Finding as Finding
    from lokl.report.content import LeaderboardEntry as LeaderboardEntry
    from lokl.report.content import Report as Report
    from lokl.report.content import SampleMap as SampleMap
    from lokl.report.content import SourceFile as SourceFile
    from lokl.report.content import SupportSamples as SupportSamples
    from lokl.report.content import ViewSubset as ViewSubset
    from lokl.report.content import ViewSummary as ViewSummary
    from lokl.report.from_model import report_from_model as report_from_model
    from lokl.report.from_model import sample_map as sample_map
    from lokl.report.from_model import view_subsets as view_subsets
    from lokl.report.from_model import view_summaries as view_summaries
    from lokl.report.page import render as render
    from lokl.report.page import write as write

__getattr__, __all__ = lazy_exports(__name__)
