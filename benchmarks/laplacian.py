"""Laplacian kernel, compared with the RBF kernel and with LibSVM on scikit-learn's kernel matrix.

Two data sets of 12,000 training rows: a9a, whose 123 columns are binary, and 123 normal columns.
The peer of scikit-learn needs the whole matrix and is measured on fewer rows.
"""

from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.svm import SVC

from benchmarks.common import Options, Report, agreement, coefficients, load, main, race, ratio
from lokl import UniformMKLClassifier
from lokl.kernels import RBF, AdditiveLaplacian, Laplacian, Matern

ROWS, PEER_ROWS, TEST_ROWS, COLUMNS, C = 12_000, 3_000, 4_000, 123, 1.0
# Ratio of times with the Laplacian and the RBF kernel.
TARGETS = {"a9a": (1.5, 1.5), "normal columns": (3.0, 4.0)}


def normal_columns(n: int) -> tuple[Any, Any]:
    """Return samples of standardised columns, most of them noise, and two classes."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(n, COLUMNS))
    return X, (X[:, :5].sum(axis=1) + X[:, 5] * X[:, 6] > 0).astype(int)


class OnMatrix:
    """LibSVM on the kernel matrix of scikit-learn."""

    def __init__(self, gamma: float):
        self.gamma = gamma

    def fit(self, X: Any, y: Any) -> "OnMatrix":
        self.X = X
        self.svm = SVC(kernel="precomputed", C=C).fit(laplacian_kernel(X, gamma=self.gamma), y)
        return self

    def predict(self, X: Any) -> Any:
        return self.svm.predict(laplacian_kernel(X, self.X, gamma=self.gamma))


def objective(model: Any, X: Any, gamma: float) -> float:
    """Compute ``|u|_1 - u'Ku / 2`` of a Laplacian SVM of either library."""
    svm = getattr(model, "svm", model)
    u, S = coefficients(svm), X[svm.support_]
    return float(np.abs(u).sum() - 0.5 * u @ laplacian_kernel(S, gamma=gamma) @ u)


def run(options: Options, report: Report) -> None:
    n = min(ROWS, options.rows or ROWS)
    for name, (X, y) in {
        "a9a": load("a9a", n + TEST_ROWS),
        "normal columns": normal_columns(n + TEST_ROWS),
    }.items():
        train, test = slice(0, n), slice(n, None)
        # The same widths for all: a9a has about 14 ones in each row.
        gamma = 1 / 16 if name == "a9a" else Laplacian("median").bind(X[train]).gamma
        width = 1 / 16 if name == "a9a" else RBF("median").bind(X[train]).gamma
        kernels = {
            "Laplacian": Laplacian(gamma),
            "RBF": RBF(width),
            "Matern 1.5": Matern(1.5, float(np.sqrt(width))),
        }
        compare_kernels(report, options, name, kernels, (X, y, train, test))
        compare_with_peer(report, options, name, gamma, (X, y, test))


def compare_kernels(report: Report, options: Options, name: str, kernels: Any, data: Any) -> None:
    X, y, train, test = data
    models = {k: UniformMKLClassifier([kernel], C=C) for k, kernel in kernels.items()}
    fits, fitted = race({k: partial(m.fit, X[train], y[train]) for k, m in models.items()}, options)
    predictions, labels = race({k: partial(m.predict, X[test]) for k, m in models.items()}, options)
    report.table(
        f"{name}: {train.stop:,} x {X.shape[1]}, C {C:g}; prediction of {TEST_ROWS:,} rows",
        (
            {
                "": k,
                "fit": fits[k],
                "of RBF": ratio(fits[k], fits["RBF"]),
                "predict": predictions[k],
                "of RBF ": ratio(predictions[k], predictions["RBF"]),
                "support": len(fitted[k].support_),
                "test accuracy": agreement(labels[k], y[test]),
            }
            for k in models
        ),
    )
    fit, predict = TARGETS[name]
    speed = ratio(fits["Laplacian"], fits["RBF"])
    report.target(f"{name}: fit, time of RBF", speed, "<=", fit)
    speed = ratio(predictions["Laplacian"], predictions["RBF"])
    report.target(f"{name}: predict, time of RBF", speed, "<=", predict)


def compare_with_peer(report: Report, options: Options, name: str, gamma: float, data: Any) -> None:
    X, y, test = data
    few = slice(0, min(PEER_ROWS, test.start))
    models = {
        "lokl": UniformMKLClassifier([Laplacian(gamma)], C=C),
        "scikit-learn": OnMatrix(gamma),
        "lokl, additive": UniformMKLClassifier([AdditiveLaplacian()], C=C),
    }
    fits, fitted = race({k: partial(m.fit, X[few], y[few]) for k, m in models.items()}, options)
    predictions, labels = race({k: partial(m.predict, X[test]) for k, m in models.items()}, options)
    report.table(
        f"{name}: {few.stop:,} rows",
        (
            {
                "": k,
                "fit": fits[k],
                "speed-up": ratio(fits[k], fits["lokl"]),
                "predict": predictions[k],
                "speed-up ": ratio(predictions[k], predictions["lokl"]),
                "test accuracy": agreement(labels[k], y[test]),
            }
            for k in models
        ),
    )
    values = [objective(fitted[k], X[few], gamma) for k in ("lokl", "scikit-learn")]
    gap = abs(values[0] - values[1]) / abs(values[1])
    report.quality(f"{name}: objective, relative difference", gap, "<=", 1e-3)
    same = agreement(labels["lokl"], labels["scikit-learn"])
    report.quality(f"{name}: equal predictions", same, ">=", 0.995)


if __name__ == "__main__":
    main(run)
