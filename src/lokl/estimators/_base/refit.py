"""A fit that fails leaves the estimator as it was; one that succeeds leaves nothing of the last."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(fit: Fit) -> Fit:
    """Make a method that learns either replace all results of the last one, or change nothing.

    Results are checked and published step by step, and scikit-learn notes the columns of the data
    before anything is learned. An error or an interruption in between would leave a model whose
    parts do not belong together, and which answers all the same.
    """

    @wraps(fit)
    def whole(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(estimator))
        try:
            for name in before.get("_results", ()):
                vars(estimator).pop(name, None)
            return fit(estimator, *args, **kwargs)
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise

    return whole  # type: ignore[return-value]


def publish(estimator: Any, results: dict[str, Any]) -> None:
    """Set what was learned, and note its names for the next fit."""
    vars(estimator).update(results, _results=tuple(results))
