"""What can go wrong between a model and its file.

Which types and functions a file may name.

Loading a file imports what it names and makes objects of it, so that only names which cannot do
harm are allowed: those that skops trusts by itself (arrays, plain values, scikit-learn's
estimators), classes of lokl, and a few of scikit-learn's that are no estimators but part of one.

Fitted models as bytes and back, through skops: what is named is looked at before it is made.

The file itself: what is inside in words, the model, and a checksum of both.

A zip archive of three members. ``about.json`` tells format, versions, settings, input and target;
``model.skops`` is the model; ``sha256`` is the checksum of the two.

What a file tells about its model in words, for readers that do not load it.

Save a model, load it again, and look at what a file tells.
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
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from lokl import __version__
from lokl._environment import system, versions
from lokl._files import replace_file
from lokl.base.delegation import fitted_inside


class ModelFileError(ValueError):
    """A model cannot be stored, or a file holds no model that may be loaded; says why."""


# Parts of lokl whose classes make up models. None of these opens files or runs programs.
_PACKAGES = (
    "kernels",
    "gates",
    "gram",
    "solvers",
    "optimizers",
    "base",
    "methods",
    "search",
    "regions",
    "tables.preparation",
)
_OWN = re.compile(rf"lokl\.({'|'.join(map(re.escape, _PACKAGES))})(\.[a-z0-9_]+)*\.\w+")
# How objects of lokl are made: empty, then filled with their attributes; or as named tuples. Some
# refer to a class itself.
_OWN_WAYS = ("ObjectNode", "TupleNode", "TypeNode")
_WAYS_OF_OTHERS = ("ObjectNode", "DTypeNode", "DictNode", "SparseMatrixNode")
# Ways of skops to make an object; those that call what the file names are not among them.
_HARMLESS = (
    "BytesNode",
    "CachedNode",
    "ConstructorFromReduceNode",
    "DTypeNode",
    "DefaultDictNode",
    "DictNode",
    "FunctionNode",
    "JsonNode",
    "ListNode",
    "LossNode",
    "MaskedArrayNode",
    "NdArrayNode",
    "ObjectNode",
    "RandomGeneratorNode",
    "RandomStateNode",
    "SetNode",
    "SliceNode",
    "SparseMatrixNode",
    "TupleNode",
    "TypeNode",
)
# Modules of scikit-learn whose public classes hold settings, and private classes beside them.
_SETTINGS_OF_OTHERS = (
    "sklearn.model_selection",
    "sklearn.compose",
    "sklearn.gaussian_process.kernels",
)
_PARTS_OF_OTHERS = {
    "sklearn.calibration": ("_CalibratedClassifier", "_SigmoidCalibration"),
    "sklearn.metrics._scorer": ("_Scorer", "_PassthroughScorer", "_MultimetricScorer"),
    "sklearn.compose._column_transformer": ("_RemainderColsList",),
    "sklearn.utils": ("Bunch",),
}


def is_harmless(loader: str) -> bool:
    """Whether a way to make an object calls nothing but constructors of trusted types."""
    return loader in _HARMLESS


def trusted_beyond_skops(nodes: Iterable[tuple[str, str]]) -> list[str]:
    """Return those names that a file may have although skops alone would not trust them.

    Parameters
    ----------
    nodes : pairs of str
        Full name of a type or function, and how skops makes the object.
    """
    named = set(nodes)
    trusted = {name for name, loader in named if _is_trusted(name, loader)}
    # A name that is trusted to be made in one way must not be made in another.
    return sorted(trusted - {name for name, loader in named if not _is_trusted(name, loader)})


def _is_trusted(name: str, loader: str) -> bool:
    if loader == "FunctionNode":
        return name in _functions()
    if name.startswith("lokl."):
        return loader in _OWN_WAYS and _is_own_class(name)
    return loader in _WAYS_OF_OTHERS and name in _classes_of_others()


@cache
def _is_own_class(name: str) -> bool:
    """Whether a name is that of a class which is defined where the name says."""
    if not _OWN.fullmatch(name):
        return False
    place, _, own = name.rpartition(".")
    try:
        found = vars(importlib.import_module(place)).get(own)
    except ImportError:
        return False
    return inspect.isclass(found) and found.__module__ == place and found.__name__ == own


@cache
def _classes_of_others() -> frozenset[str]:
    found: list[Any] = []
    for place in _SETTINGS_OF_OTHERS:
        found += _public_classes(importlib.import_module(place))
    for place, names in _PARTS_OF_OTHERS.items():
        module = importlib.import_module(place)
        # Private names of some versions only.
        found += [getattr(module, name) for name in names if hasattr(module, name)]
    matrices = [kind for kind in vars(sparse).values() if inspect.isclass(kind)]
    found += [kind for kind in matrices if issubclass(kind, sparse.spmatrix | sparse.sparray)]
    return frozenset({"numpy.dtype", *map(_full_name, found)})


def _public_classes(module: ModuleType) -> list[Any]:
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    values = (vars(module).get(name) for name in names)
    return [v for v in values if inspect.isclass(v) and v.__module__.startswith("sklearn.")]


@cache
def _functions() -> frozenset[str]:
    """Functions of arrays alone: scores, and the kernels that have a name in scikit-learn."""
    from sklearn.metrics import get_scorer, get_scorer_names
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

    scores = [get_scorer(name)._score_func for name in get_scorer_names()]
    return frozenset(map(_full_name, [*scores, *PAIRWISE_KERNEL_FUNCTIONS.values()]))


def _full_name(value: Any) -> str:
    return f"{value.__module__}.{value.__name__}"


_STATE = "schema.json"
_REMEDY_FOR_CODE = (
    "a file of a model holds no code: use a kernel of lokl.kernels, or a class of scikit-learn, in "
    "the place of your own function or class; or keep the model with pickle"
)


def need_skops(what: str) -> Any:
    """Return skops.io, or say who needs it and how to get it."""
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            f"{what} needs skops; install it with: pip install 'lokl[files]'"
        ) from error
    return skops.io


def to_bytes(model: Any) -> bytes:
    """Return a fitted model as bytes, which :func:`from_bytes` can read."""
    skops = need_skops("lokl.save")
    try:
        content: bytes = skops.dumps(model)
        # What cannot be read again is not written in the first place.
        from_bytes(content)
    except Exception as reason:
        # Objects that others wrote fail in many ways when they are asked for their state.
        told = f"the model cannot be stored: {' '.join(str(reason).split())}; {_REMEDY_FOR_CODE}"
        raise ModelFileError(told) from reason
    return content


def from_bytes(content: bytes) -> Any:
    """Return the model that bytes hold; no code runs that the bytes bring or name."""
    skops = need_skops("lokl.load")
    try:
        trusted = _allowed(content)
        model = skops.loads(content, trusted=trusted)
    except ModelFileError:
        raise
    except skops.exceptions.UntrustedTypesFoundException as reason:
        raise ModelFileError(_untrusted(str(reason))) from reason
    except Exception as reason:
        # A file can be wrong in any place: everything that is met while reading says so.
        what = " ".join(f"{type(reason).__name__}: {reason}".split())
        raise ModelFileError(f"its content is damaged ({what[:200]})") from reason
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"it holds a {type(model).__name__}, not an estimator")
    return model


def _allowed(content: bytes) -> list[str]:
    """Look at all that bytes name; return what may be made beyond what skops allows."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if len(set(archive.namelist())) < len(archive.namelist()):
            raise ModelFileError("its content is damaged (a part is there twice)")
        nodes = list(_nodes(json.loads(archive.read(_STATE))))
    for name, loader in nodes:
        if not is_harmless(loader):
            raise ModelFileError(f"it holds {name}, which is code ({loader})")
    return trusted_beyond_skops(nodes)


