"""The same estimators on Dask collections that are larger than the memory of any machine.

What comes back from :func:`fit` is the ordinary estimator, which needs no Dask; answers about
collections are lazy. Scheduling, moving of data, spilling to disk and lost workers are Dask's.
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

__getattr__, __all__ = lazy_exports(
    __name__,
    {
        "contributions": "lokl.regions.dask.answers",
        "decision_function": "lokl.regions.dask.answers",
        "fit": "lokl.regions.dask.fitting",
        "weights": "lokl.regions.dask.answers",
        "predict": "lokl.regions.dask.answers",
        "predict_proba": "lokl.regions.dask.answers",
        "read": "lokl.tables.dask",
        "score": "lokl.regions.dask.answers",
    },
)
