"""Plain reference implementations of localized methods, on scikit-learn's SVC and SVR."""

from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.svm import SVC, SVR

from lokl.gates import SoftmaxGate
from lokl.optimizers import Objective, ObjectiveValue, line_search
from lokl.optimizers.weights import best_weights, dual_norm

SETTINGS: dict[str, Any] = {"C": 1.0, "tol": 1e-3, "cache_size": 512}


def plain_kernels(X: Any, gamma: float) -> list[tuple[float, dict[str, Any]]]:
    """Return factors of the samples and settings of LibSVM for linear, quadratic and RBF kernels.

    The first two have a mean diagonal of one, as with ``normalized("mean_diag")``.
    """
    squares = (X**2).sum(axis=1)
    root = float(np.sqrt(1.0 / ((1.0 + squares) ** 2).mean()))
    return [
        (float(np.sqrt(1.0 / squares.mean())), {"kernel": "linear"}),
        (1.0, {"kernel": "poly", "degree": 2, "gamma": root, "coef0": root}),
        (1.0, {"kernel": "rbf", "gamma": gamma}),
    ]


class PlainLDMKL:
    """LD-MKL with ungated experts, two classes."""

    def __init__(self, gamma: float, margin: float):
        self.gamma = gamma
        self.margin = margin

    def fit(self, X: Any, y: Any) -> "PlainLDMKL":
        target = np.where(y == np.max(y), 1, -1)
        self.kernels = plain_kernels(X, self.gamma)
        self.regressors, self.experts = [], []
        for factor, kernel in self.kernels:
            machine = SVC(**kernel, **SETTINGS).fit(factor * X, target)
            success = (machine.predict(factor * X) == target).astype(float)
            self.regressors.append(SVR(**kernel, **SETTINGS).fit(factor * X, success))
        g = self.gate_values(X)
        for i, (factor, kernel) in enumerate(self.kernels):
            rows = g[:, i] > 1.0 / len(self.kernels) - self.margin - 1e-9
            self.experts.append(SVC(**kernel, **SETTINGS).fit(factor * X[rows], target[rows]))
        return self

    def gate_values(self, X: Any) -> Any:
        success = [
            r.predict(factor * X)
            for r, (factor, _) in zip(self.regressors, self.kernels, strict=True)
        ]
        return softmax(np.column_stack(success), axis=1)

    def decision_function(self, X: Any) -> Any:
        said = [
            np.tanh(e.decision_function(factor * X))
            for e, (factor, _) in zip(self.experts, self.kernels, strict=True)
        ]
        return (self.gate_values(X) * np.column_stack(said)).sum(axis=1)


class _PlainMachine:
    """Fit SVC on a precomputed matrix; return signed coefficients and the dual value."""

    def __init__(self, target: Any):
        self.target = target

    def solve(self, K: Any) -> tuple[Any, float]:
        machine = SVC(kernel="precomputed", **SETTINGS).fit(K, self.target)
        u = np.zeros(len(K))
        u[machine.support_] = machine.dual_coef_[0]
        return u, float(self.target @ u - 0.5 * u @ (K @ u))


def plain_lmkl(grams: Any, Z: Any, target: Any, start: Any, tol: float) -> tuple[float, int]:
    """Fit softmax gates by the same line search; return objective and number of SVMs."""
    gates = _PlainGates(grams, Z, target, start)
    for step in line_search(gates, tol):
        objective = step.objective
    return objective, gates.count


class _PlainGates(Objective[ObjectiveValue]):
    """The dual value as a function of the gate, on stored matrices."""

    def __init__(self, grams: Any, Z: Any, target: Any, start: Any):
        self.grams, self.Z, self.first = grams, Z, start
        self.gate, self.machine, self.count = SoftmaxGate(), _PlainMachine(target), 0

    def start(self) -> Any:
        return self.first

    def at(self, V: Any, ceiling: float = np.inf) -> ObjectiveValue:
        H = self.gate(self.Z, V)
        self.count += 1
        pairs = list(zip(H.T, self.grams, strict=True))
        u, objective = self.machine.solve(sum(np.outer(h, h) * K for h, K in pairs))

        def gradient() -> Any:
            slopes = [-u * (K @ (u * h)) for h, K in pairs]
            return self.gate.pullback(self.Z, V, H, np.column_stack(slopes))

        no_machines: Any = None
        return ObjectiveValue(V, objective, 1e-4 * abs(objective), gradient, no_machines)


