"""LMKL: a gate learned by gradient, together with the machine."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.estimators.base import Training
from lokl.estimators.gate_setting import GateSetting
from lokl.estimators.learned_gate import LearnedGate
from lokl.estimators.machine import Fitted, GatedClassifier, GatedRegressor
from lokl.estimators.validation import check_choice
from lokl.gates import Gate, GateOn, Gaussian, Represented, Sigmoid, Softmax
from lokl.gates.representation import Quadratic, Standardized
from lokl.gram.scores import KernelScores
from lokl.kernels.columns import column_names, resolve_columns
from lokl.optimizers import GateObjective, line_search

_GATES: dict[str, Any] = {"softmax": Softmax, "sigmoid": Sigmoid, "gaussian": Gaussian}
_GATINGS = ("auto", "input", "quadratic", "kernel_pca")
# Trust below this counts as none.
_SNAP = 1e-3


@dataclass(eq=False, repr=False, kw_only=True)
class _LMKL(LearnedGate):
    """Minimise the optimal dual value over the parameters ``V`` of a gate."""

    gate: Any = GateSetting("softmax")  # noqa: RUF009, a descriptor
    gating: Any = "auto"
    snap: bool = True
    ridge: float = 0.0

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        params = super().get_params(deep)
        params["gate"] = vars(self)["gate"]
        if deep and hasattr(params["gate"], "get_params"):
            inner = params["gate"].get_params(deep=True)
            params.update({f"gate__{name}": value for name, value in inner.items()})
        return params

    def _check(self) -> None:
        super()._check()
        self._kind()
        if not np.isfinite(self.ridge) or self.ridge < 0:
            raise ValueError(f"ridge must be finite and not negative, got {self.ridge!r}")
        if not callable(self.gating):
            check_choice("gating", self.gating, _GATINGS)

    def _kind(self) -> tuple[Gate, Any]:
        """Return the gate and the columns it shall look at, None for the method's choice."""
        given = vars(self)["gate"]
        columns = None
        if isinstance(given, GateOn):
            given, columns = given.gate, given.columns
        if isinstance(given, str) and given in _GATES:
            given = _GATES[given]()
        if not isinstance(given, Gate):
            known = ", ".join(_GATES)
            raise ValueError(f"gate must be a Gate or one of {known}, got {given!r}")
        return given, columns

    def _learn(self, training: Training) -> Fitted:
        kind, columns = self._kind()
        gate = Represented(
            kind, self._representation(training, columns), _SNAP if self.snap else 0.0
        )
        Z = gate.representation(training.samples)
        start = kind.project(kind.init(Z, len(training.kernels), training.rng))
        machines = self._machines(training, gate.at(Z, start, training.present))

        objective = GateObjective(
            machines,
            lambda V: gate.at(Z, V, training.present),
            lambda V, H, slopes: kind.pullback(Z, V, H, slopes),
            self.ridge,
        )
        path = line_search(objective.below, start, kind.project, self.learn_tol)
        return self._walk(path, machines.gram, gate)

    def _representation(self, training: Training, columns: Any) -> Any:
        """Return what the gate looks at, as a function of samples."""
        if callable(self.gating):
            return self.gating
        stored = [kernel for kernel in training.kernels if kernel.is_stored]
        gating = self.gating
        positions = None
        if columns is not None:
            source = training.samples if training.frame is None else training.frame
            names = column_names(source)
            positions = resolve_columns(columns, training.samples.shape[1], names, source)
        elif stored and gating != "kernel_pca":
            positions = self._meaningful(training, stored)
            if gating == "auto" and positions is None:
                gating = "kernel_pca"
            elif positions is None:
                raise ValueError(
                    f"gating={gating!r} cannot look at row numbers of precomputed kernels; use "
                    "gating='kernel_pca', or add columns of features and give gate.on(columns)"
                )
        if gating == "kernel_pca":
            return KernelScores.learn(
                training.kernels,
                training.samples,
                training.X,
                training.present,
                training.weight,
                training.rng,
            )
        kind = Quadratic if gating == "quadratic" else Standardized
        return kind.learn(training.samples, training.weight, positions)

    def _meaningful(self, training: Training, stored: list[Any]) -> Array | None:
        """Columns that are not row numbers of stored matrices, None where there are none."""
        used = [kernel.columns_used() for kernel in stored]
        if any(columns is None for columns in used):
            return None
        numbers = {column for columns in used for column in columns or ()}
        rest = [j for j in range(training.samples.shape[1]) if j not in numbers]
        return np.array(rest, dtype=np.intp) if rest else None


