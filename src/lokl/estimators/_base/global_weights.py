"""Global methods: one weight for each kernel, the same at every sample."""

from collections.abc import Callable, Iterator

from lokl._arrays import Array
from lokl.estimators._base.rounds import Rounds
from lokl.estimators._base.training import Training
from lokl.gates import Weighted
from lokl.gates.weighted import Everywhere
from lokl.gram import GatedGram
from lokl.models import GatedMachine
from lokl.optimizers import Step
from lokl.solvers import Machines

Path = Callable[[Machines, GatedGram, Array], Iterator[Step]]


def learn_weights(learner: Rounds, training: Training, path: Path) -> GatedMachine:
    """Learn ``k = sum_i w_i k_i`` along the path of a method.

    It is made of machines, the kernels under full trust, and that trust; its parameters are weights
    of shape (1, n_kernels).
    """
    gate = Weighted(Everywhere(training.n_kernels))
    base = gate.base(training.samples)
    walk = learner._follow(path(training.machines(), training.gram(base, keep=True), base))
    step = walk.last
    weights = step.params[0]
    return training.model(gate, step.params, step.solution, weights_=weights, **walk.facts())
