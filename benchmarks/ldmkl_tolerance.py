"""Partition of the samples by LD-MKL for decreasing tolerances of the solver.

The published rule trains an expert on samples whose gate value is above 1/m. If kernels are equally
good, gate values differ from 1/m by no more than the tolerance of the solver, which then decides
which expert is trained on a sample. With a margin, such samples belong to all experts.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from benchmarks.common import Options, Report, load, main
from lokl import LDMKLClassifier
from lokl.kernels import RBF, Linear

SPLITS = 3
GAMMA = 0.25
SETS = (
    "breast-cancer_scale",
    "diabetes_scale",
    "german.numer_scale",
    "liver-disorders_scale",
    "mushrooms",
)
# The last tolerance stands for the exact solution.
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
RULES: dict[str, float] = {"margin 0 (published)": 0.0, "margin 0.05 (default)": 0.05}


def fitted(margin: float, tolerance: float, X: Any, y: Any) -> LDMKLClassifier:
    """Return the most likely published setting: kernels not normalised, retrained experts."""
    model = LDMKLClassifier(
        [Linear(), RBF(GAMMA)],
        margin=margin,
        gating="none",
        success_kernel=RBF("auto"),
        tol=tolerance,
        random_state=0,
    )
    return model.fit(X, y)


def members(model: LDMKLClassifier, n: int) -> Any:
    """Return the training samples of each expert, (n_samples, n_kernels) of bool."""
    found = np.zeros((n, len(model.experts_)), dtype=bool)
    for i, expert in enumerate(model.experts_):
        found[expert.rows, i] = True
    return found


def measured(X: Any, y: Any, margin: float) -> list[dict[str, float]]:
    """Return one row per tolerance: means over the splits, in %."""
    sums: list[dict[str, list[float]]] = [{} for _ in TOLERANCES]
    for split in range(SPLITS):
        own, test, target, truth = train_test_split(X, y, test_size=0.25, random_state=split)
        models = [fitted(margin, tolerance, own, target) for tolerance in TOLERANCES]
        exact = members(models[-1], len(target))
        for values, tolerance, model in zip(sums, TOLERANCES, models, strict=True):
            gates = model.weights(own)
            middle = 1.0 / gates.shape[1]
            moved = (members(model, len(target)) != exact).any(axis=1)
            experts = [len(expert.support) / len(target) for expert in model.experts_]
            for name, value in (
                ("gates within tolerance", np.mean(np.abs(gates - middle) <= tolerance)),
                ("samples moved", np.mean(moved)),
                ("accuracy", model.score(test, truth)),
                ("support", model.support_fraction_),
                ("each expert", np.mean(experts)),
            ):
                values.setdefault(name, []).append(100.0 * float(value))
    return [{name: round(float(np.mean(own)), 2) for name, own in v.items()} for v in sums]


def run(options: Options, report: Report) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    for title, margin in RULES.items():
        rows = []
        for name in SETS:
            found = measured(*load(name, options.rows), margin)
            rows += [
                {"set": name, "tol": f"{tolerance:g}", **own}
                for tolerance, own in zip(TOLERANCES, found, strict=True)
            ]
            for what in ("support", "accuracy"):
                values = [own[what] for own in found]
                moves = max(values) - min(values)
                report.target(f"{title}, {name}: {what} moves", moves, "<=", 1.0)
        report.table(f"{title}: % over {SPLITS} splits, linear and Gaussian ({GAMMA:g})", rows)


if __name__ == "__main__":
    main(run)
