"""Tables and results that the tests of comparisons share."""

import numpy as np
import pandas as pd

from lokl.study.candidates import candidates_for
from lokl.study.experiment import Experiment
from lokl.study.results import Results
from lokl.study.settings import Settings
from lokl.tables import read_table

QUICK = ["--folds", "3", "--repeats", "1", "--jobs", "1"]
FEW = "uniform mix,views,logistic"


def write_tables(folder, n=45, seed=1):
    """Paths of two views, of which some samples lack the second, and of what is known."""
    rng = np.random.RandomState(seed)
    names = [f"S{number:02d}" for number in range(n)]
    label = rng.randint(3, size=n)
    left = pd.DataFrame(rng.normal(size=(n, 3)) + 1.5 * label[:, None], columns=["a", "b", "c"])
    left["colour"] = np.array(["red", "green", "blue"])[(label + (rng.rand(n) < 0.2)) % 3]
    left.loc[3, "b"] = np.nan
    right = pd.DataFrame(rng.normal(size=(n, 2)) - label[:, None], columns=["d", "e"])
    known = pd.DataFrame(
        {
            "class": np.array(["low", "mid", "high"])[label],
            "score": label + 0.5 * rng.normal(size=n),
            "family": [f"F{number // 3}" for number in range(n)],
        }
    )
    paths = {}
    for name, frame in (("left", left), ("right", right.iloc[5:]), ("known", known)):
        paths[name] = str(folder / f"{name}.csv")
        frame.insert(0, "id", [names[row] for row in frame.index])
        frame.to_csv(paths[name], index=False)
    return paths


def asked(paths, target="class"):
    """What is typed after `lokl compare` or `lokl fit`."""
    return [paths["left"], paths["right"], "--on", "id", "--target", f"{paths['known']}:{target}"]


def read(paths, target="class", **options):
    return read_table(
        [paths["left"], paths["right"]], on="id", target=f"{paths['known']}:{target}", **options
    )


def experiment_of(table, names=(), folds=3, repeats=1, seed=0):
    """Experiment of a table, without a folder."""
    settings = Settings((), folds=folds, repeats=repeats, seed=seed)
    return Experiment(table, candidates_for(table, names), settings)


def with_accuracy(experiment, split, score):
    """Predictions of which about this share is right: wrong are the last in a fixed order."""
    rows = experiment.splits[split][1]
    truth = experiment.samples.y[rows]
    order = np.random.RandomState(split).permutation(len(rows))
    wrong = order[round(min(max(score, 0.0), 1.0) * len(rows)) :]
    predictions = truth.copy()
    classes = experiment.target.classes
    for row in wrong:
        predictions[row] = classes[(classes.index(truth[row]) + 1) % len(classes)]
    return predictions.tolist()


def made_up(experiment, table, scores, **more):
    """Results in which candidates are about as accurate as told, with the values of `more`."""
    records = []
    n_views = len(table.views)
    first, second = experiment.target.classes[:2]
    for name, values in scores.items():
        for split, score in enumerate(values):
            n = len(experiment.splits[split][1])
            reduced = {
                "rows": list(range(n)),
                "predictions": with_accuracy(experiment, split, score - 0.1),
                "probabilities": None,
            }
            record = {
                "candidate": name,
                "split": split,
                "error": None,
                "seconds": 0.1,
                "inner score": score,
                "settings": "",
                "warnings": [],
                "support": 0.5,
                "predictions": with_accuracy(experiment, split, score),
                "probabilities": [[0.98, 0.01, 0.01]] * n,
                "weights": [[0.5] * n_views] * n,
                "trust": [[0.5] * n_views] * n if name == "trusted vote" else None,
                "contributions": [[1.0] * n_views] * n,
                "base_values": [0.0] * n,
                "runner_up": [second] * n,
                "alone": [[first] * n_views] * n,
                "alone_probabilities": [[0.9] * n_views] * n,
                "decisive": [[False] * n_views] * n,
                "status": ["agree"] * n,
                "disagreement": [0.0] * n,
                "presence": [[True] * n_views] * n,
                "familiarity": None,
                "alone_evidence": None,
                "without": None,
                "unit": "",
                "ablation": dict.fromkeys(table.views, reduced),
            }
            records.append({**record, **more.get(name, {})})
    return Results(experiment, records)
