"""SVC, SVR and GridSearchCV of scikit-learn's test files, replaced by estimators of lokl.

A plugin of pytest: the names are replaced before any test file is imported. An adapter translates
the settings, and nothing else; fitted attributes are those of the model.
"""

import numpy as np
import sklearn.model_selection
import sklearn.svm
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lokl import UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF, Callable, Linear, Polynomial, Sigmoid
from lokl.search import CalibratedMKLClassifier, KernelSearchCV


class _Machine(BaseEstimator):
    """A machine with one kernel, named as scikit-learn names it."""

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        epsilon=0.1,
        shrinking=True,
        probability=False,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
    ):
        for name, value in locals().items():
            if name != "self":
                setattr(self, name, value)

    def _kernel(self, X):
        gamma = self.gamma
        if gamma == "auto":
            gamma = 1.0 / X.shape[1]
        elif gamma == "scale" and self.kernel in ("poly", "sigmoid"):
            variance = X.multiply(X).mean() - X.mean() ** 2 if sparse.issparse(X) else np.var(X)
            gamma = 1.0 / (X.shape[1] * variance) if variance else 1.0
        if callable(self.kernel):
            return Callable(self.kernel)
        return {
            "linear": Linear,
            "rbf": lambda: RBF(gamma),
            "poly": lambda: Polynomial(self.degree, gamma, self.coef0),
            "sigmoid": lambda: Sigmoid(gamma, self.coef0),
        }[self.kernel]()

    def fit(self, X, y, sample_weight=None):
        options = {name: getattr(self, name) for name in ("C", "tol", "cache_size", "max_iter")}
        if isinstance(self, ClassifierMixin):
            options["class_weight"] = self.class_weight
        else:
            options["epsilon"] = self.epsilon
        kernels = [self._kernel(np.asarray(X) if isinstance(X, list) else X)]
        model = self._made(kernels, **options)
        self._model = model.fit(X, y, sample_weight)
        return self

    @property
    def n_support_(self):
        return np.array([len(self._model.support_)], dtype=np.int32)

    @property
    def coef_(self):
        if self.kernel != "linear":
            raise AttributeError("coef_ is only defined for a linear kernel")
        coef = np.atleast_2d(self._model.dual_coef_) @ self._model.support_vectors_
        coef.flags.writeable = False
        return coef

    def predict(self, X):
        check_is_fitted(self, "_model")
        return self._model.predict(X)

    def __getattr__(self, name):
        if name.startswith("_") or not name.endswith("_") or "_model" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._model, name)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _has_probabilities(machine):
    fitted = vars(machine).get("_model")
    return machine.probability and (fitted is None or hasattr(fitted, "predict_proba"))


class SVC(ClassifierMixin, _Machine):
    """A classifier; probabilities are calibrated."""

    def _made(self, kernels, **options):
        model = UniformMKLClassifier(kernels, **options)
        return CalibratedMKLClassifier(model) if self.probability else model

    def decision_function(self, X):
        check_is_fitted(self, "_model")
        return self._model.decision_function(X)

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        check_is_fitted(self, "_model")
        return self._model.predict_proba(X)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X):
        check_is_fitted(self, "_model")
        return self._model.predict_log_proba(X)


class SVR(RegressorMixin, _Machine):
    """A regressor."""

    def _made(self, kernels, **options):
        return UniformMKLRegressor(kernels, **options)


class GridSearchCV(KernelSearchCV):
    """The search of lokl, whose further settings are at their defaults."""


sklearn.svm.SVC, sklearn.svm.SVR = SVC, SVR
sklearn.model_selection.GridSearchCV = GridSearchCV
