"""The same estimators on Dask collections that are larger than the memory of any machine.

What comes back from :func:`fit` is the ordinary estimator, which needs no Dask; answers about
collections are lazy. Scheduling, moving of data, spilling to disk and lost workers are Dask's.
"""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.distributed.answers import contributions as contributions
    from lokl.distributed.answers import decision_function as decision_function
    from lokl.distributed.answers import gate as gate
    from lokl.distributed.answers import predict as predict
    from lokl.distributed.answers import predict_proba as predict_proba
    from lokl.distributed.fitting import fit as fit
    from lokl.distributed.reading import read as read
    from lokl.distributed.scoring import score as score

__getattr__, __all__ = lazy_exports(
    __name__,
    {
        "contributions": "lokl.distributed.answers",
        "decision_function": "lokl.distributed.answers",
        "fit": "lokl.distributed.fitting",
        "gate": "lokl.distributed.answers",
        "predict": "lokl.distributed.answers",
        "predict_proba": "lokl.distributed.answers",
        "read": "lokl.distributed.reading",
        "score": "lokl.distributed.scoring",
    },
)