def plain_clusters(K: Any, n_clusters: int, rng: Any, n_init: int = 10) -> Any:
    """Run kernel k-means on a stored matrix; return the weights of the samples in every centre."""
    n, best = len(K), (np.inf, None)
    for _ in range(n_init):
        labels = rng.randint(n_clusters, size=n)
        labels[:n_clusters] = np.arange(n_clusters)
        for _ in range(100):
            U = np.eye(n_clusters)[labels]
            U = U / np.maximum(U.sum(axis=0), 1)
            products = K @ U
            distances = np.diag(K)[:, np.newaxis] - 2 * products + (U * products).sum(axis=0)
            new = distances.argmin(axis=1)
            if (new == labels).all():
                break
            labels = new
        inertia = distances.min(axis=1).sum()
        if inertia < best[0]:
            best = (inertia, U)
    return best[1]


def plain_memberships(grams: Any, sample: Any, n_clusters: int, rng: Any) -> Any:
    """Return memberships of all samples in clusters of a subsample, by the mean kernel."""
    K = sum(grams) / len(grams)
    own = K[np.ix_(sample, sample)]
    U = plain_clusters(own, n_clusters, rng)
    norms = (U * (own @ U)).sum(axis=0)
    distances = np.diag(K)[:, np.newaxis] - 2 * K[:, sample] @ U + norms
    return softmax(-distances / distances.min(axis=1).mean(), axis=1)


def plain_clmkl(grams: Any, c: Any, target: Any, p: float, tol: float) -> tuple[float, int]:
    """Fit the weights of each cluster in closed form; return objective and number of SVMs."""
    m, L, machine = len(grams), c.shape[1], _PlainMachine(target)
    weights = np.full((L, m), m ** (-1.0 / p))
    for count in range(1, 101):  # noqa: B007
        K = sum((c * weights[:, i]) @ c.T * grams[i] for i in range(m))
        u, objective = machine.solve(K)
        parts = (u[:, np.newaxis] * c).T
        S = np.array([[part @ (gram @ part) for gram in grams] for part in parts])
        gap = 0.5 * float((dual_norm(S, p) - (weights * S).sum(axis=1)).sum())
        if gap <= tol * abs(objective):
            break
        weights = best_weights(weights, S, p)
    return objective, count


def plain_simplemkl(grams: Any, target: Any, tol: float) -> tuple[float, float, int, Any]:
    """Run the published reduced gradient: steps to the corners while they help, then a line search.

    Returns objective, gap, number of SVMs and weights.
    """
    machine, count = _PlainMachine(target), [0]

    def evaluate(d: Any) -> tuple[Any, float, Any]:
        count[0] += 1
        d = np.where(d < 1e-8, 0.0, d)
        d = d / d.sum()
        u, objective = machine.solve(sum(w * K for w, K in zip(d, grams, strict=True) if w > 0))
        return d, objective, np.array([u @ (K @ u) for K in grams])

    d, objective, S = evaluate(np.ones(len(grams)))
    while (gap := 0.5 * (S.max() - d @ S)) > tol * objective and count[0] < 500:
        top = int(np.argmax(d))
        D = 0.5 * (S - S[top])
        D[(d == 0) & (D < 0)] = 0.0
        D[top] = 0.0
        D[top] = -D.sum()
        while (D < 0).any():
            ratios = np.where(D < 0, -d / np.where(D < 0, D, -1.0), np.inf)
            first, longest = int(np.argmin(ratios)), float(ratios.min())
            corner = evaluate(d + longest * D)
            if corner[1] >= objective:
                break
            d, objective, S = corner
            if first == top:
                break
            D[top] += D[first]
            D[first] = 0.0
        if (D < 0).any() and -0.5 * (D @ S) < 0:
            d, objective, S = _secant(evaluate, (d, objective, S), corner, D, longest)
    return objective, gap, count[0], d


def _secant(evaluate: Any, near: Any, far: Any, D: Any, longest: float) -> Any:
    """Return the step at which the slope is a tenth of the initial slope, with few SVMs."""
    left, right = 0.0, longest
    down, up = -0.5 * (D @ near[2]), -0.5 * (D @ far[2])
    first, best = down, near
    for _ in range(12):
        s = 0.5 * (left + right) if up <= 0 else left + (right - left) * down / (down - up)
        point = evaluate(near[0] + s * D)
        slope = -0.5 * (D @ point[2])
        if point[1] < best[1]:
            best = point
        if abs(slope) <= 0.1 * abs(first) and best is not near:
            break
        # Illinois rule: an end that does not move is weighted by one half.
        if slope < 0:
            left, down, up = s, slope, 0.5 * up
        else:
            right, up, down = s, slope, 0.5 * down
    return best
