"""Machines that cannot tell samples apart because the kernels are too small for the cost."""

from collections.abc import Callable, Sequence

import numpy as np

from lokl._arrays import Array
from lokl._notices import tell
from lokl.solvers.problem import Dual, Problem

# Mean of the diagonal times the sum of all costs, below which kernels count as too small. Kernels
# of trace one have 1 at C = 1, those of mean diagonal one have the number of samples.
_WEAK = 2.0


def is_saturated(problem: Problem, dual: Dual, diag: Callable[[], Array]) -> bool:
    """Whether all of the smaller class is at its bound and every sample gets the same decision.

    Then no sample's kernel sum reaches the margin, the intercept alone decides, and it names the
    larger class whatever the sample. `diag` gives the kernel values of the samples with themselves,
    where it comes to that.
    """
    said = dual.decision
    if said.min() <= 0.0 <= said.max() or not problem.is_classification:
        return False
    up, down = problem.upper > 0, problem.lower < 0
    cost = np.maximum(problem.upper, -problem.lower)
    if not np.isfinite(cost).all() or not up.any() or not down.any():
        return False
    if float(diag().mean()) * float(cost.sum()) > _WEAK:
        # Costs that differ much between the classes have the same effect, but on purpose.
        return False
    smaller = up if cost[up].sum() <= cost[down].sum() else down
    at_bound = (np.abs(dual.coef[smaller]) >= (1.0 - 1e-6) * cost[smaller]).all()
    return bool(at_bound and np.abs(said - dual.intercept).max() < 1.0)


def warn_if_saturated(
    problems: Sequence[Problem], duals: Sequence[Dual], diags: Sequence[Callable[[], Array]]
) -> None:
    """Tell the user about machines that predict one class for every sample."""
    # A machine without samples, whose view all of them lack, has nothing to tell.
    machines = [own for own in zip(problems, duals, diags, strict=True) if len(own[1].coef)]
    if machines and all(is_saturated(*own) for own in machines):
        tell(
            "saturated",
            "the machine is saturated: kernel values are so small for this C that all samples get "
            "the decision of the larger class. Raise C, or normalise the kernels with "
            "normalized('mean_diag') instead of 'trace'",
        )
