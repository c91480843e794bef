"""Fits on collections: sample, tree, shuffle by region, one task for each batch of regions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.utils import column_or_1d

from lokl._arrays import Array
from lokl._notices import Collected, together
from lokl.clustering.region_tree import Growth, with_branches
from lokl.distributed.batches import (
    Plan,
    facts_of,
    fit_batch,
    join_parts,
    search_in,
    split_block,
    spread_in,
)
from lokl.distributed.blocks import aligned, beside, samples, with_lengths
from lokl.distributed.cluster import Cluster, need_dask
from lokl.distributed.survey import Rows, Seen, look
from lokl.estimators._base.refit import publish
from lokl.estimators._base.settings import check_settings
from lokl.estimators._base.validation import ALL_ZERO
from lokl.models.regions import RegionModel
from lokl.regions import RegionClassifier
from lokl.regions.base import InRegions
from lokl.regions.divided import Divided, Searched
from lokl.regions.fitting import Fit, Learning, in_its_share, region_seed
from lokl.regions.tuning import rounded_spread

# Samples of a batch are held two or three times for a moment.
_BYTES_OF_BATCH = 32 * 2**20
# Batches for each thread of the cluster, so that the last ones do not keep it waiting.
_BATCHES_A_THREAD = 4


def fit(model: Any, X: Any, y: Any, sample_weight: Any = None, client: Any = None) -> Any:
    """Fit an estimator in regions on collections larger than the memory of any machine.

    A sample of at most 50,000 rows tells where regions are. Rows are then brought together by
    region, and one task learns in each batch of regions. The model is the one that ``model.fit``
    would give for the same samples in memory: regions and seeds depend on places of rows, not on
    chunks, workers or the order of work.

    Parameters
    ----------
    model : RegionClassifier or RegionRegressor
        It stays as it is. Its `n_jobs` has no meaning here.
    X : dask array or dask data frame of shape (n_samples, n_features)
        Blocks may be arrays, CSR matrices or data frames; some may be empty. It is read twice for
        the first cover and once for every other, and once more where its chunks have unknown sizes:
        ``X.persist()`` spares that where the cluster has the memory.
    y : dask array, dask series or array of shape (n_samples,), or (n_samples, n_targets)
        Chunks may differ from those of `X`.
    sample_weight : dask array, dask series or array of shape (n_samples,), optional
        A weight of 2 counts like the row written twice in its region, 0 like no row.
    client : distributed.Client or None, default=None
        None is the current client, or Dask's default scheduler where there is none.

    Returns
    -------
    fitted : RegionClassifier or RegionRegressor
        An ordinary estimator, which needs no Dask.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from lokl import RegionClassifier, UniformMKLClassifier, distributed
    >>> X, y = make_moons(2000, noise=0.2, random_state=0)
    >>> model = RegionClassifier(UniformMKLClassifier(["rbf"], C=10), max_region_size=500)
    >>> fitted = distributed.fit(model, da.from_array(X, chunks=(300, 2)), y)
    >>> bool(fitted.score(X, y) > 0.95)
    True
    """
    model = _unfitted(model)
    cluster = Cluster(client)
    with Collected():
        rows = _rows(cluster, model, X, y, sample_weight)
        seed = model._draw_seed()
        sampled = model._growth(seed, 0).sampled(rows.n_counted)
        seen = look(cluster, model, rows, sampled, not is_regressor(model))
        known, spread, n_tasks = _stated(model, seen, rows)

        def divide(growth: Growth) -> Divided:
            return InBatches(cluster, model, rows, seen, known.get("classes_"), growth)

        learned = model._learn(divide, seed, spread, n_tasks)
    model.n_features_in_ = seen.n_features
    if seen.columns is not None:
        model.feature_names_in_ = seen.columns
    publish(model, {**known, **learned})
    return model


def _unfitted(model: Any) -> InRegions:
    if not isinstance(model, InRegions):
        is_class = isinstance(model, type)
        kind = "RegionRegressor" if not is_class and is_regressor(model) else "RegionClassifier"
        shown = f"the class {model.__name__}" if is_class else type(model).__name__
        raise ValueError(
            "model must be a RegionClassifier or a RegionRegressor, each region of which fits "
            f"into a worker, got {shown}; give {kind}(estimator)"
        )
    fresh: InRegions = clone(model)
    check_settings(fresh)
    if fresh.stretch is not None:
        raise ValueError(
            f"stretch={fresh.stretch!r} is learned in memory only; fit a part of the rows there, "
            "multiply the columns by its stretch_, and give stretch=None"
        )
    fresh._check_estimator()
    return fresh


def _rows(cluster: Cluster, model: InRegions, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Bring samples, targets and weights into blocks of the same rows."""
    if y is None:
        raise ValueError(f"{type(model).__name__} needs y, got None")
    given = [samples(X), beside(y, "y")]
    if isinstance(model, RegionClassifier) and given[1].width:
        # Warns of one column, and refuses several.
        column_or_1d(np.empty((1, *given[1].width)), warn=True)
    if sample_weight is not None:
        given.append(beside(sample_weight, "sample_weight"))
    known = with_lengths(cluster, given)
    own = known[0].without_empty()
    if own.n_rows == 0:
        raise ValueError("X has no rows; a model needs samples")
    others = aligned(own, *known[1:])
    if sample_weight is None:
        return Rows(own, others[0], None, tuple(int(length or 0) for length in own.lengths))
    count = need_dask().delayed(_n_counted, pure=False)
    counted = cluster.compute([count(part) for part in others[1].parts])
    if not any(counted):
        raise ValueError(ALL_ZERO)
    return Rows(own, others[0], others[1], tuple(counted))


