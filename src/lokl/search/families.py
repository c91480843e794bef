"""Families of kernels, compared by leave-one-out decisions with the squared loss.

A family is one form of kernel on one scaling of the columns of one view. One factorisation of a
Gram matrix gives the exact leave-one-out decisions at all costs, so that a family is compared at
several widths and costs without folds and without random numbers.

The squared loss also penalises decisions that are correct by more than the margin, so that classes
between two others are not separated from both. The squared hinge does not. Its solution is the one
of the squared loss on the samples inside the margin, which takes several factorisations for each
cost. So it is tried on the best kernels only, and used if it is much better.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from lokl._arrays import Array, is_sparse
from lokl._deadline import Deadline
from lokl._threads import run_calls, single_threaded_blas, threads_for
from lokl.kernels import RBF, AdditiveLaplacian, Kernel, Laplacian, Linear
from lokl.search.cross_validation import spread_rows
from lokl.search.results import errors_behind
from lokl.solvers.machines import Fold, restrict_folds
from lokl.solvers.squared import squared_hinge_path, squared_path

logger = logging.getLogger("lokl")

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
        Index of the class; None for regression.
    """

    targets: Array
    codes: Array | None

    @classmethod
    def of(cls, y: Array, classes: Array | None) -> "TargetCoding":
        """Return the coding of labels, or of numeric targets if `classes` is None."""
        if classes is None:
            return cls(np.asarray(y, dtype=float).reshape(len(y), -1), None)
        codes = np.searchsorted(classes, y)
        targets = np.where(codes[:, np.newaxis] == np.arange(len(classes)), 1.0, -1.0)
        return cls(targets[:, 1:] if len(classes) == 2 else targets, codes)

    def take(self, rows: Array) -> "TargetCoding":
        """Return the coding of some samples."""
        return TargetCoding(self.targets[rows], None if self.codes is None else self.codes[rows])

    def losses(self, decision: Array) -> Array:
        """Return the Brier score or the squared error of each sample, (n_samples,)."""
        if self.codes is None:
            return np.asarray(((decision - self.targets) ** 2).sum(axis=1))
        P = class_shares(decision)
        error = P - (self.codes[:, np.newaxis] == np.arange(P.shape[1]))
        return np.asarray((error**2).sum(axis=1))

    def scores(self, decision: Array) -> Array:
        """Return whether each sample is classified correctly, or its share of R squared."""
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


@dataclass(frozen=True, eq=False)
class FamilyScore:
    """The best member of a family.

    Attributes
    ----------
    family : KernelFamily
    kernel : Kernel
        Of samples of the block.
    power : float
    cost : float
    decision : array of shape (n_samples, n_tasks)
        Held-out decisions.
    losses : array of shape (n_samples,)
    loss : float
        Their weighted mean.
    seconds : float
        Of the whole family.
    path : array of shape (n_costs,)
        Weighted mean losses of the kernel at all costs, on samples that have the view.
    n_solutions : int
        Solutions at one cost that take as long.
    svm_loss : {"squared", "squared_hinge"}
    """

    family: KernelFamily
    kernel: Kernel
    power: float
    cost: float
    decision: Array
    losses: Array
    loss: float
    seconds: float
    path: Array
    n_solutions: int = 1
    svm_loss: str = "squared"

    @property
    def description(self) -> str:
        """Name of the kernel, and the loss if it is not the squared one."""
        return self.name + (", squared hinge" if self.has_margin else "")

    @property
    def has_margin(self) -> bool:
        """Whether decisions beyond the margin have no loss."""
        return self.svm_loss == "squared_hinge"

    @property
    def name(self) -> str:
        """Name of the kernel."""
        block, form = self.family.block, self.family.form
        width = "" if len(self.family.powers) == 1 else f"(2^{self.power:g})"
        scaling = "" if block.scaling == "auto" else f", {block.scaling}"
        view = "" if block.view is None else f"{block.view}: "
        return f"{view}{form}{width}{scaling}"


def equally_good(
    scores: Sequence[FamilyScore], weight: Array, n_errors: float
) -> list[FamilyScore]:
    """Return the families whose loss is within some standard errors of the best, best first.

    The standard error is that of the mean of the paired differences over samples.

    Parameters
    ----------
    scores : sequence of FamilyScore
        Of the same samples.
    weight : array of shape (n_samples,)
    n_errors : float
    """
    ranked = sorted(scores, key=lambda score: score.loss)
    best = -ranked[0].losses
    return [s for s in ranked if errors_behind(-s.losses, best, weight) <= n_errors]


def of_one_loss(
    scores: Sequence[FamilyScore], weight: Array, n_errors: float = CLOSE
) -> list[FamilyScore]:
    """Return the families with the squared hinge if it is clearly better, otherwise the others."""
    squared = [score for score in scores if not score.has_margin]
    near = equally_good(scores, weight, n_errors)
    if all(score.has_margin for score in near):
        return [score for score in scores if score.has_margin]
    return squared


