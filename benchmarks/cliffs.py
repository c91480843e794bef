"""Tasks where the lead is thin: many classes, large costs, small fits, and the command."""

import argparse
import bz2
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC, SVR

from benchmarks import many_sets, search, search_methods
from benchmarks.common import (
    MissingDataError,
    Options,
    Report,
    Timing,
    agreement,
    cpu_ratio,
    difference,
    dual_objective,
    load,
    load_a9a,
    load_set,
    main,
    race,
    ratio,
    scale_gamma,
    signs,
)
from benchmarks.references import SETTINGS, PlainLDMKL
from lokl import (
    LDMKLClassifier,
    TrustedVoteClassifier,
    UniformMKLClassifier,
    UniformMKLRegressor,
)
from lokl.kernels import RBF, Laplacian, Linear, Polynomial, per_view
from lokl.search import KernelSearchCV

try:
    from sklearnex.svm import SVC as OneSVC  # noqa: N811
    from sklearnex.svm import SVR as OneSVR  # noqa: N811
except ImportError:
    OneSVC = OneSVR = None

LOKL, LIBSVM, ONEDAL, GRID = "lokl", "LibSVM", "oneDAL float32", "GridSearchCV"
COMMON: dict[str, Any] = {"tol": 1e-3, "cache_size": 512}
# Predictions of one row in one measurement, and time of the fits in one measurement.
SINGLE, LEAST_SECONDS = 200, 0.05


@dataclass
class Row:
    """One task: times of lokl and its peers, wanted speed-ups and requirements."""

    task: str
    times: dict[str, Timing]
    # Speed-up over a peer, or seconds of processor of lokl.
    wanted: dict[str, float]
    quality: list[tuple[str, float, str, float]] = field(default_factory=list)
    # Peers whose processor time is that of other processes, which is not measured.
    apart: bool = False


@dataclass
class CliffOptions(Options):
    only: str = ""
    jobs: int = 2


