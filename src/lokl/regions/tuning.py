"""Settings that are chosen once, on a few regions, or in every region by itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from lokl._arrays import Array, is_sparse
from lokl._notices import apart, together
from lokl.estimators.uniformmkl import UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF
from lokl.regions.divided import Divided, Searched
from lokl.regions.fitting import Fit, Learning, fit_once, seeded
from lokl.selection.decisions import fit_options
from lokl.selection.edges import warn_of_edges
from lokl.selection.search import KernelSearchCV

_FOLDS = 5
# Scores of fewer samples are mostly chance.
_FEWEST = 100
# Regions that tell for all.
_REGIONS = 4
# Costs and widths of the RBF kernel, the latter times what samples of one region are apart.
# Scores change slowly with the cost, so that costs are farther apart.
_COSTS = [0.5, 2.0, 8.0, 32.0, 128.0, 512.0]
_WIDTHS = [2.0**power for power in range(-3, 7)]
# Machines of regions are averaged over many: more digits of one do not show.
_TOLERANCE = 1e-2
# Residuals that cost nothing, in standard deviations of the target.
_EPSILON = 0.05
# Of these standard deviations.
_DIGITS = 6


def default_classifier() -> Any:
    """Return one RBF machine for classes."""
    # Types of constructors that come from declared settings are not known to type checkers.
    classifier: Any = UniformMKLClassifier
    return classifier([RBF()], tol=_TOLERANCE)


def default_regressor(spread: float) -> Any:
    """Return one RBF machine for targets, whose spread is the unit of its settings."""
    regressor: Any = UniformMKLRegressor
    spread = spread or 1.0
    scaled = {"C": spread, "epsilon": _EPSILON * spread, "tol": _TOLERANCE * spread}
    return regressor([RBF()], **scaled)


def rounded_spread(variance: Any) -> float:
    """Standard deviation of targets, from the variance of each of them.

    Digits that depend on the order of sums are left out: settings that come from it are then the
    same wherever the samples are.
    """
    return float(f"{np.sqrt(np.mean(variance)):.{_DIGITS}g}")


def spread_of_targets(y: Array, weight: Array | None) -> float:
    """Standard deviation of targets, over samples and targets."""
    mean = np.average(y, axis=0, weights=weight)
    return rounded_spread(np.average((y - mean) ** 2, axis=0, weights=weight))


def default_grid(estimator: Any, spreads: Sequence[float]) -> dict[str, Any]:
    """Costs and widths for the default estimator.

    Parameters
    ----------
    estimator : estimator
        Its cost is the unit of costs.
    spreads : sequence of float
        What samples of some regions are apart.
    """
    spread = float(np.mean(spreads))
    unit = 1.0 / spread if spread > 0 else 1.0
    return {
        "C": [estimator.C * cost for cost in _COSTS],
        "kernels": [[RBF(unit * width)] for width in _WIDTHS],
    }


def spread_of(X: Any) -> float:
    """Mean squared distance from the mean."""
    if is_sparse(X):
        squares = X.multiply(X).sum() / X.shape[0]
        return max(float(squares - np.square(np.asarray(X.mean(axis=0))).sum()), 0.0)
    with np.errstate(all="ignore"):
        spread = float(np.nanvar(np.asarray(X, dtype=float), axis=0).sum())
    return spread if np.isfinite(spread) else 0.0


def regions_to_tune(have_folds: Sequence[bool]) -> list[int]:
    """Return a few regions, spread over all of them, that have enough samples for folds."""
    fit = [place for place, enough in enumerate(have_folds) if enough]
    if len(fit) <= _REGIONS:
        return fit
    return [fit[len(fit) * (2 * k + 1) // (2 * _REGIONS)] for k in range(_REGIONS)]


def has_folds(n_samples: int, codes: Array | None) -> bool:
    """Whether samples are enough, and every fold has all classes of the region."""
    if n_samples < _FEWEST or codes is None:
        return n_samples >= _FEWEST
    counts = np.bincount(codes)
    return bool((counts > 0).sum() > 1 and counts[counts > 0].min() >= _FOLDS)


@dataclass(frozen=True)
class Choice:
    """What is chosen for all regions, and how each of them is fitted."""

    estimator: Any
    fit: Fit = fit_once
    best: dict[str, Any] = field(default_factory=dict)


def choose(
    estimator: Any, divided: Divided, tune: str | None, grid: Any, seed: tuple[int, ...]
) -> Choice:
    """Choose settings on a few regions, as `tune` of the estimators in regions says.

    `grid` is None where nothing is to be chosen, and ``"default"`` for that of the default
    estimator.
    """
    if tune is None or grid is None:
        return Choice(estimator)
    places, told = regions_to_tune(divided.have_folds()), grid != "default"
    if not told:
        if not places:
            return Choice(estimator)
        grid = default_grid(estimator, divided.spreads(places))
    if tune == "each":
        return Choice(estimator, partial(fit_tuned, grid))
    best = _best(divided.searched(estimator, grid, places, seed), told)
    return Choice(clone(estimator).set_params(**best), best=best)


def _best(searched: Sequence[Searched], told: bool) -> dict[str, Any]:
    """Return the parameters that are best in the mean over a few regions.

    `told` says whether to warn where they are on the edge of the grid.
    """
    if not searched:
        return {}
    scores = [one.scores for one in searched]
    mean = np.average(scores, axis=0, weights=[one.size for one in searched])
    candidates = searched[-1].candidates
    if told:
        warn_of_edges(candidates, mean)
    return dict(candidates[int(np.argmax(mean))])


def search_region(
    estimator: Any, grid: Any, region: Learning, seed: int, n_jobs: int | None
) -> Searched:
    """Cross-validate all candidates of a grid in one region."""
    search = _search(estimator, grid, region, seed, n_jobs, refit=False)
    options = fit_options(estimator, region.weight)
    _, notices = apart(partial(search.fit, region.samples, region.y, **options))
    together((None, _without_edges(notices)))
    scores = _all_scores(search.cv_results_, len(region.y))
    return Searched(search.cv_results_["params"], scores, len(region.y))


def _all_scores(results: dict[str, Any], size: int) -> Array:
    """Scores of all candidates: what was skipped was clearly behind, by a standard error at least.

    Half a sample is more where all folds of the best are alike.
    """
    mean = results["mean_test_score"]
    error = results["std_test_score"][np.nanargmax(mean)] / np.sqrt(_FOLDS)
    behind = np.nanmin(mean) - max(float(error), 0.5 / size)
    return np.where(np.isnan(mean), behind, mean)


def fit_tuned(grid: Any, estimator: Any, X: Any, y: Array, seed: int, **options: Any) -> Any:
    """Choose parameters and fit an estimator with them; as it is where samples are too few."""
    codes = np.unique(y, return_inverse=True)[1] if is_classifier(estimator) else None
    region = Learning(X, y, codes, 0, None)
    if not has_folds(len(y), codes):
        return estimator.fit(X, y, **options)
    search = _search(estimator, grid, region, seed, 1, refit=True)
    _, notices = apart(partial(search.fit, X, y, **options))
    together((None, _without_edges(notices)))
    return search.best_estimator_


def _search(
    estimator: Any, grid: Any, region: Learning, seed: int, n_jobs: int | None, *, refit: bool
) -> Any:
    splitter = KFold if region.codes is None else StratifiedKFold
    search: Any = KernelSearchCV
    return search(
        seeded(estimator, seed),
        grid,
        cv=splitter(_FOLDS, shuffle=True, random_state=seed % 2**32),
        adaptive=True,
        refit=refit,
        n_jobs=n_jobs,
    )


def _without_edges(notices: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is said about the edge of a grid by one region."""
    return {kind: one for kind, one in notices.items() if not kind.startswith("edge of the grid")}
