"""Real multi-view data: single views, the uniform mix and localized methods."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import lokl
from benchmarks.common import Options, Report, load_set, main
from lokl.kernels import RBF, per_view

SPLITS, C = 5, 10.0
SETS = {"mfeat": "mfeat", "protein fold": "protein_fold", "breast_tcga": "breast_tcga"}
METHODS = ("UniformMKL", "CLMKL", "SwMKL", "LDMKL", "LMKL")


def splits(found: Any, count: int) -> Any:
    """Yield training and test parts, scaled by the training part; one if the split is given."""
    X, y = found.data, found.target
    if "data_test" in found:
        parts = [(X, found.data_test, y, found.target_test)]
    else:
        parts = [
            train_test_split(X, y, test_size=0.25, random_state=s, stratify=y) for s in range(count)
        ]
    for X_train, X_test, y_train, y_test in parts:
        scale = StandardScaler().fit(X_train)
        yield scale.transform(X_train), scale.transform(X_test), y_train, y_test


def run(options: Options, report: Report) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    count = min(options.repeats, SPLITS) if options.repeats else SPLITS
    for name, stored in SETS.items():
        found = load_set(stored)
        views = found.views
        kernels = per_view(RBF("scale"), views)
        scores: dict[str, list[float]] = {}
        for X, X_test, y, y_test in splits(found, count):
            for view, kernel in kernels.items():
                if np.isnan(X_test[:, views[view]]).all():
                    continue
                one = lokl.UniformMKLClassifier({view: kernel}, C).fit(X, y)
                scores.setdefault(f"only {view}", []).append(one.score(X_test, y_test))
            for method in METHODS:
                model = getattr(lokl, f"{method}Classifier")(kernels, C, random_state=0)
                scores.setdefault(method, []).append(model.fit(X, y).score(X_test, y_test))
        means = {key: 100 * float(np.mean(values)) for key, values in scores.items()}
        report.table(
            f"{name}: {X.shape[0]} training samples, {len(views)} views, {len(set(y))} classes, "
            f"RBF on each, C {C:g}",
            (
                {
                    "": key,
                    "accuracy %": f"{means[key]:.2f}",
                    "deviation": f"{100 * np.std(values, ddof=1):.2f}" if len(values) > 1 else "",
                    "splits": len(values),
                }
                for key, values in scores.items()
            ),
        )
        single = max(value for key, value in means.items() if key.startswith("only"))
        top = max(means[method] for method in METHODS[1:])
        report.target(f"{name}: best localized method minus best view", top - single, ">=", 0.0)
        report.target(
            f"{name}: best localized method minus UNIFORM", top - means["UniformMKL"], ">=", 0.0
        )


if __name__ == "__main__":
    main(run)
