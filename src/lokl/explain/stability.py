"""Stability of learned weights: refits, held-out gain, and dependence on the class label."""

from dataclasses import dataclass
from functools import partial
from html import escape
from textwrap import fill
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, indexable, resample
from sklearn.utils.validation import _is_fitted

from lokl._arrays import Array
from lokl._frames import as_pandas
from lokl._parameters import check_choice
from lokl._warnings import capture_warnings
from lokl.base.diagnostics import FLAT, explained_by_classes
from lokl.explain.results import (
    Interval,
    SummaryTable,
    corrected_interval,
    one_scorer,
    shared_folds,
    short_number,
)
from lokl.explain.views import last_step, transformed, without_searches
from lokl.methods.uniformmkl import UniformMKLClassifier, UniformMKLRegressor

# Weights are unstable if one of these is exceeded.
MANY_LEADERS, LARGE_CHANGE = 0.2, 0.15
# Share of the variance of weights above which they say little beyond the class label.
_EXPLAINED_BY_CLASS = 0.9
# Weights this close are equal: which of them is larger is a matter of rounding.
_TIE = 1e-6


@dataclass(frozen=True, eq=False)
class WeightStability:
    """Stability of the weights of a model; see :func:`weight_stability`.

    Attributes
    ----------
    kernels : SummaryTable
        A row for each kernel: mean ``weight``, its ``spread`` between samples, and its ``change``
        between refits.
    changes : array of shape (n_repeats,)
        Mean absolute change of ``weights(X)`` from the model to each refit.
    leader_changes : array of shape (n_repeats,)
        Share of the samples whose largest weight is on another kernel in each refit.
    spread : float
        Standard deviation of weights between samples. Near 0, all samples have the same weights.
    explained : float or None
        Share of the variance of ``weights(X)`` that the class label explains (eta squared); None
        for regressors.
    score, uniform_score : float
        Mean held-out score of the model, and of the uniform average of its kernels.
    gain : Interval
        Mean difference of both, with its 95 % interval.

    See Also
    --------
    lokl.explain.weight_stability : Computes it.

    Examples
    --------
    >>> from lokl import LMKLClassifier
    >>> from lokl.datasets import make_views
    >>> from lokl.explain import weight_stability
    >>> from lokl.kernels import Linear, per_view
    >>> X, y, views, region = make_views(200, random_state=0)
    >>> model = LMKLClassifier(per_view(Linear(), views), C=10, random_state=0)
    >>> stability = weight_stability(model, X, y, how="seed", n_repeats=3, cv=3, random_state=0)
    >>> round(stability.gain.mean, 2)
    0.22
    """

    kernels: SummaryTable
    changes: Array
    leader_changes: Array
    spread: float
    explained: float | None
    score: float
    uniform_score: float
    gain: Interval

    @property
    def change(self) -> float:
        """Mean absolute change of weights over the refits."""
        return float(self.changes.mean())

    @property
    def leader_change(self) -> float:
        """Mean share of samples with another leading kernel over the refits."""
        return float(self.leader_changes.mean())

    @property
    def verdict(self) -> str:
        """One sentence on whether the weights can be interpreted."""
        gain, low, high = self.gain
        if self.spread < FLAT:
            return (
                f"The weights are nearly the same for all samples (spread {self.spread:.3f}): they "
                "show how much each kernel counts, not where."
            )
        if self.leader_change > MANY_LEADERS or self.change > LARGE_CHANGE:
            return (
                f"Do not interpret these weights: a refit changes them by {self.change:.2f} on "
                f"average, and {self.leader_change:.0%} of the samples get another leading kernel."
            )
        if self.explained is not None and self.explained > _EXPLAINED_BY_CLASS and gain <= 0:
            return (
                f"Do not interpret these weights: the class label explains {self.explained:.0%} of "
                f"their variance, and the model is not better than the uniform average "
                f"({gain:+.3f})."
            )
        if low <= 0:
            return (
                "The weights are stable, but may not help: held out, the model differs from the "
                f"uniform average by {gain:+.3f} ({low:+.3f} to {high:+.3f})."
            )
        return (
            "The weights are stable and they help: held out, the model is better than the uniform "
            f"average by {gain:.3f} ({low:.3f} to {high:.3f})."
        )

    def to_frame(self) -> Any:
        """Return the table of kernels as a data frame (pandas)."""
        return self.kernels.to_frame()

    def __str__(self) -> str:
        gain, low, high = map(short_number, self.gain)
        explained = "" if self.explained is None else f"{self.explained:.0%}"
        lines = {
            "mean change of the weights": short_number(self.change),
            "samples with another leader": f"{self.leader_change:.0%}",
            "spread between samples": short_number(self.spread),
            "explained by the class label": explained,
            "held-out score": short_number(self.score),
            "score of the uniform average": short_number(self.uniform_score),
            "difference": f"{gain} [{low}, {high}]",
        }
        shown = [f"  {name:<32}  {value}" for name, value in lines.items() if value]
        return "\n".join([fill(self.verdict, 80), "", *shown, "", str(self.kernels)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the verdict and the table of kernels for notebooks."""
        return f"<p>{escape(self.verdict)}</p>{self.kernels._repr_html_()}"


def weight_stability(
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
) -> WeightStability:
    """Refit a model several times and measure whether its weights can be interpreted.

    Learned weights may depend on the drawn samples, on the seed, or on the labels, which a gate can
    memorise. This measures all three, and whether the model predicts better than the uniform
    average of its kernels. It costs `n_repeats` fits and two cross-validations.

    Parameters
    ----------
    model : estimator of lokl, or a pipeline that ends in one
        Fitted on `X` and `y`, or not fitted; it is not changed. Of a fitted search or AutoMKL, the
        chosen model is used.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Training samples.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    n_repeats : int, default=10
        Number of refits.
    how : {"bootstrap", "seed"}, default="bootstrap"
        What differs in a refit: the samples, drawn with replacement (within each class), or only
        the `random_state` of the model.
    cv, scoring, groups
        Settings of the cross-validated scores, as in :func:`view_value`.
    random_state : int, RandomState or None
        Seed of the refits.

    Returns
    -------
    stability : WeightStability
        ``print(stability)`` shows everything, ``stability.verdict`` is one sentence.

    See Also
    --------
    lokl.explain.WeightStability : What it returns.
    lokl.explain.WeightStabilityDisplay : Figure of it.

    Examples
    --------
    >>> from lokl import LMKLClassifier
    >>> from lokl.datasets import make_views
    >>> from lokl.explain import weight_stability
    >>> from lokl.kernels import Linear, per_view
    >>> X, y, views, _ = make_views(200, random_state=0)
    >>> model = LMKLClassifier(per_view(Linear(), views), C=10, random_state=0)
    >>> stability = weight_stability(model, X, y, how="seed", n_repeats=3, cv=3, random_state=0)
    >>> round(stability.score, 2), round(stability.uniform_score, 2)
    (0.91, 0.7)
    """
    check_choice("how", how, ("bootstrap", "seed"))
    if n_repeats < 1:
        raise ValueError(f"n_repeats must be 1 or more, got {n_repeats!r}")
    model = without_searches(model)
    X, y = indexable(as_pandas(X), y)
    # Warnings of refits do not concern the model itself.
    names, weights = capture_warnings(_fitted_weights, model, X, y)[0]
    rng = check_random_state(random_state)
    refits = [capture_warnings(_refit, model, X, y, how, rng)[0] for _ in range(n_repeats)]
    scores, folds = _held_out_scores(model, X, y, cv, scoring, groups)
    moved = np.array([np.abs(refit - weights) for refit in refits])
    explained = None
    if is_classifier(model):
        codes = np.unique(np.asarray(y), return_inverse=True)[1]
        explained = explained_by_classes(weights, codes, np.ones(len(codes)))
    columns = {
        "weight": weights.mean(axis=0),
        "spread": weights.std(axis=0),
        "change": moved.mean(axis=(0, 1)),
    }
    title = f"Kernels: mean weight, spread between samples, change between refits ({how})"
    return WeightStability(
        kernels=SummaryTable(title, "kernel", tuple(names), columns),
        changes=moved.mean(axis=(1, 2)),
        leader_changes=np.array([leader_changed(weights, refit).mean() for refit in refits]),
        spread=float(np.sqrt(weights.var(axis=0).sum())),
        explained=explained,
        score=float(scores[0].mean()),
        uniform_score=float(scores[1].mean()),
        gain=corrected_interval(scores[0] - scores[1], folds),
    )


def _fitted_weights(model: Any, X: Any, y: Any) -> tuple[list[str], Array]:
    """Return names of kernels and weights of a model; an unfitted model is fitted first."""
    if not _is_fitted(last_step(model)):
        model = clone(model).fit(X, y)
    estimator: Any = last_step(model)
    return estimator.kernel_names_, np.asarray(estimator.weights(transformed(model, X)))


def _refit(model: Any, X: Any, y: Any, how: str, rng: np.random.RandomState) -> Array:
    """Return the weights of a refit on other samples or with another seed."""
    copy, samples = clone(model), (X, y)
    if how == "seed":
        last_step(copy).set_params(random_state=int(rng.randint(2**31 - 1)))
    else:
        # Each class keeps its size, so that none is lost.
        classes = y if is_classifier(model) else None
        samples = resample(X, y, random_state=rng, stratify=classes)
    return _fitted_weights(copy.fit(*samples), X, y)[1]


def leader_changed(weights: Array, refit: Array, tie: float = _TIE) -> Array:
    """Return which samples have another leading kernel in a refit; ties are not a change.

    Parameters
    ----------
    weights, refit : arrays of shape (n_samples, n_kernels)
    """
    led = np.take_along_axis(refit, weights.argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
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
    """Return scores of the model and of the uniform average of its kernels on the same folds."""
    folds = shared_folds(model, y, cv, groups)
    average = _average_of(last_step(model))
    if isinstance(model, Pipeline):
        average = Pipeline([*clone(model).steps[:-1], (model.steps[-1][0], average)])
    options = {"cv": folds, "scoring": one_scorer(model, scoring), "error_score": "raise"}
    score = partial(cross_val_score, X=X, y=y, **options)
    scores = [capture_warnings(score, candidate)[0] for candidate in (clone(model), average)]
    return np.array(scores), folds
