"""A regressor for which everything is chosen."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.utils import check_array, column_or_1d

from lokl._arrays import Array, column
from lokl.auto.base import AutoMKL
from lokl.estimators._base import setting, settings
from lokl.estimators._base.rules import NOT_NEGATIVE
from lokl.selection.decisions import as_numbers

# Of targets with a standard deviation of one.
_TOLERANCE = 1e-3


@settings
class AutoMKLRegressor(RegressorMixin, AutoMKL):
    """Scaling, kernels, cost and method chosen by cross-validation, for numbers.

    As :class:`AutoMKLClassifier`, with the coefficient of determination as the score. Costs and
    the width of the tube are multiples of the standard deviation of the targets, so that these may
    be in any unit.

    Notes
    -----
    Kernels of a view are linear and quadratic ones with mean diagonal one, and RBF kernels with
    ``gamma`` from ``2^-5`` to ``2^3`` times the reciprocal of the median squared distance. With
    more than 6,000 samples the search is on 4,000 of them, and the best few candidates are judged
    on all.

    Results depend on `random_state` alone, unless there is a `time_limit`.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import AutoMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = AutoMKLRegressor(methods=["UniformMKL"], random_state=0)
    >>> bool(model.fit(X, np.sin(X[:, 0])).best_score_ > 0.9)
    True
    """

    epsilon: float = setting(
        0.05,
        NOT_NEGATIVE,
        "Errors below this many standard deviations of the target cost nothing.",
    )

    _kind: ClassVar[str] = "Regressor"

    def _targets(self, y: Any) -> tuple[Array, dict[str, Any]]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if len(y) < 2:
            raise ValueError(f"{type(self).__name__} needs two samples or more, got 1 sample")
        return y, {}

    def _splits(self, y: Array, groups: Any, rng: np.random.RandomState) -> list[Any]:
        X, cv = np.zeros((len(y), 1)), self.cv
        if isinstance(cv, int | np.integer):
            if cv < 2:
                raise ValueError(
                    f"cv must be two or more folds, a splitter or a list of splits, got {cv}"
                )
            if groups is None:
                # A score needs two samples.
                count = min(int(cv), max(2, len(y) // 2))
                cv = KFold(count, shuffle=True, random_state=rng.randint(2**31 - 1))
            else:
                n_groups = len(np.unique(np.asarray(groups)))
                if n_groups < 2:
                    raise ValueError(
                        f"groups name {n_groups} group; folds that keep groups together need two"
                    )
                cv = GroupKFold(min(int(cv), n_groups))
        return as_numbers(check_cv(cv, y, classifier=False).split(X, y, groups))

    def _unit_cost(self, y: Array, weight: Array) -> float:
        targets = column(y)
        mean = np.average(targets, axis=0, weights=weight)
        spread = np.sqrt(np.average((targets - mean) ** 2, axis=0, weights=weight)).mean()
        # Targets that do not differ, but for rounding, need no particular cost.
        return float(spread) if spread > 1e-12 * np.abs(mean).max() else 1.0

    def _settings_of_methods(self, unit_cost: float, seed: int) -> dict[str, Any]:
        # A machine is solved to a tolerance in the unit of its targets.
        return {
            "random_state": seed,
            "epsilon": self.epsilon * unit_cost,
            "tol": _TOLERANCE * unit_cost,
        }
