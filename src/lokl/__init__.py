"""Localized kernel learning: which kernel to trust where."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.estimators import (
        CLMKLClassifier,
        CLMKLRegressor,
        EasyMKLClassifier,
        GMKLClassifier,
        GMKLRegressor,
        GSMKLClassifier,
        GSMKLRegressor,
        LDMKLClassifier,
        LDMKLRegressor,
        LMKLClassifier,
        LMKLRegressor,
        LpMKLClassifier,
        LpMKLRegressor,
        MWUMKLClassifier,
        PCKLMKLClassifier,
        SAMKLClassifier,
        SimpleMKLClassifier,
        SimpleMKLRegressor,
        SwMKLClassifier,
        SwMKLRegressor,
        UniformMKLClassifier,
        UniformMKLRegressor,
    )

__version__ = "0.1.0"

__getattr__, _names = lazy_exports(
    __name__,
    {
        "CLMKLClassifier": "lokl.estimators",
        "CLMKLRegressor": "lokl.estimators",
        "EasyMKLClassifier": "lokl.estimators",
        "GMKLClassifier": "lokl.estimators",
        "GMKLRegressor": "lokl.estimators",
        "GSMKLClassifier": "lokl.estimators",
        "GSMKLRegressor": "lokl.estimators",
        "LDMKLClassifier": "lokl.estimators",
        "LDMKLRegressor": "lokl.estimators",
        "LMKLClassifier": "lokl.estimators",
        "LMKLRegressor": "lokl.estimators",
        "LpMKLClassifier": "lokl.estimators",
        "LpMKLRegressor": "lokl.estimators",
        "MWUMKLClassifier": "lokl.estimators",
        "PCKLMKLClassifier": "lokl.estimators",
        "SAMKLClassifier": "lokl.estimators",
        "SimpleMKLClassifier": "lokl.estimators",
        "SimpleMKLRegressor": "lokl.estimators",
        "SwMKLClassifier": "lokl.estimators",
        "SwMKLRegressor": "lokl.estimators",
        "UniformMKLClassifier": "lokl.estimators",
        "UniformMKLRegressor": "lokl.estimators",
    },
)

__all__ = [
    "CLMKLClassifier",
    "CLMKLRegressor",
    "EasyMKLClassifier",
    "GMKLClassifier",
    "GMKLRegressor",
    "GSMKLClassifier",
    "GSMKLRegressor",
    "LDMKLClassifier",
    "LDMKLRegressor",
    "LMKLClassifier",
    "LMKLRegressor",
    "LpMKLClassifier",
    "LpMKLRegressor",
    "MWUMKLClassifier",
    "PCKLMKLClassifier",
    "SAMKLClassifier",
    "SimpleMKLClassifier",
    "SimpleMKLRegressor",
    "SwMKLClassifier",
    "SwMKLRegressor",
    "UniformMKLClassifier",
    "UniformMKLRegressor",
    "__version__",
]


def __dir__() -> list[str]:
    return sorted([*globals(), *_names])
