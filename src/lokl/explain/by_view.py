"""Explaining predictions by removing views: each view alone, and all views but one."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from lokl._arrays import Array, evenly_spaced, is_sparse
from lokl._frames import as_pandas
from lokl._survival import read_target
from lokl._warnings import capture_warnings
from lokl.base.model import model_layers
from lokl.base.survival import survival_at
from lokl.explain.columns import ColumnContributions, ColumnLayout, has_columns
from lokl.explain.explanation import (
    AGREE,
    CONTRADICT,
    HINGES,
    UNSURE,
    Explanation,
    class_codes,
)
from lokl.explain.sets import PredictionSets
from lokl.explain.shapley import N_ORDERS, Sampling
from lokl.explain.views import (
    KernelView,
    Views,
    by_view,
    named_views,
    plain,
    present_in,
    views_of,
    weights_by_view,
)
from lokl.methods.trusted_vote.evidence import pairwise_disagreement
from lokl.search.calibration import Calibration, by_class

# A view is sure of a class that is this many times as probable as any other.
_SURE = 2.0
# Times of survival curves unless they are given.
_CURVE_TIMES = 20
# Probabilities of single views below this one count as this one in log-odds.
_LEAST = 1e-6


def explain(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    views: Views | None = None,
    ids: Any = None,
    columns: bool = False,
    coverage: float | None = None,
    times: Any = None,
) -> Explanation:
    """Explain the predictions of a fitted model by its views.

    Each view is removed in turn, and each is also used alone, so that this costs about as much as
    two predictions for each view.

    Parameters
    ----------
    model : fitted estimator
        An estimator of lokl, alone or inside pipelines, searches, calibrated classifiers and
        :class:`PredictionSets`. For other estimators the explanation has predictions and
        probabilities, and no views.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,), optional
        True classes or targets; None or NaN for samples whose truth is unknown.
    views : mapping of str to positions of columns, optional
        Columns of each view, as the first estimator after the steps of a pipeline receives them.
        Without it, views are the tables of a model that was fitted by the command, else kernels on
        the same columns are one view.
    ids : sequence, optional
        Names of the samples; the index of a data frame, or row numbers, if not given.
    columns : bool, default=False
        Whether to divide the contribution of each view among its columns, see
        :func:`column_contributions`. It costs more than all the rest if there are many columns.
        Models of regions and on stored kernels have no such contributions.
    coverage : float, optional
        Coverage of the sets of a :class:`PredictionSets`, ``1 - alpha`` if not given.
    times : array-like, optional
        Times of the curves of survival models; twenty of the training times if not given.

    Returns
    -------
    explanation : Explanation
        Predictions, weights and contributions; ``print(explanation.sample(0))`` shows one sample.

    See Also
    --------
    lokl.explain.Explanation : What it returns.
    lokl.explain.view_value : What views are worth on average.
    lokl.report.report_from_model : The same as a page.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import explain
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels, C=10).fit(X[::2], y[::2])
    >>> explanation = explain(model, X[1::2], y[1::2])
    >>> explanation.views, explanation.status[:3].tolist()
    (['acids', 'colours'], ['agree', 'agree', 'agree'])
    """
    if not hasattr(model, "predict"):
        raise TypeError(f"explain needs a fitted model with predict(X), got {type(model).__name__}")
    X = as_pandas(X)
    queried = _Queried(model, X, views, times)
    n = len(queried.predictions)
    found = queried.explained() if queried.views else _without_views(n)
    first = model.steps[0][1] if hasattr(model, "steps") else model
    return Explanation(
        ids=sample_ids(X, ids, n),
        classes=queried.classes,
        predictions=queried.predictions,
        probabilities=queried.probabilities,
        truth=_truth(y, n, queried),
        times=queried.times,
        survival=queried.survival,
        prior=getattr(first, "prior_", None),
        learned=_learned_from(first, X, queried),
        **prediction_sets(model, X, coverage),
        columns=queried.columns() if columns and has_columns(queried.inner) else None,
        **found,
    )


def prediction_sets(model: Any, X: Any, coverage: float | None = None) -> dict[str, Any]:
    """Return prediction sets or intervals and their coverage, by the fields of an explanation.

    Empty if neither the model nor one inside it is a :class:`PredictionSets`.
    """
    for layer, samples in model_layers(model, X):
        if isinstance(layer, PredictionSets):
            level = 1.0 - layer.alpha if coverage is None else coverage
            find = layer.predict_set if is_classifier(layer) else layer.predict_interval
            return {"sets": find(samples, alpha=1.0 - level), "coverage": level}
    return {}


def sample_ids(X: Any, ids: Any, n: int) -> list[str]:
    """Return names of samples: `ids`, the index of a data frame, or row numbers."""
    if ids is None:
        ids = X.index if hasattr(X, "index") and hasattr(X, "columns") else range(n)
    names = [str(name) for name in ids]
    if len(names) != n:
        raise ValueError(f"ids must name {n} samples, got {len(names)}")
    return names


def _truth(y: Any, n: int, queried: "_Queried") -> Array | None:
    """Return true classes as objects, the first true target as floats, or events and times."""
    if y is None:
        return None
    truth = np.asarray(y) if queried.times is None else read_target(y)
    if len(truth) != n:
        raise ValueError(f"y must have a value for each of {n} samples, got {len(truth)}")
    if queried.classes is None and queried.times is None:
        return np.asarray(truth, dtype=float).reshape(n, -1)[:, 0]
    return truth


def _learned_from(first: Any, X: Any, queried: "_Queried") -> Array | None:
    """Return whether the model has learned from each sample; None if it did not keep its rows.

    Parameters
    ----------
    first : estimator
        The model, or the first step of a pipeline.
    X : samples
    queried : _Queried
    """
    if hasattr(first, "learned_from"):
        return np.asarray(first.learned_from(X))
    if hasattr(queried.inner, "_row_hashes"):
        return np.asarray(queried.inner._learned_from(queried.Z))
    return None


def _without_views(n: int) -> dict[str, Any]:
    """Return the values of an explanation of n samples that need views."""
    by_view = ("contributions", "alone", "alone_probabilities", "alone_evidence", "without")
    return {
        "views": [],
        "presence": np.empty((n, 0), dtype=bool),
        **dict.fromkeys(by_view, np.empty((n, 0))),
        **dict.fromkeys(("base_values", "disagreement"), np.full(n, np.nan)),
    }


class _Queried:
    """A model, the estimator inside it, and samples as each of them receives them."""

    def __init__(self, model: Any, X: Any, views: Views | None, times: Any = None):
        self.layers = layers = list(model_layers(model, X))
        (self.outer, self.X), (self.inner, self.Z) = layers[0], layers[-1]
        self.given = model, X, views
        self.times = _curve_times([layer for layer, _ in layers], times)
        views = named_views(model, views)
        explains = hasattr(self.inner, "contributions") and hasattr(self.inner, "weights")
        self.views = views_of(self.inner, views) if explains else []
        # Steps between both may change columns, unless `views` gives their positions.
        outside = views is not None or self.X is self.Z
        # The model that predicts samples with hidden views, and samples as it receives them.
        self.probe, self.samples = layers[0 if outside else -1]

    @cached_property
    def classes(self) -> Array | None:
        return np.asarray(self.outer.classes_) if is_classifier(self.outer) else None

    @cached_property
    def predictions(self) -> Array:
        return _first_target(self.outer.predict(self.X))

    @cached_property
    def codes(self) -> Array:
        """Predicted class codes, or values, of shape (n_samples,)."""
        return class_codes(self.predictions, self.classes)

    @cached_property
    def probabilities(self) -> Array | None:
        return None if self.classes is None else _probabilities(self.outer, self.X)

    @cached_property
    def survival(self) -> Array | None:
        return None if self.times is None else survival_at(self.outer, self.X, self.times)

    @cached_property
    def presence(self) -> Array:
        return present_in(self.inner, self.Z, self.views)

    @cached_property
    def usable(self) -> Array:
        """Views that a sample has and that the model has kernels of, (n_samples, n_views)."""
        return np.asarray(self.presence & np.array([bool(view.kernels) for view in self.views]))

    @cached_property
    def removed(self) -> Array:
        """Usable views of samples that have another one, (n_samples, n_views)."""
        return np.asarray(self.usable & (self.usable.sum(axis=1, keepdims=True) > 1))

    @cached_property
    def removable(self) -> bool:
        """Whether the model predicts samples that lack views."""
        if len(self.views) < 2 or is_sparse(self.samples):
            return False
        if any(view.columns is None for view in self.views):
            return False
        kernels = getattr(self.inner, "kernels_", ())
        views = all(kernel.is_view for kernel in kernels)
        return views and bool(self.inner._accepts_missing_views())

    def explained(self) -> dict[str, Any]:
        """Return all that needs views, by the names of the fields of an explanation."""
        weights = weights_by_view(self.inner, self.Z, self.views)
        contributions = self._measured("contributions", np.sum)
        trust = self._measured("trust", np.max)
        return {
            "views": [view.name for view in self.views],
            "presence": self.presence,
            "weights": np.where(self.presence, weights, 0.0),
            "trust": None if trust is None else np.where(self.presence, trust, 0.0),
            "familiarity": self._measured("familiarity", np.max),
            "gene_sets": self._gene_sets(),
            **self._outcomes(contributions),
        }

    def _gene_sets(self) -> ColumnContributions | None:
        """Return contributions of kernels on parts of a view, by view; None if there are none."""
        kernels = getattr(self.inner, "kernels_", ())
        names: list[str] = []
        places: list[int] = []
        home: list[int] = []
        for v, view in enumerate(self.views):
            # Several kernels that read the same columns are not parts of a view.
            if len({kernels[k].columns_used() for k in view.kernels if kernels}) > 1:
                names += [self.inner.kernel_names_[k] for k in view.kernels]
                places += view.kernels
                home += [v] * len(view.kernels)
        if not places:
            return None
        values = np.asarray(self.inner.contributions(self.Z), dtype=float)
        values = (values if values.ndim == 3 else values[:, np.newaxis])[:, :, np.array(places)]
        return ColumnContributions(
            [view.name for view in self.views],
            names,
            np.array(home),
            np.einsum("ntk,nt->nk", values, self._outcome()),
        )

    def _measured(self, name: str, merge: Any) -> Any:
        """Return values of kernels that the estimator computes, merged by view; None if not."""
        if not hasattr(self.inner, name):
            return None
        values = np.asarray(getattr(self.inner, name)(self.Z), dtype=float)
        return by_view(values, self.views, merge)

    @cached_property
    def calibration(self) -> Calibration | None:
        """Map from decisions to probabilities, or None if it is unknown."""
        if self.probabilities is None:
            return None
        layers = (layer for layer, _ in self.layers)
        found = (getattr(layer, "calibration_", None) for layer in layers)
        learned = next((calibration for calibration in found if calibration is not None), None)
        if isinstance(learned, Calibration):
            return learned
        # Decisions of a vote are its log probabilities.
        plain = Calibration(1.0, np.zeros(self.probabilities.shape[1]))
        same = np.allclose(plain.probabilities(self.decision), self.probabilities, atol=1e-6)
        return plain if same else None

    @cached_property
    def decision(self) -> Array:
        """Decision for each class, (n_samples, n_classes)."""
        return by_class(self.inner.decision_function(self.Z))

    @cached_property
    def scores(self) -> Array:
        """Decision for each class, calibrated if there are probabilities."""
        if self.calibration is None:
            return self.decision
        return self.calibration.slope * self.decision + self.calibration.offset

    @cached_property
    def second(self) -> Array:
        """Class of the second largest score, next to the predicted one, (n_samples,)."""
        others = self.scores.copy()
        others[np.arange(len(others)), self.codes] = -np.inf
        return np.asarray(others.argmax(axis=1))

    def columns(self) -> ColumnContributions:
        """Return contributions of columns to the same outcome as those of views."""
        sampling = Sampling(N_ORDERS, check_random_state(0), set())
        return ColumnLayout.of(*self.given).contributions(self._outcome(), sampling)

    def _outcome(self) -> Array:
        """Return the weights of decisions in the outcome, (n_samples, n_tasks).

        The outcome is the difference of the predicted class and the runner-up, in the unit of
        contributions, or the first target.
        """
        if self.classes is None:
            outcome = np.zeros((len(self.codes), len(self.inner._tasks()[1])))
            outcome[:, 0] = 1.0
            return outcome
        slope = 1.0 if self.calibration is None else self.calibration.slope
        classes = np.arange(len(self.classes))
        outcome = slope * (
            (classes == self.codes[:, np.newaxis]) - 1.0 * (classes == self.second[:, np.newaxis])
        )
        return outcome if len(classes) > 2 else outcome[:, 1:]

    def _outcomes(self, contributions: Array) -> dict[str, Any]:
        """Return contributions to the outcome, and what single views predict.

        Parameters
        ----------
        contributions : array of shape (n_samples, n_views) or (n_samples, n_outputs, n_views)
        """
        if self.classes is None:
            contributions = contributions if contributions.ndim == 2 else contributions[:, 0]
            nothing = np.full(self.usable.shape, np.nan)
            left = self.codes[:, np.newaxis] - contributions
            return {
                "contributions": contributions,
                "base_values": self.codes - contributions.sum(axis=1),
                "alone": np.where(self.usable, self._alone(nothing.copy())[0], np.nan),
                "alone_probabilities": nothing,
                "alone_evidence": nothing,
                "without": np.where(self.removed, self._without(left), np.nan),
                "disagreement": self._disagreement(None),
                "alone_survival": self._survival_alone(),
            }
        if contributions.ndim == 2:
            contributions = np.stack([-contributions, contributions], axis=1) / 2
        scores, second = self.scores, self.second
        left = (self.decision[:, :, np.newaxis] - contributions).argmax(axis=1)
        unit, rows = "", np.arange(len(scores))
        if self.calibration is not None:
            unit, contributions = "log-odds", self.calibration.slope * contributions
        against = contributions[rows, self.codes] - contributions[rows, second]
        margin = scores[rows, self.codes] - scores[rows, second]
        without = self._without(left)
        decisive = self.removed & (without != self.codes[:, np.newaxis])
        return {
            "contributions": against,
            "base_values": margin - against.sum(axis=1),
            "unit": unit,
            "runner_up": self.classes[second],
            "without": self._labels(without, self.removed),
            "decisive": decisive,
            **self._outcomes_alone(contributions.argmax(axis=1), second, decisive),
        }

    def _outcomes_alone(self, codes: Array, second: Array, decisive: Array) -> dict[str, Array]:
        """Return classes that views predict alone, their evidence, and the status of samples.

        Parameters
        ----------
        codes : int array of shape (n_samples, n_views)
            Classes that the views contribute most to.
        second : int array of shape (n_samples,)
            Runner-up of each sample.
        decisive : bool array of shape (n_samples, n_views)
        """
        codes, probabilities = self._alone(codes)
        sure, evidence = np.ones_like(self.usable), np.full(self.usable.shape, np.nan)
        chance = evidence
        if probabilities is None:
            probabilities = np.eye(self.decision.shape[1])[codes]
        else:
            ranked = np.sort(probabilities, axis=2)
            sure = ranked[:, :, -1] >= _SURE * ranked[:, :, -2]
            chance = np.take_along_axis(probabilities, codes[:, :, np.newaxis], axis=2)[:, :, 0]
            log, rows = np.log(np.maximum(probabilities, _LEAST)), np.arange(len(codes))
            evidence = log[rows, :, self.codes] - log[rows, :, second]
        return {
            "alone": self._labels(codes, self.usable),
            "alone_probabilities": np.where(self.usable, chance, np.nan),
            "alone_evidence": np.where(self.usable, evidence, np.nan),
            "status": _status(codes, sure & self.usable, decisive),
            "disagreement": self._disagreement(probabilities),
        }

    def _labels(self, codes: Array, known: Array) -> Array:
        """Return classes by sample and view, None where they are not known."""
        assert self.classes is not None
        return np.where(known, self.classes.astype(object)[codes], np.array(None))

    def _alone(self, codes: Array) -> tuple[Array, Array | None]:
        """Return predictions of each view alone, and probabilities of all classes if there are any.

        Parameters
        ----------
        codes : array of shape (n_samples, n_views)
            Class codes, or values, of models that cannot do without their views. It is changed.

        Returns
        -------
        codes : array of shape (n_samples, n_views)
        probabilities : array of shape (n_samples, n_views, n_classes) or None
        """
        if len(self.views) == 1:
            whole = self.probabilities
            return self.codes[:, np.newaxis], None if whole is None else whole[:, np.newaxis]
        single = all(len(view.kernels) == 1 for view in self.views)
        if single and hasattr(self.inner, "predict_proba_alone"):
            by_kernel = np.asarray(self.inner.predict_proba_alone(self.Z))
            return by_kernel.argmax(axis=2), by_kernel
        probabilities = None
        for v, rows in self._rows_by_view(self.usable) if self.removable else ():
            samples = hide_views(self.samples, rows, self.views, np.arange(len(self.views)) == v)
            codes[rows, v] = self._predicted(samples)
            found = capture_warnings(_probabilities, self.probe, samples)[0]
            if found is not None:
                if probabilities is None:
                    # Views without a value of their own do not count.
                    shape = (*self.usable.shape, found.shape[1])
                    probabilities = np.full(shape, 1.0 / found.shape[1])
                probabilities[rows, v] = found
        return codes, probabilities

    def _survival_alone(self) -> Array | None:
        """Return survival curves of each view alone, (n_samples, n_views, n_times)."""
        if self.times is None or self.survival is None:
            return None
        if len(self.views) == 1:
            return self.survival[:, np.newaxis]
        curves = np.full((*self.usable.shape, len(self.times)), np.nan)
        for v, rows in self._rows_by_view(self.usable) if self.removable else ():
            samples = hide_views(self.samples, rows, self.views, np.arange(len(self.views)) == v)
            curves[rows, v] = capture_warnings(survival_at, self.probe, samples, self.times)[0]
        return curves

    def _without(self, left: Array) -> Array:
        """Return predicted class codes, or values, without each view, (n_samples, n_views).

        Parameters
        ----------
        left : array of shape (n_samples, n_views)
            Predictions whose decisions lack the contribution of the view, for models that cannot do
            without their views.
        """
        without = np.repeat(self.codes[:, np.newaxis], len(self.views), axis=1)
        for v, rows in self._rows_by_view(self.removed):
            if self.removable:
                keep = np.arange(len(self.views)) != v
                without[rows, v] = self._predicted(hide_views(self.samples, rows, self.views, keep))
            else:
                without[rows, v] = left[rows, v]
        return without

    def _rows_by_view(self, usable: Array) -> Iterator[tuple[int, Array]]:
        """Yield each view that some samples can use, and these samples."""
        found = ((v, np.flatnonzero(usable[:, v])) for v in range(len(self.views)))
        return ((v, rows) for v, rows in found if len(rows))

    def _predicted(self, samples: Any) -> Array:
        """Return predicted class codes, or values, of samples with hidden views."""
        predictions = capture_warnings(self.probe.predict, samples)[0]
        return class_codes(_first_target(predictions), self.classes)

    def _disagreement(self, probabilities: Array | None) -> Array:
        """Return the disagreement that the model measures, else that of probabilities."""
        if hasattr(self.inner, "disagreement"):
            return np.asarray(self.inner.disagreement(self.Z), dtype=float)
        if probabilities is None:
            return np.full(len(self.usable), np.nan)
        return np.asarray(pairwise_disagreement(probabilities, self.usable.astype(float)))


def _curve_times(layers: Sequence[Any], times: Any) -> Array | None:
    """Return the times of the curves of a survival model, None for other models."""
    survival = [layer for layer in layers if hasattr(layer, "predict_survival_function")]
    if not survival:
        return None
    if times is not None:
        return np.asarray(times, dtype=float)
    known = survival[0].unique_times_
    return np.asarray(known[evenly_spaced(len(known), _CURVE_TIMES)])


def _first_target(predictions: Any) -> Array:
    predictions = np.asarray(predictions)
    return predictions if predictions.ndim == 1 else predictions[:, 0]


def hide_views(X: Any, rows: Array, views: list[KernelView], keep: Array) -> Any:
    """Return samples whose views are missing, except some.

    Parameters
    ----------
    X : array or data frame of shape (n_samples, n_features)
    rows : int array of shape (n_rows,)
    views : list of KernelView
    keep : bool array of shape (n_views,)

    Returns
    -------
    X : array or data frame of shape (n_rows, n_features)
        NaN in columns that only hidden views read. Columns that no view reads stay, since a gate
        may read them.
    """
    read = [set(view.columns or ()) for view in views]
    kept = set().union(*(own for own, keeps in zip(read, keep, strict=True) if keeps))
    hidden = np.isin(np.arange(X.shape[1]), list(set().union(*read) - kept))
    if hasattr(X, "iloc"):
        return X.iloc[rows].mask(np.broadcast_to(hidden, (len(rows), X.shape[1])))
    return np.where(hidden, np.nan, plain(X)[rows])


def _probabilities(model: Any, X: Any) -> Array | None:
    return np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None


def _status(codes: Array, sure: Array, decisive: Array) -> Array:
    """Return the status of each sample; see :class:`Explanation`.

    Parameters
    ----------
    codes : int array of shape (n_samples, n_views)
        Class that each view predicts alone.
    sure, decisive : bool arrays of shape (n_samples, n_views)
    """
    lowest = np.where(sure, codes, np.iinfo(codes.dtype).max).min(axis=1)
    highest = np.where(sure, codes, -1).max(axis=1)
    any_sure = sure.any(axis=1)
    kinds = [any_sure & (lowest != highest), ~any_sure, decisive.any(axis=1)]
    return np.select(kinds, [CONTRADICT, UNSURE, HINGES], AGREE)
