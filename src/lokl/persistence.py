"""Models on disk, through skops.

A file is a zip archive with three members: ``about.json`` has the format, versions, settings, input
and target; ``model.skops`` has the model; ``sha256`` is the checksum of both.

Loading a file imports the names in it and creates objects, so that only harmless names are
allowed: names that skops trusts by itself (arrays, plain values, scikit-learn's estimators),
classes of lokl, and a few classes of scikit-learn that are parts of estimators.
"""

import hashlib
import importlib
import inspect
import io
import json
import os
import re
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

from lokl import __version__
from lokl._environment import system, version_of, versions
from lokl._exports import need
from lokl._files import replace_file
from lokl._methods import method_of
from lokl._text import shorten_list, shortened

# Libraries are imported where models are: the description of a file needs none of them.

__all__ = ["ModelFileError", "info", "load", "save"]

# Increased if files of this version and of the one before are incompatible.
FORMAT = 1
_ABOUT, _MODEL, _CHECKSUM = "about.json", "model.skops", "sha256"
_STATE = "schema.json"  # skops' description of the objects, inside the model
# A fixed time, so that the same content gives the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)
# Characters of a setting in about.json.
_MAX_SETTING_LENGTH = 200

# Classes of lokl that are parts of models. None of their modules opens files or runs programs.
_LOKL_CLASS = re.compile(
    r"lokl\.(kernels|gates|gram|solvers|optimizers|base|methods|search|regions|explain\.sets"
    r"|tables\.(preparation|adjustment))(\.[a-z0-9_]+)*\.\w+"
)
# Nodes of skops that create objects of lokl: empty, then filled with their attributes, or as named
# tuples; or that refer to a class itself.
_LOKL_NODES = ("ObjectNode", "TupleNode", "TypeNode")
_OTHER_NODES = ("ObjectNode", "DTypeNode", "DictNode", "SparseMatrixNode")
# Nodes of skops that do not call what the file names.
_HARMLESS_NODE = re.compile(
    "(Bytes|Cached|ConstructorFromReduce|DType|DefaultDict|Dict|Function|Json|List|Loss|MaskedArray"
    "|NdArray|Object|RandomGenerator|RandomState|Set|Slice|SparseMatrix|Tuple|Type)Node"
)
# Modules of scikit-learn whose public classes are settings, and private parts of estimators.
_SETTINGS_MODULES = (
    "sklearn.model_selection",
    "sklearn.compose",
    "sklearn.gaussian_process.kernels",
)
_PRIVATE_CLASSES = {
    "sklearn.calibration": ("_CalibratedClassifier", "_SigmoidCalibration"),
    "sklearn.metrics._scorer": ("_Scorer", "_PassthroughScorer", "_MultimetricScorer"),
    "sklearn.compose._column_transformer": ("_RemainderColsList",),
    "sklearn.utils": ("Bunch",),
}


