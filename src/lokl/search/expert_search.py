"""The automatic model: families of kernels are compared, and the best ones are fitted together."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from lokl import methods
from lokl._arrays import Array, is_sparse
from lokl._deadline import Deadline
from lokl._warnings import warn_once
from lokl.base.targets import target_spread
from lokl.kernels import Kernel
from lokl.search.calibration import Calibration
from lokl.search.columns import ColumnScaler
from lokl.search.cross_validation import sample_weight_params, spread_rows
from lokl.search.families import (
    EXACT_ROWS,
    SAME,
    Block,
    FamilyData,
    FamilyScore,
    FamilySearch,
    KernelFamily,
    TargetCoding,
    best_expert,
    common_cost,
    content_order,
    equally_good,
    expert_families,
    families_of,
    given_families,
    of_one_loss,
    solving_seconds,
)
from lokl.search.results import LeaderboardRow
from lokl.search.search import KernelSearchCV
from lokl.solvers.machines import Fold, restrict_folds

# With more samples, the final SVMs have the hinge or epsilon-insensitive loss, and with even more,
# one model for each region.
REGION_ROWS = 30_000
# Samples, folds and costs by which the cost of the final SVMs is chosen.
_COST_ROWS, _COST_FOLDS, _COSTS = 5_000, 3, tuple(2.0**power for power in range(-3, 10, 3))
# Share of the time for the comparison of families, and solutions of a vote for each view.
_SEARCH_SHARE, _FITS_OF_A_VOTE = 0.6, 3
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
    data : AutoData
    classes : array or None
        Sorted labels; None for regression.
    class_factors : array of shape (n_samples,)
        Factors of the weights by class.
    kernels : dict of str to Kernel, or None
        Kernels of the user.
    is_stored : bool
        Whether they are stored matrices.
    every_view : bool
        Whether every view has one kernel of its own.
    rule : str
        "best" for a single kernel, otherwise all that are equally good.
    settings : dict
        Settings of the fitted estimators.
    deadline : Deadline
    time_limit : float or None
    n_jobs : int or None
    """

    data: AutoData
    classes: Array | None
    class_factors: Array
    kernels: Mapping[str, Kernel] | None
    every_view: bool
    rule: str
    settings: Mapping[str, Any]
    deadline: Deadline
    time_limit: float | None
    n_jobs: int | None

    def run(self) -> Choice:
        """Return the chosen model, fitted to all samples that the deadline allows."""
        data = self.data
        # Subsets are chosen by the contents of samples, so their order does not matter.
        order = content_order(data.X)
        coding = TargetCoding.of(data.y, self.classes)
        if len(order) > EXACT_ROWS:
            order = spread_rows(order, coding.codes, EXACT_ROWS // 2)
        blocks = list(self._blocks())
        scaler = self._scaler(blocks).fit(data.X, sample_weight=data.weight)
        X = scaler.transform(data.X[order])
        samples = {
            block: X[:, part] for block, part in zip(blocks, scaler.view_slices(), strict=True)
        }
        if self.kernels is not None:
            # Their columns are those of all views side by side.
            samples = {blocks[0]: X}
        weight = np.ones(data.n_samples) if data.weight is None else data.weight
        family_data = FamilyData(
            samples,
            coding.take(order),
            (weight * self.class_factors)[order],
            data.take(order).folds,
        )
        families = [*self._families(samples)]
        left = self.deadline.remaining()
        deadline = Deadline(None if math.isinf(left) else _SEARCH_SHARE * left)
        search = FamilySearch(family_data, families, deadline, self.n_jobs, self._is_vote)
        family_data, scores = search.run()
        if not scores:
            raise ValueError("no kernel has finite values on these samples; scale the columns")
        groups = search.by_view(scores)
        if self._is_vote:
            n_errors = SAME if self._votes_on_classes and self.rule != "best" else 0.0
            chosen = [best_expert(group, family_data.weight, n_errors) for group in groups]
        else:
            chosen = equally_good(of_one_loss(scores, family_data.weight), family_data.weight, SAME)
            chosen = chosen[:1] if self.rule == "best" else chosen
        return self._fit(family_data, scores, chosen)

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

    def _fit(
        self, data: FamilyData, scores: Sequence[FamilyScore], chosen: Sequence[FamilyScore]
    ) -> Choice:
        """Fit the final model.

        Parameters
        ----------
        data : FamilyData
            Samples of the scores.
        scores, chosen : sequences of FamilyScore
            All families, and those of the final model.
        """
        decision = np.mean([score.decision for score in chosen], axis=0)
        if self.data.n_samples > EXACT_ROWS:
            model, rows, method = self._fit_many(chosen)
        else:
            seconds = solving_seconds(scores, data.n_samples, self.data.n_samples)
            model, rows, method = self._fit_exactly(chosen, seconds)
        table = [_row("one kernel", [score], data) for score in scores]
        final = _row(method, chosen, data)
        table.append(final)
        calibration, codes = None, data.coding.codes
        if codes is not None and self.classes is not None and not _has_probabilities(model):
            calibration = Calibration.learn(decision, codes, len(self.classes), data.weight)
        table.sort(key=lambda row: -row.score)
        return Choice(model, rows, method, final.score, calibration, table)

    def _model(self, chosen: Sequence[FamilyScore], estimator: Any) -> Pipeline:
        """Return an unfitted pipeline whose kernels are those of the chosen families."""
        used = list(dict.fromkeys(score.family.block for score in chosen))
        if self.kernels is not None:
            used = list(self._blocks())
            kernels = {score.name: score.kernel for score in chosen}
        else:
            slices = dict(zip(used, self._scaler(used).fit(self.data.X).view_slices(), strict=True))
            kernels = {score.name: score.kernel.on(slices[score.family.block]) for score in chosen}
        model = estimator.set_params(kernels=kernels)
        return Pipeline([("scale", self._scaler(used)), ("model", model)])

    def _estimator(self, stem: str, **settings: Any) -> Any:
        kind = "Regressor" if self.classes is None else "Classifier"
        estimator = getattr(methods, f"{stem}{kind}")(**settings)
        known = estimator.get_params(deep=False)
        return estimator.set_params(**{k: v for k, v in self.settings.items() if k in known})

    def _fit_exactly(
        self, chosen: Sequence[FamilyScore], seconds: float
    ) -> tuple[Pipeline, Array, str]:
        """Fit SVMs with the squared loss; one takes about so many seconds."""
        is_vote = self._is_vote
        method = "trusted vote" if is_vote else "expert average"
        if is_vote:
            # One cost for all: kernels of views have the same mean diagonal.
            estimator = self._estimator("TrustedVote", loss="squared", C=common_cost(chosen))
        else:
            factors = [score.cost for score in chosen]
            loss = chosen[0].svm_loss
            estimator = self._estimator("ExpertAverage", loss=loss, cost_factors=factors)
        n_solved = len(chosen) * (_FITS_OF_A_VOTE if is_vote else 1)
        rows = self._affordable_rows(n_solved * seconds)
        model = self._model(chosen, estimator)
        return self._fit_pipeline(model, rows), rows, method

    def _affordable_rows(self, seconds: float) -> Array:
        """Return the rows that can be fitted in the time that is left, with a warning if not all.

        Parameters
        ----------
        seconds : float
            Expected time of a fit to all samples.
        """
        n_samples = self.data.n_samples
        if self.time_limit is None:
            return np.arange(n_samples)
        left = max(self.deadline.remaining(), 0.05 * self.time_limit)
        count = max(int(n_samples * (left / max(seconds, 1e-9)) ** (1 / 3)), min(n_samples, 500))
        if count >= n_samples:
            return np.arange(n_samples)
        order = content_order(self.data.X)
        coding = TargetCoding.of(self.data.y, self.classes)
        rows = np.sort(spread_rows(order, coding.codes, count))
        warn_once(
            "fewer samples than given",
            f"time_limit={self.time_limit:g} seconds are too few for a fit on all {n_samples} "
            f"samples: the model was fitted on {len(rows)} of them; raise time_limit",
        )
        return rows

    def _fit_pipeline(self, model: Pipeline, rows: Array) -> Pipeline:
        data = self.data.take(rows)
        return model.fit(data.X, data.y, **sample_weight_params(model, data.weight))

    def _fit_many(self, chosen: Sequence[FamilyScore]) -> tuple[Pipeline, Array, str]:
        """Fit SVMs with sparse coefficients, or one for each region of very many samples."""
        data, is_vote = self.data, self._is_vote
        if data.n_samples > REGION_ROWS and not is_vote and self.kernels is None:
            return self._fit_regions()
        stem, method = ("TrustedVote", "trusted vote") if is_vote else ("UniformMKL", "UNIFORM")
        local = [score for score in chosen if score.family.form in _LOCAL_FORMS]
        kernels = chosen if is_vote else (local or chosen)[:_MOST_KERNELS]
        model = self._model(kernels, self._estimator(stem))
        rows = content_order(data.X)
        coding = TargetCoding.of(data.y, self.classes)
        part = np.sort(spread_rows(rows, coding.codes, _COST_ROWS))
        unit = 1.0 if self.classes is not None else target_spread(data.y, data.weight)
        left = self.deadline.remaining()
        search_class: Any = KernelSearchCV
        search = search_class(
            model,
            {"model__C": [unit * cost for cost in _COSTS]},
            cv=data.take(part).folds or _COST_FOLDS,
            refit=False,
            adaptive=True,
            time_limit=None if math.isinf(left) else max(0.3 * left, 1e-3),
            n_jobs=self.n_jobs,
        ).fit(data.X[part], data.y[part])
        model.set_params(**search.best_params_)
        growth = (data.n_samples / ((1 - 1 / _COST_FOLDS) * len(part))) ** 2
        seconds = growth * float(np.nanmax(search.cv_results_["mean_fit_time"]))
        rows = self._affordable_rows(seconds)
        return self._fit_pipeline(model, rows), rows, method

    def _fit_regions(self) -> tuple[Pipeline, Array, str]:
        """Fit one SVM in each region, on columns that are scaled by their importance."""
        from lokl import regions

        kind = "Regressor" if self.classes is None else "Classifier"
        model = getattr(regions, f"Region{kind}")(
            scale_features="shared",
            random_state=self.settings.get("random_state"),
            n_jobs=self.n_jobs,
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


def _row(method: str, scores: Sequence[FamilyScore], data: FamilyData) -> LeaderboardRow:
    """Return the row of the average of some families."""
    decision = np.mean([score.decision for score in scores], axis=0)
    values = data.coding.scores(decision)
    total = data.weight.sum()
    mean = float(data.weight @ values / total)
    error = float(np.sqrt(data.weight @ (values - mean) ** 2) / total)
    return LeaderboardRow(
        method,
        "; ".join(score.description for score in scores),
        scores[0].cost if len(scores) == 1 else None,
        mean,
        error,
        sum(score.seconds for score in scores),
        data.n_samples,
    )
