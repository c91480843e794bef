"""Tables about the UCI sets, from the records of finished folds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.common import Report

OURS = "AutoMKL"
RIVALS = ("SVC", "forest", "boosting", "xRFM")
# Largest number of rows, and title, of each group of sets.
GROUPS = ((700, "up to 700 rows"), (1000, "700 to 1,000 rows"), (None, "above 1,000 rows"))
# The search of the SVC uses two folds above the first number of training rows, and a sample of
# them above the second.
SOME_TRAIN_ROWS, MANY_TRAIN_ROWS, SAMPLED_ROWS = 1000, 5000, 2000
TIE = 1e-9

Record = dict[str, Any]


def show(report: Report, records: Sequence[Record], methods: Sequence[str]) -> None:
    """Show accuracies by data set, and for each group of sets means, ranks and wins."""
    failed = [r for r in records if r["error"] is not None]
    for r in failed:
        report.note(f"failed: {r['set']}, fold {r['fold'] + 1}, {r['method']}: {r['error']}")
    finished = [r for r in records if r["error"] is None]
    methods = [method for method in methods if any(r["method"] == method for r in finished)]
    sets = results(finished)
    if sets:
        report.table("test accuracy in percent, mean over folds", set_rows(sets, methods))
    for title, members in groups(sets).items():
        present = [m for m in methods if any(m in s["methods"] for s in members)]
        complete = [s for s in members if all(m in s["methods"] for m in present)]
        if complete:
            report.table(
                f"{len(complete)} sets, {title}: means, and sets won : lost : tied",
                summary_rows(complete, present),
            )
        if len(complete) < len(members):
            count = len(members) - len(complete)
            report.note(
                f"{title}: {count} sets without results of all methods are not in the means"
            )


def results(records: Sequence[Record]) -> list[Record]:
    """Return sets, the smallest first, with means of each method over the folds of all methods."""
    by_set: dict[str, dict[str, dict[int, Record]]] = {}
    for r in records:
        by_set.setdefault(r["set"], {}).setdefault(r["method"], {})[r["fold"]] = r
    found = []
    for name, methods in by_set.items():
        folds = sorted(set.intersection(*(set(own) for own in methods.values())))
        if not folds:
            continue
        first = next(iter(methods.values()))[folds[0]]
        means = {m: mean_record([own[k] for k in folds]) for m, own in methods.items()}
        sizes = {"rows": first["rows"], "train_rows": first["train_rows"]}
        found.append({"set": name, **sizes, "folds": len(folds), "methods": means})
    return sorted(found, key=lambda s: (s["rows"], s["set"]))


def mean_record(folds: Sequence[Record]) -> dict[str, float]:
    """Return mean accuracy and log loss (NaN without probabilities), and the sum of seconds."""
    losses = [np.nan if r["log_loss"] is None else r["log_loss"] for r in folds]
    return {
        "accuracy": float(np.mean([r["accuracy"] for r in folds])),
        "log_loss": float(np.mean(losses)),
        "cpu_seconds": float(sum(r["cpu_seconds"] for r in folds)),
        "seconds": float(sum(r["seconds"] for r in folds)),
    }


def svc_tuning(train_rows: int) -> str:
    """Return how the SVC is tuned on a training part of this size."""
    if train_rows > MANY_TRAIN_ROWS:
        return f"{SAMPLED_ROWS:,} rows, 2 folds"
    return "2 folds" if train_rows > SOME_TRAIN_ROWS else "5 folds"


def set_rows(sets: Sequence[Record], methods: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for s in sets:
        own = {
            m: f"{s['methods'][m]['accuracy']:.2f}" if m in s["methods"] else "" for m in methods
        }
        row = {"set": s["set"], "rows": s["rows"], "folds": s["folds"], **own}
        rows.append(row | ({"SVC tuned on": svc_tuning(s["train_rows"])} if "SVC" in own else {}))
    return rows


def groups(sets: Sequence[Record]) -> dict[str, list[Record]]:
    """Return the sets by title of their group; groups without sets are left out."""
    found: dict[str, list[Record]] = {}
    for s in sets:
        title = next(title for limit, title in GROUPS if limit is None or s["rows"] <= limit)
        found.setdefault(title, []).append(s)
    return {title: found[title] for _, title in GROUPS if title in found}


def summary_rows(sets: Sequence[Record], methods: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row per method: means and seconds over sets that have results of all methods."""
    accuracy = {m: np.array([s["methods"][m]["accuracy"] for s in sets]) for m in methods}
    ranks = mean_ranks(accuracy)
    rows = []
    for m in methods:
        loss = float(np.mean([s["methods"][m]["log_loss"] for s in sets]))
        row: dict[str, Any] = {
            "method": m,
            "accuracy": f"{accuracy[m].mean():.2f}",
            "rank": f"{ranks[m]:.2f}",
            "log loss": "" if np.isnan(loss) else f"{loss:.3f}",
        }
        for rival in RIVALS:
            if rival in methods:
                counts = won_lost_tied(accuracy[m], accuracy[rival])
                same = m == rival
                row[f"against {rival}"] = "" if same else " : ".join(map(str, counts))
        for name, unit in (("cpu_seconds", "processor"), ("seconds", "clock")):
            row[f"{unit}, s"] = f"{sum(s['methods'][m][name] for s in sets):,.0f}"
        rows.append(row)
    return rows


def mean_ranks(accuracy: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean rank of each method, 1 for the best; tied methods share their ranks."""
    # Sums in another order differ in the last digits.
    values = np.round(np.array(list(accuracy.values())) / TIE) * TIE
    means = rankdata(-values, axis=0).mean(axis=1)
    return dict(zip(accuracy, means.tolist(), strict=True))


def won_lost_tied(ours: Any, theirs: Any) -> tuple[int, int, int]:
    gaps = np.asarray(ours) - np.asarray(theirs)
    won, lost = int((gaps > TIE).sum()), int((gaps < -TIE).sum())
    return won, lost, len(gaps) - won - lost
