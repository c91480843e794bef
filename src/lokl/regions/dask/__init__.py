"""Regions on Dask collections; the public names are in :mod:`lokl.distributed`."""
