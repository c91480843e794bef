"""LD-MKL beyond the paper: margin, temperature and held-out success on eleven small sets."""

import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.common import Options, Report, load, main
from lokl import LDMKLClassifier, UniformMKLClassifier
from lokl.kernels import RBF, Polynomial, standard

SPLITS = 4
LIBSVM = (
    "breast-cancer_scale",
    "diabetes_scale",
    "german.numer_scale",
    "liver-disorders_scale",
    "heart_scale",
    "sonar_scale",
    "ionosphere_scale",
)
DICTIONARIES: dict[str, Any] = {
    "standard": standard(),
    "quadratic, RBF": [Polynomial(2).normalized("mean_diag"), RBF("scale")],
    "four RBF": [RBF(2.0**power) for power in (-4, -2, 0, 2)],
    "standard, unit diagonal": [kernel.normalized("unit_diag") for kernel in standard()],
}
SETTINGS: dict[str, Any] = {
    "published (margin 0)": {"margin": 0.0},
    "margin 0.02": {"margin": 0.02},
    "margin 0.05 (default)": {},
    "margin 0.1": {"margin": 0.1},
    "margin 0.05, temperature 0.3": {"temperature": 0.3},
    "margin 0.05, held-out success": {"success": "cv"},
}


def sets(options: Options) -> dict[str, tuple[Any, Any]]:
    found = {name: load(name, options.rows) for name in LIBSVM}
    for name, loader in (("iris", load_iris), ("wine", load_wine)):
        X, y = loader(return_X_y=True)
        found[name] = (StandardScaler().fit_transform(X), y)
    X, y = make_blobs(300, random_state=0)
    X = StandardScaler().fit_transform(X)
    return {**found, "three blobs": (X, y), "two blobs": (X[y != 2], y[y != 2])}


def run(options: Options, report: Report) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    data = sets(options)
    means: dict[str, dict[str, float]] = {}
    support: dict[str, list[float]] = {}
    for title, kernels in DICTIONARIES.items():
        models = {"uniform mix": UniformMKLClassifier(kernels)}
        for name, settings in SETTINGS.items():
            models[name] = LDMKLClassifier(kernels, random_state=0, **settings)
        for name, model in models.items():
            scores = []
            for X, y in data.values():
                for s in range(SPLITS):
                    parts = train_test_split(X, y, test_size=0.25, random_state=s)
                    model.fit(parts[0], parts[2])
                    scores.append(model.score(parts[1], parts[3]))
                    support.setdefault(name, []).append(model.support_fraction_)
            means.setdefault(name, {})[title] = 100 * float(np.mean(scores))
    report.table(
        f"mean accuracy % over {len(data)} sets, {SPLITS} splits each",
        (
            {"setting": name, **values, "support %": 100 * float(np.mean(support[name]))}
            for name, values in means.items()
        ),
    )
    published, default = means["published (margin 0)"], means["margin 0.05 (default)"]
    for title in DICTIONARIES:
        gain = default[title] - published[title]
        report.target(f"{title}: default over the published setting", gain, ">=", 0.0)


if __name__ == "__main__":
    main(run)