def _n_counted(weight: Any) -> int:
    return int(np.count_nonzero(np.asarray(weight) > 0))


def _stated(model: InRegions, seen: Seen, rows: Rows) -> tuple[dict[str, Any], float, int]:
    """Attributes that labels or targets tell, the spread of targets, and the number of tasks."""
    width = rows.y.width
    if seen.moments is not None:
        nothing = np.empty((0, *width))
        _, _, known = model._stated(nothing, np.empty(0))
        return known, rounded_spread(seen.moments.variance), _empty(nothing, None, 0).n_tasks
    # Twice, so that no class seems to have one sample only.
    labels = np.repeat(seen.labels, 2)
    weight = np.column_stack([seen.label_weights, np.zeros(len(seen.labels))]).ravel()
    _, codes, known = model._stated(labels, weight)
    return known, 1.0, _empty(labels, codes, len(seen.labels)).n_tasks


def _empty(y: Array, codes: Array | None, n_classes: int) -> Learning:
    return Learning(None, y, codes, n_classes, None)


class InBatches(Divided):
    """Samples divided on the workers of a cluster, some regions in each batch."""

    def __init__(
        self,
        cluster: Cluster,
        model: InRegions,
        rows: Rows,
        seen: Seen,
        classes: Array | None,
        growth: Growth,
    ):
        self._cluster, self._delayed = cluster, need_dask().delayed
        trunk = growth.trunk(seen.points, rows.n_counted)
        met = np.array([len(own) for own, _ in trunk.tree.divide(seen.points)])
        sizes = met * (seen.n_bytes / seen.points.shape[0])
        batches = _batches(sizes, cluster.n_threads)
        plan = Plan(model, growth, trunk, batches, classes)
        self._batches = self._shuffled(plan, rows)
        facts = cluster.compute([self._task(facts_of)(batch) for batch in self._batches])
        self.sizes = np.concatenate([fact.sizes for fact in facts])
        self.tree = with_branches(trunk.tree, [branch for f in facts for branch in f.branches])
        self._folds = [folds for fact in facts for folds in fact.have_folds]
        self._firsts = np.cumsum([0, *(len(fact.sizes) for fact in facts)])

    def _task(self, function: Any, **options: Any) -> Any:
        return self._delayed(function, pure=False, **options)

    def _shared(self, value: Any) -> Any:
        """A value that is in the graph once, however many tasks take it."""
        return self._delayed(value, pure=False, traverse=False)

    def _shuffled(self, plan: Plan, rows: Rows) -> list[Any]:
        """Bring rows together by batch, and keep them on the workers."""
        n_batches = len(plan.batches)
        parts = [
            [self._task(_picked)(split, number) for number in range(n_batches)]
            for split in rows.tasks(split_block, plan)
        ]
        shared, join = self._shared(plan), self._task(join_parts)
        return self._cluster.persist(
            [join(shared, number, [own[number] for own in parts]) for number in range(n_batches)]
        )

    def _where(self, place: int) -> tuple[Any, int]:
        """The batch of a region, and its place there."""
        number = int(np.searchsorted(self._firsts, place, side="right")) - 1
        return self._batches[number], place - int(self._firsts[number])

    def have_folds(self) -> Sequence[bool]:
        return self._folds

    def spreads(self, places: Sequence[int]) -> list[float]:
        return self._cluster.compute(
            [self._task(spread_in)(*self._where(place)) for place in places]
        )

    def searched(
        self, estimator: Any, grid: Any, places: Sequence[int], seed: tuple[int, ...]
    ) -> list[Searched]:
        shared = [self._shared(estimator), self._shared(grid)]
        tasks = [
            self._task(search_in)(*shared, region_seed(seed, place), *self._where(place))
            for place in places
        ]
        return [together(told) for told in self._cluster.compute(tasks)]

    def fitted(self, estimator: Any, fit: Fit, seed: tuple[int, ...]) -> list[RegionModel]:
        small, _ = in_its_share(estimator, self.sizes)
        shared = [self._shared(small), self._shared(fit)]
        tasks = [
            self._task(fit_batch)(*shared, seed, batch, int(first))
            for batch, first in zip(self._batches, self._firsts[:-1], strict=True)
        ]
        found: list[Any] = [None] * len(tasks)
        # From here on a batch is needed by its task alone.
        self._batches = []
        done = self._cluster.completed(tasks)
        del tasks
        for place, told in done:
            found[place] = told
        return [model for told in found for model in together((told.models, told.notices))]


def _picked(parts: Sequence[Any], number: int) -> Any:
    return parts[number]


def _batches(sizes: Array, n_threads: int) -> list[tuple[int, int]]:
    """Neighbouring regions in batches of some bytes: first, and behind the last.

    Parameters
    ----------
    sizes : array
        Bytes that are expected in each region.
    n_threads : int
        Tasks that run at a time.
    """
    most = min(_BYTES_OF_BATCH, sizes.sum() / (_BATCHES_A_THREAD * n_threads))
    batches: list[tuple[int, int]] = []
    first, size = 0, 0.0
    for place, own in enumerate(sizes):
        if place > first and size + own > most:
            batches.append((first, place))
            first, size = place, 0.0
        size += own
    return [*batches, (first, len(sizes))]