@dataclass(eq=False, repr=False)
class LMKLClassifier(_LMKL, GatedClassifier):
    """Localized multiple kernel learning: a gate learned together with the machine.

    ``f(x) = sum_j u_j sum_i h_i(x_j) h_i(x) k_i(x_j, x) + b``, where the gate ``h_i(x)`` says how
    far kernel `i` is trusted at `x`. The optimal dual value is minimised over the parameters of the
    gate by gradient; every step solves the machines again, from where they were.

    Parameters
    ----------
    kernels : list or mapping of kernels, str or None, default=None
        None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`).
        A mapping gives the kernels names.
    C : float, default=1.0
        Cost of margin violations.
    gate : {"softmax", "sigmoid", "gaussian"} or Gate, default="softmax"
        Kind of gate. ``Softmax().on(columns)`` looks at some columns only.
    gating : {"auto", "input", "quadratic", "kernel_pca"} or callable, default="auto"
        What the gate looks at: the standardised columns; these, their squares and products; or
        leading kernel-PCA scores under the average kernel. "auto" is "input", and "kernel_pca"
        where samples are row numbers of precomputed kernels. A function is given the samples.
    snap : bool, default=True
        Trust below 0.001 becomes none, trust above 0.999 full.
    ridge : float, default=0.0
        Penalty ``ridge / 2 |V|^2`` on the parameters of the gate.
    solver : {"exact", "libsvm", "mwu"} or Solver, default="exact"
    tol : float, default=1e-3
        Largest violation of the optimality conditions that a machine leaves.
    max_iter : int, default=100
        Limit on the rounds of the method, -1 for none.
    learn_tol : float, default=1e-3
        Relative fall of the objective that ends the search.
    callback : callable, optional
        Called with every :class:`~lokl.optimizers.Step`; the method stops when it returns True.
    cache_size : float, default=512
        Megabytes for rows of the Gram matrix.
    class_weight : dict, "balanced" or None, default=None
        Factors of `C` by class.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Not used by this method; common to all.
    verbose : int, default=0
        1 logs a line for every round to the logger ``lokl``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    kernel_ : GatedKernel
        The learned kernel, usable wherever a kernel is: ``SVC(kernel=model.kernel_)``.
    kernels_, kernel_names_ : list
        Kernels with learned settings, and their names.
    support_ : array of shape (n_support,)
        Rows of the training samples that carry a machine.
    support_vectors_ : {array, CSR matrix} of shape (n_support, n_features)
    dual_coef_ : array of shape (n_machines, n_support)
        Signed coefficients; one machine for two classes, else one for each class.
    intercept_ : array of shape (n_machines,)
    support_fraction_ : float
    history_ : array
        Objective after every round, strictly falling.
    duality_gap_ : float
        NaN: the problem is not convex, no distance from the optimum is known.
    n_iter_ : int
        Rounds.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the training samples came with column names.

    Notes
    -----
    The problem is not convex; another `random_state` may end elsewhere. With several classes or
    targets all machines share one gate.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lokl import LMKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LMKLClassifier(random_state=0)).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model[-1].gate(model[:-1].transform(X)).shape
    (569, 3)
    """


@dataclass(eq=False, repr=False)
class LMKLRegressor(_LMKL, GatedRegressor):
    """Localized multiple kernel learning for one or several numeric targets.

    Settings and attributes are those of :class:`LMKLClassifier`, and

    Parameters
    ----------
    epsilon : float, default=0.1
        Residuals up to here are free.

    Attributes
    ----------
    dual_coef_ : array of shape (n_targets, n_support)
    intercept_ : array of shape (n_targets,)

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import LMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = LMKLRegressor(["linear", "rbf"], C=10, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.8)
    True
    """
