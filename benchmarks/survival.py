"""Censored times: AutoMKLSurvival on sets of SurvSet, compared with models of scikit-survival.

Sets of the package SurvSet with 100 to 5,000 rows, up to 1,000 columns, and columns that are
constant in time; repeated folds that are stratified by event. Everything is chosen inside the
training part of a fold. Columns of the peers are imputed, encoded and scaled there; AutoMKL reads
the tables as they are. Concordance (Harrell) and the integrated Brier score are the means over
folds, and time is processor time of one fit. With ``--records`` every finished set is a line of a
file, from which an interrupted run resumes.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.common import (
    MissingDataError,
    Options,
    Ratio,
    Report,
    console,
    main,
    peer_environment,
    peer_record,
)
from benchmarks.records import Records
from lokl import AutoMKLSurvival, UniformMKLSurvival, survival_target
from lokl.kernels import RBF
from lokl.metrics import concordance_index, integrated_brier_score

LEAST_ROWS, MOST_ROWS, FOLDS, REPEATS = 100, 5000, 5, 2
OURS, PEERS = "AutoMKL", ("Cox", "Coxnet", "forest")
# Quantiles of the event times between which the Brier score is integrated, at so many times.
EARLY, LATE, TIMES = 0.1, 0.9, 20
# Rows of the comparison of fits of one kernel, and costs of our SVM.
RACE_ROWS, COSTS = 2000, (0.01, 0.1, 1.0, 10.0)


@dataclass
class SurvivalOptions(Options):
    repeats: int = REPEATS
    sets: str | None = None
    records: Path | None = None
    recorded: bool = False


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", help="data sets, separated by commas (all)")
    parser.add_argument(
        "--records", type=Path, help="file of finished work, from which the run resumes"
    )
    parser.add_argument(
        "--recorded", action="store_true", help="only show the tables of the records"
    )


@dataclass(frozen=True, eq=False)
class Fold:
    """Training and test part of one fold, for peers as numbers."""

    frame: Any
    y: Any
    test_frame: Any
    y_test: Any

    @property
    def times(self) -> Any:
        """Times at which survival curves are judged, inside those of both parts."""
        known = self.y["time"][self.y["event"]]
        last = min(self.y["time"].max(), self.y_test["time"].max())
        low = max(np.quantile(known, EARLY), self.y_test["time"].min())
        high = min(np.quantile(known, LATE), np.nextafter(last, 0.0))
        return np.linspace(low, high, TIMES)

    @property
    def numbers(self) -> tuple[Any, Any]:
        words = make_column_selector(pattern="^fac_")
        numbers = make_column_selector(pattern="^num_")
        prepare = make_pipeline(
            make_column_transformer(
                (SimpleImputer(strategy="median"), numbers),
                (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words),
            ),
            StandardScaler(),
        )
        return prepare.fit_transform(self.frame), prepare.transform(self.test_frame)

    def scores(self, risk: Any, curves: Any | None) -> dict[str, float]:
        """Return concordance, and the integrated Brier score if there are curves."""
        y = self.y_test
        found = {"concordance": concordance_index(y["event"], y["time"], risk).cindex}
        if curves is not None:
            found["brier"] = integrated_brier_score(self.y, y, curves, self.times)
        return {name: float(value) for name, value in found.items()}


def folds_of(path: Path, seed: int) -> Iterator[Fold]:
    import pandas as pd

    frame = pd.read_csv(path)
    words = {name: str for name in frame if name.startswith("fac_")}
    known = frame[list(words)].notna()
    frame = frame.astype(words)
    frame[list(words)] = frame[list(words)].where(known)
    y = survival_target(frame.pop("event"), frame.pop("time"))
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(frame, y["event"])
    for train, test in splits:
        yield Fold(frame.iloc[train], y[train], frame.iloc[test], y[test])


def ours(fold: Fold) -> dict[str, float]:
    begun = time.process_time()
    model = AutoMKLSurvival(random_state=0, n_jobs=1).fit(fold.frame, fold.y)
    seconds = time.process_time() - begun
    curves = model.predict_survival_function(fold.test_frame)
    values = np.array([curve(fold.times) for curve in curves])
    return {"seconds": seconds, **fold.scores(model.predict(fold.test_frame), values)}


def peers(python: Path, folds: list[Fold]) -> dict[str, list[dict[str, float]]]:
    worker = Path(__file__).with_name("survival_peer.py")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "folds.npz")
        data: dict[str, Any] = {"folds": len(folds)}
        for k, fold in enumerate(folds):
            X, X_test = fold.numbers
            data |= {f"X {k}": X, f"X_test {k}": X_test, f"times {k}": fold.times}
            data |= {f"event {k}": fold.y["event"], f"time {k}": fold.y["time"]}
        np.savez(path, **data)
        peer_record(python, worker, "fit", path)
        found = dict(np.load(f"{path}.out.npz"))
    rows: dict[str, list[dict[str, float]]] = {}
    for name in PEERS:
        for k, fold in enumerate(folds):
            if f"{name} risk {k}" in found:
                # Risks may overflow, and the curves of such models are not numbers.
                risk, curves = found[f"{name} risk {k}"], found.get(f"{name} curves {k}")
                known = curves is not None and np.isfinite(curves).all()
                scores = fold.scores(np.nan_to_num(risk), curves if known else None)
                seconds = float(found[f"{name} seconds {k}"])
                rows.setdefault(name, []).append({"seconds": seconds, **scores})
    return rows


def finish(options: SurvivalOptions, report: Report, python: Path, records: Records) -> None:
    """Run everything that is not recorded yet, smallest sets first."""
    worker = Path(__file__).with_name("survival_peer.py")
    with tempfile.TemporaryDirectory() as folder:
        limit = min(options.rows or MOST_ROWS, MOST_ROWS)
        peer_record(python, worker, "export", folder, LEAST_ROWS, limit)
        files = {path.stem: path for path in Path(folder).glob("*.csv")}
        sizes = {name: len(path.read_text().splitlines()) - 1 for name, path in files.items()}
        named = sorted(sizes, key=lambda name: (sizes[name], name))
        if options.sets is not None:
            named = options.sets.split(",")
        # Compiled loops are read from disk by the first fit.
        ours(next(folds_of(files[named[0]], 0)))
        for repeat in range(options.repeats):
            for name in named:
                if records.has(set=name, repeat=repeat):
                    continue
                folds = list(folds_of(files[name], repeat))
                found = {OURS: [ours(fold) for fold in folds]}
                try:
                    found |= peers(python, folds)
                except MissingDataError as reason:
                    report.note(f"{name}: {reason}")
                    continue
                records.add({"set": name, "repeat": repeat, "rows": sizes[name], "found": found})
                shown = ", ".join(f"{m} {_mean(f, 'concordance'):.3f}" for m, f in found.items())
                console.print(f"[dim]{name}, repeat {repeat + 1}: {shown}[/]")


def _mean(folds: list[dict[str, float]], what: str) -> float:
    return float(np.mean([fold[what] for fold in folds]))


def show(report: Report, records: Records) -> None:
    by_set: dict[str, list[dict[str, Any]]] = {}
    for record in records.found:
        by_set.setdefault(record["set"], []).append(record)
    if not by_set:
        raise MissingDataError("there are no records")
    values: dict[tuple[str, str, str], float] = {}
    for name, own in by_set.items():
        for method in (OURS, *PEERS):
            folds = [fold for record in own for fold in record["found"].get(method, ())]
            for what in ("concordance", "brier", "seconds"):
                if folds and all(what in fold for fold in folds):
                    values[name, method, what] = _mean(folds, what)
    order = sorted(by_set, key=lambda name: (by_set[name][0]["rows"], name))
    rows = []
    for name in order:
        row: dict[str, Any] = {"set": name, "rows": by_set[name][0]["rows"]}
        row["repeats"] = len(by_set[name])
        for what, digits in (("concordance", 3), ("brier", 3), ("seconds", 2)):
            for method in (OURS, *PEERS):
                value = values.get((name, method, what))
                row[f"{method}, {what}"] = "" if value is None else f"{value:.{digits}f}"
        rows.append(row)
    report.table("SurvSet, five folds", rows)
    summary = []
    for method in PEERS:
        row = {"AutoMKL less": method}
        for what in ("concordance", "brier"):
            pairs = [
                (values[name, OURS, what], values[name, method, what])
                for name in order
                if (name, method, what) in values
            ]
            gains = [a - b for a, b in pairs]
            row |= {
                f"sets, {what}": len(gains),
                what: f"{np.mean(gains):+.4f}" if gains else "",
                f"{what}, higher : lower": f"{sum(g > 0 for g in gains)} : "
                f"{sum(g < 0 for g in gains)}",
            }
            if what == "concordance":
                row["means"] = " | ".join(f"{np.mean(v):.4f}" for v in zip(*pairs, strict=True))
                if method == "Coxnet":
                    report.target("concordance over Coxnet", np.mean(gains), ">=", 0.01)
                if method == "forest":
                    report.target("concordance over the forest", np.mean(gains), ">=", 0.0)
        summary.append(row)
    report.table(f"Means over {len(order)} sets", summary)


def patients(rows: int) -> tuple[Any, Any]:
    """Return generated samples with a risk that is not linear, and their censored times."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(rows, 10))
    risk = X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3])
    event = rng.exponential(size=rows) * np.exp(-risk)
    censored = rng.exponential(1.5, size=rows)
    return X, survival_target(event <= censored, np.minimum(event, censored))


