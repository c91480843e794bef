"""Save a model, load it again, and look at what a file tells."""

from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from lokl._writing import replace_file
from lokl.files.about import about
from lokl.files.container import pack, unpack
from lokl.files.errors import ModelFileError
from lokl.files.objects import from_bytes, need_skops, to_bytes


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model to a file.

    The file holds numbers, words and the names of types, and no code. It is written whole or not
    at all: where something fails, a file that was there stays as it was.

    Parameters
    ----------
    model : estimator
        An estimator of lokl, or one of scikit-learn around it: a pipeline, a search, a calibrated
        classifier. Functions cannot be stored, so that a kernel that is a function is an error.
    path : str or path
        By custom it ends in ``.lokl``.

    Raises
    ------
    ModelFileError
        The model is not fitted, or holds something that cannot be stored.
    OSError
        The file cannot be written.

    See Also
    --------
    load : Read it again.

    Examples
    --------
    >>> import tempfile, os
    >>> import lokl
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = lokl.UniformMKLClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.lokl")
    ...     lokl.save(model, path)
    ...     again = lokl.load(path)
    >>> bool((again.decision_function(X) == model.decision_function(X)).all())
    True
    """
    need_skops("lokl.save")
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"only estimators can be saved, got {type(model).__name__}")
    try:
        check_is_fitted(model)
    except (NotFittedError, TypeError) as reason:
        raise ModelFileError(
            f"only fitted models can be saved: call fit of {type(model).__name__} first"
        ) from reason
    replace_file(Path(path), pack(about(model), to_bytes(model)))


def load(path: str | PathLike[str]) -> Any:
    """Read a model that :func:`save` has written.

    No code runs that the file brings or names, whoever wrote it; a file that names anything else
    than the types of models is refused. The decisions of the model are those of the saved one to
    the last bit, on the same machine with the same versions.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    model : estimator

    Raises
    ------
    ModelFileError
        The file is damaged, was changed, is of another format, or is none of lokl at all.
    OSError
        The file cannot be read.
    """
    need_skops("lokl.load")
    told, content = _read(path)
    try:
        return from_bytes(content)
    except ModelFileError as reason:
        written = told.get("environment", {}).get("lokl") or told.get("lokl")
        raise ModelFileError(
            f"{path} cannot be loaded: {reason} (written by lokl {written})"
        ) from reason


def info(path: str | PathLike[str]) -> dict[str, Any]:
    """Return what a file tells about its model, without loading it.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    about : dict
        ``format``, ``lokl`` (the version that wrote it), ``saved``, ``model`` (names of the classes
        from the outermost to the innermost), ``settings``, ``input`` (``n_features``, ``columns``,
        ``kinds``, ``views``), ``target`` (``name``, ``classes``) and ``environment``.

    Raises
    ------
    ModelFileError
        The file is damaged, was changed, is of another format, or is none of lokl at all.
    OSError
        The file cannot be read.
    """
    return _read(path)[0]


def _read(path: str | PathLike[str]) -> tuple[dict[str, Any], bytes]:
    content = Path(path).read_bytes()
    try:
        return unpack(content)
    except ModelFileError as reason:
        raise ModelFileError(f"{path} cannot be loaded: {reason}") from reason