class ModelFileError(ValueError):
    """A model cannot be stored, or a file has no model that may be loaded; gives the reason.

    See Also
    --------
    lokl.load : Raises it.
    lokl.save : Raises it.

    Examples
    --------
    >>> import lokl
    >>> from lokl.persistence import ModelFileError
    >>> try:
    ...     lokl.save(lokl.UniformMKLClassifier(), "model.lokl")
    ... except ModelFileError as error:
    ...     print(error)
    only fitted models can be saved; call fit of UniformMKLClassifier first
    """


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model to a file.

    The file contains numbers, text and the names of types, but no code. It is written completely or
    not at all: if something fails, an existing file stays as it was.

    Parameters
    ----------
    model : estimator
        An estimator of lokl, or a pipeline, search or calibrated classifier of scikit-learn around
        it. Functions cannot be stored, so that a kernel that is a function is rejected.
    path : str or path
        By convention it ends in ``.lokl``.

    Returns
    -------
    None
        An existing file is replaced only by a complete one.

    Raises
    ------
    ModelFileError
        The model is not fitted, or contains something that cannot be stored.
    OSError
        The file cannot be written.

    See Also
    --------
    load : Read the model again.

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
    >>> abs(again.decision_function(X) - model.decision_function(X)).max().item()
    0.0
    """
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"only estimators can be saved, got {type(model).__name__}")
    try:
        check_is_fitted(model)
    except (NotFittedError, TypeError) as reason:
        raise ModelFileError(
            f"only fitted models can be saved; call fit of {type(model).__name__} first"
        ) from reason
    replace_file(Path(path), pack(describe(model), to_bytes(model)))


def load(path: str | PathLike[str]) -> Any:
    """Read a model that :func:`save` has written.

    No code from the file is run, whoever wrote it: a file that names anything but the types of
    models is rejected. On the same machine with the same versions, the decisions of the model are
    equal to the last bit.

    Parameters
    ----------
    path : str or path
        File of a model.

    Returns
    -------
    model : estimator
        Fitted, as it was saved.

    Raises
    ------
    ModelFileError
        The file is damaged, was changed, has another format, or is not a model of lokl.
    OSError
        The file cannot be read.

    See Also
    --------
    lokl.save : Stores a model.
    lokl.persistence.info : Describes a file without loading it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import lokl
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = lokl.UniformMKLClassifier(["rbf"]).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "iris.lokl"
    ...     lokl.save(model, path)
    ...     again = lokl.load(path)
    >>> again.predict(X[:3])
    array([0, 0, 0])
    """
    about, content = _read(path)
    try:
        return from_bytes(content)
    except ModelFileError as reason:
        raise ModelFileError(
            f"{path} cannot be loaded: {reason} (written by lokl {about.get('lokl')})"
        ) from reason


def info(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the description of a model in a file, without loading it.

    Parameters
    ----------
    path : str or path
        File of a model.

    Returns
    -------
    about : dict
        ``format``, ``lokl`` (the version that wrote it), ``saved``, ``model`` (names of the classes
        from the outermost to the innermost), ``settings``, ``input`` (``n_features``, ``columns``,
        ``kinds``, ``views``), ``target`` (``name``, ``classes``), ``method``, ``held_out``
        (``score`` and ``value`` of the search that chose the model, or None) and ``environment``.

    Raises
    ------
    ModelFileError
        The file is damaged, was changed, has another format, or is not a model of lokl.
    OSError
        The file cannot be read.

    See Also
    --------
    lokl.save : Stores a model.
    lokl.load : Loads a model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import lokl
    >>> import lokl.persistence
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = lokl.UniformMKLClassifier(["rbf"]).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "iris.lokl"
    ...     lokl.save(model, path)
    ...     about = lokl.persistence.info(path)
    >>> about["model"], about["input"]["n_features"]
    (['UniformMKLClassifier'], 4)
    """
    return _read(path)[0]


def _read(path: str | PathLike[str]) -> tuple[dict[str, Any], bytes]:
    content = Path(path).read_bytes()
    try:
        return unpack(content)
    except ModelFileError as reason:
        raise ModelFileError(f"{path} cannot be loaded: {reason}") from reason


def pack(about: dict[str, Any], model: bytes) -> bytes:
    """Return the content of a file."""
    about = {"format": FORMAT, **about}
    description = json.dumps(about, indent=1, ensure_ascii=False, default=_plain).encode()
    checksum = _digest(description, model).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        members = {_ABOUT: description, _MODEL: model, _CHECKSUM: checksum}
        for name, content in members.items():
            member = zipfile.ZipInfo(name, _TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content)
    return stream.getvalue()


