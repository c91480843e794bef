"""Fit of MKLpy in its own environment, without any part of this project.

Arguments: a file of samples and labels (npz), the method ("EasyMKL" or "AverageMKL"). Writes one
line of JSON: seconds from samples to fitted model, seconds of the kernels, peak memory, weights and
training accuracy.
"""

import json
import resource
import sys
import time

import numpy as np
from sklearn.svm import SVC


def kernels(X):
    """Return linear and quadratic kernels of mean diagonal one, and RBF with gamma 2^-4 .. 2^4."""
    dots = X @ X.T
    squares = np.diag(dots).copy()
    quadratic = (dots + 1.0) ** 2
    distances = np.maximum(squares[:, None] + squares - 2.0 * dots, 0.0)
    return [
        dots / squares.mean(),
        quadratic / np.diag(quadratic).mean(),
        *(np.exp(-(2.0**power) * distances) for power in range(-4, 5)),
    ]


def main():
    import torch
    from MKLpy.algorithms import AverageMKL, EasyMKL

    data = np.load(sys.argv[1])
    X, y = data["X"], data["y"]
    learner = SVC(C=1.0, kernel="precomputed")
    method = {"EasyMKL": EasyMKL, "AverageMKL": AverageMKL}[sys.argv[2]]
    settings = {"lam": 0.1} if method is EasyMKL else {}
    begun = time.perf_counter()
    grams = [torch.tensor(K) for K in kernels(X)]
    prepared = time.perf_counter()
    model = method(learner=learner, **settings).fit(grams, y)
    done = time.perf_counter()
    weights = np.asarray(model.solution.weights, dtype=float)
    print(
        json.dumps(
            {
                "seconds": done - begun,
                "kernels": prepared - begun,
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "weights": weights.tolist(),
            }
        )
    )


if __name__ == "__main__":
    main()
