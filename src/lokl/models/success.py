"""Where kernels succeed: a regressed function of the samples for each kernel."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._samples import Samples
from lokl.gates.base import masked_softmax
from lokl.gram import Expansion


@dataclass(frozen=True, eq=False)
class RegressedSuccess:
    """Regressed success of every kernel at any sample."""

    regressors: list[Expansion]  # one for each kernel, on samples that have its view

    def __call__(self, samples: Samples) -> Array:
        """Values (n_samples, n_kernels), minus infinity where a view is missing."""
        return self.prepared(samples)[0]

    def prepared(self, samples: Samples) -> tuple[Array, list[Any]]:
        """Return the values, and for each kernel the samples as laid out to find them."""
        values = np.full((samples.n_samples, len(self.regressors)), -np.inf)
        laid_out = []
        for i, regressor in enumerate(self.regressors):
            points = regressor.prepare(samples.seen_by(i))
            values[samples.rows_seen_by(i), i] = regressor.at(points)[:, 0]
            laid_out.append(points)
        return values, laid_out


def softmax_trust(success: Array, temperature: float, clip: bool) -> Array:
    """Softmax over the kernels of their success; missing views (minus infinity) get 0."""
    missing = np.isneginf(success)
    values = np.clip(success, 0.0, 1.0) if clip else success
    return masked_softmax(np.where(missing, -np.inf, values) / temperature, ~missing)
