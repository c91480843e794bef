"""Data sets by name, generated data sets, and readers of files."""

from lokl.datasets.generators import corrupt_views, make_two_regions, make_views
from lokl.datasets.loader import fetch, load
from lokl.datasets.readers import DatasetError, MissingDatasetError, read
from lokl.datasets.registry import DatasetInfo, available, info

__all__ = [
    "DatasetError",
    "DatasetInfo",
    "MissingDatasetError",
    "available",
    "corrupt_views",
    "fetch",
    "info",
    "load",
    "make_two_regions",
    "make_views",
    "read",
]
