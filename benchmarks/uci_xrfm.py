"""xRFM on one published fold in its own environment, without any part of this project.

Arguments: the table (npz), the number of the fold, and the least probability of the log loss.
Writes one line of JSON: accuracy, log loss, seconds, and how the search went.

The README of xRFM recommends standardised columns and the search of ``XRFM_HPO_Classifier`` in
PyTabKit. This is that search, with its default space and settings: 50 random draws of bandwidth,
regularisation, exponent and norm of the kernel, diagonal or full feature matrix; five iterations
with early stopping; the draw of least validation error wins, and its models predict. All columns
are numeric. Differences: ties are broken by log loss, no draw starts after `SECONDS`, and up to
`FOLDED_ROWS` training rows there are five validation folds whose models are averaged (``n_cv=5``
in PyTabKit) instead of one part of 20 %, which would be a handful of samples.
"""

import json
import sys
import time
import warnings

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from xrfm import xRFM

DRAWS, SECONDS = 50, 300.0
FOLDED_ROWS = 500
BATCH_BYTES = 2.0**30


def draw(rng):
    """Return one setting of the search."""
    setting = {
        "bandwidth": float(np.exp(rng.uniform(np.log(0.5), np.log(200.0)))),
        "reg": float(np.exp(rng.uniform(np.log(1e-6), np.log(10.0)))),
        "exponent": float(rng.uniform(0.7, 1.4)),
        "p_interp": float(rng.uniform(0.0, 0.8)),
        "diag": bool(rng.choice([False, True])),
        "kernel": str(rng.choice(["lpq", "l2"], p=[0.8, 0.2])),
    }
    between = setting.pop("p_interp")
    setting["norm_p"] = setting["exponent"] + (2.0 - setting["exponent"]) * between
    return setting


def splits(y):
    """Return pairs of training and validation rows."""
    largest = np.bincount(y).max()
    folds = StratifiedKFold(min(5, largest), shuffle=True, random_state=0)
    found = list(folds.split(np.zeros(len(y)), y))
    return found if len(y) <= FOLDED_ROWS else found[:1]


class Model:
    """Scaler and xRFM, fitted with a validation part for early stopping."""

    def __init__(self, setting, X, y, X_held_out, y_held_out):
        setting = dict(setting)
        self.scaler = StandardScaler().fit(X)
        batch = round(BATCH_BYTES / (48.0 * X.shape[0] * X.shape[1]))
        fit = {
            "reg": setting.pop("reg"),
            "iters": 5,
            "verbose": False,
            "early_stop_rfm": True,
            "early_stop_multiplier": 1.1,
            "M_batch_size": max(1, min(8192, batch)),
            "solver": "solve",
        }
        model = {**setting, "bandwidth_mode": "constant", "fast_categorical": True}
        self.model = xRFM(
            {"model": model, "fit": fit},
            device="cpu",
            tuning_metric="accuracy",
            classification_mode="prevalence",
            overlap_fraction=0.1,
            random_state=0,
            verbose=False,
        )
        parts = [self._scaled(X), torch.tensor(y), self._scaled(X_held_out)]
        self.model.fit(*parts, torch.tensor(y_held_out))

    def _scaled(self, X):
        return torch.tensor(self.scaler.transform(X), dtype=torch.float32)

    def predict_proba(self, X):
        return np.asarray(self.model.predict_proba(self._scaled(X)), dtype=float)


def search(X, y):
    """Return the models of the best draw, their setting, and the numbers of draws and failures."""
    rng = np.random.default_rng(0)
    begun, tried, failed, best = time.perf_counter(), 0, 0, None
    pairs = splits(y)
    while tried < DRAWS and (best is None or time.perf_counter() - begun < SECONDS):
        setting = draw(rng)
        tried += 1
        try:
            models, right, loss = [], [], []
            for train, held_out in pairs:
                model = Model(setting, X[train], y[train], X[held_out], y[held_out])
                p = model.predict_proba(X[held_out])
                models.append(model)
                right.append(p.argmax(axis=1) == y[held_out])
                loss.append(-np.log(np.maximum(p[np.arange(len(p)), y[held_out]], 1e-3)))
            score = (-np.concatenate(right).mean(), np.concatenate(loss).mean())
            if not np.all(np.isfinite(score)):
                raise ValueError("the predictions are not finite")
        except (RuntimeError, ValueError, AssertionError) as reason:
            failed += 1
            if failed == DRAWS:
                raise RuntimeError(f"every draw failed, the last one with: {reason}") from reason
            continue
        if best is None or score < best[0]:
            best = (score, models, setting)
    return best[1], best[2], tried, failed


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    stored, number, least = np.load(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    train, test = stored[f"train{number}"], stored[f"test{number}"]
    X, labels = stored["X"], stored["y"]
    begun, cpu_begun = time.perf_counter(), time.process_time()
    classes, y = np.unique(labels[train], return_inverse=True)
    models, setting, tried, failed = search(X[train], y)
    p = np.mean([model.predict_proba(X[test]) for model in models], axis=0)
    cpu_seconds, seconds = time.process_time() - cpu_begun, time.perf_counter() - begun
    of_true_class = (p * (labels[test][:, np.newaxis] == classes)).sum(axis=1)
    record = {
        "accuracy": 100.0 * float(np.mean(classes[p.argmax(axis=1)] == labels[test])),
        "log_loss": float(-np.log(np.clip(of_true_class, least, 1.0)).mean()),
        "cpu_seconds": round(cpu_seconds, 3),
        "seconds": round(seconds, 3),
        "draws": tried,
        "failed_draws": failed,
        "validation_folds": len(models),
        "setting": setting,
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main()
