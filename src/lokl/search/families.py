"""Families of kernels, compared by leave-one-out decisions with the squared loss.

A family is one form of kernel on one scaling of the columns of one view. One factorisation of a
Gram matrix gives the exact leave-one-out decisions at all costs, so that a family is compared at
several widths and costs without folds and without random numbers.

The squared loss also penalises decisions that are correct by more than the margin, so that classes
between two others are not separated from both. The squared hinge does not. Its solution is the one
of the squared loss on the samples inside the margin, which takes several factorisations for each
cost. So it is tried on the best kernels only, and used if it is much better.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from lokl._arrays import Array, is_sparse
from lokl._deadline import Deadline
from lokl._survival import deviance_residuals, read_target
from lokl._threads import single_threaded_blas, threads_for
from lokl.kernels import RBF, AdditiveLaplacian, Kernel, Laplacian, Linear
from lokl.metrics import concordance_values
from lokl.search.cross_validation import spread_rows
from lokl.search.evaluation import Evaluation
from lokl.search.results import Candidate, errors_behind
from lokl.search.tasks import (
    FitBackend,
    FoldResult,
    FoldResults,
    Params,
    SearchTask,
    group_by_backend,
)
from lokl.solvers.machines import Fold, restrict_folds
from lokl.solvers.squared import squared_hinge_path, squared_path

# Samples on which widths and costs are chosen, and on which families are compared.
WIDTH_ROWS, EXACT_ROWS = 600, 5_000
# Powers of two of costs, and of widths in units of the reciprocal of the median distance.
COSTS = tuple(2.0**power for power in range(-6, 15, 2))
_WIDTHS, _ADDITIVE_WIDTHS = (-8, -6, -4, -2, 0, 2), (-2, 0, 2)
# Values of wider kernels are all nearly equal: no sample would be unfamiliar to them.
_EXPERT_WIDTHS = (-2, 0, 2)
# Costs and powers of widths next to the best ones, for many samples.
_NEAR_COSTS, _NEAR_HINGE_COSTS, _NARROWER = (0.25, 1.0, 4.0), (1.0, 4.0), 2
# Families within so many standard errors of the best are equally good; with few samples, more are
# compared on all samples.
SAME, CLOSE = 2.0, 4.0
# Costs of the first trial of the squared hinge, in units of the best with the squared loss, the
# power of a wide kernel, and the lowest cost of a full comparison.
_TRIAL_COSTS, _WIDE, _LEAST_HINGE_COST = (1.0, 16.0, 256.0), -4, 1.0
# Families that are compared on all samples at most.
_MOST_FAMILIES = 8
# Columns of an additive kernel at most; with more it is nearly linear.
_MOST_ADDITIVE = 200
# Time of all costs by one eigendecomposition, in units of a solution by Cholesky factorisation.
_OF_A_PATH = 6
# Factorisations for one solution with the squared hinge.
_STEPS_OF_A_HINGE = 3
# Samples above which fewer families and widths are compared on all of them.
_MANY_ROWS = 2_000
# Factor that turns small differences of values into large ones of their sines.
_SCATTER = 997.0
# Least share of a class in probabilities.
_LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class TargetCoding:
    """Targets as columns of numbers, and the loss and score of decisions.

    Attributes
    ----------
    targets : array of shape (n_samples, n_tasks)
        1 and -1 for classes (one column for two classes), otherwise the numeric targets.
    codes : array of int of shape (n_samples,), or None
        Index of the class; None for regression and survival.
    outcome : structured array of shape (n_samples,), or None
        Events and times, of which the targets are deviance residuals; None without.
    """

    targets: Array
    codes: Array | None
    outcome: Array | None = None

    @classmethod
    def of(cls, y: Array, classes: Array | None) -> "TargetCoding":
        """Return the coding of labels, or of numeric targets if `classes` is None."""
        if classes is None:
            return cls(np.asarray(y, dtype=float).reshape(len(y), -1), None)
        codes = np.searchsorted(classes, y)
        targets = np.where(codes[:, np.newaxis] == np.arange(len(classes)), 1.0, -1.0)
        return cls(targets[:, 1:] if len(classes) == 2 else targets, codes)

    @classmethod
    def of_times(cls, y: Array, weight: Array | None) -> "TargetCoding":
        """Return the coding of events and times, (n_samples, 2)."""
        outcome = read_target(y)
        residuals = deviance_residuals(outcome, np.ones(len(y)) if weight is None else weight)
        return cls(residuals[:, np.newaxis], None, outcome)

    def take(self, rows: Array) -> "TargetCoding":
        """Return the coding of some samples."""
        parts = (None if part is None else part[rows] for part in (self.codes, self.outcome))
        return TargetCoding(self.targets[rows], *parts)

    def losses(self, decision: Array) -> Array:
        """Return the Brier score or the squared error of each sample, (n_samples,)."""
        if self.codes is None:
            return np.asarray(((decision - self.targets) ** 2).sum(axis=1))
        P = class_shares(decision)
        error = P - (self.codes[:, np.newaxis] == np.arange(P.shape[1]))
        return np.asarray((error**2).sum(axis=1))

    def scores(self, decision: Array) -> Array:
        """Return whether each sample is classified correctly, or its share of the score.

        The score is R squared, or the concordance index.
        """
        if self.outcome is not None:
            return concordance_values(self.outcome, decision[:, 0])
        if self.codes is not None:
            return np.asarray(class_shares(decision).argmax(axis=1) == self.codes, dtype=float)
        spread = ((self.targets - self.targets.mean(axis=0)) ** 2).mean(axis=0)
        error = (decision - self.targets) ** 2 / np.where(spread > 0, spread, 1.0)
        return np.asarray(1.0 - error.mean(axis=1))


def class_shares(decision: Array) -> Array:
    """Return decisions about indicators as probabilities, (n_samples, n_classes)."""
    if decision.shape[1] == 1:
        decision = np.column_stack([-decision[:, 0], decision[:, 0]])
    P = np.clip(0.5 * (1.0 + decision), _LEAST, None)
    return np.asarray(P / P.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Block:
    """Scaled columns of one view.

    Attributes
    ----------
    view : str or None
        None for all columns.
    columns : array of int or None
        Encoded columns; None for all.
    scaling : str
        As in :class:`ColumnScaler`.
    """

    view: str | None
    columns: Array | None
    scaling: str


# Takes samples with their weights; returns a function from powers of the width to kernels.
KernelMaker = Callable[[Any, Array], Callable[[float], Kernel]]


@dataclass(frozen=True, eq=False)
class KernelFamily:
    """One form of kernel on one block.

    Attributes
    ----------
    block : Block
    form : str
    powers : tuple of float
        Powers of two of the widths to compare.
    make : KernelMaker
    """

    block: Block
    form: str
    powers: tuple[float, ...]
    make: KernelMaker


def _scaled_width(kind: Callable[..., Kernel]) -> KernelMaker:
    """Return a maker of kernels with a width relative to the median distance."""

    def make(X: Array, weight: Array) -> Callable[[float], Kernel]:
        gamma = kind("median").bind(X, weight).gamma
        return lambda power: kind(gamma * 2.0**power)

    return make


def _linear(X: Array, weight: Array) -> Callable[[float], Kernel]:
    return lambda power: Linear().normalized("mean_diag")


def _additive(X: Array, weight: Array) -> Callable[[float], Kernel]:
    return lambda power: AdditiveLaplacian(2.0**power)


def families_of(block: Block, n_columns: int, sparse: bool) -> list[KernelFamily]:
    """Return the families of a block, the most promising first."""
    families = [
        KernelFamily(block, "laplacian", _WIDTHS, _scaled_width(Laplacian)),
        KernelFamily(block, "rbf", _WIDTHS, _scaled_width(RBF)),
        KernelFamily(block, "linear", (0.0,), _linear),
    ]
    if 1 < n_columns <= _MOST_ADDITIVE and not sparse:
        families.append(KernelFamily(block, "additive", _ADDITIVE_WIDTHS, _additive))
    return families


def expert_families(block: Block) -> list[KernelFamily]:
    """Return the families for an expert of a vote on classes: kernels that decay with distance."""
    kinds = {"laplacian": Laplacian, "rbf": RBF}
    return [
        KernelFamily(block, form, _EXPERT_WIDTHS, _scaled_width(kind))
        for form, kind in kinds.items()
    ]


def given_families(block: Block, kernels: Mapping[str, Kernel]) -> list[KernelFamily]:
    """Return one family for each kernel of a user."""

    def unchanged(kernel: Kernel) -> KernelMaker:
        return lambda X, weight: lambda power: kernel

    return [KernelFamily(block, name, (0.0,), unchanged(k)) for name, k in kernels.items()]


def kernel_name(params: Params) -> str:
    """Return the name of the kernel of a candidate."""
    block, form = params["family"].block, params["family"].form
    width = "" if len(params["family"].powers) == 1 else f"(2^{params['power']:g})"
    scaling = "" if block.scaling == "auto" else f", {block.scaling}"
    view = "" if block.view is None else f"{block.view}: "
    return f"{view}{form}{width}{scaling}"


def has_margin(candidate: Candidate) -> bool:
    """Return whether decisions beyond the margin have no loss."""
    return candidate.params["loss"] == "squared_hinge"


def description(candidate: Candidate) -> str:
    """Return the name of the kernel, and the loss if it is not the squared one."""
    return kernel_name(candidate.params) + (", squared hinge" if has_margin(candidate) else "")


def equally_good(
    candidates: Sequence[Candidate], weight: Array, n_errors: float
) -> list[Candidate]:
    """Return the candidates within some standard errors of the best, best first.

    Parameters
    ----------
    candidates : sequence of Candidate
        Evaluated on the same samples.
    weight : array of shape (n_samples,)
    n_errors : float
    """
    ranked = sorted(candidates, key=lambda candidate: -candidate.mean())
    rows: list[Any] = [candidate.held_out.row_scores for candidate in ranked]
    behind = [errors_behind(scores, rows[0], weight) for scores in rows]
    return [c for c, errors in zip(ranked, behind, strict=True) if errors <= n_errors]


def of_one_loss(
    candidates: Sequence[Candidate], weight: Array, n_errors: float = CLOSE
) -> list[Candidate]:
    """Return the candidates with the squared hinge if it is clearly better, else the others."""
    is_better = all(map(has_margin, equally_good(candidates, weight, n_errors)))
    return [candidate for candidate in candidates if has_margin(candidate) == is_better]


def best_expert(
    candidates: Sequence[Candidate], weight: Array, n_errors: float = SAME
) -> Candidate:
    """Return the Laplacian kernel if it is as good as the best of a view, otherwise the best."""
    near = equally_good(candidates, weight, n_errors)
    return next((c for c in near if c.params["family"].form == "laplacian"), near[0])


@dataclass(frozen=True, eq=False)
class FamilyData:
    """Samples on which families are compared.

    Attributes
    ----------
    blocks : dict of Block to {array, CSR matrix}
        Scaled samples of each block.
    coding : TargetCoding
    weight : array of shape (n_samples,)
    folds : list of (train, test), or None
        None for exact leave-one-out.
    """

    blocks: Mapping[Block, Any]
    coding: TargetCoding
    weight: Array
    folds: list[Fold] | None

    @property
    def n_samples(self) -> int:
        return len(self.weight)

    @property
    def rows(self) -> Array:
        """All rows."""
        return np.arange(self.n_samples)

    def take(self, rows: Array) -> "FamilyData":
        """Return some of the samples."""
        folds = None if self.folds is None else restrict_folds(rows, self.folds)
        blocks = {block: X[rows] for block, X in self.blocks.items()}
        return FamilyData(blocks, self.coding.take(rows), self.weight[rows], folds)

    def held_out(self, K: Array, costs: Sequence[float], svm_loss: str = "squared") -> Array:
        """Return held-out decisions at all costs, (n_costs, n_samples, n_tasks).

        They are 0 for samples that are in no test fold.
        """
        Y, weight = self.coding.targets, self.weight
        solve = squared_path if svm_loss == "squared" else squared_hinge_path
        if self.folds is None:
            return solve(K, Y, costs, weight).loo
        decisions = np.zeros((len(costs), *Y.shape))
        count = np.zeros(len(Y))
        for train, test in self.folds:
            if not (weight[train] > 0).any():
                continue
            path = solve(K[np.ix_(train, train)], Y[train], costs, weight[train])
            decisions[:, test] += np.matmul(K[np.ix_(test, train)], path.coef)
            decisions[:, test] += path.intercept[:, np.newaxis]
            count[test] += 1
        return np.asarray(decisions / np.maximum(count, 1)[:, np.newaxis])

    def decisions(
        self, block: Block, kernel: Kernel, costs: Sequence[float], svm_loss: str
    ) -> Array:
        """Return held-out decisions of a kernel of a block, (n_costs, n_samples, n_tasks).

        Samples that lack the view get the mean target. NaN if the kernel is not finite.
        """
        present = has_view(self.blocks[block])
        part = self if present.all() else self.take(np.flatnonzero(present))
        X, Y = part.blocks[block], self.coding.targets
        decisions = np.empty((len(costs), *Y.shape))
        decisions[:] = np.average(Y, axis=0, weights=self.weight)
        K = kernel.bind(X, part.weight)(X)
        is_finite = np.isfinite(K).all()
        decisions[:, present] = part.held_out(K, costs, svm_loss) if is_finite else np.nan
        return decisions


class HeldOutBackend(FitBackend):
    """Kernels of families, at all costs at once. The samples of the task are `FamilyData`.

    Attributes
    ----------
    seconds : list of float
        Time of one solution at one cost, for each kernel.
    """

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def supports(self, task: SearchTask, candidate: int) -> bool:
        return True

    def groups(self, task: SearchTask, candidates: list[int]) -> list[list[int]]:
        by_kernel: dict[Any, list[int]] = {}
        for candidate in candidates:
            params = task.candidates[candidate]
            by_kernel.setdefault((id(params["kernel"]), params["loss"]), []).append(candidate)
        return [*by_kernel.values()]

    def max_concurrent_groups(self, task: SearchTask, candidates: list[int]) -> int:
        return threads_for(task.n_jobs)

    def run(self, task: SearchTask, candidates: list[int], threads: int) -> FoldResults:
        started = time.monotonic()
        data, params = task.X, task.candidates[candidates[0]]
        costs = [task.candidates[candidate]["C"] for candidate in candidates]
        with np.errstate(all="ignore"):
            block, kernel, svm_loss = params["family"].block, params["kernel"], params["loss"]
            decisions = data.decisions(block, kernel, costs, svm_loss)
            row_scores = [-data.coding.losses(decision) for decision in decisions]
            means = np.average(row_scores, axis=1, weights=data.weight)
        seconds = time.monotonic() - started
        n_solutions = len(costs) if len(costs) <= len(_NEAR_COSTS) else _OF_A_PATH
        if svm_loss == "squared_hinge":
            n_solutions = len(costs) * _STEPS_OF_A_HINGE * decisions.shape[2]
        self.seconds.append(seconds / n_solutions)
        for index, candidate in enumerate(candidates):
            mean, of_rows = float(means[index]), row_scores[index]
            times = seconds / len(costs), 0.0
            yield [FoldResult(candidate, 0, mean, None, *times, None, decisions[index], of_rows)]


def has_view(X: Any) -> Array:
    """Return which samples have a view, (n_samples,)."""
    if is_sparse(X) or not X.shape[1]:
        return np.ones(X.shape[0], dtype=bool)
    return np.asarray(~np.isnan(X[:, 0]))


@dataclass(eq=False)
class FamilySearch:
    """Comparison of families: widths and costs on some samples, the best families on all.

    Attributes
    ----------
    data : FamilyData
    families : sequence of KernelFamily
        The most promising first; with a time limit, the last ones may be left out.
    deadline : Deadline
    n_jobs : int or None
        Number of threads.
    each_view : bool
        Whether only families of the same view are compared with each other.
    seconds : dict
        Time of each family, by family and loss.
    scores_by_cost : dict of KernelFamily to array of shape (n_costs,)
        Mean scores of the best width of each family at all costs.
    """

    data: FamilyData
    families: Sequence[KernelFamily]
    deadline: Deadline
    n_jobs: int | None = None
    each_view: bool = False
    seconds: dict[Any, float] = field(default_factory=lambda: defaultdict(float))
    scores_by_cost: dict[KernelFamily, Array] = field(default_factory=dict)

    def run(self) -> tuple[FamilyData, list[Candidate]]:
        """Return the samples on which families were compared last, and the best of each.

        If the deadline allows, these are all samples.
        """
        self._backend = HeldOutBackend()
        part = self.data
        if part.n_samples > WIDTH_ROWS:
            part = part.take(spread_rows(part.rows, part.coding.codes, WIDTH_ROWS))
        members = chain.from_iterable(self._at_all_widths(part, f) for f in self.families)
        found = self._evaluate(part, members, required=True)
        found += self._with_squared_hinge(part, found)
        groups = self.by_view(found)
        most = self._affordable(part) // len(groups) if found else 0
        if part is self.data or not most:
            return part, found
        close = [c for group in groups for c in equally_good(group, part.weight, CLOSE)[:most]]
        near = chain.from_iterable(self._near(part, candidate) for candidate in close)
        return self.data, self._evaluate(self.data, near, required=True)

    def solution_seconds(self, data: FamilyData, n_samples: int) -> float:
        """Return the expected time of a solution for `n_samples`, by those for some samples."""
        seconds = float(np.median(self._backend.seconds))
        return max(seconds, 1e-4) * (n_samples / data.n_samples) ** 3

    def common_cost(self, candidates: Sequence[Candidate]) -> float:
        """Return the cost at which the mean loss of some families is lowest."""
        scores = [self.scores_by_cost[candidate.params["family"]] for candidate in candidates]
        return COSTS[int(np.argmax(np.mean(scores, axis=0)))]

    def seconds_of(self, candidates: Sequence[Candidate]) -> float:
        """Return the time of the families of some candidates."""
        keys = [(candidate.params["family"], candidate.params["loss"]) for candidate in candidates]
        return sum(self.seconds[key] for key in keys)

    def by_view(self, candidates: Sequence[Candidate]) -> list[list[Candidate]]:
        """Return the candidates that are compared with each other."""
        groups: dict[str | None, list[Candidate]] = {}
        for candidate in candidates:
            view = candidate.params["family"].block.view if self.each_view else None
            groups.setdefault(view, []).append(candidate)
        return [*groups.values()] or [[]]

    def _evaluate(
        self, data: FamilyData, members: Iterable[Params], required: bool = False
    ) -> list[Candidate]:
        """Return the best member of each family that is evaluated before the deadline.

        With `required`, the first family of each view is evaluated even after the deadline.
        """
        params = [dict(member) for member in members]
        first: dict[str | None, KernelFamily] = {}
        families = [member["family"] for member in params] if required else []
        task = SearchTask(None, params, data, None, [(data.rows, data.rows)], n_jobs=self.n_jobs)
        evaluation = Evaluation(
            task,
            self.deadline,
            required={
                index
                for index, family in enumerate(families)
                if first.setdefault(family.block.view, family) is family
            },
        )
        with single_threaded_blas():
            evaluation.run(group_by_backend(task, [self._backend], range(len(params))))
        found: dict[Any, list[Candidate]] = defaultdict(list)
        for index in sorted(evaluation.complete):
            candidate = Candidate(index, params[index], evaluation.results[index])
            key = candidate.params["family"], candidate.params["loss"]
            self.seconds[key] += candidate.seconds
            if not np.isnan(candidate.mean()):
                found[key].append(candidate)
        best = {key: max(family, key=Candidate.mean) for key, family in found.items()}
        for (family, _), candidate in best.items():
            kernel = candidate.params["kernel"]
            scores = [c.mean() for c in found[family, "squared"] if c.params["kernel"] is kernel]
            if len(scores) == len(COSTS):
                self.scores_by_cost[family] = np.array(scores)
        return [*best.values()]

    def _at_all_widths(self, data: FamilyData, family: KernelFamily) -> list[Params]:
        kernel_at = self._kernels(data, family)
        kernels = [(power, kernel_at(power)) for power in family.powers]
        return _members(family, kernels, COSTS, "squared")

    def _with_hinge(self, data: FamilyData, candidate: Candidate) -> list[Params]:
        """Return members of a family with the squared hinge, at widths near that of a candidate."""
        family, best = candidate.params["family"], candidate.params["power"]
        kernel_at = self._kernels(data, family)
        kernels = [
            (power, kernel_at(power))
            for power in family.powers
            # All kernels that are wider than a wide one.
            if power <= best + _NARROWER and (power >= best - _NARROWER or best <= _WIDE)
        ]
        costs = [cost for cost in COSTS if cost >= _LEAST_HINGE_COST]
        return _members(family, kernels, costs, "squared_hinge")

    def _near(self, part: FamilyData, on_part: Candidate) -> list[Params]:
        """Return members near the best width and cost on some samples, for all samples."""
        params, family = on_part.params, on_part.params["family"]
        kernels = [(params["power"], params["kernel"])]
        factors: Sequence[float] = _NEAR_COSTS
        if has_margin(on_part):
            factors = _NEAR_HINGE_COSTS
        # More samples can resolve a narrower kernel.
        elif len(family.powers) > len(_ADDITIVE_WIDTHS) and self.data.n_samples <= _MANY_ROWS:
            power = params["power"] + _NARROWER
            kernels.append((power, self._kernels(part, family)(power)))
        return _members(family, kernels, [params["C"] * f for f in factors], params["loss"])

    def _with_squared_hinge(
        self, data: FamilyData, candidates: Sequence[Candidate]
    ) -> list[Candidate]:
        """Return the best families with the squared hinge, as far as it is better."""
        if data.coding.codes is None or self.each_view or not candidates:
            return []
        near = equally_good(candidates, data.weight, SAME)
        # Wide RBF kernels approximate polynomials of every degree.
        smooth = [c for c in candidates if c.params["family"].form == "rbf"]
        tried = list(dict.fromkeys([near[0], *sorted(smooth, key=lambda c: -c.mean())[:1]]))
        members = chain.from_iterable(self._trial(data, candidate) for candidate in tried)
        trials = self._evaluate(data, members)
        if not has_margin(of_one_loss([*trials, near[0]], data.weight, SAME)[0]):
            return []

        def with_hinge(some: Iterable[Candidate]) -> list[Candidate]:
            members = (self._with_hinge(data, candidate) for candidate in some)
            return self._evaluate(data, chain.from_iterable(members))

        found = with_hinge(trials)
        if has_margin(of_one_loss([*found, near[0]], data.weight)[0]):
            found += with_hinge(candidate for candidate in near if candidate not in tried)
        return found

    def _trial(self, data: FamilyData, candidate: Candidate) -> list[Params]:
        """Return members with the squared hinge, at the best width and at a wide one."""
        params, family = candidate.params, candidate.params["family"]
        kernels = [(params["power"], params["kernel"])]
        if _WIDE in family.powers:
            kernels.append((_WIDE, self._kernels(data, family)(_WIDE)))
        costs = [min(params["C"] * factor, COSTS[-1]) for factor in _TRIAL_COSTS]
        return _members(family, kernels, costs, "squared_hinge")

    def _affordable(self, part: FamilyData) -> int:
        """Return how many families can be compared on all samples before the deadline."""
        n_samples = self.data.n_samples
        most = _MOST_FAMILIES if n_samples <= _MANY_ROWS else _MOST_FAMILIES // 2
        n_views = len({family.block.view for family in self.families}) if self.each_view else 1
        n_solved = len(_NEAR_COSTS) * (2 if n_samples <= _MANY_ROWS else 1)
        seconds = n_solved * self.solution_seconds(part, n_samples)
        left = max(self.deadline.remaining(), 0.0)
        most = max(most, 2 * n_views)
        return most if left >= most * seconds else int(left / seconds)

    @staticmethod
    def _kernels(data: FamilyData, family: KernelFamily) -> Callable[[float], Kernel]:
        X = data.blocks[family.block]
        present = has_view(X)
        return family.make(X[present], data.weight[present])


def _members(
    family: KernelFamily,
    kernels: Sequence[tuple[float, Kernel]],
    costs: Sequence[float],
    svm_loss: str,
) -> list[Params]:
    """Return the parameters of all pairs of a kernel and a cost."""
    return [
        {"family": family, "power": power, "kernel": kernel, "C": cost, "loss": svm_loss}
        for power, kernel in kernels
        for cost in costs
    ]


def content_order(X: Any) -> Array:
    """Return an order of samples that depends on their values only, not on rows or columns."""
    if is_sparse(X):
        scattered = X.copy()
        scattered.data = np.sin(_SCATTER * scattered.data)
        return np.argsort(np.asarray(scattered.sum(axis=1)).ravel(), kind="stable")
    return np.argsort(np.sin(_SCATTER * np.nan_to_num(X)).sum(axis=1), kind="stable")
