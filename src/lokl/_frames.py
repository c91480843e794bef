"""Data frames of users and results as pandas objects; pandas is optional, imported on demand."""

from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

from lokl._arrays import Array
from lokl._exports import need

# Types of cells that are numbers. Columns of fixed precision, as data bases have, are decimal.
NUMBERS = (Real, Decimal)


def need_pandas(user: str) -> Any:
    """Return pandas, or raise ImportError that names its user and the extra to install."""
    return need("pandas", user)


def as_pandas(X: Any) -> Any:
    """Return a table of another library as a data frame of pandas, and anything else as it is.

    Tables of polars, pyarrow and other libraries that convert themselves (``to_pandas``) enter the
    library here; a lazy table of polars is collected. All other code only meets data frames of
    pandas, arrays and sparse matrices.

    Parameters
    ----------
    X : samples as passed by the user

    Returns
    -------
    X : data frame, array-like or sparse matrix
    """
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        X = X.collect()
    if not hasattr(X, "to_pandas") or len(getattr(X, "shape", ())) != 2:
        return X
    need_pandas(f"a table of {type(X).__module__.partition('.')[0]}")
    need("pyarrow", f"a table of {type(X).__module__.partition('.')[0]}")
    return X.to_pandas()


def labelled(
    values: Array,
    X: Any,
    kernels: Sequence[str],
    tasks: tuple[str, Sequence[Any]],
    quantity: str | None = None,
) -> Any:
    """Return values of samples, and of kernels if there are any, as a pandas object.

    Parameters
    ----------
    values : array of shape (n_samples,), (n_samples, n_kernels), or (n_samples, n_tasks, n_kernels)
    X : samples as passed by the user
        The result has their index, if they have one.
    kernels : sequence of str
        Names of the kernels.
    tasks : (str, sequence)
        Name of the level of tasks, such as "class", and names of the tasks.
    quantity : str, optional
        Name of a series.

    Returns
    -------
    labelled : series, or data frame
        With a column for each kernel, or for each pair of a task and a kernel.
    """
    pandas = need_pandas("labels=True")
    index = X.index if hasattr(X, "iloc") else None
    if values.ndim == 1:
        return pandas.Series(values, index=index, name=quantity)
    columns = pandas.Index(kernels, name="kernel")
    if values.ndim == 3:
        level, names = tasks
        columns = pandas.MultiIndex.from_product([names, kernels], names=[level, "kernel"])
    return pandas.DataFrame(values.reshape(len(values), -1), index=index, columns=columns)


def table_of(rows: Sequence[Any], columns: Sequence[str]) -> Any:
    """Return named rows as a data frame, or as a list without pandas."""
    try:
        import pandas
    except ImportError:
        return list(rows)
    return pandas.DataFrame(list(rows), columns=list(columns))