def machines(ours: Any, peer: Any, fast: Any, X: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the estimators of a task with the samples that each one receives."""
    found = {LOKL: (ours, X), LIBSVM: (peer(**settings, **COMMON), X)}
    if fast is not None:
        found[ONEDAL] = (fast(**settings, **COMMON), X.astype(np.float32))
    return found


def fits(found: dict[str, Any], y: Any, options: Options) -> tuple[Any, Any]:
    return race({n: partial(m.fit, X, y) for n, (m, X) in found.items()}, options, least=1)


def letters(rows: int) -> tuple[Any, Any]:
    """Generate a set like `letter`: 16 columns of integers, 26 classes, several fonts.

    A font of a letter is a point; four directions of its own and noise distort its samples.
    """
    rng = np.random.RandomState(0)
    middle = 0.5 * rng.normal(size=(26, 1, 16)) + 0.7 * rng.normal(size=(26, 6, 16))
    directions = 0.33 * rng.normal(size=(26, 6, 4, 16))
    y, font = rng.randint(26, size=rows), rng.randint(6, size=rows)
    moved = np.einsum("nk,nkf->nf", rng.normal(size=(rows, 4)), directions[y, font])
    X = middle[y, font] + moved + 0.33 * rng.normal(size=(rows, 16))
    return np.clip(np.round(7.5 + 3.0 * X), 0, 15) / 5.0 - 1.5, y


def letter(options: Any) -> Iterator[Row]:
    count = options.rows or 15_000
    X, y = letters(count + 5000)
    ours = UniformMKLClassifier([RBF(0.5)], C=8.0, **COMMON)
    found = machines(ours, SVC, OneSVC, X[:count], {"C": 8.0, "gamma": 0.5})
    times, models = fits(found, y[:count], options)
    right = {n: 100 * float(m.score(X[count:], y[count:])) for n, m in models.items()}
    task = f"{count:,} x 16, 26 classes, RBF 0.5, C 8"
    # LibSVM lets pairs of classes vote.
    worse = right[LIBSVM] - right[LOKL]
    yield Row(task, times, {LIBSVM: 2.5, ONEDAL: 4.0}, [("accuracy lost", worse, "<=", 0.3)])


def large_cost(options: Any) -> Iterator[Row]:
    X, y = a9a(options, 8000)
    settings = {"C": 1000.0, "gamma": 0.1}
    ours = UniformMKLClassifier([RBF(0.1)], C=1000.0, **COMMON)
    times, models = fits(machines(ours, SVC, OneSVC, X, settings), y, options)
    checks = equal_objectives(models, X, signs(y), 0.1)
    yield Row(f"a9a, {len(y):,} rows, RBF 0.1, C 1000", times, {LIBSVM: 5.0}, checks)


def linear_cost(options: Any) -> Iterator[Row]:
    X, y = a9a(options, 8000)
    ours = UniformMKLClassifier([Linear()], C=100.0, **COMMON)
    found = machines(ours, SVC, OneSVC, X, {"C": 100.0, "kernel": "linear"})
    times, models = fits(found, y, options)
    checks = equal_objectives(models, X, signs(y), None)
    yield Row(f"a9a, {len(y):,} rows, linear, C 100", times, {LIBSVM: 8.0}, checks)


def regression(options: Any) -> Iterator[Row]:
    count = options.rows or 8000
    rng = np.random.RandomState(0)
    X = rng.normal(size=(count, 16))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=count)
    settings: dict[str, Any] = {"C": 100.0, "epsilon": 0.01}
    ours = UniformMKLRegressor([RBF(0.1)], **settings, **COMMON)
    times, models = fits(machines(ours, SVR, OneSVR, X, {**settings, "gamma": 0.1}), y, options)
    checks = equal_objectives(models, X, y, 0.1, epsilon=0.01)
    task = f"regression, {count:,} x 16, RBF 0.1, C 100, epsilon 0.01"
    yield Row(task, times, {LIBSVM: 6.0}, checks)


def a9a(options: Options, count: int) -> tuple[Any, Any]:
    X, _, y, _ = load_a9a(None)
    count = min(count, options.rows or count)
    return X[:count], y[:count]


def equal_objectives(
    models: Any, X: Any, target: Any, gamma: float | None, epsilon: float = 0.0
) -> list[tuple[str, float, str, float]]:
    """Return the checks that lokl's dual objective is not below that of its peers.

    LibSVM and oneDAL stop at a violation of the optimality conditions, which bounds the
    objective less tightly the larger the cost. Theirs may be worse, ours may not.
    """
    value = {n: dual_objective(m, X, target, gamma, epsilon) for n, m in models.items()}
    return [
        (f"objective below {n}, relative", (value[n] - value[LOKL]) / abs(value[n]), "<=", 1e-4)
        for n in value
        if n != LOKL
    ]


def one_row(options: Any) -> Iterator[Row]:
    for count, classes in ((3000, 26), (500, 2)):
        X, y = letters(count + 200)
        if classes == 2:
            y = (y >= 13).astype(int)
        pair = (
            UniformMKLClassifier([RBF(0.5)], C=8.0).fit(X[:count], y[:count]),
            SVC(gamma=0.5, C=8.0).fit(X[:count], y[:count]),
        )
        rows = [X[k : k + 1] for k in range(count, count + SINGLE)]
        calls = {
            n: lambda m=m, rows=rows: np.concatenate([m.predict(row) for row in rows])
            for n, m in zip((LOKL, LIBSVM), pair, strict=True)
        }
        times, labels = race(calls, options)
        # For 26 classes, LibSVM decides by votes of pairs of classes.
        same = agreement(labels[LOKL], labels[LIBSVM])
        check = ("equal predictions", same, ">=", 0.995 if classes == 2 else 0.9)
        task = f"predict one row {SINGLE} times: {count:,} rows, {classes} classes"
        yield Row(task, times, {LIBSVM: 1.0}, [check])


def small_fits(options: Any) -> Iterator[Row]:
    for name in many_sets.SMALL:
        X, y = load(name, options.rows)
        gamma, target = scale_gamma(X), signs(y)
        pair = {
            LOKL: UniformMKLClassifier([RBF("scale")], **COMMON),
            LIBSVM: SVC(gamma="scale", **COMMON),
        }
        begun = time.process_time()
        pair[LIBSVM].fit(X, y)
        count = int(np.ceil(LEAST_SECONDS / (time.process_time() - begun)))
        calls = {n: partial(fit_often, m, X, y, count) for n, m in pair.items()}
        times, models = race(calls, options)
        objectives = [dual_objective(m, X, target, gamma) for m in models.values()]
        check = ("objective, relative difference", difference(*objectives), "<=", 1e-4)
        task = f"fit {name} {count} times: {X.shape[0]} x {X.shape[1]}"
        yield Row(task, times, {LIBSVM: 1.0}, [check])


def fit_often(model: Any, X: Any, y: Any, count: int) -> Any:
    for _ in range(count):
        model.fit(X, y)
    return model


def ldmkl(options: Any) -> Iterator[Row]:
    X, y = a9a(options, 12_000)
    _, X_test, _, y_test = load_a9a(None)
    kernels = [Linear().normalized("mean_diag"), Polynomial(2).normalized("mean_diag"), RBF(1 / 16)]
    ours = LDMKLClassifier(kernels, gating="none", margin=0.05, **SETTINGS)
    pair = {LOKL: ours, "scikit-learn": PlainLDMKL(1 / 16, 0.05)}
    times, models = race({n: partial(m.fit, X, y) for n, m in pair.items()}, options, least=1)
    right = [
        100 * agreement(m.decision_function(X_test) > 0, signs(y_test) > 0) for m in models.values()
    ]
    check = ("difference of accuracies, points", abs(right[0] - right[1]), "<=", 0.3)
    yield Row(f"LD-MKL, {len(y):,} rows of a9a", times, {"scikit-learn": 15.0}, [check])


def search_costs(name: str, options: Any) -> Iterator[Row]:
    """Yield a search over costs, with the grid of the same estimator."""
    if name == "trusted vote":
        found = load_set("mfeat")
        chosen = np.random.RandomState(0).permutation(len(found.target))[: options.rows or 600]
        X, y = found.data[chosen] / found.data.std(axis=0), found.target[chosen]
        estimator = TrustedVoteClassifier(per_view(Laplacian("median"), found.views))
    else:
        X, y = a9a(options, 2000)
        estimator, _ = search_methods.METHODS[name]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    common: dict[str, Any] = {"cv": folds, "n_jobs": options.jobs, "refit": False}
    grid = {"C": search_methods.COSTS}
    searches = {
        LOKL: KernelSearchCV(estimator, grid, **common),
        GRID: GridSearchCV(estimator, grid, **common),
    }
    times, found = race({n: partial(s.fit, X, y) for n, s in searches.items()}, options, least=1)
    scores = [s.cv_results_["mean_test_score"] for s in found.values()]
    gap = 100 * float(np.abs(scores[0] - scores[1]).max())
    check = ("largest difference of a cell, points", gap, "<=", two_samples(y))
    task = f"search {name}: {len(y):,} rows, {len(search_methods.COSTS)} costs x 5 folds"
    yield Row(task, times, {GRID: 4.0}, [check], apart=options.jobs > 1)


def two_samples(y: Any) -> float:
    """Return two samples in a thousand, or two if there are fewer, in points of accuracy."""
    return 100 * max(0.002, 2 / len(y)) + 1e-6


def covtype(options: Any) -> Iterator[Row]:
    case = search.CASES[-1]
    X, _, y, _ = case.data(options.rows)
    calls = search.contestants(case, X, y, options.jobs)
    names = (search.EVERY, search.ADAPTIVE, search.GRID_SVC)
    times, found = race({name: calls[name] for name in names}, options, least=1)
    peer = search.cells(found[search.GRID_SVC], case)
    for name, wanted in ((search.EVERY, 12.0), (search.ADAPTIVE, 30.0)):
        gap = 100 * float(np.nanmax(np.abs(search.cells(found[name], case) - peer)))
        lost = 100 * (found[search.GRID_SVC].best_score_ - found[name].best_score_)
        checks = [
            ("largest difference of a cell, points", gap, "<=", two_samples(y)),
            ("best score lost, points", lost, "<=", two_samples(y)),
        ]
        pair = {LOKL: times[name], GRID: times[search.GRID_SVC]}
        task = f"{case.name}, {len(y):,} rows, 10 x 10 x 5: {name.removeprefix('lokl, ')}"
        yield Row(task, pair, {GRID: wanted}, checks, apart=options.jobs > 1)


def command(*words: str) -> str:
    """Run a command in a process of its own; return its standard output."""
    done = subprocess.run([sys.executable, "-m", "lokl", *words], capture_output=True)
    if done.returncode:
        raise MissingDataError(f"lokl {words[0]} failed: {done.stderr.decode()[-300:]}")
    return done.stdout.decode()


def command_times(call: Callable[[], Any], options: Options) -> tuple[Timing, Any]:
    """Return seconds of a command, and of the processor in all its processes."""
    times = Timing()
    for _ in range(max(options.peer_repeats, 1)):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begun = time.perf_counter()
        result = call()
        elapsed = time.perf_counter() - begun
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        times.add(elapsed, used)
    return times, result


def start(options: Any) -> Iterator[Row]:
    command("--help")
    times, text = command_times(partial(command, "--help"), options)
    yield Row("lokl --help", {LOKL: times}, {"s": 0.4}, [("commands", text.count("fit"), ">=", 1)])


def predict(options: Any) -> Iterator[Row]:
    X, y = load("phishing", options.rows)
    names = [f"x{k}" for k in range(X.shape[1])]
    with tempfile.TemporaryDirectory() as folder:
        path, model = Path(folder, "phishing.csv"), str(Path(folder, "phishing.lokl"))
        write_csv(path, [*names, "phish"], np.column_stack([X, y]))
        command("fit", str(path), "--target", "phish", "--method", "UniformMKL", "-o", model)
        call = partial(command, "predict", model, str(path))
        call()
        times, text = command_times(call, options)
    labels = [line.split(",")[1] for line in text.splitlines()[1:]]
    right = agreement(np.array(labels, dtype=float), y)
    check = ("accuracy on its own samples", right, ">=", 0.9)
    yield Row(f"lokl predict, {len(y):,} rows of phishing", {LOKL: times}, {"s": 2.5}, [check])


def write_csv(path: Path, names: list[str], values: Any) -> None:
    lines = [",".join(names), *(",".join(f"{v:g}" for v in row) for row in values)]
    path.write_text("\n".join(lines) + "\n")


def compare(options: Any) -> Iterator[Row]:
    source = Path(os.environ.get("LOKL_DATA", "."), "multiview", "breast_tcga")
    if not source.is_dir():
        raise MissingDataError(f"no folder {source}")
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for view in ("mirna", "mrna", "protein"):
            path = Path(folder, f"{view}.csv")
            path.write_bytes(bz2.decompress((source / f"{view}_train.csv.bz2").read_bytes()))
            files.append(str(path))
        # The file of subtypes has the order of the samples, without their ids.
        ids = [line.split(",")[0] for line in path.read_text().splitlines()]
        subtypes = (source / "subtype_train.csv").read_text().splitlines()
        target = Path(folder, "subtype.csv")
        target.write_text("".join(f"{k},{v}\n" for k, v in zip(ids, subtypes, strict=True)))
        places = (str(Path(folder, f"run{k}")) for k in range(options.peer_repeats + 1))
        times, _ = command_times(lambda: command_compare(files, target, next(places)), options)
    yield Row("lokl compare, breast TCGA, three files, with report", {LOKL: times}, {"s": 30.0})


def command_compare(files: list[str], target: Path, place: str) -> str:
    return command(
        "compare", *files, "--on", "sample", "--target", f"{target}:subtype", "-o", place
    )


TASKS: dict[str, Callable[[Any], Iterator[Row]]] = {
    "letter": letter,
    "cost": large_cost,
    "linear": linear_cost,
    "regression": regression,
    "one-row": one_row,
    "small": small_fits,
    "ldmkl": ldmkl,
    "search-clmkl": partial(search_costs, "C-LMKL"),
    "search-ldmkl": partial(search_costs, "LD-MKL"),
    "search-swmkl": partial(search_costs, "SwMKL"),
    "search-vote": partial(search_costs, "trusted vote"),
    "covtype": covtype,
    "start": start,
    "predict": predict,
    "compare": compare,
}


def cells(row: Row) -> dict[str, Any]:
    """Return the row of the table."""
    ours, peer = row.times[LOKL], next((n for n in row.times if n != LOKL), None)
    return {
        "task": row.task,
        LOKL: ours,
        **{n: row.times.get(n, "") for n in (LIBSVM, ONEDAL)},
        "other peer": next((t for n, t in row.times.items() if n in (GRID, "scikit-learn")), ""),
        "faster": "" if peer is None else ratio(row.times[peer], ours),
        "by processor time": "" if peer is None or row.apart else cpu_ratio(row.times[peer], ours),
        "processor, s": float(np.median(ours.cpu)),
    }


def run(options: Any, report: Report) -> None:
    chosen = options.only.split(",") if options.only else list(TASKS)
    if unknown := set(chosen) - set(TASKS):
        raise SystemExit(f"unknown {', '.join(sorted(unknown))}; choose from {', '.join(TASKS)}")
    rows: list[Row] = []
    for name in chosen:
        try:
            rows += TASKS[name](options)
        except MissingDataError as reason:
            report.note(f"skipped: {name}: {reason}")
    if not rows:
        raise MissingDataError("no task has its data on this machine")
    report.table("one process or command each, in one run", map(cells, rows))
    for row in rows:
        for what, value, relation, limit in row.quality:
            report.quality(f"{row.task}: {what}", value, relation, limit)
        for peer, limit in row.wanted.items():
            if peer == "s":
                seconds = float(np.median(row.times[LOKL].cpu))
                report.target(f"{row.task}: seconds of processor", seconds, "<=", limit)
            elif peer in row.times:
                compared = ratio if row.apart else cpu_ratio
                speed = compared(row.times[peer], row.times[LOKL])
                report.target(f"{row.task}: times {peer}", speed, ">=", limit)


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", metavar="NAME,...", help=f"tasks to run: {', '.join(TASKS)}")
    parser.add_argument("--jobs", type=int, help="jobs of a search (2); 1 compares processor time")


if __name__ == "__main__":
    main(run, CliffOptions(), more_options)
