"""Whether a gate would say the same again: refits, and what the class label explains of it."""

from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl._parameters import check_choice
from lokl._warnings import capture_warnings
from lokl.base.diagnostics import FLAT, explained_by_classes
from lokl.explain.formatting import Findings, corrected_interval, make_folds, number, one_scorer
from lokl.explain.views import learner_of, seen_by_learner
from lokl.methods.uniformmkl import UniformMKLClassifier, UniformMKLRegressor

# Where one of these is exceeded, refits tell another story about which kernel is trusted.
MANY_LEADERS, LARGE_CHANGE = 0.2, 0.15
# Share of the gate's variance above which it says little that the class label does not.
_TOLD_BY_CLASS = 0.9
# Shares of trust this close are equal: which of them leads is a matter of rounding.
_TIE = 1e-6


@dataclass(frozen=True, eq=False)
class GateStability:
    """How far a gate can be believed; see :func:`gate_stability`.

    Attributes
    ----------
    verdict : str
        One sentence.
    change : float
        Mean absolute change of ``weights(X)`` from the model to a refit.
    leader_change : float
        Share of the samples whose most trusted kernel is another in a refit.
    spread : float
        How far trust differs between samples (standard deviation). Near 0 the gate is the same
        everywhere.
    explained : float or None
        Share of the variance of ``weights(X)`` that the class label explains (eta squared); None
        for regressors.
    score, uniform_score : float
        Mean held-out score of the model, and of the plain average of its kernels.
    gain : tuple of float
        Mean difference of both, with the ends of its 95 % interval.
    kernels : Findings
        A row for each kernel: mean ``trust``, its ``spread`` between samples, and its ``change``
        between refits.
    changes, leader_changes : array of shape (n_repeats,)
        Of each refit.

    Examples
    --------
    >>> from lokl import LMKLClassifier
    >>> from lokl.datasets import make_views
    >>> from lokl.explain import gate_stability
    >>> from lokl.kernels import Linear, per_view
    >>> X, y, views, region = make_views(200, random_state=0)
    >>> model = LMKLClassifier(per_view(Linear(), views), C=10, random_state=0)
    >>> found = gate_stability(model, X, y, how="seed", n_repeats=3, cv=3, random_state=0)
    >>> bool(found.leader_change < 0.2)
    True
    """

    verdict: str
    change: float
    leader_change: float
    spread: float
    explained: float | None
    score: float
    uniform_score: float
    gain: tuple[float, float, float]
    kernels: Findings
    changes: Array
    leader_changes: Array

    def to_frame(self) -> Any:
        """Return the table of kernels as a data frame (pandas)."""
        return self.kernels.to_frame()

    def __str__(self) -> str:
        gain, low, high = map(number, self.gain)
        lines = [
            fill(self.verdict, 80),
            "",
            f"  mean change of the gate           {number(self.change)}",
            f"  samples with another leader       {self.leader_change:.0%}",
            f"  spread between samples            {number(self.spread)}",
            f"  held-out score                    {number(self.score)}",
            f"  the same of the plain average     {number(self.uniform_score)}",
            f"  difference                        {gain} [{low}, {high}]",
        ]
        if self.explained is not None:
            lines.insert(5, f"  explained by the class label      {self.explained:.0%}")
        return "\n".join([*lines, "", str(self.kernels)])

    def __repr__(self) -> str:
        return str(self)


def gate_stability(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_repeats: int = 10,
    how: str = "bootstrap",
    cv: Any = 5,
    scoring: Any = None,
    groups: Any = None,
    random_state: Any = None,
) -> GateStability:
    """Fit a model again and again, and say whether its gate can be believed.

    A gate may be an accident: of the samples, of the seed, or of the labels, which it can learn by
    heart. This measures all three, and whether the model predicts better than the plain average of
    its kernels. It costs `n_repeats` fits and those of a cross-validation.

    Parameters
    ----------
    model : estimator of lokl, or a pipeline that ends in one
        Fitted on `X` and `y`, or not fitted; it stays as it is.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Training samples.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    n_repeats : int, default=10
        Number of refits.
    how : {"bootstrap", "seed"}, default="bootstrap"
        What differs in a refit: the samples, drawn with replacement (within each class), or the
        `random_state` of the model alone.
    cv, scoring, groups
        Of the cross-validated scores, as in :func:`view_value`.
    random_state : int, RandomState or None
        Decides the draws.

    Returns
    -------
    stability : GateStability
        ``print(stability)`` shows everything, ``stability.verdict`` is one sentence.
    """
    check_choice("how", how, ("bootstrap", "seed"))
    if n_repeats < 1:
        raise ValueError(f"n_repeats must be 1 or more, got {n_repeats!r}")
    X, y = indexable(X, y)
    # What refits have to warn of says nothing about the model that was asked about.
    first, _ = capture_warnings(_fitted, model, X, y)
    rng = check_random_state(random_state)
    refits = [capture_warnings(_refit, model, X, y, how, rng)[0] for _ in range(n_repeats)]
    scores, folds = _held_out_scores(model, X, y, cv, scoring, groups)
    gain = corrected_interval(scores[0] - scores[1], folds)
    codes = np.unique(np.asarray(y), return_inverse=True)[1] if is_classifier(model) else None
    return _judged(first, refits, codes, scores, gain, how)


@dataclass(frozen=True, eq=False)
class _Fit:
    """Trust of a fitted model in its kernels at all samples."""

    names: list[str]
    trust: Array  # (n_samples, n_kernels)


