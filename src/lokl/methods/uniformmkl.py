"""UNIFORM: the average of the kernels. With one kernel, the plain SVM."""

import numpy as np

from lokl._arrays import Array, Samples
from lokl.base import Classifier, FixedKernel, Regressor, Training, settings
from lokl.base.model import GatedMachine
from lokl.gates import ConstantGate, Gate


@settings
class _UniformMKL(FixedKernel):
    """SVMs on the average of the kernels: ``k = (1/m) sum_i k_i``."""

    def _gate(self, samples: Samples, n_kernels: int) -> tuple[Gate, Array]:
        return ConstantGate(), np.full(n_kernels, 1.0 / n_kernels)

    def _learn(self, training: Training) -> GatedMachine:
        gate, params = self._gate(training.samples, training.n_kernels)
        gram = training.gram(gate.at(training.samples, params))
        return training.model(gate, params, training.machines(resume="machines").solve(gram))


@settings
class UniformMKLClassifier(_UniformMKL, Classifier):
    """Support vector classification with the average of several kernels.

    ``f(x) = sum_j u_j (1/m) sum_i k_i(x_j, x) + b``, hinge loss. With one kernel this is the plain
    support vector machine, several times faster than LibSVM.

    Notes
    -----
    Probabilities: :func:`lokl.search.calibrated`.

    References
    ----------
    .. [1] M. Gönen, E. Alpaydin. Multiple Kernel Learning Algorithms. Journal of Machine Learning
       Research 12, 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import UniformMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = UniformMKLClassifier(["linear", "rbf"]).fit(X, y)
    >>> model.kernel_names_
    ['linear', 'rbf']
    >>> bool(model.score(X, y) > 0.9)
    True
    """


@settings
class UniformMKLRegressor(_UniformMKL, Regressor):
    """Support vector regression with the average of several kernels.

    ``f(x) = sum_j u_j (1/m) sum_i k_i(x_j, x) + b``, epsilon-insensitive loss. With one kernel this
    is plain support vector regression, several times faster than LibSVM.

    References
    ----------
    .. [1] M. Gönen, E. Alpaydin. Multiple Kernel Learning Algorithms. Journal of Machine Learning
       Research 12, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import UniformMKLRegressor
    >>> X = np.linspace(0, 6, 50)[:, np.newaxis]
    >>> model = UniformMKLRegressor(["rbf"], C=10).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.95)
    True
    """
