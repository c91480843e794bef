"""The automatic model: families of kernels are compared, and the best ones are fitted together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.class_weight import compute_sample_weight

from lokl import methods
from lokl._arrays import Array, is_sparse
from lokl._deadline import Deadline
from lokl._warnings import capture_warnings, warn_once
from lokl.base.survival import SurvivalMixin
from lokl.base.targets import target_spread
from lokl.kernels.dictionaries import named_kernels
from lokl.search.calibration import Calibration
from lokl.search.columns import ColumnScaler
from lokl.search.cross_validation import fit_weighted, spread_rows
from lokl.search.families import (
    EXACT_ROWS,
    SAME,
    Block,
    FamilyData,
    FamilySearch,
    KernelFamily,
    TargetCoding,
    best_expert,
    content_order,
    description,
    equally_good,
    expert_families,
    families_of,
    given_families,
    kernel_name,
    of_one_loss,
)
from lokl.search.results import Candidate, LeaderboardRow
from lokl.search.search import KernelSearchCV
from lokl.solvers.machines import Fold, restrict_folds

# With more samples, the final SVMs have the hinge or epsilon-insensitive loss, and with even more,
# one model for each region.
REGION_ROWS = 30_000
# Samples, folds and costs by which the cost of the final SVMs is chosen.
_COST_ROWS, _COST_FOLDS, _COSTS = 5_000, 3, tuple(2.0**power for power in range(-3, 10, 3))
# Shares of the time for the comparison of families and for the cost of the final SVMs, and
# solutions of a vote for each view.
_SEARCH_SHARE, _COST_SHARE, _FITS_OF_A_VOTE = 0.6, 0.3, 3
# Kernels of the final SVMs at most.
_MOST_KERNELS = 3
# Expected time of regions for each sample.
_SECONDS_PER_ROW = 1e-3
# Forms of kernels with sparse solutions of high rank.
_LOCAL_FORMS = ("laplacian", "rbf")


@dataclass(frozen=True, eq=False)
class AutoData:
    """Training samples of AutoMKL.

    Attributes
    ----------
    X : array or CSR matrix
        Encoded columns; NaN for missing values.
    y : array
    weight : array or None
    folds : list of (train, test), or None
        None for exact leave-one-out.
    views : dict of str to array of int, or None
        Encoded columns of each view.
    """

    X: Any
    y: Array
    weight: Array | None
    folds: list[Fold] | None
    views: Mapping[str, Array] | None

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    def take(self, rows: Array) -> "AutoData":
        """Return some of the samples, in the same folds; folds that become empty are dropped."""
        folds = None if self.folds is None else restrict_folds(rows, self.folds)
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, X=self.X[rows], y=self.y[rows], weight=weight, folds=folds)


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen model of AutoMKL, and what it was compared with.

    Attributes
    ----------
    model : Pipeline
        Fitted: scaling and model.
    rows : array of int
        Samples that it was fitted to.
    method : str
    score : float
        Held-out score.
    calibration : Calibration or None
        None for regression, and for models with probabilities of their own.
    table : list of LeaderboardRow
    """

    model: Pipeline
    rows: Array
    method: str
    score: float
    calibration: Calibration | None
    table: list[LeaderboardRow]


