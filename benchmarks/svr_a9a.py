"""RBF regression on a9a (24,420 x 123) of the success of a linear SVM, compared with LibSVM."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.svm import SVR

from benchmarks.common import (
    Options,
    Report,
    difference,
    dual_objective,
    infeasibility,
    load_a9a,
    main,
    race,
    ratio,
)
from lokl import UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF, Linear

GAMMA, C, TOL, CACHE, EPSILON = 1 / 16, 1.0, 1e-3, 512, 0.1


def run(options: Options, report: Report) -> None:
    X, X_test, y, _ = load_a9a(options.rows)
    linear = UniformMKLClassifier([Linear()], C=C).fit(X, y)
    success = (linear.predict(X) == y).astype(float)
    report.note(f"target: success of a linear SVM, {success.mean():.4f} on the training rows")
    settings: dict[str, Any] = {"C": C, "tol": TOL, "cache_size": CACHE, "epsilon": EPSILON}
    machines = {
        "lokl": UniformMKLRegressor([RBF(GAMMA)], **settings),
        "LibSVM": SVR(gamma=GAMMA, **settings),
    }
    times, models = race({n: partial(m.fit, X, success) for n, m in machines.items()}, options)
    values = {name: model.predict(X_test) for name, model in models.items()}
    objectives = {n: dual_objective(m, X, success, GAMMA, EPSILON) for n, m in models.items()}
    apart = np.abs(values["lokl"] - values["LibSVM"])
    report.table(
        f"{X.shape[0]:,} x {X.shape[1]} rows, RBF gamma {GAMMA:g}, C {C:g}, epsilon {EPSILON:g}, "
        f"tol {TOL:g}",
        (
            {
                "": name,
                "fit": times[name],
                "speed-up": ratio(times[name], times["lokl"]),
                "objective": objectives[name],
                "support": len(models[name].support_),
                "R2 in training": models[name].score(X, success),
                "max |difference|": float(np.abs(values[name] - values["lokl"]).max()),
            }
            for name in machines
        ),
    )
    gap = difference(objectives["lokl"], objectives["LibSVM"])
    report.quality("objective, relative difference", gap, "<=", 1e-4)
    for name, model in models.items():
        report.quality(f"feasible: {name}", infeasibility(model, C), "<=", 1e-6)
    report.quality("predictions, mean |difference|", apart.mean(), "<=", 2 * TOL)
    speed = ratio(times["LibSVM"], times["lokl"])
    report.target("fit, speed-up: LibSVM", speed, ">=", 8.0)


if __name__ == "__main__":
    main(run)
