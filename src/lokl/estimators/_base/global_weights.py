"""Global methods: one weight for each kernel, the same at every sample."""

from collections.abc import Callable, Iterator

from lokl.estimators._base.rounds import Rounds
from lokl.estimators._base.training import Training
from lokl.gates import Weighted
from lokl.gates.weighted import Everywhere
from lokl.models import GatedMachine
from lokl.optimizers import Step

# Given what every objective of weights is made of, as keywords.
Path = Callable[..., Iterator[Step]]


def learn_weights(
    learner: Rounds, training: Training, path: Path, *, resume: bool = True
) -> GatedMachine:
    """Learn ``k = sum_i w_i k_i`` along the path of a method.

    It is made of machines, the kernels under full trust, that trust, and the weights that the last
    fit of a line ended with; its parameters are weights of shape (1, n_kernels). With `resume`
    False every fit begins afresh.
    """
    gate = Weighted(Everywhere(training.n_kernels))
    base = gate.base(training.samples)
    name = "weights" if resume else None
    walk = learner._follow(
        path(
            machines=training.machines(resume=name),
            gram=training.gram(base, keep=True),
            base=base,
            first=training.earlier.start(name, anywhere=True),
        )
    )
    step = walk.last
    if resume:
        training.earlier.end(name, step.params)
    weights = step.params[0]
    return training.model(gate, step.params, step.solution, weights_=weights, **walk.facts())
