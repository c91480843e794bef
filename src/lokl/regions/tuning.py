"""Choice of settings by cross-validation: once on a few regions, or in every region."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from lokl._arrays import Array
from lokl._warnings import capture_warnings, reissue
from lokl.kernels import RBF
from lokl.regions.fitting import (
    N_FOLDS,
    Fit,
    RegionBackend,
    RegionData,
    fit_estimator,
    with_seed,
)
from lokl.search.cross_validation import sample_weight_params
from lokl.search.results import warn_at_grid_boundary
from lokl.search.search import KernelSearchCV

# Costs and widths of the RBF kernel for the default estimator; widths are in units of the
# reciprocal variance of a region. Scores change slowly with the cost, so few costs are enough.
_COSTS = [0.5, 2.0, 8.0, 32.0, 128.0, 512.0]
_WIDTHS = [2.0**power for power in range(-3, 7)]


@dataclass(frozen=True)
class TunedFit:
    """Estimator for all regions, and how it is fitted in each of them."""

    estimator: Any
    fit: Fit = fit_estimator
    best_params: dict[str, Any] = field(default_factory=dict)


def tune_regions(
    estimator: Any, backend: RegionBackend, tune: str | None, grid: Any, *, default: bool
) -> TunedFit:
    """Choose settings as the parameter `tune` of the estimators demands.

    Parameters
    ----------
    estimator : estimator
    backend : RegionBackend
    tune : {"shared", "each"} or None
    grid : dict, list of dict or None
        Values to try; None for none.
    default : bool
        Whether to use the grid of the default estimator if `grid` is None.
    """
    is_given = grid is not None
    if tune is None or not (is_given or default):
        return TunedFit(estimator)
    regions = backend.tuning_regions()
    if not is_given:
        if not regions:
            return TunedFit(estimator)
        grid = _default_grid(estimator, backend.map(_total_variance, regions))
    if tune == "each":
        return TunedFit(estimator, partial(_fit_tuned, grid))
    searched = backend.map(partial(_search_region, estimator, grid, backend.n_jobs), regions)
    if not searched:
        return TunedFit(estimator)
    candidates, scores, sizes = zip(*searched, strict=True)
    mean = np.average(scores, axis=0, weights=sizes)
    if is_given:
        warn_at_grid_boundary(candidates[0], mean)
    best = dict(candidates[0][int(np.argmax(mean))])
    return TunedFit(clone(estimator).set_params(**best), best_params=best)


def _default_grid(estimator: Any, variances: Sequence[float]) -> dict[str, Any]:
    """Return costs, in units of the cost of the estimator, and widths for the default estimator."""
    variance = float(np.mean(variances))
    unit = 1.0 / variance if variance > 0 else 1.0
    return {
        "C": [estimator.C * cost for cost in _COSTS],
        "kernels": [[RBF(unit * width)] for width in _WIDTHS],
    }


def _total_variance(data: RegionData, seed: int) -> float:
    """Return the sum of the variances of all columns, 0 if it overflows."""
    with np.errstate(all="ignore"):
        variance = float(np.nansum(StandardScaler(with_mean=False).fit(data.samples).var_))
    return variance if np.isfinite(variance) else 0.0


def _search_region(
    estimator: Any, grid: Any, n_jobs: int | None, data: RegionData, seed: int
) -> tuple[list[dict[str, Any]], Array, int]:
    """Cross-validate a grid in one region; return candidates, scores and number of samples."""
    results = _search(estimator, grid, data, seed, n_jobs, refit=False).cv_results_
    mean, size = results["mean_test_score"], len(data.y)
    # Skipped candidates were clearly behind, by a standard error at least. If all folds of the best
    # candidate have the same score, half a sample is larger.
    error = results["std_test_score"][np.nanargmax(mean)] / np.sqrt(N_FOLDS)
    behind = np.nanmin(mean) - max(float(error), 0.5 / size)
    return results["params"], np.where(np.isnan(mean), behind, mean), size


def _fit_tuned(grid: Any, estimator: Any, data: RegionData, seed: int) -> Any:
    """Fit an estimator with the best parameters, or as it is if there are too few samples."""
    if not data.has_folds(np.arange(len(data.y))):
        return fit_estimator(estimator, data, seed)
    return _search(estimator, grid, data, seed, 1, refit=True).best_estimator_


def _search(
    estimator: Any, grid: Any, data: RegionData, seed: int, n_jobs: int | None, *, refit: bool
) -> Any:
    """Search a grid in one region, without warnings about the edge of the grid there."""
    splitter = KFold if data.codes is None else StratifiedKFold
    make: Any = KernelSearchCV
    search = make(
        with_seed(estimator, seed),
        grid,
        cv=splitter(N_FOLDS, shuffle=True, random_state=seed % 2**32),
        adaptive=True,
        refit=refit,
        n_jobs=n_jobs,
    )
    options = sample_weight_params(estimator, data.weight)
    _, notices = capture_warnings(partial(search.fit, data.samples, data.y, **options))
    kept = {kind: notice for kind, notice in notices.items() if not kind.startswith("edge of")}
    reissue((None, kept))
    return search
