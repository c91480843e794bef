"""What a fitted model says about collections: lazy, block by block."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, is_sparse
from lokl._threads import one_thread
from lokl.distributed.blocks import whole_rows
from lokl.distributed.cluster import Cluster, need_dask
from lokl.distributed.in_parts import ask_in_parts
from lokl.distributed.sizes import pickled_size
from lokl.regions.base import InRegions

# Models that are larger do not go through the scheduler with every graph, but are handed to the
# workers once.
_LARGE = 8 * 2**20
# Of the memory of a worker: models in regions that are larger are divided among the workers.
_SHARE = 0.1


def predict(model: Any, X: Any, client: Any = None) -> Any:
    """Class or value of each sample.

    Parameters
    ----------
    model : fitted estimator
        Of any kind, fitted here or elsewhere. It is in the graph once, whatever the number of
        blocks; a model of more than 8 MB is handed to all workers of the client at once. A model in
        regions that takes more than a tenth of a worker's memory is divided among the workers, and
        samples go where the models of their regions are.
    X : dask array or dask data frame of shape (n_samples, n_features)
    client : distributed.Client or None, default=None
        Whose workers are handed a large model; None is the current client. The answer itself is
        computed wherever Dask computes it.

    Returns
    -------
    answer : dask array
        What ``model.predict`` returns, in the chunks of `X`; chunks of data frames have unknown
        sizes.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from lokl import UniformMKLClassifier, distributed
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = UniformMKLClassifier(["rbf"]).fit(X, y)
    >>> labels = distributed.predict(model, da.from_array(X, chunks=(50, 2)))
    >>> labels.chunks
    ((50, 50, 50, 50),)
    >>> bool((labels.compute() == model.predict(X)).all())
    True
    """
    return ask(model, "predict", X, client)


def decision_function(model: Any, X: Any, client: Any = None) -> Any:
    """Decision about each sample; arguments as in :func:`predict`."""
    return ask(model, "decision_function", X, client)


def predict_proba(model: Any, X: Any, client: Any = None) -> Any:
    """Probabilities of the classes of each sample; arguments as in :func:`predict`."""
    return ask(model, "predict_proba", X, client)


def gate(model: Any, X: Any, client: Any = None) -> Any:
    """How far each kernel is trusted at each sample; arguments as in :func:`predict`."""
    return ask(model, "gate", X, client)


def contributions(model: Any, X: Any, client: Any = None) -> Any:
    """Signed part of each kernel in the decision; arguments as in :func:`predict`."""
    return ask(model, "contributions", X, client)


def ask(model: Any, question: str, X: Any, client: Any) -> Any:
    """Ask a model about every block."""
    check_is_fitted(model)
    if not hasattr(model, question):
        raise ValueError(f"{type(model).__name__} has no {question}")
    X, cluster = whole_rows(X), Cluster(client)
    nothing = _answer_about_nothing(model, question, X)
    size = 0 if cluster.client is None else pickled_size(model)
    if isinstance(model, InRegions) and size > _SHARE * cluster.memory:
        return ask_in_parts(cluster, model, question, X, nothing)
    options: dict[str, Any] = {"question": question, "nothing": nothing, "meta": nothing}
    options["model"] = _in_graph(cluster, model, size)
    if hasattr(X, "columns"):
        return X.map_partitions(_ask, **options)
    if nothing.ndim == 1:
        return X.map_blocks(_ask, drop_axis=1, **options)
    chunks = (X.chunks[0], *((length,) for length in nothing.shape[1:]))
    return X.map_blocks(_ask, chunks=chunks, new_axis=[*range(2, nothing.ndim)], **options)


def _ask(X: Any, *, model: Any, question: str, nothing: Array) -> Array:
    if X.shape[0] == 0:
        return nothing
    # Dask has the cores.
    with one_thread():
        return np.asarray(getattr(model, question)(X))


def _in_graph(cluster: Cluster, model: Any, size: int) -> Any:
    """Return a model as one node, which tasks refer to."""
    if size <= _LARGE:
        return need_dask().delayed(model, pure=False, traverse=False)
    # On every worker, so that it is still there when one is lost.
    return cluster.client.scatter(model, broadcast=True, hash=False)


def _answer_about_nothing(model: Any, question: str, X: Any) -> Array:
    """Answer of no rows: it has the type and the columns of every other."""
    example = _example(X)
    with one_thread():
        return np.asarray(getattr(model, question)(example))[:0]


def _example(X: Any) -> Any:
    """One row as the blocks of a collection have them."""
    if hasattr(X, "columns"):
        from dask.dataframe.dispatch import meta_nonempty

        return meta_nonempty(X._meta).iloc[:1]
    row = np.zeros((1, X.shape[1]), dtype=X.dtype)
    return sparse.csr_matrix(row) if is_sparse(X._meta) else row