def _judged(
    first: _Fit,
    refits: list[Array],
    codes: Array | None,
    scores: Array,
    gain: tuple[float, float, float],
    how: str,
) -> GateStability:
    """Measure refits against the model, and put the finding into words."""
    trust = first.trust
    moved = np.array([np.abs(refit - trust) for refit in refits])
    leaders = np.array([other_leader(trust, refit).mean() for refit in refits])
    explained = None
    if codes is not None:
        explained = explained_by_classes(trust, codes, np.ones(len(codes)))
    spread = float(np.sqrt(trust.var(axis=0).sum()))
    change, leader_change = float(moved.mean()), float(leaders.mean())
    return GateStability(
        _verdict(change, leader_change, spread, explained, gain),
        change,
        leader_change,
        spread,
        explained,
        float(scores[0].mean()),
        float(scores[1].mean()),
        gain,
        _table(first.names, trust, moved, how),
        moved.mean(axis=(1, 2)),
        leaders,
    )


def _trust(model: Any, X: Any) -> Array:
    return np.asarray(learner_of(model, "gate_stability").weights(seen_by_learner(model, X)))


def _fitted(model: Any, X: Any, y: Any) -> _Fit:
    try:
        check_is_fitted(learner_of(model, "gate_stability"))
    except NotFittedError:
        model = clone(model).fit(X, y)
    return _Fit(learner_of(model, "gate_stability").kernel_names_, _trust(model, X))


def _refit(model: Any, X: Any, y: Any, how: str, rng: np.random.RandomState) -> Array:
    """Trust of a model that other samples or another seed have made."""
    copy = clone(model)
    if how == "seed":
        last = copy[-1] if isinstance(copy, Pipeline) else copy
        last.set_params(random_state=int(rng.randint(2**31 - 1)))
        return _trust(copy.fit(X, y), X)
    rows = _drawn(model, y, rng)
    return _trust(copy.fit(_safe_indexing(X, rows), _safe_indexing(y, rows)), X)


def _drawn(model: Any, y: Any, rng: np.random.RandomState) -> Array:
    """Samples with replacement; of each class as many as there are, so that none is lost."""
    n_samples = len(y)
    codes = np.zeros(n_samples, dtype=int)
    if is_classifier(model):
        codes = np.unique(np.asarray(y), return_inverse=True)[1]
    rows = np.empty(n_samples, dtype=int)
    for code in range(codes.max() + 1):
        own = np.flatnonzero(codes == code)
        rows[own] = rng.choice(own, len(own))
    return rows


def other_leader(trust: Array, refit: Array, tie: float = _TIE) -> Array:
    """Which samples have another leading kernel; kernels that lead together are no change."""
    led = np.take_along_axis(refit, trust.argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
    return np.asarray(led < refit.max(axis=1) - tie)


def _average_of(model: Any) -> Any:
    """Return an unfitted SVM on the average of the same kernels, with the same settings."""
    kind: Any = UniformMKLClassifier if is_classifier(model) else UniformMKLRegressor
    average, params = kind(), clone(model).get_params(deep=False)
    shared = average.get_params(deep=False).keys() & params.keys() - {"max_iter", "verbose"}
    return average.set_params(**{name: params[name] for name in shared})


def _held_out_scores(
    model: Any, X: Any, y: Any, cv: Any, scoring: Any, groups: Any
) -> tuple[Array, Any]:
    """Scores of the model and of the average of its kernels on the same folds."""
    folds = make_folds(model, X, y, cv, groups)
    average = _average_of(learner_of(model, "gate_stability"))
    rival = average
    if isinstance(model, Pipeline):
        rival = Pipeline([*clone(model).steps[:-1], (model.steps[-1][0], average)])
    scorer = one_scorer(model, scoring)
    options = {"cv": folds, "scoring": scorer, "error_score": "raise"}
    found = [
        capture_warnings(lambda one: cross_val_score(one, X, y, **options), one)[0]
        for one in (clone(model), rival)
    ]
    return np.array(found), folds


def _verdict(
    change: float,
    leader_change: float,
    spread: float,
    explained: float | None,
    gain: tuple[float, float, float],
) -> str:
    if spread < FLAT:
        return (
            f"The gate is nearly the same for all samples (spread {spread:.3f}): it says how much "
            "each kernel counts, not where."
        )
    if leader_change > MANY_LEADERS or change > LARGE_CHANGE:
        return (
            f"Do not believe this gate: a refit changes trust by {change:.2f} on average and gives "
            f"{leader_change:.0%} of the samples another leading kernel."
        )
    if explained is not None and explained > _TOLD_BY_CLASS and gain[0] <= 0:
        return (
            f"Do not believe this gate: the class label explains {explained:.0%} of it, and the "
            f"model predicts no better than the plain average ({gain[0]:+.3f})."
        )
    if gain[1] <= 0:
        return (
            f"The gate is stable, but whether it helps is open: held out, the model differs from "
            f"the plain average by {gain[0]:+.3f} ({gain[1]:+.3f} to {gain[2]:+.3f})."
        )
    return (
        f"The gate is stable and it helps: held out, the model is better than the plain average "
        f"by {gain[0]:.3f} ({gain[1]:.3f} to {gain[2]:.3f})."
    )


def _table(names: list[str], trust: Array, moved: Array, how: str) -> Findings:
    return Findings(
        f"Kernels: mean trust, spread between samples, change between refits ({how})",
        "kernel",
        tuple(names),
        {
            "trust": trust.mean(axis=0),
            "spread": trust.std(axis=0),
            "change": moved.mean(axis=(0, 1)),
        },
    )
