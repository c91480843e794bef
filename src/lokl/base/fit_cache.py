"""Results that fits on the same samples share, and paths of such fits."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lokl._parameters import check_positive, params_equal
from lokl._warnings import Deferred, capture_warnings, reissue
from lokl.base.model import atomic_fit
from lokl.solvers import Machines, Solver

Value = TypeVar("Value")


class _CachedValue(NamedTuple):
    """A computed value with its warnings, its inputs and the random state it left."""

    captured: tuple[Any, Deferred]
    inputs: Any  # data it was computed from, and the state of the generator before
    random_state: Any  # state of the generator afterwards


@dataclass(eq=False)
class WarmStartExchange:
    """Final parameters of one cost path, as warm starts for paths on other folds.

    Kernel weights hardly change from one fold to another. A path that starts from the weights of
    the leading path at the same cost needs few rounds.
    """

    leads: bool = True  # whether the path writes to the exchange instead of reading from it
    # Parameters by step and name; the leading path may be several steps ahead.
    ended: dict[tuple[Hashable, Hashable], Any] = field(default_factory=dict)
    # Current step of the path, set by the caller before each fit.
    step: Hashable = None

    def follower(self) -> "WarmStartExchange":
        """Return an exchange for a path that reads what this one writes."""
        return WarmStartExchange(False, self.ended)


@dataclass(eq=False)
class FitCache:
    """Values and warm starts that consecutive fits on the same samples share.

    Fits of a cost path differ in the cost of errors. Values that do not depend on the cost are
    computed once and cached. Values that do are warm starts: each fit starts where the previous one
    ended. Fits whose result depends on the start use no warm start. If fits also differ in some of
    their kernels, entries of the other kernels stay valid.

    In a single fit the cache stores nothing.
    """

    persistent: bool = False  # whether later fits use the cache
    exchange: WarmStartExchange | None = None
    _values: dict[Hashable, _CachedValue] = field(default_factory=dict)
    _machines: dict[Hashable, Machines] = field(default_factory=dict)
    _ended: dict[Hashable, Any] = field(default_factory=dict)
    _by_kernel: dict[int, "FitCache"] = field(default_factory=dict)

    def for_kernel(self, index: int) -> "FitCache":
        """Return the cache of one kernel alone, which is independent of the other kernels."""
        if not self.persistent:
            return self
        return self._by_kernel.setdefault(index, FitCache(persistent=True))

    def restricted_to(self, kernels: Iterable[int]) -> "FitCache":
        """Return a cache with the entries of these kernels alone."""
        kept = {i: self._by_kernel[i] for i in kernels if i in self._by_kernel}
        return FitCache(self.persistent, self.exchange, _by_kernel=kept)

    def cached(
        self,
        name: Hashable,
        compute: Callable[[], Value],
        rng: np.random.RandomState | None = None,
        *,
        inputs: Any = None,
    ) -> Value:
        """Return a value that does not depend on the cost, computed by the first fit that needs it.

        Every fit consumes the same random numbers and issues the same warnings as if it had
        computed the value itself. The value is computed again if the state of `rng` or the `inputs`
        have changed.
        """
        if not self.persistent:
            return compute()
        before = (inputs, _state(rng))
        entry = self._values.get(name)
        if entry is None or not params_equal(entry.inputs, before):
            # Free the outdated value before its successor needs memory.
            self._values.pop(name, None)
            captured = capture_warnings(compute)
            entry = self._values[name] = _CachedValue(captured, before, _state(rng))
        if rng is not None:
            rng.set_state(entry.random_state)
        result: Value = reissue(entry.captured)
        return result

    def resume(self, name: Hashable, machines: Machines, *, same_matrix: bool = False) -> Machines:
        """Return machines that start where the machines of this name ended in the previous fit.

        With `same_matrix`, both are trained on the same Gram matrix.
        """
        if not self.persistent:
            return machines
        previous = self._machines.get(name)
        self._machines[name] = machines
        return (
            machines if previous is None else machines.warm_start(previous, same_matrix=same_matrix)
        )

    def warm_start(self, name: Hashable, *, from_exchange: bool = False) -> Any:
        """Return the parameters that the previous fit ended with, None if there are none.

        With `from_exchange`, parameters of the leading path at the same cost are preferred.
        """
        own, exchange = self._ended.get(name), self.exchange
        if from_exchange and exchange is not None and not exchange.leads:
            return exchange.ended.get((exchange.step, name), own)
        return own

    def store(self, name: Hashable, value: Any) -> None:
        """Store final parameters as the warm start of the next fit."""
        if self.persistent:
            self._ended[name] = value
            if self.exchange is not None and self.exchange.leads:
                self.exchange.ended[self.exchange.step, name] = value


def _state(rng: np.random.RandomState | None) -> Any:
    return None if rng is None else rng.get_state(legacy=False)


# Settings in which estimators of one cost path may differ.
_COSTS = ("C", "epsilon", "class_weight")


def fit_cost_path(
    estimators: Iterable[Any],
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    tolerance: float | None = None,
    exchange: WarmStartExchange | None = None,
) -> Iterator[Any]:
    """Fit estimators on the same samples one after the other, and yield each fitted estimator.

    Estimators of one method that differ only in `C`, `epsilon` or `class_weight` share samples,
    kernels, stored rows and everything else that does not depend on the cost, and each starts where
    the previous one ended. Rising costs are the fastest order. If some of their kernels differ as
    well, methods that train every kernel alone keep the results of the others. Every model equals
    the result of `fit` up to the tolerance of the solver, with the same warnings. An estimator that
    differs in other settings starts from scratch.

    Parameters
    ----------
    estimators : iterable of estimators
    X, y, sample_weight
        As for `fit`.
    tolerance : float, optional
        Tolerance of the solver if it is looser than the estimator's: enough to rank costs, but not
        for the final model.
    exchange : WarmStartExchange, optional
        Warm starts shared with paths of the same estimators on other folds.

    Returns
    -------
    fitted : iterator of estimators
        If a fit fails, ``next`` raises its error and leaves that estimator unchanged. The following
        ``next`` continues with the remaining estimators.
    """
    loosest = 0.0 if tolerance is None else check_positive("tolerance", tolerance)
    path = _CostPathData((X, y, sample_weight), loosest, exchange)
    # A map continues after an error; a generator would end.
    return map(partial(_fit_next, path=path), estimators)


@dataclass(eq=False)
class _CostPathData:
    """Validated data that consecutive fits of a path share."""

    arguments: tuple[Any, Any, Any]  # X, y, sample_weight
    tolerance: float
    exchange: WarmStartExchange | None
    settings: Any = None  # of the estimators that share the data
    data: Any = None

    def validated(self, estimator: Any) -> Any:
        """Return validated data for an estimator, shared with the previous one if possible."""
        last, before, given = self.data, self.settings, estimator.get_params(deep=False)
        settings = {"": type(estimator), **{k: given[k] for k in given if k not in _COSTS}}
        if last is not None and params_equal(before, settings):
            return replace(last, solver=self._loosened(estimator._check()))
        named, cache = [], FitCache(persistent=True, exchange=self.exchange)
        if last is not None and params_equal(
            {**before, "kernels": None}, {**settings, "kernels": None}
        ):
            named = list(zip(last.names, last.given_kernels, strict=True))
            cache = last.cache.restricted_to(range(len(named)))
        # Free the previous cache before the new one grows.
        self.data, self.settings, last = None, settings, None
        data = estimator._validate(*self.arguments)
        pairs = list(zip(data.names, data.given_kernels, strict=True))
        # The number of kernels determines the memory of each, so that it must be the same.
        shared = map(params_equal, named, pairs) if len(named) == len(pairs) else ()
        cache = cache.restricted_to([i for i, same in enumerate(shared) if same])
        self.data = replace(data, cache=cache, solver=self._loosened(data.solver))
        return self.data

    def _loosened(self, solver: Solver) -> Solver:
        loose = self.tolerance > solver.tolerance > 0
        return solver.with_tolerance(self.tolerance) if loose else solver


@atomic_fit
def _fit_next(estimator: Any, path: _CostPathData) -> Any:
    return estimator._fit(path.validated(estimator))
