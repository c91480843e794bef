"""New samples whose table lacks all columns of a view: they lack the view."""

from collections.abc import Sequence
from typing import Any

from lokl.kernels import Kernel


def with_absent_views(X: Any, columns: Any, kernels: Sequence[Kernel], names: Sequence[str]) -> Any:
    """Return a data frame with all columns of training, NaN for views that it has no column of.

    `columns` are the names of training, None where there were none. A table that has columns of
    other names is left as it is, for scikit-learn's error names them: one of them may be misspelt.
    """
    if columns is None or not hasattr(X, "reindex") or not X.columns.is_unique:
        return X
    absent = set(columns) - set(X.columns)
    if not absent or not set(X.columns) <= set(columns):
        return X
    for name, kernel in zip(names, kernels, strict=True):
        used = [str(columns[c]) for c in kernel.columns_used() or ()]
        lacking = [column for column in used if column in absent]
        if lacking and len(lacking) < len(used):
            raise ValueError(
                f"X lacks column {lacking[0]!r} of the view of kernel {name!r}, but has others of "
                "it; give the column, or leave out all columns of the view: samples then lack it"
            )
    return X.reindex(columns=list(columns))
