"""Tables about the trusted vote, from the records of finished splits."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.common import Report
from benchmarks.trust_damage import KINDS
from benchmarks.trust_methods import VOTE

# Targets for the gains over UNIFORM, in points.
HOPED = {"clean": 1.0, "conflict": 4.5, "swap": 3.0, "noise": 6.0, "missing": 3.0}
BELOW = 0.5
DETECTION, CALIBRATION = 0.93, 0.05
BINS = 10

Record = dict[str, Any]


def show(report: Report, records: Sequence[Record], names: Sequence[str]) -> None:
    """Show accuracies by data set, their means, wins and losses, and the quality of trust."""
    records = [r for name in names for r in shared([r for r in records if r["set"] == name])]
    names = [name for name in names if any(r["set"] == name for r in records)]
    methods = list(dict.fromkeys(r["method"] for r in records))
    table = {
        (name, method): means(r for r in records if (r["set"], r["method"]) == (name, method))
        for name in names
        for method in methods
    }
    table = {key: row for key, row in table.items() if row}
    for name in names:
        own = [method for method in methods if (name, method) in table]
        count = len({r["split"] for r in records if r["set"] == name})
        rows = [{"": method, **printed(table[name, method])} for method in own]
        report.table(f"{name}: accuracy %, {count} splits", rows)
    # Means are over data sets with results of all methods.
    whole = [name for name in names if all((name, method) in table for method in methods)]
    if whole:
        mean_rows = {
            m: {k: float(np.mean([table[n, m][k] for n in whole])) for k in KINDS} for m in methods
        }
        rows = [{"": method, **printed(row)} for method, row in mean_rows.items()]
        report.table(f"mean of {len(whole)} sets", rows)
        compare(report, table, mean_rows, whole)
    worth_of_trust(report, [r for r in records if r["method"] == VOTE], names)


def shared(records: Sequence[Record]) -> list[Record]:
    """Return the records of splits of one data set with results of all methods."""
    by_method: dict[str, set[int]] = {}
    for r in records:
        by_method.setdefault(r["method"], set()).add(r["split"])
    common = set.intersection(*by_method.values()) if by_method else set()
    return [r for r in records if r["split"] in common]


def means(records: Iterable[Record]) -> dict[str, float]:
    found = [r["accuracy"] for r in records]
    return {k: float(np.mean([a[k] for a in found])) for k in KINDS} if found else {}


def printed(row: dict[str, float]) -> dict[str, str]:
    return {kind: f"{value:.1f}" for kind, value in row.items()}


def compare(
    report: Report,
    table: dict[tuple[str, str], dict[str, float]],
    overall: dict[str, dict[str, float]],
    names: Sequence[str],
) -> None:
    """Show gains of the vote over every rival by data set, and the numbers of wins."""
    if VOTE not in overall:
        return
    rivals = [method for method in overall if method != VOTE]
    rows = []
    for rival in rivals:
        row: dict[str, Any] = {"trusted vote over": rival}
        for kind in KINDS:
            gains = [table[name, VOTE][kind] - table[name, rival][kind] for name in names]
            won, lost = sum(g > 0 for g in gains), sum(g < 0 for g in gains)
            row[kind] = f"{np.mean(gains):+.1f} ({won}:{lost})"
        rows.append(row)
    if rows:
        report.table("mean gain in points (sets won : lost)", rows)
    if "UNIFORM" in rivals:
        gains_over_uniform(report, table, overall, names)
    for rival in rivals:
        for kind in KINDS[1:]:
            gain = overall[VOTE][kind] - overall[rival][kind]
            report.target(f"{kind}: mean over {rival}", gain, ">=", 0.0)
    if {"UNIFORM", "best view"} <= set(rivals):
        for name in names:
            best = max(table[name, "UNIFORM"]["clean"], table[name, "best view"]["clean"])
            gain = table[name, VOTE]["clean"] - best
            report.target(f"{name}, clean: over UNIFORM and best view", gain, ">=", -BELOW)


def gains_over_uniform(
    report: Report,
    table: dict[tuple[str, str], dict[str, float]],
    overall: dict[str, dict[str, float]],
    names: Sequence[str],
) -> None:
    rows = []
    for name in names:
        gains = {k: table[name, VOTE][k] - table[name, "UNIFORM"][k] for k in KINDS}
        rows.append({"set": name, **{kind: f"{gain:+.1f}" for kind, gain in gains.items()}})
    report.table("trusted vote over UNIFORM, points", rows)
    for kind, hoped in HOPED.items():
        gain = overall[VOTE][kind] - overall["UNIFORM"][kind]
        report.target(f"{kind}: mean over UNIFORM", gain, ">=", hoped)


def worth_of_trust(report: Report, records: Sequence[Record], names: Sequence[str]) -> None:
    """Show the detection of corrupted views, and the calibration.

    For comparison, swapped views are also detected by the probability that each view assigns to the
    true class. The calibration error is computed over all splits of a data set together, since it
    is mostly noise for few rows.
    """
    rows, found, errors = [], [], []
    for name in names:
        own = [r for r in records if r["set"] == name]
        if not own:
            continue
        by_kind = [np.mean([r["detection"][kind] for r in own]) for kind in ("swap", "noise")]
        known = np.mean([r["detection"]["swap, class known"] for r in own])
        error = calibration_error(own)
        errors.append(error)
        if own[0]["views"] > 2:
            found.append(float(np.mean(by_kind)))
        rows.append(
            {
                "set": name,
                "views": own[0]["views"],
                "swapped view found": f"{by_kind[0]:.3f}",
                "class known": f"{known:.3f}",
                "noisy view found": f"{by_kind[1]:.3f}",
                "calibration error": f"{error:.3f}",
            }
        )
    if not rows:
        return
    report.table("trust: corrupted views found (AUROC), calibration", rows)
    if found:
        report.target("corrupted view found, three views or more", np.mean(found), ">=", DETECTION)
    report.target("calibration error, clean", np.mean(errors), "<=", CALIBRATION)


def calibration_error(records: Sequence[Record]) -> float:
    confidence = np.concatenate([r["confidence"] for r in records])
    right = np.concatenate([r["right"] for r in records])
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(bins, weights=right - confidence)).sum() / len(right))