def best_expert(
    scores: Sequence[FamilyScore], weight: Array, n_errors: float = SAME
) -> FamilyScore:
    """Return the Laplacian kernel if it is as good as the best of a view, otherwise the best."""
    near = equally_good(scores, weight, n_errors)
    return next((score for score in near if score.family.form == "laplacian"), near[0])


def common_cost(scores: Sequence[FamilyScore]) -> float:
    """Return the cost at which the mean loss of some families is lowest."""
    return COSTS[int(np.argmin(np.mean([score.path for score in scores], axis=0)))]


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

    def evaluate(
        self,
        family: KernelFamily,
        kernels: Sequence[tuple[float, Kernel]],
        costs: Sequence[float],
        svm_loss: str = "squared",
    ) -> FamilyScore | None:
        """Return the best of some kernels and costs; None without a finite one.

        Samples that lack the view get the mean target.
        """
        started = time.monotonic()
        X, weight = self.blocks[family.block], self.weight
        part = self
        present = has_view(X)
        if not present.all():
            part = self.take(np.flatnonzero(present))
        best: tuple[float, float, float, Kernel, Array, Array] | None = None
        samples = part.blocks[family.block]
        for power, kernel in kernels:
            K = kernel.bind(samples, part.weight)(samples)
            if not np.isfinite(K).all():
                continue
            decisions = part.held_out(K, costs, svm_loss)
            each = [part.coding.losses(decision) for decision in decisions]
            means = np.average(each, axis=1, weights=part.weight)
            if np.isnan(means).all():
                continue
            index = int(np.nanargmin(means))
            if best is None or means[index] < best[0]:
                best = float(means[index]), power, costs[index], kernel, decisions[index], means
        if best is None:
            return None
        _, power, cost, kernel, found, means = best
        decision = found
        if part is not self:
            mean = np.average(self.coding.targets, axis=0, weights=weight)
            decision = np.repeat(mean[np.newaxis], self.n_samples, axis=0)
            decision[present] = found
        losses = self.coding.losses(decision)
        n_solutions = len(kernels) * len(costs)
        if svm_loss == "squared_hinge":
            n_solutions *= _STEPS_OF_A_HINGE * decision.shape[1]
        elif len(costs) > len(_NEAR_COSTS):
            n_solutions = _OF_A_PATH * len(kernels)
        return FamilyScore(
            family,
            kernel,
            power,
            cost,
            decision,
            losses,
            float(np.average(losses, weights=weight)),
            time.monotonic() - started,
            means,
            n_solutions,
            svm_loss,
        )


