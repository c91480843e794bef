"""Results as tables: pandas is imported only where somebody asks for one."""

from collections.abc import Sequence
from typing import Any

from lokl._arrays import Array


def need_pandas(what: str) -> Any:
    """Return pandas, or say who needs it and how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            f"{what} needs pandas; install it with: pip install 'lokl[data]'"
        ) from error
    return pandas


def labelled(
    values: Array, X: Any, kernels: Sequence[str], tasks: tuple[str, Sequence[Any]]
) -> Any:
    """Return numbers about samples and kernels as a data frame.

    Parameters
    ----------
    values : array of shape (n_samples, n_kernels) or (n_samples, n_tasks, n_kernels)
    X : samples, as given
        Its index is that of the table, where it has one.
    kernels : names of the kernels
    tasks : (what a task is, names of the tasks)
    """
    pandas = need_pandas("labels=True")
    columns = pandas.Index(kernels, name="kernel")
    if values.ndim == 3:
        kind, names = tasks
        columns = pandas.MultiIndex.from_product([names, kernels], names=[kind, "kernel"])
    return pandas.DataFrame(values.reshape(len(values), -1), index=_index(X), columns=columns)


def labelled_samples(values: Array, X: Any, name: str) -> Any:
    """Return one number for each sample as a series with the index of `X`, where it has one."""
    pandas = need_pandas("labels=True")
    return pandas.Series(values, index=_index(X), name=name)


def _index(X: Any) -> Any:
    return X.index if hasattr(X, "columns") and hasattr(X, "index") else None


def table_of(rows: Sequence[Any], columns: Sequence[str]) -> Any:
    """Return named rows as a data frame where pandas is there, else as they are."""
    try:
        import pandas
    except ImportError:
        return list(rows)
    return pandas.DataFrame(list(rows), columns=list(columns))
