"""Fits and predictions on Dask collections that are larger than the memory of any machine.

:func:`fit` returns an ordinary estimator, which does not need Dask. Predictions for collections are
lazy. Dask schedules the tasks, moves data, spills to disk and repeats the tasks of lost workers.
"""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.regions.dask.answers import contributions as contributions
    from lokl.regions.dask.answers import decision_function as decision_function
    from lokl.regions.dask.answers import predict as predict
    from lokl.regions.dask.answers import predict_proba as predict_proba
    from lokl.regions.dask.answers import score as score
    from lokl.regions.dask.answers import weights as weights
    from lokl.regions.dask.fitting import fit as fit
    from lokl.tables.dask import read as read

__getattr__, __all__ = lazy_exports(__name__)
