"""EasyMKL: weights from the distance of the classes under the sum of all kernels."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.estimators.base import Training
from lokl.estimators.machine import Fitted, GatedClassifier
from lokl.gates import Weighted
from lokl.gates.weighted import Everywhere, weigh
from lokl.optimizers import Machines
from lokl.solvers import Problem, squared_hinge


@dataclass(eq=False, repr=False)
class EasyMKLClassifier(GatedClassifier):
    """EasyMKL: kernels weigh as much as they keep the classes apart. Two machines, no search.

    The two classes are distributions ``g`` that minimise ``(1 - lam) |sum_j y_j g_j phi(x_j)|^2 +
    lam |g|^2`` under the sum of all kernels; a kernel's weight is the squared distance of the
    classes in it, and the machine is trained on the weighted sum.

    Parameters
    ----------
    kernels : list or mapping of kernels, str or None, default=None
        None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`).
        A mapping gives the kernels names.
    C : float, default=1.0
        Cost of margin violations.
    lam : float, default=0.1
        Between 0 (the nearest points of the classes decide) and 1 (their means).
    solver : {"exact", "libsvm", "mwu"} or Solver, default="exact"
    tol : float, default=1e-3
        Largest violation of the optimality conditions that a machine leaves.
    max_iter : int, default=-1
        Limit on the steps of the solver, -1 for none.
    cache_size : float, default=512
        Megabytes for rows of the Gram matrix.
    class_weight : dict, "balanced" or None, default=None
        Factors of `C` by class.
    random_state : int, RandomState or None, default=None
        Not used by this method; common to all.
    n_jobs : int or None, default=None
        Not used by this method; common to all.
    verbose : int, default=0
        1 logs a line about the fit to the logger ``lokl``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    weights_ : array of shape (n_kernels,)
        Weight of each kernel; they sum to one.
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
        Dual objective of the machine.
    duality_gap_ : float
        Of the machine on the weighted sum, certified.
    n_iter_ : int
        Steps of the solver.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the training samples came with column names.

    Notes
    -----
    With more than two classes the squared distances are added up over one machine a class.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lokl import EasyMKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), EasyMKLClassifier()).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model[-1].weights_.shape
    (3,)
    """

    lam: float = field(default=0.1, kw_only=True)

    def _check(self) -> None:
        super()._check()
        if not np.isfinite(self.lam) or not 0 < self.lam <= 1:
            raise ValueError(f"lam must be above 0 and at most 1, got {self.lam!r}")

    def _learn(self, training: Training) -> Fitted:
        m = len(training.kernels)
        gate = Weighted(Everywhere(m))
        base = gate.base(training.samples, training.present)
        gram = training.solver.gram(training.kernels, training.X, base)
        distributions = self._distributions(training, gram, base)
        forms = np.maximum(gram.kernel_forms(distributions, base).sum(axis=1), 0.0)
        total = float(forms.sum())
        self.weights_ = forms / total if total > 0 else np.full(m, 1.0 / m)
        params = self.weights_[np.newaxis]
        solution = Machines(gram, training.solver, training.problems).solve(weigh(base, params))
        return Fitted(gram, gate, params, solution, [solution.objective], solution.gap)

    def _distributions(self, training: Training, gram: Any, base: Array) -> Array:
        """Signed distributions of the classes, one column for each machine."""
        signs = np.column_stack([np.sign(problem.target) for problem in training.problems])
        if self.lam == 1.0:
            # Only the spread counts: every sample weighs alike.
            coef = signs * training.weight[:, np.newaxis]
        else:
            # Up to their length these are coefficients of a squared hinge machine, whose ridge
            # is lam / (1 - lam); a sample of weight 2 counts like two.
            cost = (1.0 - self.lam) / self.lam * training.weight
            problems: list[Problem] = [squared_hinge(sign, cost) for sign in signs.T]
            coef = Machines(gram, training.solver, problems).solve(base).coef
        for column in coef.T:
            for side in (column > 0, column < 0):
                mass = np.abs(column[side]).sum()
                if mass > 0:
                    column[side] /= mass
        return np.asarray(coef)
