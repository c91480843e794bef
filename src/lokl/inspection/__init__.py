"""Displays of fitted models; they need matplotlib, the extra ``plot``."""

from lokl.inspection.regions import plot_regions
from lokl.inspection.trust_map import plot_sample, plot_trust

__all__ = ["plot_regions", "plot_sample", "plot_trust"]
