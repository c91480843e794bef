"""RBF classification on two dozen data sets of all sizes, compared with LibSVM."""

from functools import partial
from typing import Any

from sklearn.svm import SVC

from benchmarks.common import (
    MissingDataError,
    Options,
    Report,
    agreement,
    difference,
    dual_objective,
    infeasibility,
    load,
    main,
    race,
    ratio,
    scale_gamma,
    signs,
)
from lokl import UniformMKLClassifier
from lokl.kernels import RBF

C, TOL, CACHE = 1.0, 1e-3, 512
LARGE = ("w8a", "mushrooms", "phishing", "skin_nonskin", "splice", "svmguide1")
SMALL = (
    "australian",
    "australian_scale",
    "breast-cancer",
    "breast-cancer_scale",
    "diabetes",
    "diabetes_scale",
    "fourclass",
    "fourclass_scale",
    "german.numer",
    "german.numer_scale",
    "heart",
    "heart_scale",
    "ionosphere_scale",
    "liver-disorders",
    "liver-disorders_later5",
    "liver-disorders_scale",
    "sonar_scale",
)
SPARSE = ("w8a",)
# LibSVM needs minutes for all rows.
SAMPLED = {"skin_nonskin": 20_000}


def compare(name: str, options: Options) -> dict[str, Any]:
    """Return one row of the table."""
    limits = [limit for limit in (options.rows, SAMPLED.get(name)) if limit]
    X, y = load(name, min(limits, default=None), dense=name not in SPARSE)
    settings: dict[str, Any] = {"C": C, "tol": TOL, "cache_size": CACHE}
    machines = {
        "lokl": UniformMKLClassifier([RBF("scale")], **settings),
        "LibSVM": SVC(gamma="scale", **settings),
    }
    least = 15 if X.shape[0] <= 1000 else 3
    times, models = race(
        {n: partial(m.fit, X, y) for n, m in machines.items()}, options, least=least
    )
    gamma, target = scale_gamma(X), signs(y)
    objectives = {n: dual_objective(m, X, target, gamma) for n, m in models.items()}
    return {
        "set": name,
        "shape": f"{X.shape[0]} x {X.shape[1]}",
        "lokl": times["lokl"],
        "LibSVM": times["LibSVM"],
        "speed-up": ratio(times["LibSVM"], times["lokl"]),
        "objective": objectives["LibSVM"],
        "difference": difference(*objectives.values()),
        "infeasible": infeasibility(models["lokl"], C),
        "agree": agreement(*(model.predict(X) for model in models.values())),
        "accuracy": models["lokl"].score(X, y),
    }


def run(options: Options, report: Report) -> None:
    rows, reasons = [], []
    for name in LARGE + SMALL:
        try:
            rows.append(compare(name, options))
        except MissingDataError as reason:
            reasons.append(str(reason))
    if not rows:
        raise MissingDataError(reasons[0])
    for text in reasons:
        report.note(f"skipped: {text}")
    report.table(f"RBF gamma scale, C {C:g}, tol {TOL:g}; agreement on the training rows", rows)
    for row in rows:
        name = row["set"]
        report.quality(f"{name}: objective, relative difference", row["difference"], "<=", 1e-4)
        report.quality(f"{name}: feasible", row["infeasible"], "<=", 1e-6)
        report.quality(f"{name}: equal predictions", row["agree"], ">=", 0.995)
        slower = 1.0 / row["speed-up"]
        report.target(f"{name}: time relative to LibSVM", slower, "<=", 1.2)


if __name__ == "__main__":
    main(run)