def unpack(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the description and the bytes of a model, after checks of format and checksum."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sorted(archive.namelist()) != sorted((_ABOUT, _MODEL, _CHECKSUM)):
                raise ModelFileError("it is not a file of a lokl model")
            _check_size(sum(member.file_size for member in archive.infolist()))
            description = archive.read(_ABOUT)
            about = json.loads(description)
            _check_format(about)
            model, checksum = archive.read(_MODEL), archive.read(_CHECKSUM)
    except ModelFileError:
        raise
    except Exception as reason:
        # zipfile and the decompressor fail with many kinds of errors on damaged bytes.
        shown = f" ({reason})" if zipfile.is_zipfile(io.BytesIO(content)) else ""
        raise ModelFileError(f"it is not a file of a lokl model, or truncated{shown}") from reason
    if _digest(description, model) != checksum.decode("ascii", "replace"):
        raise ModelFileError("its content was changed after it was saved (the checksum is wrong)")
    return about, model


def _digest(description: bytes, model: bytes) -> str:
    # The length detects bytes that move from one part to the other.
    return hashlib.sha256(b"%d\n%b%b" % (len(description), description, model)).hexdigest()


def _check_format(about: Any) -> None:
    number = about.get("format") if isinstance(about, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ModelFileError("it is not a file of a lokl model")
    if number == FORMAT:
        return
    age, remedy = (
        ("newer", "install that version or a later one")
        if number > FORMAT
        else ("older", "load it with that version, or fit the model again")
    )
    raise ModelFileError(
        f"its format {number} is {age} than {FORMAT}, the format of this version; it was written "
        f"by lokl {about.get('lokl', 'of another version')}: {remedy}"
    )


def _check_size(size: int) -> None:
    """Raise `ModelFileError` if a file would unpack to more than the memory of the machine."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    if size > memory:
        raise ModelFileError(
            f"it would unpack to {size / 2**30:.0f} GB, more than the memory of this machine"
        )


def to_bytes(model: Any) -> bytes:
    """Return a fitted model as bytes, which :func:`from_bytes` can read."""
    skops = need("skops.io", "lokl.save")
    try:
        content: bytes = skops.dumps(model)
        # A model that cannot be read again must not be written.
        from_bytes(content)
    except Exception as reason:
        # The state of foreign objects can fail in many ways.
        raise ModelFileError(
            f"the model cannot be stored: {' '.join(str(reason).split())}; a model file has no "
            "code: use a kernel of lokl.kernels, or a class of scikit-learn, instead of your own "
            "function or class, or store the model with pickle"
        ) from reason
    return content


def from_bytes(content: bytes) -> Any:
    """Return the model in bytes; no code that they contain or name is run."""
    from sklearn.base import BaseEstimator

    skops = need("skops.io", "lokl.load")
    try:
        model = skops.loads(content, trusted=_check_names(content))
    except ModelFileError:
        raise
    except skops.exceptions.UntrustedTypesFoundException as reason:
        # The first line of skops' message lists the names in quotation marks.
        names = re.findall(r"'([^']+)'", str(reason).splitlines()[0])
        shown = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
        raise ModelFileError(f"it holds {shown}, which a model file may not contain") from reason
    except Exception as reason:
        # Damaged bytes can fail anywhere in skops.
        what = " ".join(f"{type(reason).__name__}: {reason}".split())
        raise ModelFileError(f"its content is damaged ({what[:200]})") from reason
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"it holds a {type(model).__name__}, not an estimator")
    return model


def _check_names(content: bytes) -> list[str]:
    """Check all names in bytes; return names that are trusted in addition to those of skops."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if len(set(archive.namelist())) < len(archive.namelist()):
            raise ModelFileError("its content is damaged (duplicate member)")
        nodes = list(_nodes(json.loads(archive.read(_STATE))))
    for name, loader in nodes:
        if not is_harmless(loader):
            raise ModelFileError(f"it holds {name}, which is code ({loader})")
    return trusted_beyond_skops(nodes)


def _nodes(state: Any) -> Iterator[tuple[str, str]]:
    """Yield every name in a state, and the node of skops that creates its object."""
    stack = [state]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if isinstance(item.get("__loader__"), str):
                yield f"{item.get('__module__')}.{item.get('__class__')}", item["__loader__"]
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def is_harmless(loader: str) -> bool:
    """Return whether a node of skops calls nothing but constructors of trusted types."""
    return _HARMLESS_NODE.fullmatch(loader) is not None


def trusted_beyond_skops(nodes: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names that a file may contain although skops alone does not trust them.

    Parameters
    ----------
    nodes : pairs of str
        Full name of a type or function, and the node of skops that creates the object.
    """
    names = set(nodes)
    trusted = {name for name, loader in names if _is_trusted(name, loader)}
    # A name that is trusted with one node must not be used with another.
    return sorted(trusted - {name for name, loader in names if not _is_trusted(name, loader)})


def _is_trusted(name: str, loader: str) -> bool:
    if loader == "FunctionNode":
        return name in _trusted_functions()
    if name.startswith("lokl."):
        return loader in _LOKL_NODES and _is_lokl_class(name)
    return loader in _OTHER_NODES and name in _trusted_classes()


@cache
def _is_lokl_class(name: str) -> bool:
    """Return whether a name is a class that is defined in the module of that name."""
    if not _LOKL_CLASS.fullmatch(name):
        return False
    module, _, class_name = name.rpartition(".")
    try:
        value = vars(importlib.import_module(module)).get(class_name)
    except ImportError:
        return False
    return inspect.isclass(value) and _full_name(value) == name


@cache
def _trusted_classes() -> frozenset[str]:
    """Return classes of scikit-learn and scipy that are settings or parts of estimators."""
    from scipy import sparse

    classes: list[Any] = []
    for name in _SETTINGS_MODULES:
        module = importlib.import_module(name)
        public = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
        values = [vars(module).get(name) for name in public]
        classes += [v for v in values if inspect.isclass(v) and v.__module__.startswith("sklearn.")]
    for name, private in _PRIVATE_CLASSES.items():
        module = importlib.import_module(name)
        # Some versions lack some of the private names.
        classes += [getattr(module, n) for n in private if hasattr(module, n)]
    matrices = [kind for kind in vars(sparse).values() if inspect.isclass(kind)]
    classes += [kind for kind in matrices if issubclass(kind, sparse.spmatrix | sparse.sparray)]
    return frozenset({"numpy.dtype", *map(_full_name, classes)})


@cache
def _trusted_functions() -> frozenset[str]:
    """Return functions of arrays alone: scores, and scikit-learn's named kernels."""
    from sklearn.metrics import get_scorer, get_scorer_names
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

    scores = [get_scorer(name)._score_func for name in get_scorer_names()]
    return frozenset(map(_full_name, [*scores, *PAIRWISE_KERNEL_FUNCTIONS.values()]))


def _full_name(value: Any) -> str:
    return f"{value.__module__}.{value.__name__}"


def describe(model: Any) -> dict[str, Any]:
    """Return settings, input, target and environment of a fitted model."""
    from lokl.base.model import kernel_columns

    layers = list(_layers(model))
    settings = layers[-1].get_params(deep=False).items()
    views = kernel_columns(layers[-1], getattr(layers[-1], "feature_names_in_", None))
    return {
        "lokl": __version__,
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": [type(layer).__name__ for layer in layers],
        "settings": {name: shortened(repr(v), _MAX_SETTING_LENGTH) for name, v in settings},
        "method": _method_of(layers),
        "held_out": _held_out_score(layers),
        "input": {
            "n_features": _first(layers, "n_features_in_"),
            "columns": _first(layers, "feature_names_in_"),
            "kinds": _first(layers, "kinds_"),
            "views": _first(layers, "views_") or views,
            "covariates": _first(layers, "covariates_"),
        },
        "target": {
            "name": _first(layers, "target_name_"),
            "classes": _first(layers, "classes_"),
        },
        "environment": {"system": system(), **versions(), "skops": version_of("skops")},
    }


def _method_of(layers: list[Any]) -> str:
    """Return the name of the method, with the kernels if they are few."""
    method = method_of(layers[-1])
    name = type(layers[-1]).__name__ if method is None else method.name
    kernels = _first(layers, "kernel_names_") or []
    return f"{name} of {shorten_list(kernels)}" if len(kernels) else name


def _held_out_score(layers: list[Any]) -> dict[str, Any] | None:
    """Return the score of the search that chose a model; None for a model of given settings."""
    search = next((layer for layer in layers if hasattr(layer, "best_score_")), None)
    if search is None or not isfinite(search.best_score_):
        return None
    scoring = search.get_params(deep=False).get("scoring")
    if scoring is None:
        scoring = "accuracy" if hasattr(search, "classes_") else "R squared"
        if hasattr(layers[-1], "unique_times_"):
            scoring = "concordance"
    return {"score": str(scoring), "value": float(search.best_score_)}


def _layers(model: Any) -> Iterator[Any]:
    """Yield a model, its transformers and the fitted estimators in it, outermost first."""
    from lokl.base.model import fitted_inside

    while model is not None:
        yield model
        if hasattr(model, "steps"):
            yield from (step for _, step in model.steps[:-1] if not isinstance(step, str))
            model = model.steps[-1][1]
        elif getattr(model, "calibrated_classifiers_", None):
            model = model.calibrated_classifiers_[0].estimator
        elif isinstance(getattr(model, "estimators_", None), list):
            model = model.estimators_
            # Estimators of regions are lists of lists with gaps.
            while isinstance(model, list):
                model = next((fitted for fitted in model if fitted is not None), None)
        else:
            model = fitted_inside(model)


def _first(layers: list[Any], name: str) -> Any:
    """Return the attribute of the outermost layer that has it."""
    values = (getattr(layer, name, None) for layer in layers)
    return next((value for value in values if value is not None), None)


def _plain(value: Any) -> Any:
    """Return arrays and numpy's numbers as values that JSON can represent, others as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
