"""Every kernel between all samples of a search, stored once for all folds and costs.

Methods that train a machine for each kernel by itself need nothing of the samples but the values of
single kernels. With these in memory, a fold reads its matrices instead of computing them, for
learning and for the samples that it leaves out.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._threads import one_pool
from lokl.estimators._base.old_names import value_of
from lokl.estimators._base.solver_choice import chosen_solver
from lokl.estimators.ldmkl import LDMKLClassifier, LDMKLRegressor
from lokl.estimators.swmkl import SwMKLClassifier, SwMKLRegressor
from lokl.gram import InnerProducts
from lokl.gram.gated_gram import MEGABYTE
from lokl.kernels import Kernel, Normalized, Precomputed
from lokl.kernels.presence import read_samples
from lokl.kernels.sameness import same_kernels
from lokl.selection.judged import sees_predictions_only
from lokl.selection.work import Task

_METHODS = (LDMKLClassifier, LDMKLRegressor, SwMKLClassifier, SwMKLRegressor)
# Share of the memory of an estimator for stored kernels; folds have the rest.
_SHARE = 0.5


class _Stored(Precomputed):
    """Values that were computed here: they need no check, and copies of it are itself."""

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        return self

    def __sklearn_clone__(self) -> "_Stored":
        return self

    def __deepcopy__(self, memo: Any) -> "_Stored":
        return self


def with_stored_kernels(task: Task, line: Sequence[int], costs: Sequence[str]) -> Task | None:
    """Return the same task on numbers of samples and stored kernels; None where it would not do.

    Parameters
    ----------
    task : Task
    line : sequence of int
        Candidates that are equal apart from `costs`.
    costs : sequence of str
        Names of parameters.
    """
    model = task.configured(line[0])
    if type(model) not in _METHODS or not sees_predictions_only(task.scorers):
        return None
    # A fold by itself, as of a pipeline, does not know how many others need memory.
    if len(task.splits) < 2:
        return None
    try:
        data = copy(model)._read(task.X, task.y, task.fit_params.get("sample_weight"))
        stored = _store(task, model, data)
    except Exception:
        # Whatever is wrong is told by the fits, candidate by candidate.
        return None
    if stored is None:
        return None
    left = (1.0 - _SHARE) * model.cache_size
    return replace(
        task,
        estimator=model.set_params(kernels=stored, cache_size=left),
        candidates=[
            {name: value for name, value in candidate.items() if name in costs}
            for candidate in task.candidates
        ],
        X=np.arange(len(data.weight), dtype=float)[:, np.newaxis],
    )


def _store(task: Task, model: Any, data: Any) -> dict[str, Kernel] | None:
    """Compute the kernels of a model between all samples; None where folds would differ."""
    if isinstance(value_of(model, "success_kernel"), Kernel) or model.solver != "exact":
        return None
    trains = [train for train, _ in task.splits]
    pairs = [_without_scale(kernel) for kernel in data.kernels.values()]
    cores = [core for core, _ in pairs]
    folds = [_bound(data, cores, train) for train in trains]
    if not all(same_kernels(folds[0], bound) for bound in folds[1:]):
        return None
    dtype = chosen_solver(model).inner_products(data.X[trains[0]]).dtype
    room = _SHARE * model.cache_size * MEGABYTE
    n_samples = len(data.weight)
    if len(cores) * n_samples**2 * (8 if dtype == "float64" else 4) > room:
        return None
    samples = read_samples(folds[0], list(data.kernels), data.X)
    if samples.present is not None:
        return None
    stored: dict[str, Kernel] = {}
    with one_pool(n_samples):
        for name, kernel, (_, how) in zip(data.kernels, folds[0], pairs, strict=True):
            inner = InnerProducts(samples.filled, cache_size=np.inf, dtype=dtype)
            values = _Stored(inner.gated([kernel]).whole)
            stored[name] = values if how is None else Normalized(values, how)
    return stored


def _without_scale(kernel: Kernel) -> tuple[Kernel, Any]:
    """Return a kernel without the scale that each fold learns for itself, and what scale it is."""
    if isinstance(kernel, Normalized) and kernel.how != "unit_diag" and kernel.scale is None:
        return kernel.kernel, kernel.how
    return kernel, None


def _bound(data: Any, kernels: Sequence[Kernel], train: Array) -> list[Kernel]:
    """Bind kernels to the samples of a fold that count."""
    rows = train[data.weight[train] > 0]
    frame = None if data.frame is None else data.frame.iloc[rows]
    return [kernel.bind(data.X[rows], data.weight[rows], frame) for kernel in kernels]
