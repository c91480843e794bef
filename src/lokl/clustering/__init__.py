"""Regions of the data: kernel k-means, exact and approximate."""

from lokl.clustering.clusters import Clusters, find_clusters

__all__ = ["Clusters", "find_clusters"]
