"""Models inside models: pipelines, searches, and classifiers that add probabilities."""

from collections.abc import Iterator
from typing import Any

# Attributes in which estimators around others keep the fitted one.
_INNER = ("best_estimator_", "estimator_")


def fitted_inside(model: Any) -> Any:
    """Return the fitted estimator that another is built around, None where there is none."""
    return next((vars(model)[name] for name in _INNER if name in vars(model)), None)


def layers_of(model: Any) -> Iterator[Any]:
    """Yield a model and the fitted models inside it, outermost first; the last steps of pipelines.

    What a pipeline does before its last step is left out.
    """
    for layer, _ in layers_with(model, None):
        yield layer


def layers_with(model: Any, X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the layers of a model, each with samples as it sees them; samples may be None."""
    while model is not None:
        if hasattr(model, "steps"):
            X = model[:-1].transform(X) if X is not None and len(model.steps) > 1 else X
            model = model.steps[-1][1]
            continue
        yield model, X
        model = fitted_inside(model)


def unwrapped(model: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the innermost model, and samples as it sees them."""
    *_, last = layers_with(model, X)
    return last
