"""Common parts of benchmarks on many rows: a generated data set, and one measured fit."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._environment import Peak


@dataclass
class Data:
    X: Any
    y: Any
    X_test: Any
    y_test: Any

    def first(self, rows: int) -> "Data":
        return Data(self.X[:rows], self.y[:rows], self.X_test, self.y_test)


def smooth_set(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Return 18 columns, ten of them functions of the others, and labels with a fifth noise."""
    rng = np.random.default_rng(seed)
    low = rng.normal(size=(rows, 8))
    angles, sizes = low[:, :4], np.abs(low[:, 4:])
    high = np.column_stack(
        [
            sizes[:, 0] * np.cos(angles[:, 0]) + sizes[:, 1] * np.cos(angles[:, 1]),
            sizes[:, 0] * np.sin(angles[:, 0]) + sizes[:, 1] * np.sin(angles[:, 1]),
            np.log1p(sizes[:, 2] * sizes[:, 3]),
            np.tanh(angles[:, 2] - angles[:, 3]),
            np.sqrt(sizes[:, 0] ** 2 + sizes[:, 2] ** 2),
            sizes[:, 1] - sizes[:, 3],
            angles[:, 0] * angles[:, 1],
            np.cos(angles[:, 2]),
            sizes[:, 0] * sizes[:, 1],
            np.sin(angles[:, 3]),
        ]
    )
    high = (high - high.mean(axis=0)) / high.std(axis=0)
    score = 1.2 * high[:, 0] * high[:, 3] + high[:, 4] - 0.7 * high[:, 6] + high[:, 2] ** 2 - 1.0
    y = (score + 0.9 * rng.logistic(size=rows) * 0.6 > 0).astype(int)
    return np.ascontiguousarray(np.hstack([low, high]), dtype=np.float32), y


def measured(
    name: str,
    make: Callable[[], Any],
    data: Data,
    *,
    warm: bool = True,
    more: Callable[[Any], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Measure one fit on all rows, after a fit on a few of them that compiles."""
    if warm:
        few = data.first(3000)
        make().fit(few.X, few.y)
    with Peak(tidy=True) as peak:
        begun = time.perf_counter()
        model = make().fit(data.X, data.y)
        fitted = time.perf_counter()
        accuracy = 100 * model.score(data.X_test, data.y_test)
        ended = time.perf_counter()
    return {
        "model": name,
        "fit, s": fitted - begun,
        "prediction, s": ended - fitted,
        "test accuracy": accuracy,
        "peak, MB": peak.increase or float("nan"),
        **(more(model) if more else {}),
    }
