"""What a file tells about its model in words, for readers that do not load it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from lokl import __version__
from lokl._environment import system, versions
from lokl._layers import fitted_inside

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
