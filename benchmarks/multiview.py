"""Real multi-view data: every view alone, the uniform mix, and the localized methods."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import lokl
from benchmarks.common import MissingDataError, Options, Report, main
from lokl.kernels import RBF, per_view

SPLITS, C = 5, 10.0
METHODS = ("UniformMKL", "CLMKL", "SwMKL", "LDMKL", "LMKL")


def stack(blocks: dict[str, Any]) -> tuple[Any, dict[str, slice]]:
    """Views side by side, and where each is."""
    ends = np.cumsum([block.shape[1] for block in blocks.values()])
    starts = ends - [block.shape[1] for block in blocks.values()]
    views = {name: slice(int(a), int(b)) for name, a, b in zip(blocks, starts, ends, strict=True)}
    return np.hstack(list(blocks.values())), views


def read_mat(folder: Path, file: str, names: tuple[str, ...] | None) -> tuple[Any, Any, Any]:
    content = loadmat(folder / file)
    cells = content["X"].ravel()
    labels = names or tuple(f"view {k + 1}" for k in range(len(cells)))
    blocks = {n: np.asarray(cell, dtype=float) for n, cell in zip(labels, cells, strict=True)}
    X, views = stack(blocks)
    return X, np.asarray(content["y"]).ravel(), views


def read_tcga(folder: Path) -> tuple[Any, Any, Any, Any, Any]:
    """Training and test part; the test part has no protein view."""
    import pandas as pd

    def table(name: str) -> Any:
        return pd.read_csv(folder / "breast_tcga" / name, index_col=0)

    train = {v: table(f"{v}_train.csv.bz2") for v in ("mrna", "mirna", "protein")}
    test = {v: table(f"{v}_test.csv.bz2") for v in ("mrna", "mirna")}
    rows = test["mrna"].shape[0]
    test["protein"] = pd.DataFrame(np.full((rows, train["protein"].shape[1]), np.nan))
    X, views = stack({name: block.to_numpy(dtype=float) for name, block in train.items()})
    X_test, _ = stack({name: block.to_numpy(dtype=float) for name, block in test.items()})
    y, y_test = (
        pd.read_csv(folder / "breast_tcga" / f"subtype_{part}.csv")["subtype"].to_numpy()
        for part in ("train", "test")
    )
    return X, X_test, y, y_test, views


def splits(folder: Path, name: str, count: int) -> Any:
    """Training and test parts, scaled by the training part."""
    if name == "breast_tcga":
        X, X_test, y, y_test, views = read_tcga(folder)
        parts = [(X, X_test, y, y_test)]
    else:
        file, names = FILES[name]
        X, y, views = read_mat(folder, file, names)
        parts = [
            train_test_split(X, y, test_size=0.25, random_state=s, stratify=y) for s in range(count)
        ]
    for X_train, X_test, y_train, y_test in parts:
        scale = StandardScaler().fit(X_train)
        yield scale.transform(X_train), scale.transform(X_test), y_train, y_test, views


FILES = {
    "mfeat": ("mfeat_Handwritten.mat", ("fac", "fou", "kar", "mor", "pix", "zer")),
    "protein fold": ("ProteinFold.mat", None),
    "breast_tcga": ("", None),
}


def run(options: Options, report: Report) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    folder = Path(os.environ.get("LOKL_DATA", ""), "multiview")
    if not folder.is_dir():
        raise MissingDataError("LOKL_DATA has no folder multiview")
    count = min(options.repeats, SPLITS) if options.repeats else SPLITS
    for name in FILES:
        scores: dict[str, list[float]] = {}
        for X, X_test, y, y_test, views in splits(folder, name, count):
            kernels = per_view(RBF("scale"), views)
            for view, kernel in kernels.items():
                seen = slice(views[view].start, views[view].stop)
                if np.isnan(X_test[:, seen]).all():
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
        report.target(f"{name}: best localized over the best view", top - single, ">=", 0.0)
        report.target(f"{name}: best localized over UNIFORM", top - means["UniformMKL"], ">=", 0.0)


if __name__ == "__main__":
    main(run)
