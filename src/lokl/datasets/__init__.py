"""Data sets: by name from disk or network, and generated ones whose answer is known."""

from lokl.datasets.download import fetch
from lokl.datasets.errors import DatasetError, MissingDatasetError
from lokl.datasets.generators import make_two_regions, make_views, spoil_views
from lokl.datasets.loader import load
from lokl.datasets.readers import read
from lokl.datasets.registry import Record, available, info

__all__ = [
    "DatasetError",
    "MissingDatasetError",
    "Record",
    "available",
    "fetch",
    "info",
    "load",
    "make_two_regions",
    "make_views",
    "read",
    "spoil_views",
]
