"""From decisions to probabilities."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax

from lokl._arrays import Array

# Where evidence is thin, and where scale and offset cannot be told apart, numbers stay small.
_RIDGE = 1e-3
# Decisions that vary less than this, relative to their size, are constant.
_CONSTANT = 1e-10
_LARGEST = 1e300
_ROUNDS = 200
_SHORTEST = 1e-12


@dataclass(frozen=True, eq=False)
class Calibration:
    """Probabilities of classes: ``softmax_c(slope f_c(x) + offset_c)``, the slope not negative.

    With two classes, whose decision is one number, that is Platt's sigmoid
    ``1 / (1 + exp(-(slope f + offset)))``, written as decisions ``-f / 2`` and ``f / 2`` of the two
    classes.

    Attributes
    ----------
    slope : float
    offset : array of shape (n_classes,)
        All 0 where offsets would not pay: the most likely class is then the one of the largest
        decision.
    """

    slope: float
    offset: Array

    @classmethod
    def learn(
        cls, decision: Array, codes: Array, n_classes: int, weight: Array | None = None
    ) -> "Calibration":
        """Learn from decisions about samples that the deciding machines have not seen.

        Maximum likelihood, with Platt's targets: a sample of a class of ``N`` samples belongs to it
        with probability ``(N + 1) / (N + 2)``, the rest is shared by the other classes. So even
        classes that decisions separate altogether have a finite slope. Offsets are learned where
        they gain more than their number in log likelihood (Akaike's criterion): those that gain
        less are noise, and would only make the most likely class another than the predicted one.

        Parameters
        ----------
        decision : array of shape (n_samples,), (n_samples, 1) or (n_samples, n_classes)
        codes : int array of shape (n_samples,)
            Number of the class of each sample.
        n_classes : int
            Classes that no sample has get little, but some, probability.
        weight : array of shape (n_samples,), optional
            A weight of 2 counts like the sample written twice.
        """
        F = _by_class(decision)
        _check(F, codes, n_classes)
        weight = np.ones(len(F)) if weight is None else np.asarray(weight, dtype=float)
        total = float(weight.sum())
        if not len(F) or not total > 0:
            raise ValueError("calibration needs held-out decisions about samples with a weight")
        share, targets = weight / total, _targets(codes, n_classes, weight)
        # What all classes have in common cancels.
        F = F - F.mean(axis=1, keepdims=True)
        plain, plain_loss = _fitted(F, targets, share, total, offsets=False)
        centre = share @ F
        shifted, shifted_loss = _fitted(F - centre, targets, share, total, offsets=True)
        if total * (plain_loss - shifted_loss) <= n_classes - 1:
            return plain
        return cls(shifted.slope, shifted.offset - shifted.slope * centre)

    def log_probabilities(self, decision: Array) -> Array:
        """Logarithms of the probabilities, (n_samples, n_classes)."""
        F = _by_class(decision)
        with np.errstate(over="ignore"):
            scores = np.clip(self.slope * F + self.offset, -_LARGEST, _LARGEST)
        return np.asarray(log_softmax(scores, axis=1))

    def probabilities(self, decision: Array) -> Array:
        """Probabilities of the classes, (n_samples, n_classes); rows sum to one."""
        chance = np.exp(self.log_probabilities(decision))
        return np.asarray(chance / chance.sum(axis=1, keepdims=True))


def _by_class(decision: Array) -> Array:
    """One column for each class."""
    F = np.asarray(decision, dtype=float)
    if F.ndim == 1 or F.shape[1] == 1:
        return np.column_stack([-0.5 * F.ravel(), 0.5 * F.ravel()])
    return F


def _check(F: Array, codes: Array, n_classes: int) -> None:
    if F.shape != (len(codes), n_classes):
        raise ValueError(
            f"decisions of {len(codes)} samples of {n_classes} classes have shape "
            f"{(len(codes), n_classes)}, or one column for two classes; got {F.shape}"
        )
    if not np.isfinite(F).all():
        bad = int(np.flatnonzero(~np.isfinite(F).all(axis=1))[0])
        raise ValueError(f"the decision about sample {bad} is not finite: {F[bad]}")


def _fitted(
    F: Array, targets: Array, share: Array, total: float, *, offsets: bool
) -> tuple[Calibration, float]:
    """Best slope, and offsets where they are wanted, and the mean log loss that is left."""
    n_classes = F.shape[1]
    size = max(float(np.abs(F).max()), np.finfo(float).tiny)
    deviation = float(np.sqrt(share @ ((F / size) ** 2).sum(axis=1)))
    # Decisions that say nothing about samples have no slope.
    scale = size * deviation if deviation > _CONSTANT else np.inf
    objective = _Objective(F / scale, targets, share, _RIDGE / total)
    movable = np.array([True] + n_classes * [offsets])
    params = _minimise(objective, np.eye(n_classes + 1)[0], movable)
    return Calibration(float(params[0] / scale), params[1:]), objective.value(params)


def _targets(codes: Array, n_classes: int, weight: Array) -> Array:
    """Probabilities that Platt wants to be met, (n_samples, n_classes)."""
    counts = np.bincount(codes, weights=weight, minlength=n_classes)
    doubt = 1.0 / (counts + 2.0)
    targets = np.repeat(doubt[codes][:, np.newaxis] / (n_classes - 1), n_classes, axis=1)
    targets[np.arange(len(codes)), codes] = 1.0 - doubt[codes]
    return targets


@dataclass(frozen=True, eq=False)
class _Objective:
    """Mean log loss and a ridge, in one slope and the offsets of standardised decisions."""

    Z: Array
    targets: Array
    share: Array  # of each sample in all weight
    ridge: float

    def value(self, params: Array) -> float:
        loss = -(self.targets * self._logarithms(params)).sum(axis=1)
        return float(self.share @ loss + 0.5 * self.ridge * (params @ params))

    def slope_and_curvature(self, params: Array) -> tuple[Array, Array]:
        P = np.exp(self._logarithms(params))
        rest = self.share[:, np.newaxis] * (P - self.targets)
        slope = np.append((self.Z * rest).sum(), rest.sum(axis=0))
        # Of each sample: the covariance, under its probabilities, of what the parameters multiply.
        mean = np.column_stack([(self.Z * P).sum(axis=1), P])
        curvature = -mean.T @ (self.share[:, np.newaxis] * mean)
        curvature[0, 0] += self.share @ (self.Z**2 * P).sum(axis=1)
        across = self.share @ (self.Z * P)
        curvature[0, 1:] += across
        curvature[1:, 0] += across
        curvature[1:, 1:] += np.diag(self.share @ P)
        return slope + self.ridge * params, curvature + self.ridge * np.eye(len(params))

    def _logarithms(self, params: Array) -> Array:
        return np.asarray(log_softmax(params[0] * self.Z + params[1:], axis=1))


def _minimise(objective: _Objective, params: Array, movable: Array) -> Array:
    """Newton steps with a line search; the first number, the slope, is not negative."""
    for _ in range(_ROUNDS):
        slope, curvature = objective.slope_and_curvature(params)
        free = movable.copy()
        # A slope of zero that would fall further stays.
        free[0] = params[0] > 0 or slope[0] < 0
        newton = np.zeros_like(params)
        newton[free] = -np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
        moved = _walk(objective, params, slope, newton)
        if moved is None:
            # A step that the bound cuts may point uphill; the plain slope never does.
            moved = _walk(objective, params, slope, np.where(free, -slope, 0.0))
        if moved is None:
            break
        length = float(np.abs(moved - params).max())
        params = moved
        if length < _SHORTEST:
            break
    return params


def _walk(objective: _Objective, params: Array, slope: Array, direction: Array) -> Array | None:
    """Longest step, halved until it gains; None where no step does."""
    value = objective.value(params)
    # What rounding takes and gives is no reason to stop before the last digits are right.
    slack = 1e-14 * (1.0 + abs(value))
    length = 1.0
    while length > 1e-8:
        candidate = params + length * direction
        candidate[0] = max(candidate[0], 0.0)
        gain = float(slope @ (candidate - params))
        if gain <= 0 and objective.value(candidate) <= value + 1e-4 * gain + slack:
            return candidate
        length /= 2
    return None


def expected_calibration_error(
    y: Any, proba: Any, n_bins: int = 10, *, classes: Any = None, sample_weight: Any = None
) -> float:
    """How far probabilities are from what they say, on average: 0 is perfect.

    Samples are sorted into bins of equal width by the probability of their most likely class; the
    error is the mean over samples of ``|share of right answers - mean probability|`` in their bin.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of samples that neither model nor calibration has seen.
    proba : array-like of shape (n_samples, n_classes), or (n_samples,)
        Probabilities of the classes, or of the second of two.
    n_bins : int, default=10
    classes : array-like of shape (n_classes,), optional
        Classes of the columns, ``model.classes_``; the sorted labels of `y` where None.
    sample_weight : array-like of shape (n_samples,), optional

    Examples
    --------
    >>> expected_calibration_error([0, 1, 1, 1], [0.25, 0.75, 0.75, 0.75])
    0.25
    """
    y = np.asarray(y)
    P = _probabilities(proba, len(y))
    labels = np.unique(y) if classes is None else np.asarray(classes)
    if len(labels) != P.shape[1]:
        raise ValueError(
            f"proba has {P.shape[1]} columns for {len(labels)} classes {labels.tolist()}; give "
            "the classes of the columns: classes=model.classes_"
        )
    if int(n_bins) != n_bins or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number of at least 1, got {n_bins!r}")
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weight.shape != (len(y),) or not (weight >= 0).all() or not 0 < weight.sum() < np.inf:
        raise ValueError(
            f"sample_weight is one number for each of {len(y)} samples, not negative and not all "
            f"zero; got shape {weight.shape}"
        )
    confidence = P.max(axis=1)
    right = labels[P.argmax(axis=1)] == y
    bins = np.minimum((confidence * n_bins).astype(int), int(n_bins) - 1)
    # |sum of (right - confidence)| is the number of samples in a bin times their difference.
    away = np.bincount(bins, weights=weight * (right - confidence))
    return float(np.abs(away).sum() / weight.sum())


def _probabilities(proba: Any, n_samples: int) -> Array:
    P = np.asarray(proba, dtype=float)
    if P.ndim == 1:
        P = np.column_stack([1.0 - P, P])
    if P.ndim != 2 or len(P) != n_samples or not n_samples:
        raise ValueError(f"proba has a row for each of {n_samples} labels, got shape {P.shape}")
    bad = ~((P >= 0).all(axis=1) & (np.abs(P.sum(axis=1) - 1) < 1e-6))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"row {row} of proba is {P[row].tolist()}; probabilities are not negative and sum to "
            "one (predict_proba gives them, decision_function does not)"
        )
    return P
