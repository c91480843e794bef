"""Model protocol, SVMs on one gated kernel, and fitted attributes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ClassVar, TypeVar

import numpy as np

from lokl._arrays import Array, Samples
from lokl._frames import as_pandas
from lokl.gram import Expansion, GatedKernel

__all__ = ["GatedMachine", "Model", "SupportSet"]

# Attributes that scikit-learn sets on every estimator, with their type and meaning.
FEATURE_ATTRIBUTES = {
    "n_features_in_": ("int", ""),
    "feature_names_in_": ("array of str", "Only if the training samples have column names."),
}
# Attribute of methods that have the squared loss.
LEAVE_ONE_OUT = {
    "loo_decision_": (
        "array of shape (n_samples,) or (n_samples, n_tasks)",
        'Only for ``loss="squared"``, if the Gram matrix or low-rank features fit `cache_size`: '
        "exact leave-one-out decisions of the rows of X, by the final SVMs refitted without the "
        "row, kernels and gate held fixed. A row of weight 2 is left out with all its weight; for "
        "a row without a weight it is the decision of the model.",
    )
}


Fit = TypeVar("Fit", bound=Callable[..., Any])


def atomic_fit(fit: Fit) -> Fit:
    """Make a fit replace all results of the previous fit, or change nothing if it fails.

    scikit-learn sets attributes before learning starts. Without this, an error or an interruption
    would leave an estimator with attributes of two different fits.
    """

    @wraps(fit)
    def wrapped(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(estimator))
        try:
            for name in before.get("_results", ()):
                vars(estimator).pop(name, None)
            return fit(estimator, *args, **kwargs)
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise

    return wrapped  # type: ignore[return-value]


def publish(estimator: Any, results: dict[str, Any]) -> None:
    """Set fitted attributes, and record their names for the next fit."""
    vars(estimator).update(results, _results=tuple(results))


@dataclass(frozen=True, eq=False)
class Model(ABC):
    """A learned function of samples, with the contribution of each kernel.

    A task is one class against the rest, the second of two classes, or one target.

    Attributes
    ----------
    shares_intercept : bool
        Whether one intercept balances the contributions of all kernels. A sample without one of the
        views is then shifted if the contributions have large means.
    training_gates : array of shape (n_samples, n_kernels), with a third axis for ranks, or None
        Values of the gate at the training samples, for the diagnostics at the end of a fit; None
        afterwards, and for methods without a gate.
    left_out : array of shape (n_samples, n_tasks) or None
        Exact leave-one-out decisions of the training samples with a weight, with the gate held
        fixed, or held-out decisions if the training has folds; None if there are none, and after
        the fit.

    See Also
    --------
    GatedMachine : One SVM on a gated kernel.
    lokl.methods.ldmkl.Expert : A member of a vote.
    lokl.methods.trusted_vote.model.TrustedExpert : A member of a trusted vote.

    Examples
    --------
    >>> from lokl.base.model import GatedMachine, Model
    >>> issubclass(GatedMachine, Model), GatedMachine.shares_intercept
    (True, True)
    """

    shares_intercept: ClassVar[bool]
    training_gates: Array | None = field(default=None, kw_only=True)
    left_out: Array | None = field(default=None, kw_only=True)

    @abstractmethod
    def decide(self, samples: Samples) -> Array:
        """Return decision values, (n_samples, n_tasks)."""

    @abstractmethod
    def contributions(self, samples: Samples) -> Array:
        """Return contributions to the decision, (n_samples, n_kernels, n_tasks)."""

    @abstractmethod
    def weights(self, samples: Samples) -> Array:
        """Return weights of the kernels at each sample, (n_samples, n_kernels).

        The scale depends on the method; estimators normalise rows to sum to one.
        """

    @property
    def n_gate_parameters(self) -> int:
        """Number of learned gate parameters for each kernel; 0 if there is no gate."""
        return 0

    def weights_of(self, gates: Array) -> Array:
        """Return the weights of samples with known gate values, on the scale of :meth:`weights`."""
        return gates

    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator with this model, by name.

        Attributes
        ----------
        kernels_, kernel_names_ : list
            Kernels with learned settings, and their names.
        support_ : array of shape (n_support,)
            Rows of X that are support vectors.
        support_vectors_ : {array, CSR matrix} of shape (n_support, n_features)
        support_fraction_ : float
            Share of the weighted samples that are support vectors.
        intercept_ : array of shape (n_machines,)
        kernel_residual_ : array of shape (n_kernels,)
            Error of low-rank features for each kernel (``solver="primal"``): share of its trace;
            for Fourier features, distance from its matrix. 0 for other solvers.
        n_iter_ : int
            Steps of the solver.
        """