@dataclass(eq=False)
class ExpertSearch:
    """Families of kernels compared on some samples, and the best of them fitted to all.

    Attributes
    ----------
    auto : AutoMKL
        Its settings.
    data : AutoData
    settings : dict
        Settings of the fitted estimators.
    deadline : Deadline
    """

    auto: Any
    data: AutoData
    settings: Mapping[str, Any]
    deadline: Deadline

    def __post_init__(self) -> None:
        data, auto = self.data, self.auto
        self.classes = np.unique(data.y) if is_classifier(auto) else None
        self.is_survival = isinstance(auto, SurvivalMixin)
        if self.is_survival:
            self.coding = TargetCoding.of_times(data.y, data.weight)
        else:
            self.coding = TargetCoding.of(data.y, self.classes)
        # Subsets are chosen by the contents of samples, so their order does not matter.
        self.order = content_order(data.X)
        # Kernels of the user.
        self.kernels = None if auto.kernels is None else named_kernels(auto.kernels)
        self.every_view = auto.views_policy == "all"

    def run(self) -> Choice:
        """Return the chosen model, fitted to all samples that the deadline allows."""
        order = self.order
        if len(order) > EXACT_ROWS:
            order = spread_rows(order, self.coding.codes, EXACT_ROWS // 2)
        data = self._family_data(order)
        search = FamilySearch(
            data,
            [*self._families(data.blocks)],
            Deadline(self.deadline.share(_SEARCH_SHARE)),
            self.auto.n_jobs,
            self._is_vote,
        )
        data, found = search.run()
        if not found:
            raise ValueError("no kernel has finite values on these samples; scale the columns")
        is_best = self.auto.rule == "best"
        if self._is_vote:
            n_errors = SAME if self._votes_on_classes and not is_best else 0.0
            groups = search.by_view(found)
            chosen = [best_expert(group, data.weight, n_errors) for group in groups]
        else:
            chosen = equally_good(of_one_loss(found, data.weight), data.weight, SAME)
            chosen = chosen[:1] if is_best else chosen
        if len(self.order) > EXACT_ROWS:
            model, rows, method = self._fit_many(chosen)
        else:
            model, rows, method = self._fit_exactly(chosen, search, data)
        table = [
            _row("one kernel", [candidate], search.seconds_of([candidate]), data)
            for candidate in found
        ]
        final = _row(method, chosen, search.seconds_of(chosen), data)
        calibration, codes = None, data.coding.codes
        if codes is not None and self.classes is not None and not _has_probabilities(model):
            decision = mean_decision(chosen)
            calibration = Calibration.learn(decision, codes, len(self.classes), data.weight)
        table = sorted([*table, final], key=lambda row: -row.score)
        return Choice(model, rows, method, final.score, calibration, table)

    def _family_data(self, rows: Array) -> FamilyData:
        """Return some samples, on all scalings that are compared."""
        data, blocks = self.data, list(self._blocks())
        scaler = self._scaler(blocks).fit(data.X, sample_weight=data.weight)
        X = scaler.transform(data.X[rows])
        parts = zip(blocks, scaler.view_slices(), strict=True)
        samples = {block: X[:, part] for block, part in parts}
        if self.kernels is not None:
            # Their columns are those of all views side by side.
            samples = {blocks[0]: X}
        weight = np.ones(data.n_samples) if data.weight is None else data.weight
        if self.classes is not None:
            weight = weight * compute_sample_weight(self.auto.class_weight, data.y)
        return FamilyData(samples, self.coding.take(rows), weight[rows], data.take(rows).folds)

    @property
    def _is_vote(self) -> bool:
        """Whether the final model is a trusted vote."""
        return self.kernels is None and self.every_view and len(self._views) > 1

    @property
    def _votes_on_classes(self) -> bool:
        return self._is_vote and self.classes is not None

    @property
    def _views(self) -> Mapping[str, Array]:
        return self.data.views or {}

    def _blocks(self) -> Iterator[Block]:
        """Yield the blocks of columns on which kernels are compared."""
        X, views = self.data.X, self._views
        if self.kernels is not None:
            if not views:
                yield Block(None, None, "auto")
            yield from (Block(view, columns, "auto") for view, columns in views.items())
            return
        if not views or (len(views) > 1 and not self.every_view):
            yield from _scalings(X, None, None)
        for view, columns in views.items():
            is_complete = is_sparse(X) or not np.isnan(X[:, columns]).all(axis=1).any()
            if self.every_view or is_complete or len(views) == 1:
                # Explanations of a vote find columns of views at their places.
                if self._votes_on_classes:
                    # Ranks are bounded: noise far outside the training samples would be familiar.
                    yield Block(view, columns, "auto")
                else:
                    yield from _scalings(X, view, columns, categories=not self._is_vote)

    def _scaler(self, blocks: Sequence[Block]) -> ColumnScaler:
        is_stored = any(kernel.is_stored for kernel in (self.kernels or {}).values())
        return ColumnScaler(
            [block.columns for block in blocks],
            unit=False,
            scale=not is_stored,
            scaling=[block.scaling for block in blocks],
        )

    def _families(self, samples: Mapping[Block, Any]) -> Iterator[KernelFamily]:
        if self.kernels is not None:
            yield from given_families(next(iter(samples)), self.kernels)
            return
        families = [
            expert_families(block)
            if self._votes_on_classes
            else families_of(block, X.shape[1], is_sparse(X))
            for block, X in samples.items()
        ]
        # The most promising forms of all blocks first.
        for index in range(max(map(len, families))):
            yield from (own[index] for own in families if index < len(own))

    def _model(self, chosen: Sequence[Candidate], estimator: Any) -> Pipeline:
        """Return an unfitted pipeline whose kernels are those of the chosen families."""
        params = [candidate.params for candidate in chosen]
        used = list(dict.fromkeys(own["family"].block for own in params))
        if self.kernels is not None:
            used = list(self._blocks())
            kernels = {kernel_name(own): own["kernel"] for own in params}
        else:
            slices = dict(zip(used, self._scaler(used).fit(self.data.X).view_slices(), strict=True))
            kernels = {
                kernel_name(own): own["kernel"].on(slices[own["family"].block]) for own in params
            }
        model = estimator.set_params(kernels=kernels)
        return Pipeline([("scale", self._scaler(used)), ("model", model)])

    def _estimator(self, stem: str, **settings: Any) -> Any:
        estimator = getattr(methods, f"{stem}{self.auto._kind}")(**settings)
        known = estimator.get_params(deep=False)
        return estimator.set_params(**{k: v for k, v in self.settings.items() if k in known})

    def _fit_exactly(
        self, chosen: Sequence[Candidate], search: FamilySearch, data: FamilyData
    ) -> tuple[Pipeline, Array, str]:
        """Fit SVMs with the loss of the comparison."""
        seconds = len(chosen) * search.solution_seconds(data, self.data.n_samples)
        method = "expert average"
        if self._is_vote:
            # One cost for all: kernels of views have the same mean diagonal.
            cost, method = search.common_cost(chosen), "trusted vote"
            estimator = self._estimator("TrustedVote", loss="squared", C=cost)
            seconds *= _FITS_OF_A_VOTE
        else:
            factors = [candidate.params["C"] for candidate in chosen]
            loss = chosen[0].params["loss"]
            estimator = self._estimator("ExpertAverage", loss=loss, cost_factors=factors)
        rows = self._affordable_rows(seconds)
        return self._fit_pipeline(self._model(chosen, estimator), rows), rows, method

    def _affordable_rows(self, seconds: float) -> Array:
        """Return the rows that can be fitted in the time that is left, with a warning if not all.

        Parameters
        ----------
        seconds : float
            Expected time of a fit to all samples.
        """
        n_samples, time_limit = self.data.n_samples, self.auto.time_limit
        if time_limit is None:
            return np.arange(n_samples)
        left = max(self.deadline.remaining(), 0.05 * time_limit)
        count = max(int(n_samples * (left / max(seconds, 1e-9)) ** (1 / 3)), min(n_samples, 500))
        if count >= n_samples:
            return np.arange(n_samples)
        rows = np.sort(spread_rows(self.order, self.coding.codes, count))
        warn_once(
            "fewer samples than given",
            f"time_limit={time_limit:g} seconds are too few for a fit on all {n_samples} "
            f"samples: the model was fitted on {len(rows)} of them; raise time_limit",
        )
        return rows

    def _fit_pipeline(self, model: Pipeline, rows: Array) -> Pipeline:
        data = self.data.take(rows)
        fitted: Pipeline = fit_weighted(model, data.X, data.y, data.weight)
        return fitted

    def _fit_many(self, chosen: Sequence[Candidate]) -> tuple[Pipeline, Array, str]:
        """Fit SVMs with sparse coefficients, or one for each region of very many samples."""
        data, is_vote = self.data, self._is_vote
        has_regions = not (is_vote or self.is_survival) and self.kernels is None
        if data.n_samples > REGION_ROWS and has_regions:
            return self._fit_regions()
        stem, method = ("TrustedVote", "trusted vote") if is_vote else ("UniformMKL", "UNIFORM")
        local = [c for c in chosen if c.params["family"].form in _LOCAL_FORMS]
        kernels = chosen if is_vote else (local or chosen)[:_MOST_KERNELS]
        model = self._model(kernels, self._estimator(stem))
        part = np.sort(spread_rows(self.order, self.coding.codes, _COST_ROWS))
        unit = target_spread(data.y, data.weight) if is_regressor(self.auto) else 1.0
        search_class: Any = KernelSearchCV
        search = search_class(
            model,
            {"model__C": [unit * cost for cost in _COSTS]},
            cv=data.take(part).folds or _COST_FOLDS,
            refit=False,
            adaptive=True,
            time_limit=self.deadline.share(_COST_SHARE),
            n_jobs=self.auto.n_jobs,
        )
        # Its warnings are about a grid and a time limit that are not the user's.
        capture_warnings(search.fit, data.X[part], data.y[part])
        model.set_params(**search.best_params_)
        growth = (data.n_samples / ((1 - 1 / _COST_FOLDS) * len(part))) ** 2
        seconds = growth * float(np.nanmax(search.cv_results_["mean_fit_time"]))
        rows = self._affordable_rows(seconds)
        return self._fit_pipeline(model, rows), rows, method

    def _fit_regions(self) -> tuple[Pipeline, Array, str]:
        """Fit one SVM in each region, on columns that are scaled by their importance."""
        from lokl import regions

        model = getattr(regions, f"Region{self.auto._kind}")(
            scale_features="shared",
            random_state=self.settings.get("random_state"),
            n_jobs=self.auto.n_jobs,
        )
        block = Block(None, None, "auto")
        pipeline = Pipeline([("scale", self._scaler([block])), ("model", model)])
        rows = self._affordable_rows(_SECONDS_PER_ROW * self.data.n_samples)
        return self._fit_pipeline(pipeline, rows), rows, "regions"


def _has_probabilities(model: Pipeline) -> bool:
    return hasattr(model[-1], "predict_proba")


def _scalings(
    X: Any, view: str | None, columns: Array | None, categories: bool = True
) -> Iterator[Block]:
    """Yield the scalings of a view that differ from each other."""
    yield Block(view, columns, "auto")
    if is_sparse(X):
        return
    scaler = ColumnScaler([columns], unit=False, scaling="ranks, categories").fit(X)
    used = set(range(X.shape[1]) if columns is None else map(int, columns))
    has_ranks = not used.isdisjoint(scaler.ranks_.keys() - scaler.normal_scores_.keys())
    has_categories = categories and not used.isdisjoint(scaler.values_)
    if has_ranks:
        yield Block(view, columns, "ranks")
    if has_categories:
        yield Block(view, columns, "categories")
    if has_ranks and has_categories:
        yield Block(view, columns, "ranks, categories")


def mean_decision(candidates: Sequence[Candidate]) -> Array:
    """Return the mean of the held-out decisions of some candidates, (n_samples, n_tasks)."""
    decisions: Any = [candidate.held_out.decision for candidate in candidates]
    return np.asarray(np.mean(decisions, axis=0))


def _row(
    method: str, candidates: Sequence[Candidate], seconds: float, data: FamilyData
) -> LeaderboardRow:
    """Return the row of the average of some families."""
    values = data.coding.scores(mean_decision(candidates))
    total = data.weight.sum()
    mean = float(data.weight @ values / total)
    error = float(np.sqrt(data.weight @ (values - mean) ** 2) / total)
    return LeaderboardRow(
        method,
        "; ".join(map(description, candidates)),
        candidates[0].params["C"] if len(candidates) == 1 else None,
        mean,
        error,
        seconds,
        data.n_samples,
    )
