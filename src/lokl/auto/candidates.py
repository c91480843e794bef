"""What is compared: a method with its kernels and its cost, and what cross-validation says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor

import lokl.estimators
from lokl._methods import METHODS
from lokl.kernels import Kernel
from lokl.selection.work import Cell, mean_score

# From simple to complicated: nothing learned but the machine, one weight for each kernel, trust
# that differs between samples, and methods that are not of this library.
FIXED, GLOBAL, LOCAL, OTHER = range(4)
_UNIFORM = "UniformMKL"
AUTO, AUTO_VIEWS = (_UNIFORM, "LpMKL", "SimpleMKL"), ("TrustedVote", "CLMKL")


@dataclass(frozen=True, eq=False)
class Contender:
    """A method, as an estimator that is configured but for kernels and cost."""

    name: str
    estimator: Any
    level: int

    @property
    def takes_kernels(self) -> bool:
        return self.level != OTHER

    @property
    def is_uniform(self) -> bool:
        return self.level == FIXED


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method with its kernels and its cost; other methods have neither."""

    contender: Contender
    kernels: Mapping[str, Kernel] | None = None
    cost: float | None = None

    @property
    def method(self) -> str:
        one = self.contender.is_uniform and self.kernels is not None and len(self.kernels) == 1
        return "one kernel" if one else self.contender.name

    @property
    def parameters(self) -> dict[str, Any]:
        """Settings of the pipeline."""
        if self.kernels is None:
            return {}
        return {"model__kernels": dict(self.kernels), "model__C": self.cost}

    @property
    def key(self) -> Any:
        """Equal for candidates that are the same."""
        names = () if self.kernels is None else tuple(self.kernels)
        return id(self.contender), names, self.cost


@dataclass(frozen=True, eq=False)
class Judged:
    """A candidate and its cells of all folds."""

    candidate: Candidate
    cells: Sequence[Cell]
    n_rows: int  # samples that took part

    @cached_property
    def mean(self) -> float:
        """Mean held-out score; NaN where a fold failed."""
        return float(mean_score(self.cells, None))

    @property
    def deviation(self) -> float:
        """Standard error of the mean."""
        scores = [cell.score(None) for cell in self.cells]
        return float(np.std(scores) / np.sqrt(len(scores)))

    @property
    def fit_seconds(self) -> float:
        """Of one fold."""
        return float(np.mean([cell.fit_seconds for cell in self.cells]))

    @property
    def seconds(self) -> float:
        return sum(cell.fit_seconds + cell.score_seconds for cell in self.cells)

    @property
    def error(self) -> str | None:
        """Last line of what went wrong."""
        traces = [cell.error for cell in self.cells if cell.error is not None]
        return traces[0].strip().splitlines()[-1] if traces else None


def contenders(methods: Any, kind: str, several_views: bool, settings: Mapping[str, Any]) -> Any:
    """Estimators of the methods that are asked for.

    Parameters
    ----------
    methods : "auto", or a list of names and estimators
    kind : {"Classifier", "Regressor"}
    several_views : bool
    settings : mapping
        Settings of every estimator that is made here, and has them.
    """
    if isinstance(methods, str) and methods == "auto":
        methods = [*AUTO, *(AUTO_VIEWS if several_views else ())]
    elif isinstance(methods, str) or hasattr(methods, "fit"):
        methods = [methods]
    if not isinstance(methods, Sequence) or not len(methods):
        raise ValueError(
            f'methods must be "auto" or a list of names and estimators, got {methods!r}'
        )
    return [
        _by_name(one, kind, settings) if isinstance(one, str) else _given(one, kind)
        for one in methods
    ]


def _by_name(name: str, kind: str, settings: Mapping[str, Any]) -> Contender:
    for method in METHODS:
        class_name = method.classifier if kind == "Classifier" else method.regressor
        known = {method.name, method.stem, class_name}
        if name.lower() in {str(word).lower() for word in known} and class_name:
            estimator = getattr(lokl.estimators, class_name)()
            own = estimator.get_params(deep=False)
            estimator.set_params(**{k: value for k, value in settings.items() if k in own})
            return Contender(method.name, estimator, _level(method))
    stems = [m.stem for m in METHODS if kind == "Classifier" or m.regressor]
    raise ValueError(
        f'unknown method {name!r}; known are "auto", {", ".join(stems)}, and any estimator'
    )


def _level(method: Any) -> int:
    if method.stem == _UNIFORM:
        return FIXED
    return LOCAL if method.can("localized") else GLOBAL


def _given(estimator: Any, kind: str) -> Contender:
    right = is_classifier if kind == "Classifier" else is_regressor
    if not isinstance(estimator, BaseEstimator) or not right(estimator):
        raise ValueError(
            f"methods has {estimator!r}, which is no {kind.lower()}; give names or {kind.lower()}s"
        )
    for method in METHODS:
        if type(estimator).__name__ in method.classes:
            return Contender(method.name, clone(estimator), _level(method))
    return Contender(type(estimator).__name__, clone(estimator), OTHER)
