"""Localized kernel learning: which kernel to trust where."""

from typing import TYPE_CHECKING

from lokl._lazy import lazy_exports

if TYPE_CHECKING:
    from lokl.estimators import UniformMKLClassifier, UniformMKLRegressor

__version__ = "0.1.0"

__getattr__, _names = lazy_exports(
    __name__,
    {
        "UniformMKLClassifier": "lokl.estimators",
        "UniformMKLRegressor": "lokl.estimators",
    },
)

__all__ = ["UniformMKLClassifier", "UniformMKLRegressor", "__version__"]


def __dir__() -> list[str]:
    return sorted([*globals(), *_names])
