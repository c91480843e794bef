"""Alternation between machines and the weights that are best for them."""

from collections.abc import Iterator

from lokl.optimizers.objective import Step
from lokl.optimizers.weight_objective import NormBall


def closed_form(objective: NormBall, tol: float = 1e-3) -> Iterator[Step]:
    """Yield points of falling objective, to a certified relative gap.

    Parameters
    ----------
    objective : NormBall
        Weights whose best values are known once the machines are.
    tol : float, default=1e-3
        Relative duality gap that ends the alternation.
    """
    params = objective.start()
    while True:
        current = objective.evaluate(params)
        gap = objective.gap(current)
        yield current.step(gap)
        # The gap that machines leave is a matter of the solver's tolerance: more rounds do not
        # help against it.
        if gap <= tol * abs(current.objective):
            return
        params = objective.best(current)
