"""Probabilities, which machines do not have: the error says who makes them."""

from typing import Any, NoReturn


class NoProbabilities:
    """A method that a model lacks, as ``hasattr`` and scikit-learn ask for it.

    Who calls it learns what to use instead.
    """

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: Any) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__} has no {self.name}: decision values are no probabilities; use "
            f"lokl.selection.calibrated(model, X, y), which has {self.name}"
        )
