"""Data sets: by name from disk or network, and generated ones whose answer is known."""

from lokl.datasets.download import fetch
from lokl.datasets.errors import DatasetError, MissingDatasetError
from lokl.datasets.generators import make_two_regions, make_views
from lokl.datasets.loader import load
from lokl.datasets.reading import read
from lokl.datasets.registry import Record, available, info
from lokl.datasets.spoiled import spoil_views

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
