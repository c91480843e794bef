"""EasyMKL: weights from the distance of the classes under the sum of all kernels."""

import numpy as np

from lokl._arrays import Array
from lokl._parameters import number_check
from lokl.base import Classifier, Training, setting, settings
from lokl.base.model import GatedMachine
from lokl.base.settings import Rule
from lokl.gates import WeightedGate
from lokl.gates.base import EqualGates, apply_weights, normalized_weights
from lokl.gram import GatedGram
from lokl.solvers import Solver, squared_hinge
from lokl.solvers.solve import classification_loss


@settings
class EasyMKLClassifier(Classifier):
    """EasyMKL: weights by the distance of the classes under each kernel, without a search.

    Distributions ``g`` over the samples of each class minimise ``(1 - lam) |sum_j y_j g_j
    phi(x_j)|^2 + lam |g|^2`` under the sum of all kernels. The weight of a kernel is the squared
    distance of the two distributions in its feature space. A second SVM is trained on the weighted
    sum.

    Attributes
    ----------
    weights_ : array of shape (n_kernels,)
        Weight of each kernel; they sum to one.
    duality_gap_ : float
        Certified, for the SVM on the weighted sum.

    Notes
    -----
    With more than two classes the squared distances of all one-versus-rest problems are added.
    `loss` is the loss of the SVM on the weighted sum; the weights do not depend on it.

    References
    ----------
    .. [1] F. Aiolli, M. Donini. EasyMKL: a Scalable Multiple Kernel Learning Algorithm.
       Neurocomputing 169:215-224, 2015. https://doi.org/10.1016/j.neucom.2014.11.078

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import EasyMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = EasyMKLClassifier().fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    1.0
    >>> model.weights_.shape
    (3,)
    """

    lam: float = setting(
        0.1,
        Rule("float", number_check("above 0 and at most 1", lambda value: 0 < value <= 1)),
        "From 0 (distance of the nearest points of the classes) to 1 (distance of their means).",
    )

    def _check_combinations(self, solver: Solver) -> None:
        super()._check_combinations(solver)
        if self.lam < 1.0:
            # The distributions solve a squared hinge problem, whatever the loss of the last SVM.
            classification_loss("squared_hinge", solver)

    def _learn(self, training: Training) -> GatedMachine:
        gate = WeightedGate(EqualGates(training.n_kernels))
        base = gate.base(training.samples)
        gram = training.gram(base)
        # The weights do not depend on the cost.
        forms = training.cache.cached("forms", lambda: self._forms(training, gram))
        params = normalized_weights(forms[np.newaxis], None)
        solution = training.machines(resume="machines").solve(
            gram.regated(apply_weights(base, params))
        )
        return training.model(gate, params, solution, weights_=params[0])

    def _forms(self, training: Training, gram: GatedGram) -> Array:
        """Return the squared distance of the classes under every kernel, (n_kernels,)."""
        signs = np.sign(training.targets)
        if self.lam == 1.0:
            # Only the penalty remains, and uniform distributions minimise it.
            coef = signs * training.weight[:, np.newaxis]
        else:
            # Up to scale, the distributions are dual coefficients of a squared hinge SVM with
            # ridge lam / (1 - lam).
            cost = (1.0 - self.lam) / self.lam * training.weight
            problems = [squared_hinge(sign, cost) for sign in signs.T]
            coef = training.machines(problems).solve(gram).coef
        # Signed distributions of the classes, (n_samples, n_tasks).
        for side in (coef > 0, coef < 0):
            mass = np.abs(np.where(side, coef, 0.0)).sum(axis=0)
            coef = np.where(side & (mass > 0), coef / np.where(mass > 0, mass, 1.0), coef)
        return np.maximum(gram.kernel_forms(coef).sum(axis=1), 0.0)
