"""Rows of the Gram matrix of a9a: the mean of eleven kernels compared with one RBF kernel.

The eleven are linear, quadratic, and RBF kernels of nine widths, gamma 2^-4 to 2^4.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import Options, Report, Timing, load_a9a, main, race, ratio
from lokl.gram import GatedGram, mixing
from lokl.gram.layouts import Panels
from lokl.kernels import RBF, Linear, Polynomial, rbf_ladder

ONE = [RBF(2.0**-4)]
MIX = [Linear(), Polynomial(2), *rbf_ladder(-4, 4)]
# Without the copy from the cache, which takes as long as one RBF and is the same for all.
ALONE = ", computation only"


class Rows:
    """Returns other rows at each call, so that none of them are cached."""

    def __init__(self, n: int, count: int):
        self.order = np.random.RandomState(0).permutation(n)
        self.count, self.start = count, 0

    def __call__(self) -> Any:
        if self.start + self.count > len(self.order):
            self.start = 0
        self.start += self.count
        return self.order[self.start - self.count : self.start]


def reference(kernels: list[Any], X: Any, rows: Any) -> Any:
    """Compute the mean of the kernels by their formulas, in float64."""
    dots = X[rows] @ X.T
    norms = np.einsum("ij,ij->i", X, X)
    distances = norms[rows, np.newaxis] + norms - 2.0 * dots
    total = np.zeros_like(dots)
    for kernel in kernels:
        if isinstance(kernel, RBF):
            total += np.exp(-kernel.gamma * distances)
        else:
            total += (dots + 1.0) ** 2 if isinstance(kernel, Polynomial) else dots
    return total / len(kernels)


def flushed(X: Any, gamma: float) -> float:
    """Return the share of the RBF kernel values that are set to zero in float32 rows."""
    some = X[np.random.RandomState(2).permutation(len(X))[:1000]]
    norms = np.einsum("ij,ij->i", some, some)
    distances = norms[:, np.newaxis] + norms - 2.0 * (some @ some.T)
    return float(np.mean(gamma * distances > 100 * np.log(2.0)))


def run(options: Options, report: Report) -> None:
    X = load_a9a(options.rows)[0]
    n = X.shape[0]
    count = min(1000, n // 8)
    # Twice the rows of one call: 195 MB for all of a9a.
    memory = 2 * count * n * 4 / 2**20
    single = np.ascontiguousarray(X, dtype=np.float32)
    out = np.empty((count, n), dtype=np.float32)
    every = np.arange(count)
    grams = {
        name: GatedGram(kernels, X, cache_size=memory, dtype="float32")
        for name, kernels in {"one RBF": ONE, "mix of 11": MIX}.items()
    }
    calls: dict[str, Callable[[], Any]] = {}
    for name, gram in grams.items():
        rows, filled = Rows(n, count), Rows(n, count)
        # Together with the warm-up, this touches the whole slab for the first time.
        gram.rows(rows(), out)
        calls[name] = lambda gram=gram, rows=rows: gram.rows(rows(), out)
        calls[name + ALONE] = lambda gram=gram, rows=filled: mixing.fill(
            gram.points, rows(), gram.points, out, every
        )
    panels = Panels.of(single, np.float32)
    left, right = Rows(n, count), Rows(n, count)
    calls["sparse panel products only"] = lambda: panels.dots(left(), panels, out)
    calls["BLAS products only"] = lambda: np.matmul(single[right()], single.T, out=out)

    times, _ = race(calls, options, least=15)
    layout = type(grams["one RBF"].points.layouts[0]).__name__
    share = flushed(X, MIX[-1].gamma)
    report.table(
        f"{count} new rows of {n:,}, float32, layout {layout}; of the entries of the narrowest "
        f"RBF, {share:.0%} are below 2^-100 and become 0",
        ({"": name, **cells(time, count, times["one RBF"])} for name, time in times.items()),
    )
    sample = np.random.RandomState(1).permutation(n)[:100]
    for name, kernels in {"one RBF": ONE, "mix of 11": MIX}.items():
        truth = reference(kernels, X, sample)
        error = np.abs(grams[name].rows(sample) - truth) / np.abs(truth)
        report.quality(f"{name}: largest relative error of a row", error.max(), "<=", 1e-4)
    for end in ("", ALONE):
        cost = ratio(times["mix of 11" + end], times["one RBF" + end])
        report.target(f"time of the mix relative to one RBF{end}", cost, "<=", 1.6)


def cells(time: Timing, count: int, one: Timing) -> dict[str, Any]:
    return {
        "time": time,
        "µs a row": 1e6 * time.median / count,
        "relative to one RBF": ratio(time, one),
    }


if __name__ == "__main__":
    main(run)
