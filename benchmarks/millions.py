"""Regions on five million generated rows: time and memory, and their growth."""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import SGDClassifier

from benchmarks.common import Options, Report, main
from benchmarks.large import Data, measured, smooth_set
from lokl import RegionClassifier, UniformMKLClassifier
from lokl.kernels import RBF

GAMMA, C = 1 / 36, 1.0
TEST_ROWS = 100_000
# Shares of the rows from which the growth is computed.
SHARES = (1 / 16, 1 / 4, 1.0)


@dataclass
class MillionsOptions(Options):
    generated_rows: int = 5_000_000
    ours_only: bool = False


def regions() -> Any:
    estimator = UniformMKLClassifier([RBF(GAMMA)], C=C, tol=1e-2)
    return RegionClassifier(estimator, random_state=0)


def run(options: Any, report: Report) -> None:
    n = options.generated_rows
    X, y = smooth_set(n + TEST_ROWS)
    data = Data(X[:n], y[:n], X[n:], y[n:])
    parts = [data.first(round(share * n)) for share in SHARES]
    rows = [measured(f"regions, {len(part.y):,} rows", regions, part) for part in parts]
    small, whole = rows[0], rows[-1]
    if not options.ours_only:
        boosted = lambda: HistGradientBoostingClassifier(random_state=0)  # noqa: E731
        linear = lambda: SGDClassifier(random_state=0)  # noqa: E731
        rows.append(measured("HistGradientBoosting", boosted, data, warm=False))
        rows.append(measured("SGDClassifier, no kernel", linear, data, warm=False))
    report.table(f"smooth set, {n:,} x {X.shape[1]} training rows, {TEST_ROWS:,} test rows", rows)
    report.target("all rows: minutes", whole["fit, s"] / 60, "<=", 10)
    growth = np.log(whole["fit, s"] / small["fit, s"]) / -np.log(SHARES[0])
    report.target("growth, exponent", growth, "<=", 1.1)
    gain = whole["test accuracy"] - small["test accuracy"]
    report.quality("all rows: points above the smallest part", gain, ">=", -0.1)
    allowed = 2 * X.nbytes / 2**20 + UniformMKLClassifier().cache_size
    report.quality("all rows: peak memory, MB", whole["peak, MB"], "<=", allowed)


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--generated-rows", type=int, help="training rows (5,000,000)")
    parser.add_argument("--ours-only", action="store_true", help="do not run other libraries")


if __name__ == "__main__":
    main(run, MillionsOptions(), more_options)
