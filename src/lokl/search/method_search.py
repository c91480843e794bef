"""Named methods of AutoMKL: their estimators, kernels and costs as candidates of one search."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor

from lokl import methods
from lokl._methods import METHODS, method_of
from lokl.base.survival import SurvivalMixin
from lokl.kernels import RBF, Kernel, Laplacian, Linear, Polynomial
from lokl.search.results import Candidate, LeaderboardRow

Kernels = dict[str, Kernel]

# Powers of two of costs.
_COSTS, _LEARNED_COSTS = range(-3, 10, 2), (-1, 2, 5)
# Number of views from which learned methods get two kernels of each instead of all.
_MANY_VIEWS = 4
# Complexity of methods: only an SVM, one weight for each kernel, weights that differ between
# samples, and methods of other libraries.
FIXED, GLOBAL, LOCAL, OTHER = range(4)


def _rbf(power: int) -> Kernels:
    return {f"rbf(2^{power})": RBF(2.0**power)}


# Kernels of columns with a median distance of one. Widths are in units of its reciprocal.
_LAPLACIAN: Kernels = {"laplacian": Laplacian("median")}
_LINEAR: Kernels = {"linear": Linear().normalized("mean_diag")}
# Squared norms are about 1/2: gamma 2 gives linear and quadratic terms a similar share.
_QUADRATIC: Kernels = {"quadratic": Polynomial(2, gamma=2.0).normalized("mean_diag")}
# Values of wider kernels are all nearly equal, so that samples without a view lean to one side.
_NARROW = (_rbf(-2), _rbf(0), _rbf(2))
_ALL: Kernels = {**_LINEAR, **_QUADRATIC, **_NARROW[0], **_NARROW[1], **_NARROW[2]}


# Whether an estimator is of a kind.
_KINDS = {
    "Classifier": is_classifier,
    "Regressor": is_regressor,
    "Survival": lambda estimator: isinstance(estimator, SurvivalMixin),
}


def named_estimators(names: Any, kind: str, settings: Mapping[str, Any]) -> list[Any]:
    """Return the estimators of the requested methods, configured except for kernels and cost.

    Parameters
    ----------
    names : list of str and estimators
    kind : {"Classifier", "Regressor", "Survival"}
    settings : mapping
        Settings of every estimator that is created here and has them. Given estimators get the
        class weight unless they have one.
    """
    if isinstance(names, str) or hasattr(names, "fit"):
        names = [names]
    if not isinstance(names, Sequence) or not len(names):
        raise ValueError(f'methods must be "auto" or a list of names and estimators, got {names!r}')
    is_right_kind = _KINDS[kind]
    for item in names:
        if isinstance(item, str):
            continue
        if not isinstance(item, BaseEstimator) or not is_right_kind(item):
            raise ValueError(
                f"methods contains {item!r}, which is not a {kind.lower()} model; pass names or "
                f"{kind.lower()} models"
            )
    return [
        _estimator_named(item, kind, settings)
        if isinstance(item, str)
        else _with_class_weight(clone(item), settings)
        for item in names
    ]


def _with_class_weight(estimator: Any, settings: Mapping[str, Any]) -> Any:
    """Set the class weight of an estimator of the user that has none of its own."""
    if estimator.get_params(deep=False).get("class_weight", settings) is None:
        estimator.set_params(class_weight=settings.get("class_weight"))
    return estimator


def _estimator_named(name: str, kind: str, settings: Mapping[str, Any]) -> Any:
    for method in METHODS:
        class_name = getattr(method, kind.lower())
        names = {method.name, method.stem, class_name}
        if class_name and name.lower() in {str(known).lower() for known in names}:
            estimator = getattr(methods, class_name)()
            available = estimator.get_params(deep=False)
            return estimator.set_params(**{k: v for k, v in settings.items() if k in available})
    stems = [method.stem for method in METHODS if getattr(method, kind.lower())]
    raise ValueError(
        f'unknown method {name!r}; choose "auto", {", ".join(stems)}, or pass an estimator'
    )


def complexity(estimator: Any) -> int:
    """Return FIXED, GLOBAL, LOCAL or OTHER."""
    method = method_of(estimator)
    if method is None:
        return OTHER
    if method.learns == "nothing":
        return FIXED
    return LOCAL if method.can("localized") else GLOBAL


def method_grid(
    estimator: Any, views: Mapping[str, slice], given: Kernels | None, unit_cost: float
) -> dict[str, list[Any]]:
    """Return the kernels and costs of a method as a grid for the last step of a pipeline.

    Parameters
    ----------
    estimator : estimator
    views : mapping of str to slice
        Columns of each view; empty for one view of all columns.
    given : dict of str to Kernel, or None
        Kernels of the user instead.
    unit_cost : float
        Factor of all costs.
    """
    grid: dict[str, list[Any]] = {"model": [estimator]}
    level = complexity(estimator)
    if level != OTHER:
        powers = _COSTS if level == FIXED else _LEARNED_COSTS
        if given is None:
            sets = [_of_views(kernels, views) for kernels in _kernel_sets(estimator, views)]
        else:
            alone = [{name: kernel} for name, kernel in given.items()] if level == FIXED else []
            sets = [*alone, given] if len(given) > 1 or not alone else alone
        grid["model__kernels"] = sets
        grid["model__C"] = [unit_cost * 2.0**power for power in powers]
    return grid


def _of_views(kernels: Kernels, views: Mapping[str, slice]) -> Kernels:
    """Return kernels on the columns of every view."""
    if not views:
        return kernels
    return {
        f"{view}: {name}": kernel.on(columns)
        for view, columns in views.items()
        for name, kernel in kernels.items()
    }


def _kernel_sets(estimator: Any, views: Mapping[str, slice]) -> Iterator[Kernels]:
    """Yield the sets of kernels of each view that a method is compared on."""
    method, n_views = method_of(estimator), max(len(views), 1)
    assert method is not None
    if n_views == 1 and method.learns == "weights":
        yield _ALL
        return
    yield _LAPLACIAN
    if method.learns == "nothing":
        yield from [_rbf(-4)] if n_views == 1 else []
        yield from (*_NARROW, _LINEAR, _ALL)
    elif method.learns == "trust":
        # One kernel for each view: with two, a wrong view would have two votes.
        yield from _NARROW[:2]
    else:
        yield _ALL if n_views < _MANY_VIEWS else {**_LINEAR, **_rbf(0)}


def complexity_of(candidate: Candidate) -> tuple[float, ...]:
    """Return the kind of the method, the cost and the number of kernels."""
    params = candidate.params
    kernels = params.get("model__kernels", ())
    return complexity(params["model"]), params.get("model__C", 0.0), len(kernels)


def leaderboard_row(candidate: Candidate, n_samples: int) -> LeaderboardRow:
    """Return the results of a candidate that was evaluated on some samples."""
    params = candidate.params
    method, kernels = method_of(params["model"]), params.get("model__kernels", ())
    name = type(params["model"]).__name__ if method is None else method.name
    if len(kernels) == 1 and complexity(params["model"]) == FIXED:
        name = "one kernel"
    errors = candidate.errors
    return LeaderboardRow(
        name,
        ", ".join(kernels),
        params.get("model__C"),
        candidate.mean(),
        candidate.standard_error(),
        candidate.seconds,
        n_samples,
        errors[0].strip().splitlines()[-1] if errors else None,
    )
