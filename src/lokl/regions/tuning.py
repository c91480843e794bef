"""Settings that are chosen once, on a few regions, or in every region by itself."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from lokl._arrays import Array, is_sparse
from lokl._notices import apart, together
from lokl.estimators.uniformmkl import UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF
from lokl.regions.fitting import Learning, region_seed, seeded
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


def default_classifier() -> Any:
    """Return one RBF machine for classes."""
    # Types of constructors that come from declared settings are not known to type checkers.
    classifier: Any = UniformMKLClassifier
    return classifier([RBF()], tol=_TOLERANCE)


def default_regressor(y: Array, weight: Array | None) -> Any:
    """Return one RBF machine for targets, whose spread is the unit of its settings."""
    regressor: Any = UniformMKLRegressor
    mean = np.average(y, axis=0, weights=weight)
    spread = float(np.sqrt(np.average((y - mean) ** 2, axis=0, weights=weight).mean())) or 1.0
    scaled = {"C": spread, "epsilon": _EPSILON * spread, "tol": _TOLERANCE * spread}
    return regressor([RBF()], **scaled)


def default_grid(estimator: Any, parts: Sequence[Any]) -> dict[str, Any]:
    """Costs and widths for the default estimator.

    Parameters
    ----------
    estimator : estimator
        Its cost is the unit of costs.
    parts : sequence of {array, CSR matrix}
        Samples of some regions.
    """
    spread = float(np.mean([_spread(part) for part in parts]))
    unit = 1.0 / spread if spread > 0 else 1.0
    return {
        "C": [estimator.C * cost for cost in _COSTS],
        "kernels": [[RBF(unit * width)] for width in _WIDTHS],
    }


def _spread(X: Any) -> float:
    """Mean squared distance from the mean."""
    if is_sparse(X):
        squares = X.multiply(X).sum() / X.shape[0]
        return max(float(squares - np.square(np.asarray(X.mean(axis=0))).sum()), 0.0)
    with np.errstate(all="ignore"):
        spread = float(np.nanvar(np.asarray(X, dtype=float), axis=0).sum())
    return spread if np.isfinite(spread) else 0.0


def regions_to_tune(learning: Learning, shares: Sequence[tuple[Array, Array | None]]) -> list[int]:
    """Return a few regions, spread over all of them, that have enough samples for folds."""
    fit = [place for place, (rows, _) in enumerate(shares) if _has_folds(learning, rows)]
    if len(fit) <= _REGIONS:
        return fit
    return [fit[len(fit) * (2 * k + 1) // (2 * _REGIONS)] for k in range(_REGIONS)]


def _has_folds(learning: Learning, rows: Array) -> bool:
    """Whether samples are enough, and every fold has all classes of the region."""
    if len(rows) < _FEWEST or learning.codes is None:
        return len(rows) >= _FEWEST
    counts = np.bincount(learning.codes[rows])
    return bool((counts > 0).sum() > 1 and counts[counts > 0].min() >= _FOLDS)


def shared_choice(
    estimator: Any,
    grid: Any,
    learning: Learning,
    shares: Sequence[tuple[Array, Array | None]],
    seed: tuple[int, ...],
    n_jobs: int | None,
    told: bool,
) -> dict[str, Any]:
    """Return the parameters that are best in the mean over a few regions.

    `told` says whether to warn where they are on the edge of the grid.
    """
    scores, sizes, candidates = [], [], []
    for place in regions_to_tune(learning, shares):
        region = learning.part(*shares[place])
        search = _search(estimator, grid, region, region_seed(seed, place), n_jobs, refit=False)
        options = fit_options(estimator, region.weight)
        _, notices = apart(partial(search.fit, region.samples, region.y, **options))
        together((None, _without_edges(notices)))
        mean = search.cv_results_["mean_test_score"]
        # What was skipped could not win.
        scores.append(np.where(np.isnan(mean), np.nanmin(mean), mean))
        sizes.append(len(region.y))
        candidates = search.cv_results_["params"]
    if not scores:
        return {}
    mean = np.average(scores, axis=0, weights=sizes)
    if told:
        warn_of_edges(candidates, mean)
    return dict(candidates[int(np.argmax(mean))])


def fit_tuned(grid: Any, estimator: Any, X: Any, y: Array, seed: int, **options: Any) -> Any:
    """Choose parameters and fit an estimator with them; as it is where samples are too few."""
    codes = np.unique(y, return_inverse=True)[1] if is_classifier(estimator) else None
    region = Learning(X, y, codes, 0, None, fit_tuned)
    if not _has_folds(region, np.arange(len(y))):
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
