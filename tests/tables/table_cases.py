"""Tables that tests of reading, learning and the command share."""

import numpy as np
import pandas as pd

_rng = np.random.RandomState(0)
_names = [f"P{number:03d}" for number in range(40)]
_ill = _rng.rand(40) < 0.5
BLOOD = pd.DataFrame(
    {
        "patient": _names[:12],
        "iron": np.round(_rng.normal(size=12) + 2 * _ill[:12], 3),
        "sugar": np.round(_rng.normal(size=12), 3),
        "group": list("AB0A0BA0BABA"),
    }
)
PULSE = pd.DataFrame(
    {
        "patient": _names[4:12],
        "rest": np.round(_rng.normal(60, 5, size=8), 1),
        "run": np.round(_rng.normal(120, 9, size=8), 1),
    }
)
CLINIC = pd.DataFrame(
    {
        "patient": _names,
        "ill": np.where(_ill, "yes", "no"),
        "town": [f"T{number % 3}" for number in range(40)],
    }
)


def written(folder):
    """Paths of the tables: two views, and what is known of the patients."""
    paths = []
    for name, frame in (("blood", BLOOD), ("pulse", PULSE), ("clinic", CLINIC)):
        frame.to_csv(folder / f"{name}.csv", index=False)
        paths.append(str(folder / f"{name}.csv"))
    return paths


def larger(folder, n=40):
    """Paths of two views of 40 samples, of which some lack the second, and of their labels."""
    rng = np.random.RandomState(1)
    names = [f"S{number:02d}" for number in range(n)]
    label = rng.randint(3, size=n)
    left = pd.DataFrame(rng.normal(size=(n, 3)) + label[:, None], columns=["a", "b", "c"])
    left["colour"] = np.array(["red", "green", "blue"])[(label + (rng.rand(n) < 0.2)) % 3]
    left.loc[3, "b"] = np.nan
    right = pd.DataFrame(rng.normal(size=(n, 2)) - label[:, None], columns=["d", "e"])
    for frame in (left, right):
        frame.insert(0, "id", names)
    paths = [str(folder / f"{name}.csv") for name in ("left", "right", "labels")]
    left.to_csv(paths[0], index=False)
    right.iloc[5:].to_csv(paths[1], index=False)
    classes = np.array(["low", "mid", "high"])[label]
    pd.DataFrame({"id": names, "class": classes, "score": label + rng.normal(size=n)}).to_csv(
        paths[2], index=False
    )
    return paths
