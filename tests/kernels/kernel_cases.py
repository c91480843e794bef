"""One list of all kernels, and the data each of them is for."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, RationalQuadratic
from sklearn.metrics.pairwise import polynomial_kernel

from lokl.kernels import (
    RBF,
    AdditiveLaplacian,
    AnisotropicRBF,
    Callable,
    Chi2,
    Clinical,
    Cosine,
    GaussianProcess,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
    precomputed,
)

N_FEATURES = 4
N_STORED = 9


def samples(kind: str, n: int, seed: int) -> np.ndarray:
    """Rows with zeros, repeated rows and, now and then, a zero row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_FEATURES)) * (rng.random((n, N_FEATURES)) < 0.7)
    if kind == "histograms":
        X = np.abs(X)
    if kind in ("index", "index and features"):
        X[:, 0] = rng.integers(N_STORED, size=n)
    if n > 2:
        X[-1] = X[0]
    return X[:, :1] if kind == "index" else X


@dataclass(frozen=True)
class Case:
    """A kernel, the kind of data it reads, and whether it is positive semidefinite."""

    kernel: Kernel
    kind: str = "features"
    psd: bool = True

    @property
    def train(self) -> np.ndarray:
        return samples(self.kind, 12, seed=1)

    @property
    def bound(self) -> Kernel:
        return self.kernel.bind(self.train)

    def __repr__(self) -> str:
        text = " ".join(repr(self.kernel).split())
        return re.sub(r"gram=array\(.*?\]\]\)| at 0x\w+", "", text)


def cubic(X: Any, Z: Any) -> Any:
    return polynomial_kernel(X, Z, degree=3)


def _stored(seed: int) -> np.ndarray:
    F = np.random.default_rng(seed).normal(size=(N_STORED, 3))
    return F @ F.T


(STORED, OTHER), INDEX = precomputed([_stored(0), _stored(1)])

CASES = [
    *map(
        Case,
        [
            Linear(),
            Polynomial(),
            Polynomial(degree=1, gamma=2.0, coef0=0.0),
            Polynomial(degree=5, gamma=0.3, coef0=0.7),
            RBF(0.4),
            RBF("scale"),
            RBF("median"),
            RBF("auto"),
            AnisotropicRBF([0.4, 0.0, 1.5, 0.1]),
            AnisotropicRBF([0.4, 2.0]).on([1, 3]),
            Laplacian(),
            Laplacian(0.6),
            Laplacian("scale"),
            AdditiveLaplacian(0.7),
            AdditiveLaplacian("median").on([1, 3]),
            AdditiveLaplacian(),
            Clinical(),
            Clinical(ordered=[0, 2]).on([0, 1, 3]),
            Matern(0.5, 0.6),
            Matern(1.5),
            Matern(2.5, "median").on([0, 2]),
            Laplacian("median").on([0, 2]),
            Cosine(),
            Callable(cubic),
            Polynomial(3, "scale"),
            GaussianProcess(RationalQuadratic(0.7)),
            GaussianProcess(ConstantKernel(2.0) * RationalQuadratic(0.5)).on([0, 2]),
            Linear().on([0, 2]),
            RBF("scale").on(slice(1, 3)),
            RBF("auto").on([0, 2]),
            Cosine().on([-1, 0]),
            Laplacian().on([3]),
            Linear().on([1, 0]).on([3, 0, 2]),
            Linear() + RBF("median"),
            RBF(0.2) * Polynomial(2),
            Linear().on([0]) + Cosine().on([1, 2]) * RBF("scale").on([3]),
            *(
                k.normalized(h)
                for k in (Linear(), Polynomial(3), RBF(1.0), Cosine(), Laplacian())
                for h in ("none", "unit_diag", "mean_diag", "trace")
            ),
            Callable(cubic).normalized("unit_diag"),
            (Linear() + RBF(0.5)).normalized("mean_diag"),
            Polynomial(2).normalized("unit_diag") * RBF("scale"),
            Polynomial(2).normalized("unit_diag").on([1, 3]),
            Polynomial(2).on([1, 3]).normalized("unit_diag"),
            Linear().normalized("trace").on([0, 1]),
            Linear().on([2, 0]).normalized("mean_diag"),
            Polynomial(2).on([1, 0]).normalized("unit_diag").on([3, 2, 0]),
            Linear().normalized("unit_diag").normalized("trace"),
            Polynomial(2).normalized("mean_diag").on([1, 2]).normalized("unit_diag"),
            Linear().normalized("mean_diag").on([0, 1, 2]).normalized("trace").on([2, 0, 1]),
        ],
    ),
    Case(Sigmoid(0.5, -0.2), psd=False),
    Case(Sigmoid(0.1).on([0, 1]), psd=False),
    Case(Sigmoid("scale"), psd=False),
    Case(Chi2(), "histograms"),
    Case(Chi2(0.3).on([1, 2]).normalized("trace"), "histograms"),
    Case(STORED, "index"),
    Case(STORED + OTHER, "index"),
    Case(STORED.normalized("unit_diag"), "index"),
    Case(STORED.normalized("mean_diag") * OTHER, "index"),
    Case(STORED.on([0]) + RBF("scale").on([1, 2, 3]), "index and features"),
    Case(STORED.normalized("trace").on([0]), "index and features"),
]
