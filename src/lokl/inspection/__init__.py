"""Displays of fitted models; they need matplotlib, the extra ``plot``."""

from lokl.inspection.regions import plot_regions

__all__ = ["plot_regions"]
