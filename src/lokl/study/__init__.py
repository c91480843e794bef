"""Comparison of several models on the same splits of the same data, and its results."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.study.comparison import Comparison as Comparison
    from lokl.study.results import Results as Results
    from lokl.study.settings import Settings as Settings

__getattr__, __all__ = lazy_exports(__name__)
