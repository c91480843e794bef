"""LMKL and C-LMKL compared with plain references on 4,000 rows, and with one SVM on all of a9a."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.common import Options, Report, load_a9a, main, race, ratio, signs
from benchmarks.references import SETTINGS, plain_clmkl, plain_lmkl, plain_memberships
from lokl import CLMKLClassifier, LMKLClassifier, UniformMKLClassifier
from lokl.gates import SoftmaxGate
from lokl.gates.representation import Standardized
from lokl.kernels import RBF, Linear, Polynomial

GAMMA, TOL, FEW = 1 / 16, 1e-3, 4000
ENOUGH = {**SETTINGS, "cache_size": 2048}


def kernels() -> list[Any]:
    return [Linear().normalized("mean_diag"), Polynomial(2).normalized("mean_diag"), RBF(GAMMA)]


def few_rows(options: Options, report: Report) -> None:
    X, _, y, _ = load_a9a(options.rows)
    X, y = X[:FEW], y[:FEW]
    target = signs(y)
    bound = [kernel.bind(X) for kernel in kernels()]
    Z = Standardized.learn(X, np.ones(len(X)))(X)
    start = SoftmaxGate().init(Z, len(bound), np.random.RandomState(0))
    lmkl = LMKLClassifier(kernels(), snap=False, random_state=0, **SETTINGS)
    clmkl = CLMKLClassifier(kernels(), random_state=0, **SETTINGS)

    def by_gradient() -> Any:
        return plain_lmkl([kernel(X) for kernel in bound], Z, target, start, TOL)

    def in_closed_form() -> Any:
        grams = [kernel(X) for kernel in bound]
        rng = np.random.RandomState(0)
        sample = rng.choice(len(X), min(1000, len(X)), replace=False)
        c = plain_memberships(grams, sample, 3, rng)
        return plain_clmkl(grams, c, target, 2.0, TOL)

    rows = []
    for name, ours, theirs in (
        ("LMKL", lmkl, by_gradient),
        ("C-LMKL", clmkl, in_closed_form),
    ):
        times, results = race({"lokl": partial(ours.fit, X, y), "plain": theirs}, options)
        objective, count = results["plain"]
        found = float(results["lokl"].history_[-1])
        speed = ratio(times["plain"], times["lokl"])
        rows.append(
            {
                "method": name,
                "lokl": times["lokl"],
                "plain": times["plain"],
                "speed-up": speed,
                "objective, lokl": found,
                "objective, plain": objective,
                "rounds, lokl": results["lokl"].n_iter_,
                "SVMs, plain": count,
            }
        )
        # LMKL and the k-means of C-LMKL are not convex: our optimum must not be worse.
        report.quality(
            f"{name}: objective relative to the reference", found / objective, "<=", 1.005
        )
        report.target(f"{name}: speed-up", speed, ">=", 8.0)
    report.table(f"{len(X):,} rows of a9a, three kernels, compared with SVC(precomputed)", rows)


def all_rows(options: Options, report: Report) -> None:
    X, X_test, y, y_test = load_a9a(options.rows)
    models = {
        "one SVM": UniformMKLClassifier([RBF(GAMMA)], **ENOUGH),
        "uniform mix": UniformMKLClassifier(kernels(), **ENOUGH),
        "LMKL": LMKLClassifier(kernels(), random_state=0, **ENOUGH),
        "C-LMKL": CLMKLClassifier(kernels(), random_state=0, **ENOUGH),
    }
    times, fitted = race({n: partial(m.fit, X, y) for n, m in models.items()}, options)
    report.table(
        f"{X.shape[0]:,} rows of a9a, three kernels, cache_size 2048",
        (
            {
                "": name,
                "fit": times[name],
                "relative to one SVM": ratio(times[name], times["one SVM"]),
                "rounds": model.n_iter_ if "LMKL" in name else "",
                "objective": float(model.history_[-1]),
                "accuracy %": 100 * model.score(X_test, y_test),
                "support %": 100 * model.support_fraction_,
            }
            for name, model in fitted.items()
        ),
    )
    for name in ("LMKL", "C-LMKL"):
        share = ratio(times[name], times["one SVM"])
        report.target(f"{name}: time relative to one SVM", share, "<=", 25.0)
        falls = bool((np.diff(fitted[name].history_) < 0).all())
        report.quality(f"{name}: objective decreases in every round", falls, "==", 1)


def run(options: Options, report: Report) -> None:
    few_rows(options, report)
    all_rows(options, report)


if __name__ == "__main__":
    main(run)
