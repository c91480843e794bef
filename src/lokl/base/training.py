"""Data of a fit: validation, bound kernels, dual problems and the solver."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from lokl._arrays import Array, Samples, is_sparse, narrow_indices, sample_weight
from lokl.base.diagnostics import warn_if_saturated
from lokl.base.fit_cache import FitCache
from lokl.base.model import GatedMachine, SupportSet
from lokl.gates import Gate
from lokl.gram import GatedGram
from lokl.gram.gated_kernel import average_kernel
from lokl.kernels import Kernel
from lokl.kernels.samples import read_samples
from lokl.solvers import Machines, Problem, Solution, Solver
from lokl.solvers.machines import Fold, held_out_decisions
from lokl.solvers.solve import resolve_solver
from lokl.solvers.squared import leave_one_out

ALL_ZERO = "all sample weights are zero; at least one sample must count"
# Sums over any number of samples are then finite.
_LARGEST_SUM = 1e100


def check_samples(
    estimator: Any, X: Any, y: Any = None, *, fitting: bool, missing: bool, views: bool = True
) -> Any:
    """Return samples (and targets when fitting) as arrays or CSR matrices.

    Parameters
    ----------
    estimator : estimator
        Number and names of the columns are set when `fitting`, otherwise checked.
    X, y : samples and targets
    fitting : bool
    missing : bool
        Whether NaN is allowed because views may be missing; bound kernels decide which are.
    views : bool, default=True
        Whether NaN would be allowed with other kernels, for the error.
    """
    if _is_plain(X):
        names = "feature_names_in_" in vars(estimator)
        if fitting and _is_plain_target(y, len(X)) and not names:
            estimator.n_features_in_ = X.shape[1]
            return X, y
        if not fitting and not names and X.shape[1] == estimator.n_features_in_:
            return X
    _refuse_several_tables(X)
    options: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": [np.float64, np.float32],
        "ensure_all_finite": "allow-nan",
        "reset": fitting,
    }
    given = X
    # Infinite values raise an error; overflows of intermediate sums are harmless.
    with np.errstate(all="ignore"):
        try:
            if fitting:
                X, y = validate_data(estimator, X, y, multi_output=True, y_numeric=False, **options)
            else:
                X = validate_data(estimator, X, **options)
        except (TypeError, ValueError) as error:
            _refuse_words(given, error)
            raise
    if not missing:
        _refuse_nan(X, views, getattr(estimator, "feature_names_in_", None))
    return (_canonical(X), y) if fitting else _canonical(X)


def _is_plain(X: Any) -> bool:
    """Whether samples are an array that all checks of scikit-learn return as it is.

    Recognising it takes a twentieth of the time of the checks, which is most of the time of a
    prediction of one sample, and a quarter of a fit of 200.
    """
    if type(X) is not np.ndarray or X.ndim != 2 or X.size == 0:
        return False
    return X.dtype in (np.float64, np.float32) and _is_finite(X)


def _is_plain_target(y: Any, n_samples: int) -> bool:
    """Whether targets are an array of numbers that all checks return as it is."""
    if type(y) is not np.ndarray or y.shape != (n_samples,):
        return False
    return y.dtype.kind in "iu" or (y.dtype in (np.float64, np.float32) and _is_finite(y))


def _is_finite(values: Array) -> bool:
    """Whether the sum of values is finite, and therefore every value."""
    with np.errstate(all="ignore"):
        return math.isfinite(values.sum())


def _refuse_several_tables(X: Any) -> None:
    """Raise ValueError if X is a collection of tables."""
    listed = isinstance(X, list | tuple) and len(X) > 0 and all(map(_is_table, X))
    # DOK matrices of scipy are dictionaries.
    if listed or (isinstance(X, Mapping) and not is_sparse(X)):
        kind = f"{type(X).__name__} of {len(X)} tables"
        raise ValueError(
            f"X must be one table with all columns, got a {kind}; join them with "
            "X, views = lokl.join_views({name: table}), and make kernels of the views with "
            "lokl.kernels.per_view(kernel, views)"
        )


def _refuse_words(X: Any, error: Exception) -> None:
    """Raise ValueError that names a column of a data frame with dates, text or other values."""
    for name, column in X.items() if hasattr(X, "iloc") else ():
        is_date = getattr(column.dtype, "kind", "O") in "mM"
        words = (value for value in column.dropna().tolist() if is_date or not _is_number(value))
        value = next(words, None)
        if value is not None:
            raise ValueError(
                f"column {name!r} has {str(value)!r}, which is not a number; leave the column out, "
                "or convert it: text with sklearn.preprocessing.OneHotEncoder, dates to a number "
                "of days. AutoMKL encodes text by itself"
            ) from error


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_table(value: Any) -> bool:
    return len(getattr(value, "shape", ())) == 2


def _refuse_nan(X: Any, views: bool, names: Array | None) -> None:
    """Raise ValueError with the position of the first NaN, if there is one."""
    values = X.data if is_sparse(X) else X
    # If the sum is not NaN, no entry is; that is much cheaper to check.
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isnan(values.sum()) or not np.isnan(values).any():
            return
    remedy = ""
    if views:
        remedy = (
            ", or give each view its own kernel with .on(columns): samples may then lack whole "
            "views"
        )
    position = ""
    if not is_sparse(X):
        row, column = np.argwhere(np.isnan(X))[0]
        position = f" (row {row}, column {column if names is None else repr(names[column])})"
    raise ValueError(
        f"Input X contains NaN{position}; impute the values, for example with "
        f"sklearn.impute.SimpleImputer{remedy}"
    )


def _canonical(X: Any) -> Any:
    """Return CSR matrices with sorted, unique entries; the given matrix is not modified."""
    if not is_sparse(X):
        return X
    X = narrow_indices(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_weights(sample_weight: Any, X: Any, *, part: bool = False) -> Array:
    """Return one weight per sample, finite, not negative and not all zero.

    With `part`, the weights belong to a part of the samples and may all be zero.
    """
    if sample_weight is None:
        return np.ones(X.shape[0])
    if part and np.shape(sample_weight) == X.shape[:1] and not np.any(sample_weight):
        return np.zeros(X.shape[0])
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, copy=True)
    if not np.isfinite(weight).all() or (weight < 0).any():
        bad = weight[~np.isfinite(weight) | (weight < 0)][0]
        raise ValueError(f"sample weights must be finite and not negative, got {bad}")
    if not part and not (weight > 0).any():
        raise ValueError(ALL_ZERO)
    # Sums of weights must not overflow.
    if float(weight.max()) > _LARGEST_SUM:
        raise ValueError(
            f"sample_weight is too large: {weight.max():.3g}; divide the weights by their mean"
        )
    return np.asarray(weight)


def with_absent_views(X: Any, columns: Any, kernels: Sequence[Kernel], names: Sequence[str]) -> Any:
    """Return a data frame with all training columns, NaN for views of which it has no column.

    `columns` are the names of the training columns or None. A table with unknown columns is
    returned as it is: one may be misspelt, and the error of scikit-learn names it.
    """
    if columns is None or not hasattr(X, "reindex") or not X.columns.is_unique:
        return X
    absent = set(columns) - set(X.columns)
    if not absent or not set(X.columns) <= set(columns):
        return X
    for name, kernel in zip(names, kernels, strict=True):
        used = [str(columns[c]) for c in kernel.columns_used() or ()]
        lacking = [column for column in used if column in absent]
        if lacking and len(lacking) < len(used):
            raise ValueError(
                f"X lacks column {lacking[0]!r} of the view of kernel {name!r}, but not its other "
                "columns; add the column, or drop all columns of the view to mark it as missing"
            )
    return X.reindex(columns=list(columns))


_LEAST_COST = 1e-250


def check_costs(C: float, factors: dict[str, Any]) -> Array:
    """Return the cost of every sample, ``C`` times all factors.

    Raises ValueError if sums of costs, their products with kernel values, or the reciprocal of the
    largest cost could overflow.
    """
    with np.errstate(all="ignore"):
        cost = np.asarray(C * np.prod(np.array(list(factors.values()), dtype=float), axis=0))
        total = float(cost.sum())
    if not total <= _LARGEST_SUM:
        given = [f"C={C:g}"] + [f"{name} up to {np.max(f):.3g}" for name, f in factors.items()]
        raise ValueError(
            f"the cost of errors is too large: {' times '.join(given)}; the sum over all samples "
            f"may be up to {_LARGEST_SUM:g}. Lower C, or divide the weights by their mean"
        )
    largest = float(cost.max(initial=0.0))
    if 0.0 < largest < _LEAST_COST:
        raise ValueError(
            f"the cost of errors is too small: C={C:g} times the weights is {largest:.3g} at most, "
            f"and must reach {_LEAST_COST:g}. Raise C, or divide the weights by their mean"
        )
    return cost


# Finite numbers

_REMEDY = (
    "scale the data, for example with sklearn.preprocessing.StandardScaler, or choose kernels and "
    "C of a moderate size"
)
# Attributes that every prediction depends on. Others may be NaN: a view is missing, or a method has
# no certificate.
_FINITE_ATTRIBUTES = ("dual_coef_", "intercept_", "weights_", "history_")


def check_attributes(attributes: dict[str, Any]) -> None:
    """Raise ValueError if fitted attributes are not finite."""
    for name in _FINITE_ATTRIBUTES:
        if name in attributes and not np.isfinite(attributes[name]).all():
            raise ValueError(f"numbers have overflowed: {name} is not finite; {_REMEDY}")


def checked_prediction(function: Callable[[Samples], Array], samples: Samples) -> Array:
    """Evaluate a function of samples; raise ValueError if a value is not finite."""
    with np.errstate(all="ignore"):
        values = np.asarray(function(samples))
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.flatnonzero(~finite.reshape(len(values), -1).all(axis=1))[0])
        raise ValueError(f"numbers have overflowed at sample {row}; {_REMEDY}")
    return values


def build_solver(estimator: Any) -> Solver:
    """Return the solver of an estimator: the object given, or one by name with its settings.

    A solver object has settings of its own. Settings of the estimator that it would ignore must
    have their defaults; other values raise an error.
    """
    names = ["tol", "cache_size"] if estimator._counts_rounds else ["tol", "cache_size", "max_iter"]
    if isinstance(estimator.solver, Solver):
        defaults = {declared.name: declared.default for declared in fields(estimator)}
        if estimator._stores_rows:
            names.remove("cache_size")
        names = [name for name in names if getattr(estimator, name) != defaults[name]]
    return resolve_solver(estimator.solver, **{name: getattr(estimator, name) for name in names})


@dataclass(frozen=True, eq=False)
class Training:
    """Data of a fit, on its way from validation to the method that learns from it.

    Validation returns all samples, with kernels as they were given. A method receives the samples
    that have a weight, bound kernels, and one problem for each output: for two classes one, for
    more classes one per class, and one for each target of a regression.
    """

    samples: Samples
    y: Any  # (n_samples,) or (n_samples, n_targets)
    rows: Array  # positions of the samples among the rows of X
    names: list[str]  # of the kernels
    given_kernels: list[Kernel]
    solver: Solver
    feature_info: dict[str, Any]  # n_features_in_, feature_names_in_
    cache: FitCache = field(default_factory=FitCache)
    kernels: list[Kernel] = field(default_factory=list)  # bound to the samples
    problems: list[Problem] = field(default_factory=list)
    rng: Any = None  # RandomState of the fit
    # If not empty, the model has the decisions of machines that were trained without each fold.
    folds: list[Fold] = field(default_factory=list)

    def take(self, rows: Array) -> "Training":
        """Return some of the samples and their problems, with an empty cache."""
        return replace(
            self,
            samples=self.samples.take(rows),
            y=self.y[rows],
            rows=self.rows[rows],
            problems=[problem.take(rows) for problem in self.problems],
            folds=[],
            cache=FitCache(),
        )

    def bind(self, kernels: Sequence[Kernel] | None = None) -> list[Kernel]:
        """Bind kernels, by default the given ones, to the samples that have a weight."""
        # A weight of zero equals a missing row, for scales of kernels and for the solver.
        samples = self.samples.take(np.flatnonzero(self.weight > 0))
        with np.errstate(all="ignore"):
            return [
                kernel.bind(samples.given, samples.weight, samples.frame)
                for kernel in (self.given_kernels if kernels is None else kernels)
            ]

    def bound(self) -> "Training":
        """Return the samples that have a weight, with kernels that are bound to them."""
        kernels, part = self.bind(), self.take(np.flatnonzero(self.weight > 0))
        columns = self.feature_info.get("feature_names_in_")
        samples = read_samples(kernels, self.names, part.samples, columns, part.rows, training=True)
        return replace(part, kernels=kernels, samples=samples)

    @property
    def n_samples(self) -> int:
        return self.samples.n_samples

    @property
    def n_kernels(self) -> int:
        return len(self.names)

    @property
    def work(self) -> int:
        """Number of samples times kernels times outputs, to decide on the number of threads."""
        return self.n_samples * self.n_kernels * len(self.problems)

    @property
    def weight(self) -> Array:
        """Weight of each sample, (n_samples,)."""
        return sample_weight(self.samples)

    @property
    def targets(self) -> Array:
        """Targets of all problems, (n_samples, n_tasks)."""
        return np.column_stack([problem.target for problem in self.problems])

    @property
    def is_classification(self) -> bool:
        return self.problems[0].is_classification

    def gram(
        self,
        gates: Array,
        *,
        keep: bool = False,
        share: float = 1.0,
        pair_normalized: bool = False,
    ) -> GatedGram:
        """Return the Gram matrix of all kernels under gates.

        Parameters
        ----------
        gates : array of shape (n_samples, n_kernels) or (n_samples, n_kernels, rank)
        keep : bool, default=False
            Whether inner products are stored because the gates will change.
        share : float, default=1.0
            Share of the solver's memory budget.
        pair_normalized : bool, default=False
            Whether weights are divided by their sum for each pair of samples.
        """
        solver = self.solver if share == 1.0 else self.solver.with_share_of_memory(share)
        # The precision may depend on the cost.
        precision = getattr(solver, "dtype", "auto")
        inner = self.cache.cached(
            "inner products",
            lambda: solver.inner_products(self.samples.filled, keep=keep),
            inputs=precision,
        )
        return inner.gated(self.kernels, gates, pair_normalized=pair_normalized)

    def average_gram(self) -> GatedGram:
        """Return the Gram matrix of the average of all kernels."""
        return self.gram(average_kernel(self.kernels).gates(self.samples))

    def average_model(self) -> GatedMachine:
        """Train machines on the average of all kernels."""
        kernel, machines = average_kernel(self.kernels), self.machines(resume="machines")
        return self.model(kernel.gate, kernel.params, machines.solve(self.average_gram()))

    def machines(
        self, problems: Sequence[Problem] | None = None, *, resume: Hashable = None
    ) -> Machines:
        """Return the machines of some problems, by default of all outputs.

        With a name `resume`, machines of a cost path start where the machines of that name ended in
        the previous fit. Use it only if the solution does not depend on the start.
        """
        machines = Machines(self.solver, self.problems if problems is None else problems)
        return machines if resume is None else self.cache.resume(resume, machines)

    def model(
        self,
        gate: Gate,
        params: Array,
        solution: Solution,
        *,
        names: list[str] | None = None,
        **learned: Any,
    ) -> GatedMachine:
        """Return the model of machines on one gated kernel.

        Objective, gap and number of steps are those of the machines.

        Parameters
        ----------
        gate : Gate
            Gate for any samples.
        params : array
            Learned parameters of the gate.
        solution : Solution
        names : list of str, optional
            Names of the learned kernels, if these are not the kernels of the training.
        **learned
            Fitted attributes that only this method has.
        """
        gram = solution.gram
        warn_if_saturated([(self.problems, solution)])
        kernel = gram.kernel(gate, params, self.names if names is None else names)
        left_out = leave_one_out(gram, self.problems)
        if self.folds:
            machines = self.solver, gram, self.problems
            left_out = held_out_decisions(*machines, self.folds, solution)
        positions = np.flatnonzero((solution.coef != 0).any(axis=1))
        support = SupportSet.at(positions, self.samples, self.rows)
        return GatedMachine(
            kernel,
            gram.expansion(kernel, solution.coef, solution.intercept),
            support,
            solution.coef[support.positions].T,
            np.array([solution.objective]),
            solution.gap,
            solution.n_iter,
            learned,
            training_gates=gram.gates,
            left_out=left_out,
        )
