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
from lokl.optimizers import Evaluation, line_search

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

        def evaluate(V: Array) -> Evaluation:
            H = gate.at(Z, V, training.present)
            solution = machines.solve(H)

            def gradient() -> Array:
                machines.gram.move_gates(H)
                slopes = machines.gram.gate_gradient(solution.coef)[:, :, 0]
                return kind.pullback(Z, V, H, slopes) + self.ridge * V

            penalty = 0.5 * self.ridge * float((V**2).sum())
            return Evaluation(V, solution.objective + penalty, solution.gap, gradient, solution)

        path = line_search(evaluate, start, kind.project, self.learn_tol)
        return self._walk(path, machines, gate)

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
    """Localized multiple kernel learning for classification."""


@dataclass(eq=False, repr=False)
class LMKLRegressor(_LMKL, GatedRegressor):
    """Localized multiple kernel learning for regression."""
