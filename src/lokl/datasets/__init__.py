"""Data sets: generators of problems whose answer is known."""

from lokl.datasets.generators import make_two_regions

__all__ = ["make_two_regions"]
