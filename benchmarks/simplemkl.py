"""SimpleMKL with eleven kernels on 2,000 rows of a9a, compared with the same algorithm on SVC."""

from functools import partial
from typing import Any

from benchmarks.common import Options, Report, load_a9a, main, race, ratio, signs
from benchmarks.references import SETTINGS, plain_simplemkl
from lokl import LpMKLClassifier, SimpleMKLClassifier
from lokl.kernels import Linear, Polynomial, rbf_ladder

ROWS, TOL = 2000, 0.01


def run(options: Options, report: Report) -> None:
    X, _, y, _ = load_a9a(options.rows)
    X, y = X[:ROWS], y[:ROWS]
    simple = [Linear().normalized("mean_diag"), Polynomial(2).normalized("mean_diag")]
    kernels: list[Any] = [*simple, *rbf_ladder()]
    bound = [kernel.bind(X) for kernel in kernels]
    ours = SimpleMKLClassifier(kernels, learn_tol=TOL, **SETTINGS)
    calls = {
        "lokl": partial(ours.fit, X, y),
        "plain": lambda: plain_simplemkl([kernel(X) for kernel in bound], signs(y), TOL),
        "l_1, lokl": partial(LpMKLClassifier(kernels, p=1, learn_tol=TOL, **SETTINGS).fit, X, y),
    }
    times, results = race(calls, options)
    objective, gap, machines, weights = results["plain"]
    model, other = results["lokl"], results["l_1, lokl"]
    found = {
        "lokl": (float(model.history_[-1]), model.duality_gap_, model.weights_),
        "plain": (objective, gap, weights),
        "l_1, lokl": (float(other.history_[-1]), other.duality_gap_, other.weights_),
    }
    report.table(
        f"{len(X):,} rows, eleven kernels, certified relative gap {TOL}",
        [
            {
                "": name,
                "fit": times[name],
                "speed-up": ratio(times[name], times["lokl"]),
                "objective": value,
                "relative gap": left / value,
                "weights": " ".join(f"{w:.2f}" for w in shares),
            }
            for name, (value, left, shares) in found.items()
        ],
    )
    report.note(f"the reference solved {machines} SVMs, lokl needed {model.n_iter_} rounds")
    apart = abs(float(model.history_[-1]) - objective) / objective
    report.quality("objective, relative difference", apart, "<=", TOL)
    report.target("speed-up", ratio(times["plain"], times["lokl"]), ">=", 8.0)


if __name__ == "__main__":
    main(run)
