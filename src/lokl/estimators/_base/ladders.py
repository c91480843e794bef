"""Gaussian kernels of several widths that miss the data: a warning says where to extend them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lokl._arrays import as_samples, squared_norms
from lokl._notices import tell
from lokl._samples import Samples
from lokl.kernels import Kernel
from lokl.kernels.base import GAUSSIAN
from lokl.kernels.columns import take_columns

# Gamma times the median squared distance of samples: beyond the first, hardly any two samples are
# similar; below the second, all are.
_NARROW, _WIDE = 30.0, 0.003
# Rows that distances are measured on.
_ROWS = 200
# Share of a ladder's weight on one end that says the best width lies beyond; and the least share
# of all weight that a ladder must have to be worth a word.
_AT_THE_END, _WORTH_A_WORD = 0.95, 0.05
# Rungs that are suggested beyond an end.
_MORE = 4


def warn_of_useless_widths(kernels: Sequence[Kernel], samples: Samples) -> None:
    """Warn where all Gaussian kernels of the same columns are far too narrow or too wide."""
    for columns, gammas in _ladders(kernels, 2).items():
        numbers, widths = list(gammas), np.array(list(gammas.values()))
        rows = samples.rows_seen_by(numbers[0])
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).astype(np.intp)]
        seen = samples.filled[rows]
        if columns is not None:
            seen = take_columns(seen, np.array(columns, dtype=np.intp))
        distance = _median_distance(seen)
        if distance == 0:
            continue
        power = float(np.log2(1.0 / distance))
        if widths[0] * distance > _NARROW:
            what, remedy = "narrow for the data that hardly any two samples are similar", "low"
        elif widths[-1] * distance < _WIDE:
            what, remedy = "wide for the data that all samples look alike", "high"
        else:
            continue
        edge = int(np.floor(power)) if remedy == "low" else int(np.ceil(power))
        tell(
            f"widths on {columns}",
            f"{len(widths)} Gaussian kernels of the same columns, gamma from {widths[0]:.3g} to "
            f"{widths[-1]:.3g}, are all so {what}: the median squared distance is {distance:.3g}. "
            f"Scale the data, or extend the kernels, for example by rbf_ladder({remedy}={edge})",
        )


def warn_of_weight_at_the_end(kernels: Sequence[Kernel], weights: Any) -> None:
    """Warn where a global method puts nearly all weight of a ladder on its first or last rung."""
    if np.shape(weights) != (len(kernels),):
        return
    for gammas in _ladders(kernels, 3).values():
        widths, shares = np.array(list(gammas.values())), weights[list(gammas)]
        if shares.sum() <= _WORTH_A_WORD * np.sum(weights) or len(set(widths)) < len(widths):
            continue
        place = int(np.argmax(shares))
        if place not in (0, len(widths) - 1) or shares[place] <= _AT_THE_END * shares.sum():
            continue
        power = int(np.round(np.log2(widths[place])))
        beyond = f"low={power - _MORE}" if place == 0 else f"high={power + _MORE}"
        end = "widest" if place == 0 else "narrowest"
        tell(
            f"weight on gamma={widths[place]}",
            f"{shares[place] / shares.sum():.0%} of the weight of {len(widths)} Gaussian kernels "
            f"is on the {end}, gamma={widths[place]:.3g}: the best width may lie beyond. Extend "
            f"the kernels, for example by rbf_ladder({beyond})",
        )


def _ladders(kernels: Sequence[Kernel], least: int) -> dict[Any, dict[int, float]]:
    """Gammas by the number of the kernel, in rising order, of kernels of the same columns."""
    found: dict[Any, dict[int, float]] = {}
    for i, kernel in enumerate(kernels):
        term = kernel.term()
        if term is None or term.formula.operation != GAUSSIAN:
            continue
        if term.factor is None and term.stretch is None:
            found.setdefault(term.columns, {})[i] = term.formula.gamma
    return {
        columns: dict(sorted(gammas.items(), key=lambda item: item[1]))
        for columns, gammas in found.items()
        if len(gammas) >= least
    }


def _median_distance(X: Any) -> float:
    """Median squared distance of samples that are some rows apart, 0 where that is rounding.

    Row by row and without a matrix product, whose threads would take the cores from the fit.
    """
    n = X.shape[0]
    X = as_samples(X)
    places = np.arange(n)
    steps = {1, n // 7, n // 3, n // 2} - {0}
    if n < 2:
        return 0.0
    distances = np.concatenate([squared_norms(X - X[(places + step) % n]) for step in steps])
    median = float(np.median(distances))
    return median if median > 1e-13 * float(distances.max()) else 0.0
