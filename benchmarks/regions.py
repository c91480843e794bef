"""Regions on covtype: tuning, several partitions, learned kernels, feature scaling; and peers."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from benchmarks.common import Options, Report, load, main
from benchmarks.large import Data, measured
from lokl import LpMKLClassifier, RegionClassifier, UniformMKLClassifier
from lokl.kernels import RBF

SHARE = 0.8
GAMMA, C = 64.0, 32.0
# Width and cost for scaled features.
SCALED_GAMMA, SCALED_C = 0.25, 8.0
# Rows for a linear SVM on explicit features, which takes over ten minutes for all rows.
NYSTROEM_ROWS = 100_000
# Rows for exact SVMs of other libraries, from which their times are extrapolated.
EXACT_ROWS = (20_000, 40_000)
GROWTH_FROM = 50_000


@dataclass
class RegionOptions(Options):
    covers: int = 5
    ours_only: bool = False


def one_kernel() -> Any:
    return UniformMKLClassifier([RBF(GAMMA)], C=C, tol=1e-2)


def region_models(covers: int) -> dict[str, Callable[[], Any]]:
    kernels = [RBF(GAMMA / 4), RBF(GAMMA), RBF(4 * GAMMA)]
    learned = LpMKLClassifier(kernels, C=C, tol=1e-2)
    scaled = UniformMKLClassifier([RBF(SCALED_GAMMA)], C=SCALED_C, tol=1e-2)
    return {
        "regions, one kernel": lambda: RegionClassifier(one_kernel(), random_state=0),
        f"regions, {covers} partitions": lambda: RegionClassifier(
            one_kernel(), covers=covers, random_state=0
        ),
        f"regions, tuned, {covers} partitions": lambda: RegionClassifier(
            covers=covers, random_state=0
        ),
        "regions, kernels learned": lambda: RegionClassifier(learned, random_state=0),
        "regions, feature scaling": lambda: RegionClassifier(
            scaled, scale_features="shared", random_state=0
        ),
    }


def others(data: Data) -> list[dict[str, Any]]:
    few = data.first(NYSTROEM_ROWS)
    features = Nystroem(gamma=GAMMA / 4, n_components=1000, random_state=0)
    rivals: list[tuple[str, Callable[[], Any], Data]] = [
        (
            f"Nystroem(1000) + LinearSVC, {len(few.y)} rows",
            lambda: make_pipeline(features, LinearSVC(C=C, dual=False)),
            few,
        ),
        ("ExtraTrees", lambda: ExtraTreesClassifier(random_state=0, n_jobs=2), data),
        (
            "HistGradientBoosting",
            lambda: HistGradientBoostingClassifier(max_iter=500, random_state=0),
            data,
        ),
    ]
    return [measured(name, make, part, warm=False) for name, make, part in rivals]


def extrapolated(data: Data, report: Report) -> list[dict[str, Any]]:
    """Fit exact SVMs on two subsets, and extrapolate the time for all rows."""
    kinds: dict[str, Any] = {"LibSVM": SVC}
    try:
        from sklearnex.svm import SVC as OneDAL  # noqa: N811

        kinds["oneDAL"] = OneDAL
    except ImportError:
        report.note("scikit-learn-intelex is not installed: no comparison with oneDAL")
    rows = []
    for name, kind in kinds.items():
        make = lambda kind=kind: kind(C=C, gamma=GAMMA)  # noqa: E731
        parts = [data.first(min(size, len(data.y))) for size in EXACT_ROWS]
        tests = [
            replace(part, X_test=data.X_test[:5000], y_test=data.y_test[:5000]) for part in parts
        ]
        found = [measured(f"{name}, {len(part.y)} rows", make, part, warm=False) for part in tests]
        small, large = (row["fit, s"] for row in found)
        growth = np.log2(large / small)
        whole = large * (len(data.y) / EXACT_ROWS[-1]) ** growth
        found[-1]["model"] += f" ({whole:.0f} s for all rows, exponent {growth:.1f})"
        rows += found
    return rows


def read(rows: int | None) -> Data:
    X, y = load("covtype.libsvm.binary.scale", rows)
    order = np.random.RandomState(0).permutation(len(y))
    X, y, n = X[order], y[order], round(SHARE * len(y))
    return Data(X[:n], y[:n], X[n:], y[n:])


def run(options: Any, report: Report) -> None:
    data = read(options.rows)
    # The first fits compile.
    few = data.first(3000)
    for make in region_models(options.covers).values():
        make().set_params(max_region_size=1200).fit(few.X, few.y)
    once = partial(measured, warm=False)
    rows = [once(name, make, data) for name, make in region_models(options.covers).items()]
    single, covered, tuned, learned, scaled = rows
    small = once("part", region_models(1)["regions, one kernel"], data.first(GROWTH_FROM))
    if not options.ours_only:
        rows += others(data)
        rows += extrapolated(data, report)
    report.table(f"covtype, {len(data.y)} training rows, {len(data.y_test)} test rows", rows)
    limits = ((single, 96.0, 15), (covered, 96.3, 30), (tuned, 96.3, 120), (scaled, 97, 45))
    for row, accuracy, seconds in limits:
        report.target(f"{row['model']}: test accuracy", row["test accuracy"], ">=", accuracy)
        report.target(f"{row['model']}: fit, s", row["fit, s"], "<=", seconds)
    report.target("one partition: prediction, s", single["prediction, s"], "<=", 1)
    gain = learned["test accuracy"] - max(single["test accuracy"], tuned["test accuracy"])
    report.target("kernels learned: points above one kernel", gain, ">=", 0)
    gain = scaled["test accuracy"] - max(single["test accuracy"], tuned["test accuracy"])
    report.target("feature scaling: points above one kernel", gain, ">=", 1)
    report.target(
        "feature scaling: time relative to one kernel", scaled["fit, s"] / single["fit, s"], "<=", 3
    )
    if len(data.y) > GROWTH_FROM:
        growth = np.log(single["fit, s"] / small["fit, s"]) / np.log(len(data.y) / GROWTH_FROM)
        report.target(f"growth from {GROWTH_FROM} rows, exponent", growth, "<=", 1.1)
    allowed = 2 * data.X.nbytes / 2**20 + one_kernel().cache_size
    report.quality("one partition: peak memory, MB", single["peak, MB"], "<=", allowed)


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--covers", type=int, help="number of partitions (5)")
    parser.add_argument("--ours-only", action="store_true", help="do not run other libraries")


if __name__ == "__main__":
    main(run, RegionOptions(), more_options)