def race(report: Report, python: Path) -> None:
    """Fit an SVM with one RBF kernel at several costs, and the kernel SVM of the peer."""
    X, y = patients(2 * RACE_ROWS)
    X, X_test, y, y_test = train_test_split(X, y, train_size=RACE_ROWS, random_state=0)
    gamma = 1.0 / X.shape[1]
    rows: list[dict[str, Any]] = []
    for loss in ("censored", "squared"):
        # Compiled loops are read from disk by the first fit.
        UniformMKLSurvival([RBF(gamma)], loss=loss).fit(X[:200], y[:200])
        for C in COSTS:
            model = UniformMKLSurvival([RBF(gamma)], C=C, loss=loss, n_jobs=1)
            begun = time.process_time()
            model.fit(X, y)
            seconds = time.process_time() - begun
            found = {"setting": C, "seconds": seconds, "risk": model.predict(X_test)}
            rows.append({"model": f"lokl, {loss}", **found})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "race.npz")
        np.savez(path, X=X, X_test=X_test, event=y["event"], time=y["time"])
        worker = Path(__file__).with_name("survival_peer.py")
        theirs = peer_record(python, worker, "race", path)["fits"]
    rows += [{"model": "FastKernelSurvivalSVM", **row} for row in theirs]
    for row in rows:
        risk = np.asarray(row.pop("risk"))
        row["concordance"] = concordance_index(y_test["event"], y_test["time"], risk).cindex
    report.table(f"{RACE_ROWS} generated rows, 10 columns, one RBF kernel; processor time", rows)
    best = {
        kind: max((r for r in rows if r["model"] == kind), key=lambda r: r["concordance"])
        for kind in dict.fromkeys(row["model"] for row in rows)
    }
    peer = best.pop("FastKernelSurvivalSVM")
    for kind, own in best.items():
        speed = Ratio(peer["seconds"] / own["seconds"])
        report.target(f"{kind}: times as fast, best setting of each", speed, ">=", 10.0)
        gain = own["concordance"] - peer["concordance"]
        report.quality(f"{kind}: concordance less the peer's", gain, ">=", -0.005)


def run(options: SurvivalOptions, report: Report) -> None:
    warnings.simplefilter("ignore")
    records = Records(options.records, ("set", "repeat"), {"folds": FOLDS})
    if not options.recorded:
        python = peer_environment("sksurv", "scikit-survival", "SurvSet")
        finish(options, report, python, records)
        race(report, python)
    show(report, records)


if __name__ == "__main__":
    main(run, SurvivalOptions(), more_options)
