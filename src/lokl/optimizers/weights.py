"""The dual value of machines on a weighted sum of kernels, with a penalty on the weights."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lokl._arrays import Array
from lokl.gates.weighted import weigh
from lokl.optimizers.machines import Machines
from lokl.optimizers.regularizers import Regularizer
from lokl.optimizers.steps import Evaluation

# Where all weights are smaller there is no kernel left.
_NOTHING = 1e-5


@dataclass(frozen=True, eq=False)
class Forms(Evaluation):
    """An evaluation that knows the forms ``S_i = u'K_i u`` of its machines."""

    machines: Machines
    base: Array

    @cached_property
    def forms(self) -> Array:
        values = self.machines.gram.kernel_forms(self.solution.coef, self.base)
        return np.maximum(values.sum(axis=1), 0.0)


@dataclass(frozen=True, eq=False)
class WeightObjective:
    """``J(sum_i d_i K_i) + strength r(d)``, convex in the weights ``d``.

    Attributes
    ----------
    machines : Machines
    base : array of shape (n_samples, n_kernels)
        Known gates.
    regularizer : Regularizer
    strength : float
    """

    machines: Machines
    base: Array
    regularizer: Regularizer
    strength: float

    def at(self, params: Array) -> Forms:
        """Objective and gradient at parameters of the weights."""
        d = self.regularizer.weights(params)
        solution = self.machines.solve(weigh(self.base, d[np.newaxis]))
        objective = solution.objective + self.strength * self.regularizer.value(d)
        if d.max() < _NOTHING:
            # A search that loses all kernels shall turn back.
            objective = np.inf

        def gradient() -> Array:
            slopes = self.strength * self.regularizer.gradient(d) - 0.5 * found.forms
            return self.regularizer.pullback(params, slopes)

        found = Forms(params, objective, solution.gap, gradient, solution, self.machines, self.base)
        return found

    def gap(self, found: Evaluation) -> float:
        """Certified distance from the optimum, what the machines left open included."""
        assert isinstance(found, Forms)
        d = self.regularizer.weights(found.params)
        linear = found.solution.objective + 0.5 * float(d @ found.forms)
        bound = self.regularizer.bound(linear, found.forms, self.strength)
        return max(found.objective - bound, 0.0) + found.slack
