"""Sets of SurvSet, and survival models of scikit-survival, without any part of this project.

Arguments: ``export FOLDER LEAST_ROWS MOST_ROWS`` writes a CSV file for each set whose columns are
constant in time. ``fit FILE`` fits every model to the folds of an npz file, and writes risks,
survival probabilities and seconds of processor to FILE.out.npz. ``race FILE`` fits the kernel SVM
at several penalties to one training part.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

# Largest number of columns of a set, and of Cox regression without a choice of columns.
MOST_COLUMNS, COX_COLUMNS = 1000, 300
TREES, LEAF, FOLDS, SEED = 200, 5, 3, 0
# Distinct times of a forest, whose leaves store a curve each.
FOREST_TIMES = 200
# Penalties of the kernel SVM.
PENALTIES = [2.0**k for k in (-8, -4, 0)]


def export(folder, least, most):
    from SurvSet.data import SurvLoader

    loader = SurvLoader()
    sets = loader.df_ds
    names = []
    for name in sets.ds[~sets.is_td]:
        frame = loader.load_dataset(name)["df"].drop(columns="pid")
        if not least <= len(frame) <= most or frame.shape[1] - 2 > MOST_COLUMNS:
            continue
        # Other numbers are competing events.
        frame["event"] = (frame.event == 1).astype(int)
        # Some models do not accept events at time zero.
        positive = frame.time[frame.time > 0].min()
        frame["time"] = frame.time.where(frame.time > 0, positive / 2)
        frame.to_csv(Path(folder, f"{name}.csv"), index=False)
        names.append(name)
    return names


def cox(X, y):
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    if X.shape[1] > COX_COLUMNS:
        return None
    # The smallest ridge at which Newton's method converges with indicator columns.
    return CoxPHSurvivalAnalysis(alpha=1e-2).fit(X, y)


def coxnet(X, y):
    from sklearn.model_selection import GridSearchCV
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    settings = {"l1_ratio": 0.9, "alpha_min_ratio": 0.01, "max_iter": 10_000}
    path = CoxnetSurvivalAnalysis(n_alphas=20, **settings).fit(X, y)
    search = GridSearchCV(
        CoxnetSurvivalAnalysis(**settings),
        {"alphas": [[alpha] for alpha in path.alphas_]},
        cv=inner_folds(y),
        refit=False,
        error_score=0.5,
    ).fit(X, y)
    best = search.best_params_["alphas"]
    return CoxnetSurvivalAnalysis(**settings, alphas=best, fit_baseline_model=True).fit(X, y)


def forest(X, y):
    from sksurv.ensemble import RandomSurvivalForest

    grid = np.unique(np.quantile(y["time"], np.linspace(0, 1, FOREST_TIMES)))
    if len(np.unique(y["time"])) > len(grid):
        y = y.copy()
        y["time"] = grid[np.searchsorted(grid, y["time"])]
    return RandomSurvivalForest(TREES, min_samples_leaf=LEAF, random_state=SEED).fit(X, y)


def machine(X, **settings):
    from sksurv.svm import FastKernelSurvivalSVM

    return FastKernelSurvivalSVM(
        kernel="rbf", gamma=1.0 / X.shape[1], max_iter=100, random_state=SEED, **settings
    )


def inner_folds(y):
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    return list(folds.split(np.zeros(len(y)), y["event"]))


MODELS = {"Cox": cox, "Coxnet": coxnet, "forest": forest}


def target(event, times):
    y = np.empty(len(event), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = event, times
    return y


def fit(path):
    import sksurv.ensemble
    import sksurv.linear_model  # noqa: F401

    data = np.load(path)
    found = {}
    for fold in range(int(data["folds"])):
        X, X_test, times = (data[f"{name} {fold}"] for name in ("X", "X_test", "times"))
        y = target(data[f"event {fold}"], data[f"time {fold}"])
        for name, make in MODELS.items():
            begun = time.process_time()
            try:
                model = make(X, y)
            except (ArithmeticError, ValueError, np.linalg.LinAlgError) as reason:
                print(f"{name}: {reason}", file=sys.stderr)
                continue
            seconds = time.process_time() - begun
            if model is None:
                continue
            found[f"{name} risk {fold}"] = model.predict(X_test)
            found[f"{name} seconds {fold}"] = seconds
            if hasattr(model, "predict_survival_function"):
                curves = model.predict_survival_function(X_test)
                found[f"{name} curves {fold}"] = np.array(
                    [np.where(times < c.x[0], 1.0, c(np.maximum(times, c.x[0]))) for c in curves]
                )
    np.savez(f"{path}.out.npz", **found)
    return sorted(MODELS)


def race(path):
    data = np.load(path)
    y, rows = target(data["event"], data["time"]), []
    for penalty in PENALTIES:
        model = machine(data["X"], alpha=penalty)
        begun = time.process_time()
        model.fit(data["X"], y)
        seconds = time.process_time() - begun
        risk = model.predict(data["X_test"])
        rows.append({"setting": penalty, "seconds": seconds, "risk": risk.tolist()})
    return {"fits": rows}


def main():
    warnings.simplefilter("ignore")
    what, path, *limits = sys.argv[1:]
    found = {"export": export, "fit": fit, "race": race}[what](path, *map(int, limits))
    print(json.dumps(found))


main()
