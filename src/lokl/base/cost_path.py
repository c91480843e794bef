"""Fits on the same samples that differ in cost or kernels, each from what the last one left."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from lokl._parameters import check_positive
from lokl.base.estimator import KernelEstimator, atomic_fit
from lokl.base.fit_cache import FitCache, WarmStartExchange, params_equal
from lokl.kernels import Kernel

# Settings in which estimators of one line may differ.
_COSTS = ("C", "epsilon", "class_weight")


def fit_cost_path(
    estimators: Iterable[KernelEstimator],
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    tolerance: float | None = None,
    exchange: WarmStartExchange | None = None,
) -> Iterator[KernelEstimator]:
    """Fit estimators on the same samples one after the other, and yield each when it is fitted.

    Estimators of one method that differ only in `C`, `epsilon` or `class_weight` share samples,
    kernels, stored rows and all that does not depend on the cost, and each starts from where the
    last one ended; rising costs are the fastest order. Where some of their kernels differ, too,
    methods that train every kernel by itself keep what they know of the others. Every model is the
    one that `fit` would give, up to the tolerance of the solver, with the same warnings. An
    estimator that differs in more from the one before it begins anew.

    Parameters
    ----------
    estimators : iterable of estimators
    X, y, sample_weight
        As for `fit`.
    tolerance : float, optional
        Tolerance of the solver where it is looser than that of the estimator: enough to tell which
        cost is best, not for the model that is kept.
    exchange : WarmStartExchange, optional
        Between lines of the same estimators on other parts of the samples.

    Returns
    -------
    iterator of estimators
        Where a fit fails, ``next`` raises its error and leaves that estimator as it was; the
        ``next`` after that goes on with the estimators that follow.
    """
    if tolerance is not None:
        check_positive("tolerance", tolerance)
    return _CostPath(estimators, (X, y, sample_weight), tolerance, exchange)


class _CostPath:
    """The iterator; a generator would end with the first error."""

    def __init__(
        self,
        estimators: Iterable[KernelEstimator],
        given: Any,
        tolerance: float | None,
        exchange: WarmStartExchange | None,
    ):
        self._estimators = iter(estimators)
        self._given = given
        self._tolerance = 0.0 if tolerance is None else float(tolerance)
        self._exchange = exchange
        self._settings: Any = None  # of the estimators that share the data
        self._data: Any = None

    def __iter__(self) -> Iterator[KernelEstimator]:
        return self

    def __next__(self) -> KernelEstimator:
        try:
            estimator = next(self._estimators)
        except StopIteration:
            # Nobody will ask for what is stored.
            self._data = None
            raise
        fitted: KernelEstimator = _fit(estimator, self)
        return fitted

    def read(self, estimator: Any) -> Any:
        """Check the data, or take what an estimator like this one has checked."""
        last, before, settings = self._data, self._settings, _other_settings(estimator)
        if last is not None and params_equal(before, settings):
            estimator._check()
            estimator._copy_feature_info(last)
            return last
        kernels, cache = {}, FitCache(persistent=True, exchange=self._exchange)
        if last is not None and _differ_in_kernels_alone(before, settings):
            kernels = last.kernels
            cache = last.cache.restricted_to(range(len(kernels)))
        # What is stored goes before the new comes.
        self._data, self._settings, last = None, settings, None
        checked = estimator._validate(*self._given)
        cache = cache.restricted_to(_in_common(kernels, checked.kernels))
        self._data = replace(checked, cache=cache, tolerance=self._tolerance)
        return self._data


@atomic_fit
def _fit(estimator: Any, line: _CostPath) -> Any:
    return estimator._fit_data(line.read(estimator))


def _other_settings(estimator: Any) -> dict[str, Any]:
    """All that estimators of one line have in common."""
    settings = estimator.get_params(deep=False)
    return {"": type(estimator), **{k: v for k, v in settings.items() if k not in _COSTS}}


def _differ_in_kernels_alone(before: dict[str, Any], now: dict[str, Any]) -> bool:
    return params_equal({**before, "kernels": None}, {**now, "kernels": None})


def _in_common(before: dict[str, Kernel], now: dict[str, Kernel]) -> list[int]:
    """Numbers of the kernels that two fits have in common; none where there are more or fewer.

    What is stored about a kernel takes its share of the memory, which depends on their number.
    """
    if len(before) != len(now):
        return []
    pairs = zip(before.items(), now.items(), strict=True)
    return [i for i, (old, new) in enumerate(pairs) if params_equal(old, new)]
