"""Gaussian kernels of several widths that miss the data: a warning says where to extend them.

Kernels that are off centre, which shift the decision of samples that lack a view.

The values of a linear kernel on columns far from zero are nearly all the same large number. Its
part in the decision has a large mean, which one intercept balances against the parts of the other
kernels. A sample that lacks a view upsets this balance: the mean of the missing part is gone, the
parts of the kernels that are left count for more. All such samples then look like one class.

Trust that is an accident: how to notice it in a fit, and when to warn.

On few samples with many columns a gate can send every class to a kernel of its own. The training
samples are then separated by the gate instead of the kernels, new samples are not, and "which
kernel decided" is an accident of the start values. Two signs of it cost nothing: the class label
explains the trust, or the gate has learned as many numbers for each kernel as there are samples.
Where one of them is there, a small cross-validation decides.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from lokl._arrays import Array, Samples, as_samples, squared_norms
from lokl._warnings import capture_warnings, warn_once
from lokl.base.model import Model
from lokl.base.training import Training
from lokl.gates.base import normalized_weights
from lokl.kernels import Kernel
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
        warn_once(
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
        warn_once(
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
        if term is None or term.formula.operation != "gaussian":
            continue
        if term.normalizer is None and term.column_scale is None:
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


# Mean of the matrix over the mean of its diagonal. Standardised columns: linear 0, quadratic up to
# 0.3, RBF "scale" 0.2. Raw gene expression: linear 0.96 and 0.985, everybody in one class; RBF
# "scale" up to 0.82, no harm. Columns scaled to [0, 1]: linear 0.88, a tenth of the samples wrong.
_LIMIT = 0.85


def find_off_centre(training: Training) -> tuple[str, ...]:
    """Return the names of kernels that are off centre on training samples that have their view."""
    found = []
    for i, kernel in enumerate(training.kernels):
        rows = training.samples.rows_seen_by(i)
        some = np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).astype(np.intp)
        if len(rows) and _is_off_centre(kernel(training.samples.filled[rows[some]])):
            found.append(training.names[i])
    return tuple(found)


def _is_off_centre(K: Array) -> bool:
    return bool(K.mean() > _LIMIT * K.diagonal().mean() > 0)


def warn_if_shifted(off_centre: Sequence[str], samples: Samples) -> None:
    """Warn about new samples that lack a view, where kernels are off centre.

    The missing view need not be at fault: kernels that remain shift the decision as well.
    """
    if samples.present is None or not off_centre:
        return
    short = int((~samples.present.all(axis=1)).sum())
    if not short:
        return
    warn_once(
        "off centre",
        f"{short} of {samples.n_samples} samples lack a view, and these kernels are off centre: "
        f"{', '.join(map(repr, off_centre))}; their values are nearly constant, and without a view "
        "the constants no longer cancel, so that such samples lean to one side. Standardise the "
        "columns (sklearn.preprocessing.StandardScaler), or use RBF('scale') on them",
    )


# The class label may explain so much of the variance of the trust before it is looked into.
_SUSPICIOUS = 0.9
# Trust that differs between samples by less than this (standard deviation) misleads nobody.
FLAT = 0.05
_FOLDS, _LABEL_ROWS = 3, 600


def explained_by_classes(trust: Array, codes: Array, weight: Array) -> float:
    """Share of the variance of trust that the class label explains: eta squared.

    Parameters
    ----------
    trust : array of shape (n_samples, n_kernels)
    codes : array of int of shape (n_samples,)
        Class of each sample.
    weight : array of shape (n_samples,)
        A weight of 2 counts like the row written twice.

    Returns
    -------
    share : float
        From 0, where the mean trust of all classes is the same, to 1, where samples of a class
        trust alike; 0 where all samples do.
    """
    centred = trust - np.average(trust, axis=0, weights=weight)
    whole = float(weight @ (centred**2).sum(axis=1))
    if whole <= _spread_of_rounding(trust, weight):
        return 0.0
    between = 0.0
    for code in np.unique(codes[weight > 0]):
        own = np.where(codes == code, weight, 0.0)
        mean = own @ centred / own.sum()
        between += own.sum() * float(mean @ mean)
    return between / whole


def warn_if_trust_misleads(learner: Any, data: Any, training: Training, model: Model) -> None:
    """Warn where the gate of a fitted classifier looks like an accident and predicts no better.

    `data` are the checked data of the fit, `model` is as learning left it. What is suspicious is
    looked into by a small cross-validation against the plain average of the kernels; all other
    fits cost a look at gate values that learning knew.
    """
    some = _some(training.n_samples)
    trust = _trust_of_training(model, training, some)
    if np.sqrt(trust.var(axis=0).sum()) < FLAT:
        return
    y, weight, rows = data.y.ravel(), data.weight, training.rows[some]
    codes = np.unique(y[rows], return_inverse=True)[1]
    told = explained_by_classes(trust, codes, weight[rows])
    free, n_counted = model.n_gate_parameters, float(training.weight.sum())
    if told <= _SUSPICIOUS and free < n_counted:
        return
    X = data.X if data.frame is None else data.frame
    # What small fits have to warn of says nothing about the fit that was asked for.
    scores, _ = capture_warnings(_held_out, learner, X, y, weight, rows[_often_enough(codes)])
    if scores is None or scores[0] > scores[1]:
        return
    name = type(learner).__name__
    sign = f"the class label explains {told:.0%} of the trust that {name} learned"
    meaning = "the gate has learned the labels, and which kernel it trusts means nothing"
    if told <= _SUSPICIOUS:
        sign = (
            f"the gate of {name} has learned {free} numbers for each kernel from {n_counted:g} "
            "samples"
        )
        meaning = "which kernel it trusts may be an accident of the start values"
    warn_once(
        "trust misleads",
        f"{sign}, and held-out accuracy is {scores[0]:.3f}, that of UniformMKLClassifier "
        f"{scores[1]:.3f}: {meaning}. lokl.explain.gate_stability tells how far it can be "
        "believed. Raise ridge, use gating='kernel_pca' or gate.on(few columns) where the method "
        "has them, or take LDMKLClassifier or UniformMKLClassifier",
    )


def _some(n_samples: int) -> Array:
    """Places of at most some hundred samples, evenly spread."""
    return np.unique(np.linspace(0, n_samples - 1, min(n_samples, _LABEL_ROWS)).astype(np.intp))


def _trust_of_training(model: Model, training: Training, some: Array) -> Array:
    """Shares of the kernels in the trust of some training samples."""
    gates, present = model.gates, training.samples.present
    assert gates is not None, "learning is over: the gates of the training samples are gone"
    return normalized_weights(
        model.weights_of(gates[some]), None if present is None else present[some]
    )


def _often_enough(codes: Array) -> Array:
    """Which samples are of a class that every fold can have."""
    return np.asarray(np.bincount(codes)[codes] >= _FOLDS)


def _held_out(
    model: Any, X: Any, y: Array, weight: Array, rows: Array
) -> tuple[float, float] | None:
    """Held-out accuracy of the method and of the average of the kernels; None for one class."""
    if len(np.unique(y[rows])) < 2:
        return None
    rivals = [_quiet(model), average_of(model)]
    hits = np.zeros(2)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    for kept, left in folds.split(rows, y[rows]):
        learn, test = rows[kept], rows[left]
        for i, rival in enumerate(rivals):
            # Not fit, which would ask this question again.
            part = rival._validate(_safe_indexing(X, learn), y[learn], weight[learn])
            rival._fit_classes(part)
            right = rival.predict(_safe_indexing(X, test)) == y[test]
            hits[i] += weight[test] @ right
    return tuple(hits / weight[rows].sum())


def _quiet(model: Any) -> Any:
    """An unfitted copy that neither logs nor calls back."""
    silent = {"verbose": 0, "callback": None}
    known = model.get_params(deep=False)
    return clone(model).set_params(**{name: silent[name] for name in silent if name in known})


def average_of(model: Any) -> Any:
    """The plain average of the same kernels, with the same settings; not fitted."""
    # The baseline is built on this package.
    from lokl.methods.uniformmkl import UniformMKLClassifier, UniformMKLRegressor

    kind: Any = UniformMKLClassifier if is_classifier(model) else UniformMKLRegressor
    plain, given = kind(), clone(model).get_params(deep=False)
    shared = plain.get_params(deep=False).keys() & given.keys() - {"max_iter", "verbose"}
    return plain.set_params(**{name: given[name] for name in shared})


def _spread_of_rounding(trust: Array, weight: Array) -> float:
    return float(weight.sum() * trust.shape[1] * np.finfo(float).eps)