def solving_seconds(scores: Sequence[FamilyScore], n_samples: int, n_all: int) -> float:
    """Return the expected time of a solution for `n_all` samples by that for `n_samples`."""
    seconds = float(np.median([score.seconds / score.n_solutions for score in scores]))
    return max(seconds, 1e-4) * (n_all / n_samples) ** 3


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
    """

    data: FamilyData
    families: Sequence[KernelFamily]
    deadline: Deadline
    n_jobs: int | None = None
    each_view: bool = False

    def run(self) -> tuple[FamilyData, list[FamilyScore]]:
        """Return the samples on which families were compared last, and their scores.

        If the deadline allows, these are all samples.
        """
        part = self.data
        if part.n_samples > WIDTH_ROWS:
            rows = spread_rows(np.arange(part.n_samples), part.coding.codes, WIDTH_ROWS)
            part = part.take(rows)
        views = [family.block.view for family in self.families]
        scores = self._evaluate(
            [partial(self._at_all_widths, part, family) for family in self.families],
            required={views.index(view) for view in views},
        )
        scores += self._with_squared_hinge(part, scores)
        groups = self.by_view(scores)
        most = self._affordable(scores, part) // len(groups) if scores else 0
        if part is self.data or not most:
            return part, scores
        close = [s for group in groups for s in equally_good(group, part.weight, CLOSE)[:most]]
        calls = [partial(self._near, part, score) for score in close]
        views = [score.family.block.view for score in close]
        return self.data, self._evaluate(calls, required={views.index(view) for view in views})

    def _with_squared_hinge(
        self, data: FamilyData, scores: Sequence[FamilyScore]
    ) -> list[FamilyScore]:
        """Return scores of the best families with the squared hinge, as far as it is better."""
        if data.coding.codes is None or self.each_view or not scores:
            return []
        near = equally_good(scores, data.weight, SAME)
        # Wide RBF kernels approximate polynomials of every degree.
        smooth = [score for score in scores if score.family.form == "rbf"]
        tried = list(dict.fromkeys([near[0], *sorted(smooth, key=lambda s: s.loss)[:1]]))
        trials = self._evaluate([partial(self._trial, data, score) for score in tried])
        if not of_one_loss([*trials, near[0]], data.weight, SAME)[0].has_margin:
            return []
        found = self._evaluate([self._with_hinge(data, score.family) for score in tried])
        if not of_one_loss([*found, near[0]], data.weight)[0].has_margin:
            return found
        others = [score.family for score in near if score not in tried]
        return found + self._evaluate([self._with_hinge(data, family) for family in others])

    def _with_hinge(
        self, data: FamilyData, family: KernelFamily
    ) -> Callable[[], FamilyScore | None]:
        return partial(self._at_all_widths, data, family, "squared_hinge")

    def _trial(self, data: FamilyData, score: FamilyScore) -> FamilyScore | None:
        """Evaluate a family with the squared hinge, at its best width and at a wide one."""
        kernels = [(score.power, score.kernel)]
        if _WIDE in score.family.powers:
            kernels.append((_WIDE, self._kernels(data, score.family)(_WIDE)))
        costs = [min(score.cost * factor, COSTS[-1]) for factor in _TRIAL_COSTS]
        return data.evaluate(score.family, kernels, costs, "squared_hinge")

    def _affordable(self, scores: Sequence[FamilyScore], part: FamilyData) -> int:
        """Return how many families can be compared on all samples before the deadline."""
        most = _MOST_FAMILIES if self.data.n_samples <= _MANY_ROWS else _MOST_FAMILIES // 2
        n_views = len(self.by_view(scores))
        n_solved = len(_NEAR_COSTS) * (2 if self.data.n_samples <= _MANY_ROWS else 1)
        seconds = n_solved * solving_seconds(scores, part.n_samples, self.data.n_samples)
        left = max(self.deadline.remaining(), 0.0)
        most = max(most, 2 * n_views)
        return most if left >= most * seconds else int(left / seconds)

    def by_view(self, scores: Sequence[FamilyScore]) -> list[list[FamilyScore]]:
        """Return the scores that are compared with each other."""
        if not self.each_view:
            return [[*scores]]
        groups: dict[str | None, list[FamilyScore]] = {}
        for score in scores:
            groups.setdefault(score.family.block.view, []).append(score)
        return [*groups.values()]

    def _evaluate(
        self, calls: Sequence[Callable[[], FamilyScore | None]], required: Collection[int] = ()
    ) -> list[FamilyScore]:
        """Return the scores of families until the deadline, those of required calls always."""

        def unless_late(index: int) -> FamilyScore | None:
            with np.errstate(all="ignore"):
                late = index not in required and self.deadline.passed
                return None if late else calls[index]()

        with single_threaded_blas():
            timed = [partial(unless_late, index) for index in range(len(calls))]
            results = run_calls(timed, threads_for(self.n_jobs))
        scores = [score for score in results if score is not None]
        for score in scores:
            logger.debug("%s, C=%g: %.5g", score.description, score.cost, score.loss)
        return scores

    def _at_all_widths(
        self, data: FamilyData, family: KernelFamily, svm_loss: str = "squared"
    ) -> FamilyScore | None:
        kernel_at = self._kernels(data, family)
        is_hinge = svm_loss == "squared_hinge"
        costs = [cost for cost in COSTS if cost >= _LEAST_HINGE_COST] if is_hinge else COSTS
        return data.evaluate(family, [(p, kernel_at(p)) for p in family.powers], costs, svm_loss)

    def _near(self, part: FamilyData, on_part: FamilyScore) -> FamilyScore | None:
        """Evaluate a family on all samples, near its best width and cost on some."""
        family, power = on_part.family, on_part.power
        kernels = [(power, on_part.kernel)]
        factors: Sequence[float] = _NEAR_COSTS
        if on_part.has_margin:
            factors = _NEAR_HINGE_COSTS
        # More samples can resolve a narrower kernel.
        elif len(family.powers) > len(_ADDITIVE_WIDTHS) and self.data.n_samples <= _MANY_ROWS:
            kernels.append((power + _NARROWER, self._kernels(part, family)(power + _NARROWER)))
        costs = [on_part.cost * factor for factor in factors]
        found = self.data.evaluate(family, kernels, costs, on_part.svm_loss)
        # The path at all costs is known on some samples only.
        return None if found is None else replace(found, path=on_part.path)

    @staticmethod
    def _kernels(data: FamilyData, family: KernelFamily) -> Callable[[float], Kernel]:
        X = data.blocks[family.block]
        present = has_view(X)
        return family.make(X[present], data.weight[present])


def content_order(X: Any) -> Array:
    """Return an order of samples that depends on their values only, not on rows or columns."""
    if is_sparse(X):
        scattered = X.copy()
        scattered.data = np.sin(_SCATTER * scattered.data)
        return np.argsort(np.asarray(scattered.sum(axis=1)).ravel(), kind="stable")
    return np.argsort(np.sin(_SCATTER * np.nan_to_num(X)).sum(axis=1), kind="stable")
