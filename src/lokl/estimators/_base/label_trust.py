"""Trust that is an accident: how to notice it in a fit, and when to warn.

On few samples with many columns a gate can send every class to a kernel of its own. The training
samples are then separated by the gate instead of the kernels, new samples are not, and "which
kernel decided" is an accident of the start values. Two signs of it cost nothing: the class label
explains the trust, or the gate has learned as many numbers for each kernel as there are samples.
Where one of them is there, a small cross-validation decides.
"""

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from lokl._arrays import Array
from lokl._notices import apart, tell
from lokl.estimators._base.training import Training
from lokl.gates.base import shares
from lokl.models import Model

# The class label may explain so much of the variance of the trust before it is looked into.
_SUSPICIOUS = 0.9
# Trust that differs between samples by less than this (standard deviation) misleads nobody.
FLAT = 0.05
_FOLDS, _ROWS = 3, 600


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
    free, n_counted = model.gate_freedom, float(training.weight.sum())
    if told <= _SUSPICIOUS and free < n_counted:
        return
    X = data.X if data.frame is None else data.frame
    # What small fits have to warn of says nothing about the fit that was asked for.
    scores, _ = apart(_held_out, learner, X, y, weight, rows[_often_enough(codes)])
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
    tell(
        "trust misleads",
        f"{sign}, and held-out accuracy is {scores[0]:.3f}, that of UniformMKLClassifier "
        f"{scores[1]:.3f}: {meaning}. lokl.inspection.gate_stability tells how far it can be "
        "believed. Raise ridge, use gating='kernel_pca' or gate.on(few columns) where the method "
        "has them, or take LDMKLClassifier or UniformMKLClassifier",
    )


def _some(n_samples: int) -> Array:
    """Places of at most some hundred samples, evenly spread."""
    return np.unique(np.linspace(0, n_samples - 1, min(n_samples, _ROWS)).astype(np.intp))


def _trust_of_training(model: Model, training: Training, some: Array) -> Array:
    """Shares of the kernels in the trust of some training samples."""
    gates, present = model.gates, training.samples.present
    assert gates is not None, "learning is over: the gates of the training samples are gone"
    return shares(model.trust_of(gates[some]), None if present is None else present[some])


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
            part = rival._read(_safe_indexing(X, learn), y[learn], weight[learn])
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
    from lokl.estimators.uniformmkl import UniformMKLClassifier, UniformMKLRegressor

    kind: Any = UniformMKLClassifier if is_classifier(model) else UniformMKLRegressor
    plain, given = kind(), clone(model).get_params(deep=False)
    shared = plain.get_params(deep=False).keys() & given.keys() - {"max_iter", "verbose"}
    return plain.set_params(**{name: given[name] for name in shared})


def _spread_of_rounding(trust: Array, weight: Array) -> float:
    return float(weight.sum() * trust.shape[1] * np.finfo(float).eps)
