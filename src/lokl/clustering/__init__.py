"""Regions of the data: kernel k-means, exact and approximate."""

from lokl.clustering.clusters import Clustering, Clusters

__all__ = ["Clustering", "Clusters"]