@dataclass(frozen=True, eq=False)
class SupportSet:
    """Support vectors of a model.

    Attributes
    ----------
    positions : int array of shape (n_support,)
        Positions among the samples that the model was fitted on.
    rows : int array of shape (n_support,)
        Row numbers in the data of the caller.
    vectors : {array, CSR matrix} of shape (n_support, n_features)
        The samples.
    fraction : float
        Share of the training samples.

    See Also
    --------
    GatedMachine : A model with support vectors.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import UniformMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = UniformMKLClassifier(["rbf"]).fit(X, y)
    >>> sorted(name for name in vars(model) if name.startswith("support"))
    ['support_', 'support_fraction_', 'support_vectors_']
    """

    positions: Array  # among the training samples with a weight
    rows: Array  # among all rows of X
    vectors: Any  # {array, CSR matrix} of shape (n_support, n_features), as given
    fraction: float  # of the training samples with a weight

    @classmethod
    def at(cls, positions: Array, samples: Samples, rows: Array) -> "SupportSet":
        """Return the support set at positions among samples with known rows of X."""
        fraction = len(positions) / samples.n_samples
        return cls(positions, rows[positions], samples.given[positions], fraction)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of the support set."""
        return {
            "support_": self.rows,
            "support_vectors_": self.vectors,
            "support_fraction_": self.fraction,
        }


@dataclass(frozen=True, eq=False)
class GatedMachine(Model):
    """``f(x) = sum_j k(x, x_j) u_j + b`` with ``k = sum_i <h_i(x), h_i(z)> k_i``.

    Attributes
    ----------
    kernel : GatedKernel
        Kernel with learned gates.
    expansion : Expansion
        The function of new samples.
    support : SupportSet
        Support vectors.
    dual_coef : array of shape (n_machines, n_support)
        Signed coefficients.
    history : array of shape (n_rounds,)
        Objective after every step of learning.
    gap : float
        Certified for the whole problem of the method, NaN without a certificate.
    n_iter : int
        Rounds of the method, or steps of the solver if it has none.
    learned : dict of str to object
        Attributes of this method only.
    training_gates, left_out
        As for :class:`Model`.

    See Also
    --------
    lokl.UniformMKLClassifier : An estimator whose model it is.
    lokl.gram.GatedKernel : The same kernel for any samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import UniformMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = UniformMKLClassifier(["linear", "rbf"]).fit(X, y)
    >>> model.kernel_.names
    ['linear', 'rbf']
    >>> model.dual_coef_.shape[0], model.intercept_.shape
    (3, (3,))
    """

    kernel: GatedKernel
    expansion: Expansion  # the function of new samples
    support: SupportSet
    dual_coef: Array  # (n_machines, n_support)
    history: Array  # objective after every step of learning
    gap: float  # certified for the whole problem of the method, NaN without a certificate
    n_iter: int  # rounds of the method, or steps of the solver if it has none
    learned: Mapping[str, Any] = field(default_factory=dict)  # attributes of this method only

    shares_intercept: ClassVar[bool] = True

    def decide(self, samples: Samples) -> Array:
        return self.expansion(samples)

    def contributions(self, samples: Samples) -> Array:
        return self.expansion.contributions(self.expansion.prepare(samples))

    def weights(self, samples: Samples) -> Array:
        return self.weights_of(self.kernel.gates(samples))

    @property
    def n_gate_parameters(self) -> int:
        return int(np.size(self.kernel.params) // len(self.kernel.kernels))

    def weights_of(self, gates: Array) -> Array:
        flat = gates[:, :, 0] if gates.ndim == 3 and gates.shape[2] == 1 else gates
        return np.asarray(self.kernel.gate.kernel_weights(flat))

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes by name, with those of the method.

        Attributes
        ----------
        kernel_ : GatedKernel
            The learned kernel, usable as any kernel: ``SVC(kernel=model.kernel_)``.
        dual_coef_ : array of shape (n_machines, n_support)
            Signed coefficients; one SVM for two classes, otherwise one per class or target.
        history_ : array
            Dual objective, summed over the SVMs.
        duality_gap_ : float
            Certified: the objective is at most this far from the optimum.
        """
        return {
            "kernel_": self.kernel,
            "kernels_": list(self.kernel.kernels),
            "kernel_names_": list(self.kernel.names or ()),
            **self.support.attributes(),
            "dual_coef_": self.dual_coef,
            "intercept_": self.expansion.intercept,
            "kernel_residual_": self.kernel.residual,
            "history_": self.history,
            "duality_gap_": self.gap,
            "n_iter_": self.n_iter,
            **self.learned,
        }


# Models inside pipelines and searches

# Attributes in which meta-estimators keep the fitted estimator.
_INNER = ("best_estimator_", "estimator_")


def kernel_columns(model: Any, names: Sequence[str] | None) -> dict[str, list[Any]] | None:
    """Return the columns of each kernel of a fitted model, by the name of the kernel.

    None unless the model has kernels and each of them is a view. Columns are positions if their
    names are not known.
    """
    kernels = getattr(model, "kernels_", None)
    if not kernels or not all(kernel.is_view for kernel in kernels):
        return None
    used = [map(int, kernel.columns_used() or ()) for kernel in kernels]
    columns = [[j if names is None else str(names[j]) for j in positions] for positions in used]
    return dict(zip(model.kernel_names_, columns, strict=True))


def fitted_inside(model: Any) -> Any:
    """Return the fitted estimator inside a meta-estimator, None if there is none."""
    return next((vars(model)[name] for name in _INNER if name in vars(model)), None)


def model_layers(model: Any, X: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield a model and the fitted models inside it, outermost first.

    Pipelines are replaced by their last steps.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : samples, optional

    Yields
    ------
    model : estimator
    X : samples
        As this model receives them, after the transformers of the pipelines around it; None without
        samples.
    """
    X = as_pandas(X)
    while model is not None:
        if hasattr(model, "steps"):
            if X is not None and len(model.steps) > 1:
                X = as_pandas(model[:-1].transform(X))
            model = model.steps[-1][1]
            continue
        yield model, X
        model = fitted_inside(model)


def unwrap(model: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the innermost model of pipelines and searches, and samples as it receives them.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : samples, optional

    Returns
    -------
    model : estimator
    X : samples
        Transformed by the pipelines around the model; None without samples.
    """
    *_, innermost = model_layers(model, X)
    return innermost
