"""RBF classification on a9a (24,420 x 123), compared with LibSVM and oneDAL."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.svm import SVC

from benchmarks.common import (
    Options,
    Report,
    agreement,
    difference,
    dual_objective,
    infeasibility,
    load_a9a,
    main,
    race,
    ratio,
    signs,
)
from lokl import UniformMKLClassifier
from lokl.kernels import RBF

GAMMA, C, TOL, CACHE = 1 / 16, 1.0, 1e-3, 512


def run(options: Options, report: Report) -> None:
    X, X_test, y, y_test = load_a9a(options.rows)
    settings: dict[str, Any] = {"C": C, "tol": TOL, "cache_size": CACHE}
    # Each library gets the samples in the layout that it uses without a copy.
    machines: dict[str, Any] = {
        "lokl": (UniformMKLClassifier([RBF(GAMMA)], **settings), X, X_test),
        "LibSVM": (SVC(gamma=GAMMA, **settings), X, X_test),
    }
    wanted = {"LibSVM": (12.0, 10.0)}
    try:
        from sklearnex.svm import SVC as OneDAL  # noqa: N811
    except ImportError:
        report.note("scikit-learn-intelex is not installed: no comparison with oneDAL")
    else:
        single = X.astype(np.float32), X_test.astype(np.float32)
        machines["oneDAL float32"] = (OneDAL(gamma=GAMMA, **settings), *single)
        wanted["oneDAL float32"] = (1.0, 1.0)

    fits, models = race({n: partial(m.fit, A, y) for n, (m, A, _) in machines.items()}, options)
    predictions, labels = race(
        {n: partial(m.predict, B) for n, (m, _, B) in machines.items()}, options
    )
    objectives = {n: dual_objective(m, X, signs(y), GAMMA) for n, m in models.items()}
    report.table(
        f"fit: {X.shape[0]:,} x {X.shape[1]}, RBF gamma {GAMMA:g}, C {C:g}, tol {TOL:g}",
        (
            {
                "": name,
                "time": fits[name],
                "speed-up": ratio(fits[name], fits["lokl"]),
                "objective": objectives[name],
                "support": len(models[name].support_),
                "test accuracy": agreement(labels[name], y_test),
                "agrees with lokl": agreement(labels[name], labels["lokl"]),
            }
            for name in machines
        ),
    )
    report.table(
        f"predict: {len(y_test):,} rows",
        (
            {"": name, "time": time, "speed-up": ratio(time, predictions["lokl"])}
            for name, time in predictions.items()
        ),
    )
    report.quality("feasible: lokl", infeasibility(models["lokl"], C), "<=", 1e-6)
    for name, (fit, predict) in wanted.items():
        gap = difference(objectives["lokl"], objectives[name])
        report.quality(f"objective, relative difference: {name}", gap, "<=", 1e-4)
        report.quality(f"feasible: {name}", infeasibility(models[name], C), "<=", 1e-5)
        same = agreement(labels[name], labels["lokl"])
        report.quality(f"equal predictions: {name}", same, ">=", 0.995)
        speed = ratio(fits[name], fits["lokl"])
        report.target(f"fit, speed-up: {name}", speed, ">=", fit)
        if name != "LibSVM":
            report.target(f"fit, ambitious speed-up: {name}", speed, ">=", 1.3)
            native = hasattr(models[name], "_onedal_estimator")
            report.quality(f"{name} was used, not scikit-learn", native, "==", True)
        speed = ratio(predictions[name], predictions["lokl"])
        report.target(f"predict, speed-up: {name}", speed, ">=", predict)


if __name__ == "__main__":
    main(run)
