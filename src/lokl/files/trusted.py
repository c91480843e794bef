"""Which types and functions a file may name.

Loading a file imports what it names and makes objects of it, so that only names which cannot do
harm are allowed: those that skops trusts by itself (arrays, plain values, scikit-learn's
estimators), classes of lokl, and a few of scikit-learn's that are no estimators but part of one.
"""

import importlib
import inspect
import re
from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import Any

from scipy import sparse

# Parts of lokl whose classes make up models. None of these opens files or runs programs.
_PACKAGES = (
    "kernels",
    "gates",
    "gram",
    "solvers",
    "trust",
    "clustering",
    "models",
    "optimizers",
    "estimators",
    "selection",
    "auto",
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
