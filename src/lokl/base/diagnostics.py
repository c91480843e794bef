"""Checks of a finished fit: all warnings about data, kernels and gates, and non-finite results."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from lokl._arrays import Array, Samples, as_samples, evenly_spaced
from lokl._threads import limit_blas_for
from lokl._warnings import capture_warnings, warn_once
from lokl.gates.base import normalized_weights
from lokl.gram import GatedGram
from lokl.kernels import Kernel
from lokl.kernels.columns import take_columns
from lokl.kernels.dot import median_squared_distance
from lokl.solvers import Dual, Problem, Solution

if TYPE_CHECKING:
    from lokl.base.model import Model
    from lokl.base.training import Training


def diagnose(estimator: Any, training: "Training", model: "Model") -> tuple[str, ...]:
    """Warn about a fit whose model or explanations are not reliable.

    Parameters
    ----------
    estimator : KernelEstimator
        Its settings are used for further small fits if the gate looks suspicious.
    training : Training
        Samples, bound kernels and problems of the fit.
    model : Model
        With the values of its gate at the training samples.

    Returns
    -------
    off_centre : tuple of str
        Names of kernels that shift the decision of samples without a view.
    """
    off_centre = training.cache.cached("diagnostics", lambda: _check_kernels(training, model))
    warn_of_weight_at_the_end(training.kernels, model.attributes().get("weights_"))
    if training.is_classification and estimator._weights_use_labels:
        warn_if_gate_misleads(estimator, training, model)
    return off_centre


def _check_kernels(training: "Training", model: "Model") -> tuple[str, ...]:
    """Check bound kernels, which all fits of a cost path share."""
    warn_of_useless_widths(training.kernels, training.samples)
    # Samples can lack a view only if every kernel is a view.
    views = len(training.kernels) > 1 and all(kernel.is_view for kernel in training.kernels)
    return find_off_centre(training) if views and model.shares_intercept else ()


# Saturated SVMs

# Mean of the diagonal times the sum of all costs, below which kernels count as too small. Kernels
# of trace one have 1 at C = 1, kernels of mean diagonal one have the number of samples.
_WEAK = 2.0


def warn_if_saturated(fits: Iterable[tuple[Sequence[Problem], Solution]]) -> None:
    """Warn if every machine predicts one class for all samples.

    Machines without samples do not count.
    """
    trained = [
        (problem, dual, solution.gram)
        for problems, solution in fits
        for problem, dual in zip(problems, solution.duals, strict=True)
        if len(dual.coef)
    ]
    if trained and all(_is_saturated(*machine) for machine in trained):
        warn_once(
            "saturated",
            "the SVM is saturated: kernel values are so small for this C that all samples get "
            "the decision of the larger class. Raise C, or normalise the kernels with "
            "normalized('mean_diag') instead of 'trace'",
        )


def _is_saturated(problem: Problem, dual: Dual, gram: GatedGram) -> bool:
    """Return whether the smaller class is at its bound and all decisions have the same sign.

    Then no kernel sum reaches the margin, and the intercept alone predicts the larger class.
    """
    decision = dual.decision
    if decision.min() <= 0.0 <= decision.max() or not problem.is_classification:
        return False
    up, down, cost = problem.upper > 0, problem.lower < 0, problem.bound
    if not np.isfinite(cost).all() or not up.any() or not down.any():
        return False
    if float(gram.diag().mean()) * float(cost.sum()) > _WEAK:
        # Costs that differ much between the classes have the same effect, but on purpose.
        return False
    smaller = up if cost[up].sum() <= cost[down].sum() else down
    at_bound = (np.abs(dual.coef[smaller]) >= (1.0 - 1e-6) * cost[smaller]).all()
    return bool(at_bound and np.abs(decision - dual.intercept).max() < 1.0)


# Widths of Gaussian kernels

# Gamma times the median squared distance of samples. Above the first, hardly any two samples are
# similar; below the second, all are.
_NARROW, _WIDE = 30.0, 0.003
# Rows among which distances are measured.
_ROWS = 200
# Share of the weight of several widths on one end from which the best width may lie beyond, and the
# least share of all weight that these kernels must have for a warning.
_AT_THE_END, _WORTH_A_WARNING = 0.95, 0.05
# Powers of two that a warning suggests beyond an end.
_MORE = 4


def warn_of_useless_widths(kernels: Sequence[Kernel], samples: Samples) -> None:
    """Warn if all Gaussian kernels of the same columns are far too narrow or too wide."""
    for columns, gammas in _gammas_by_columns(kernels, 2).items():
        widths = np.array(list(gammas.values()))
        rows = samples.rows_seen_by(next(iter(gammas)))
        X = samples.filled[rows[evenly_spaced(len(rows), _ROWS)]]
        if columns is not None:
            X = take_columns(X, columns)
        # BLAS threads would slow down the fit.
        with limit_blas_for(samples.n_samples):
            distance = median_squared_distance(as_samples(X))
        if distance == 0:
            continue
        power = float(np.log2(1.0 / distance))
        if widths[0] * distance > _NARROW:
            problem = "narrow for the data that hardly any two samples are similar"
            remedy = f"low={int(np.floor(power))}"
        elif widths[-1] * distance < _WIDE:
            problem = "wide for the data that all samples look alike"
            remedy = f"high={int(np.ceil(power))}"
        else:
            continue
        warn_once(
            f"widths on {columns}",
            f"{len(widths)} Gaussian kernels of the same columns, gamma from {widths[0]:.3g} to "
            f"{widths[-1]:.3g}, are all so {problem}: the median squared distance is "
            f"{distance:.3g}. Scale the data, or extend the kernels, for example by "
            f"rbf_ladder({remedy})",
        )


def warn_of_weight_at_the_end(kernels: Sequence[Kernel], weights: Any) -> None:
    """Warn if a global method puts nearly all weight of several widths on the first or last."""
    if np.shape(weights) != (len(kernels),):
        return
    for gammas in _gammas_by_columns(kernels, 3).values():
        widths, weight = np.array(list(gammas.values())), weights[list(gammas)]
        total = weight.sum()
        if total <= _WORTH_A_WARNING * np.sum(weights) or len(set(widths)) < len(widths):
            continue
        best = int(np.argmax(weight))
        if best not in (0, len(widths) - 1) or weight[best] <= _AT_THE_END * total:
            continue
        power = int(np.round(np.log2(widths[best])))
        beyond = f"low={power - _MORE}" if best == 0 else f"high={power + _MORE}"
        end = "widest" if best == 0 else "narrowest"
        warn_once(
            f"weight on gamma={widths[best]}",
            f"{weight[best] / total:.0%} of the weight of {len(widths)} Gaussian kernels is on the "
            f"{end}, gamma={widths[best]:.3g}: the best width may lie beyond. Extend the kernels, "
            f"for example by rbf_ladder({beyond})",
        )


def _gammas_by_columns(kernels: Sequence[Kernel], least: int) -> dict[Any, dict[int, float]]:
    """Return gammas by index of the kernel, in rising order, for Gaussian kernels by columns."""
    groups: dict[Any, dict[int, float]] = {}
    for i, kernel in enumerate(kernels):
        term = kernel.term()
        if term is None or not term.is_rbf:
            continue
        if term.normalizer is None and term.column_scale is None:
            groups.setdefault(term.columns, {})[i] = term.formula.gamma
    return {
        columns: dict(sorted(gammas.items(), key=lambda item: item[1]))
        for columns, gammas in groups.items()
        if len(gammas) >= least
    }


# Kernels off centre
#
# Values of a linear kernel on columns far from zero are nearly all the same large number. Its
# contribution has a large mean, which the intercept balances against the other kernels. A sample
# without one of the views loses the mean of that contribution, and all such samples look like one
# class.

# Mean of the matrix over the mean of its diagonal. Standardised columns: linear 0, quadratic up to
# 0.3, RBF "scale" 0.2. Raw gene expression: linear 0.96 and 0.985, all samples in one class; RBF
# "scale" up to 0.82, no harm. Columns scaled to [0, 1]: linear 0.88, a tenth of the samples wrong.
_LIMIT = 0.85


def find_off_centre(training: "Training") -> tuple[str, ...]:
    """Return the names of kernels that are off centre on the training samples with their view."""
    names = []
    for i, kernel in enumerate(training.kernels):
        rows = training.samples.rows_seen_by(i)
        if len(rows):
            K = kernel(training.samples.filled[rows[evenly_spaced(len(rows), _ROWS)]])
            if K.mean() > _LIMIT * K.diagonal().mean() > 0:
                names.append(training.names[i])
    return tuple(names)


def warn_if_shifted(off_centre: Sequence[str], samples: Samples) -> None:
    """Warn about new samples that lack a view if any kernel is off centre.

    The missing view need not be the cause: the remaining kernels also shift the decision.
    """
    if samples.present is None or not off_centre:
        return
    incomplete = int((~samples.present.all(axis=1)).sum())
    if not incomplete:
        return
    warn_once(
        "off centre",
        f"{incomplete} of {samples.n_samples} samples lack a view, and these kernels are off "
        f"centre: {', '.join(map(repr, off_centre))}; their values are nearly constant, and "
        "without a view the constants no longer cancel, so that such samples lean to one side. "
        "Standardise the columns (sklearn.preprocessing.StandardScaler), or use RBF('scale') on "
        "them",
    )


# Gates that memorise labels
#
# With few samples and many columns a gate can assign every class to one kernel. The gate then
# separates the training samples, new samples are not separated, and the weights depend on the start
# values. Two signs cost nothing: the class label explains the weights, or the gate has as many
# parameters for each kernel as there are samples. If one of them is found, a small cross-validation
# decides.

# Share of the variance of the weights that the class label may explain without further checks.
_SUSPICIOUS = 0.9
# Weights that differ between samples by less than this (standard deviation) are not misleading.
FLAT = 0.05
_FOLDS, _GATE_ROWS = 3, 600


def explained_by_classes(weights: Array, codes: Array, sample_weight: Array) -> float:
    """Return the share of the variance of kernel weights that the class explains: eta squared.

    Parameters
    ----------
    weights : array of shape (n_samples, n_kernels)
    codes : array of int of shape (n_samples,)
        Class of each sample.
    sample_weight : array of shape (n_samples,)
        A weight of 2 counts like the row written twice.

    Returns
    -------
    share : float
        From 0, if the mean weights of all classes are equal, to 1, if all samples of a class have
        the same weights; 0 if all samples have the same weights.
    """
    centred = weights - np.average(weights, axis=0, weights=sample_weight)
    total = float(sample_weight @ (centred**2).sum(axis=1))
    rounding = float(sample_weight.sum() * weights.shape[1] * np.finfo(float).eps)
    if total <= rounding:
        return 0.0
    between = 0.0
    for code in np.unique(codes[sample_weight > 0]):
        in_class = np.where(codes == code, sample_weight, 0.0)
        mean = in_class @ centred / in_class.sum()
        between += in_class.sum() * float(mean @ mean)
    return between / total


def warn_if_gate_misleads(estimator: Any, training: "Training", model: "Model") -> None:
    """Warn if the gate memorised labels or start values, and predicts no better without.

    Suspicious gates are compared with the average of the kernels by a small cross-validation. All
    other fits only look at gate values of the training samples.
    """
    some = evenly_spaced(training.n_samples, _GATE_ROWS)
    weights = training_weights(model, training, some)
    if np.sqrt(weights.var(axis=0).sum()) < FLAT:
        return
    codes = np.unique(training.y.ravel()[some], return_inverse=True)[1]
    explained = explained_by_classes(weights, codes, training.weight[some])
    n_parameters, n_weighted = model.n_gate_parameters, float(training.weight.sum())
    if explained <= _SUSPICIOUS and n_parameters < n_weighted:
        return
    often = np.bincount(codes)[codes] >= _FOLDS
    # Warnings of these small fits do not concern the fit of the user.
    scores, _ = capture_warnings(_held_out_accuracies, estimator, training, some[often])
    if scores is None or scores[0] > scores[1]:
        return
    name = type(estimator).__name__
    if explained > _SUSPICIOUS:
        sign = f"the class label explains {explained:.0%} of the weights that {name} learned"
        meaning = "the gate has learned the labels, and its weights have no meaning"
    else:
        sign = (
            f"the gate of {name} has learned {n_parameters} numbers for each kernel from "
            f"{n_weighted:g} samples"
        )
        meaning = "the weights may depend on the start values alone"
    warn_once(
        "gate misleads",
        f"{sign}, and held-out accuracy is {scores[0]:.3f}, compared with {scores[1]:.3f} for the "
        f"average of the kernels: {meaning}. lokl.explain.weight_stability measures how reliable "
        "they are. Raise ridge, use gating='kernel_pca' or gate.on(few columns) if the method has "
        "them, or use LDMKLClassifier or UniformMKLClassifier",
    )


def training_weights(model: "Model", training: "Training", some: Array) -> Array:
    """Return weights of the kernels at some training samples; rows sum to one."""
    assert model.training_gates is not None, "a method with a gate keeps its values until the end"
    present = training.samples.present
    weights = model.weights_of(model.training_gates[some])
    return normalized_weights(weights, None if present is None else present[some])


def _held_out_accuracies(
    estimator: Any, training: "Training", some: Array
) -> tuple[float, float] | None:
    """Return held-out accuracy of the method and of the average of the kernels on some samples.

    None if there is only one class.
    """
    part = replace(training, y=training.y.ravel()).take(some)
    if len(np.unique(part.y)) < 2:
        return None
    splitter = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    folds, X = list(splitter.split(part.y, part.y)), part.samples.table
    correct = np.zeros(2)
    for kept, left in folds:
        for i, learn in enumerate([None, type(training).average_model]):
            copy = _silent_clone(estimator)
            if learn is not None:
                copy._learn = learn
            predicted = copy._fit(part.take(kept), diagnosed=False).predict(_safe_indexing(X, left))
            correct[i] += part.weight[left] @ (predicted == part.y[left])
    return tuple(correct / part.weight.sum())


def _silent_clone(estimator: Any) -> Any:
    """Return an unfitted copy that neither logs nor calls back."""
    silent = clone(estimator).set_params(verbose=0)
    return silent.set_params(callback=None) if hasattr(silent, "callback") else silent
