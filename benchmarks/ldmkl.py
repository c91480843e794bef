"""LD-MKL with three kernels against the same algorithm on scikit-learn's SVC and SVR."""

from functools import partial

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.common import Options, Report, load, load_a9a, main, race, ratio, signs
from benchmarks.references import SETTINGS, PlainLDMKL
from lokl import LDMKLClassifier
from lokl.kernels import RBF, Linear, Polynomial

GAMMA, MARGIN = 1 / 16, 0.05
# Name, rows, target for the speed-up.
SETS = (("a9a", None, 12.0), ("mushrooms", None, 6.0), ("covtype", 5000, 6.0))
FILES = {"covtype": "covtype.libsvm.binary.scale"}


def run(options: Options, report: Report) -> None:
    rows = []
    for name, most, wanted in SETS:
        if name == "a9a":
            X, X_test, y, y_test = load_a9a(options.rows)
        else:
            X, y = load(
                FILES.get(name, name), min(filter(None, (most, options.rows)), default=None)
            )
            X, X_test, y, y_test = train_test_split(X, y, train_size=0.75, random_state=0)
        kernels = [
            Linear().normalized("mean_diag"),
            Polynomial(2).normalized("mean_diag"),
            RBF(GAMMA),
        ]
        ours = LDMKLClassifier(kernels, gating="none", margin=MARGIN, **SETTINGS)
        theirs = PlainLDMKL(GAMMA, MARGIN)
        calls = {"lokl": partial(ours.fit, X, y), "plain": partial(theirs.fit, X, y)}
        times, models = race(calls, options)
        target = signs(y_test)
        decisions = {n: model.decision_function(X_test) for n, model in models.items()}
        right = {n: 100 * float(np.mean((d > 0) == (target > 0))) for n, d in decisions.items()}
        speed = ratio(times["plain"], times["lokl"])
        rows.append(
            {
                "set": name,
                "shape": f"{X.shape[0]} x {X.shape[1]}",
                "lokl": times["lokl"],
                "plain": times["plain"],
                "speed-up": speed,
                "lokl, accuracy %": right["lokl"],
                "plain, accuracy %": right["plain"],
                "mean |difference|": float(np.abs(decisions["lokl"] - decisions["plain"]).mean()),
            }
        )
        apart = abs(right["lokl"] - right["plain"])
        report.quality(f"{name}: difference of accuracies, points", apart, "<=", 0.3)
        report.target(f"{name}: speed-up", speed, ">=", wanted)
    report.table("linear, quadratic (mean diagonal 1), RBF gamma 1/16; ungated experts", rows)


if __name__ == "__main__":
    main(run)