def _nodes(state: Any) -> Iterator[tuple[str, str]]:
    """Every name in a state, and how its object is made."""
    waiting = [state]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            if isinstance(found.get("__loader__"), str):
                yield f"{found.get('__module__')}.{found.get('__class__')}", found["__loader__"]
            waiting.extend(found.values())
        elif isinstance(found, list):
            waiting.extend(found)


def _untrusted(told: str) -> str:
    # The first line of what skops tells lists the names in quotation marks.
    names = re.findall(r"'([^']+)'", told.splitlines()[0])
    shown = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    return f"it holds {shown}, which is not on the list of what a file of a model may hold"


# Rises when a file of this version could not be read by the one before, or the other way round.
FORMAT = 1
_ABOUT, _MODEL, _CHECKSUM = "about.json", "model.skops", "sha256"
# A fixed time, so that the same content gives the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)


def pack(about: dict[str, Any], model: bytes) -> bytes:
    """Return the bytes of a file."""
    told = json.dumps({"format": FORMAT, **about}, indent=1, ensure_ascii=False).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (
            (_ABOUT, told),
            (_MODEL, model),
            (_CHECKSUM, _digest(told, model).encode()),
        ):
            member = zipfile.ZipInfo(name, _TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content)
    return stream.getvalue()


def unpack(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return what is told about a model, and its bytes; the format and the checksum are right."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sorted(archive.namelist()) != sorted((_ABOUT, _MODEL, _CHECKSUM)):
                raise ModelFileError("it is no file of a lokl model")
            _refuse_more_than_memory(sum(member.file_size for member in archive.infolist()))
            told = archive.read(_ABOUT)
            about = json.loads(told)
            _check_format(about)
            model, checksum = archive.read(_MODEL), archive.read(_CHECKSUM)
    except ModelFileError:
        raise
    except Exception as reason:
        # zipfile and the decompressor fail with many kinds of errors on damaged bytes.
        shown = f" ({reason})" if zipfile.is_zipfile(io.BytesIO(content)) else ""
        raise ModelFileError(f"it is no file of a lokl model, or cut short{shown}") from reason
    if _digest(told, model) != checksum.decode("ascii", "replace"):
        raise ModelFileError("its content was changed after it was saved (the checksum is wrong)")
    return about, model


def _digest(about: bytes, model: bytes) -> str:
    # The length keeps a byte from moving from one part to the other unseen.
    return hashlib.sha256(b"%d\n%b%b" % (len(about), about, model)).hexdigest()


def _check_format(about: Any) -> None:
    found = about.get("format") if isinstance(about, dict) else None
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ModelFileError("it is no file of a lokl model")
    if found == FORMAT:
        return
    writer = f"lokl {about.get('lokl', 'of another version')}"
    age, remedy = (
        ("newer", "install that version or a later one")
        if found > FORMAT
        else ("older", "load it with that version, or fit the model again")
    )
    raise ModelFileError(
        f"its format {found} is {age} than {FORMAT}, the one of this version; it was written by "
        f"{writer}: {remedy}"
    )


def _refuse_more_than_memory(size: int) -> None:
    """Raise where a small file would unpack to more than the machine can hold."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    if size > memory:
        raise ModelFileError(
            f"it would unpack to {size / 2**30:.0f} GB, more than the memory of this machine"
        )


# Characters of a setting that are told.
_LONGEST = 200


def about(model: Any) -> dict[str, Any]:
    """Return settings, input, target and environment of a fitted model as plain values."""
    layers = list(parts_of(model))
    return {
        "lokl": __version__,
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": [type(layer).__name__ for layer in layers],
        "settings": _settings(layers[-1]),
        "input": {
            "n_features": _first(layers, "n_features_in_"),
            "columns": _plain(_first(layers, "feature_names_in_")),
            "kinds": _first(layers, "kinds_"),
            "views": _first(layers, "views_") or _views(layers[-1]),
        },
        "target": {
            "name": _first(layers, "target_name_"),
            "classes": _plain(_first(layers, "classes_")),
        },
        "environment": {"system": system(), **versions(), "skops": _skops()},
    }


def parts_of(model: Any) -> Iterator[Any]:
    """Yield a model, the steps before it and the fitted estimators inside it, outermost first."""
    seen: set[int] = set()
    while model is not None and id(model) not in seen:
        seen.add(id(model))
        yield model
        if hasattr(model, "steps"):
            if len(model.steps) > 1:
                yield from (step for _, step in model.steps[:-1] if not isinstance(step, str))
            model = model.steps[-1][1]
        elif getattr(model, "calibrated_classifiers_", None):
            model = model.calibrated_classifiers_[0].estimator
        elif isinstance(getattr(model, "estimators_", None), list):
            model = _one_of(model.estimators_)
        else:
            model = fitted_inside(model)


def _one_of(fitted: Any) -> Any:
    """First of several fitted estimators; those in regions are lists of lists with gaps."""
    while isinstance(fitted, list):
        fitted = next((own for own in fitted if own is not None), None)
    return fitted


def _first(layers: list[Any], name: str) -> Any:
    """Value of the outermost layer that has an attribute."""
    for layer in layers:
        value = getattr(layer, name, None)
        if value is not None:
            return value
    return None


def _settings(model: Any) -> dict[str, str]:
    shown = {name: repr(value) for name, value in model.get_params(deep=False).items()}
    return {
        name: text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        for name, text in shown.items()
    }


def _views(model: Any) -> dict[str, list[Any]] | None:
    """Columns of each kernel, where all kernels look at columns of their own."""
    kernels = getattr(model, "kernels_", None)
    if not kernels or not all(kernel.is_view for kernel in kernels):
        return None
    columns = getattr(model, "feature_names_in_", None)
    named = zip(model.kernel_names_, (kernel.columns_used() for kernel in kernels), strict=True)
    return {
        name: [int(c) if columns is None else str(columns[c]) for c in used or ()]
        for name, used in named
    }


def _plain(values: Any) -> Any:
    """Values that JSON can hold."""
    if values is None:
        return None
    if isinstance(values, list):  # classes of several outputs
        return [_plain(own) for own in values]
    listed = np.asarray(values).tolist()
    return [v if isinstance(v, str | int | float | bool | None) else str(v) for v in listed]


def _skops() -> str | None:
    try:
        return version("skops")
    except PackageNotFoundError:
        return None


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
