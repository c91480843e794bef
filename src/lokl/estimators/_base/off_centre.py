"""Kernels that are off centre, which shift the decision of samples that lack a view.

The values of a linear kernel on columns far from zero are nearly all the same large number. Its
part in the decision has a large mean, which one intercept balances against the parts of the other
kernels. A sample that lacks a view upsets this balance: the mean of the missing part is gone, the
parts of the kernels that are left count for more. All such samples then look like one class.
"""

from collections.abc import Sequence

import numpy as np

from lokl._arrays import Array
from lokl._notices import tell
from lokl._samples import Samples
from lokl.estimators._base.training import Training

# Mean of the matrix over the mean of its diagonal. Standardised columns: linear 0, quadratic up to
# 0.3, RBF "scale" 0.2. Raw gene expression: linear 0.96 and 0.985, everybody in one class; RBF
# "scale" up to 0.82, no harm. Columns scaled to [0, 1]: linear 0.88, a tenth of the samples wrong.
_LIMIT = 0.85
_ROWS = 200


def find_off_centre(training: Training) -> tuple[str, ...]:
    """Return the names of kernels that are off centre on training samples that have their view."""
    found = []
    for i, kernel in enumerate(training.kernels):
        rows = training.samples.rows_seen_by(i)
        some = np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).astype(np.intp)
        if len(rows) and _is_off_centre(kernel(training.samples.filled[rows[some]])):
            found.append(training.names[i])
    return tuple(found)


def _is_off_centre(K: Array) -> bool:
    return bool(K.mean() > _LIMIT * K.diagonal().mean() > 0)


def warn_if_shifted(off_centre: Sequence[str], samples: Samples) -> None:
    """Warn about new samples that lack a view, where kernels are off centre.

    The missing view need not be at fault: kernels that remain shift the decision as well.
    """
    if samples.present is None or not off_centre:
        return
    short = int((~samples.present.all(axis=1)).sum())
    if not short:
        return
    tell(
        "off centre",
        f"{short} of {samples.n_samples} samples lack a view, and these kernels are off centre: "
        f"{', '.join(map(repr, off_centre))}; their values are nearly constant, and without a view "
        "the constants no longer cancel, so that such samples lean to one side. Standardise the "
        "columns (sklearn.preprocessing.StandardScaler), or use RBF('scale') on them",
    )
