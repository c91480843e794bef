"""Regions on a Dask cluster: more rows than memory, different chunks, and a lost worker."""

import argparse
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.common import MissingDataError, Options, Report, agreement, main
from lokl import RegionClassifier, UniformMKLClassifier, distributed
from lokl.kernels import RBF
from lokl.regions.dask.graph import pickled_size

FEATURES, CENTRES = 50, 40
# Rows that are generated at a time, seeded by the index of their block, whatever the chunks.
GENERATED = 20_000
WORKERS = 2


@dataclass
class DaskOptions(Options):
    rows: int = 4_000_000
    part: int = 200_000
    memory: str = "1GB"
    max_region_size: int = 4000


def model(options: DaskOptions) -> Any:
    estimator = UniformMKLClassifier([RBF(0.02)], C=4.0, tol=1e-2)
    return RegionClassifier(estimator, max_region_size=options.max_region_size, random_state=0)


def generate(index: int, rows: int) -> Any:
    """Return rows around centres, each with its own boundary; the last column is the class."""
    fixed = np.random.default_rng(0)
    centres = fixed.normal(scale=2.0, size=(CENTRES, FEATURES))
    borders = fixed.normal(size=(CENTRES, FEATURES))
    rng = np.random.default_rng((1, index))
    kind = rng.integers(CENTRES, size=rows)
    noise = rng.normal(size=(rows, FEATURES))
    side = np.einsum("ij,ij->i", noise, borders[kind])
    labels = (side > 0) ^ (rng.random(rows) < 0.05)
    return np.column_stack([centres[kind] + noise, labels])


def collection(rows: int, first: int = 0) -> Any:
    """Return samples and labels that are generated on the workers when they are needed."""
    import dask.array as da
    from dask import delayed

    sizes = [min(GENERATED, rows - start) for start in range(0, rows, GENERATED)]
    make = delayed(generate, pure=True)
    parts = [
        da.from_delayed(make(first + index, size), (size, FEATURES + 1), dtype=np.float64)
        for index, size in enumerate(sizes)
    ]
    both = da.concatenate(parts)
    return both[:, :FEATURES], both[:, FEATURES]


@contextmanager
def cluster(memory: str) -> Iterator[Any]:
    try:
        from dask.distributed import Client, LocalCluster
    except ImportError as reason:
        raise MissingDataError("Dask is not installed: pip install 'lokl[dask]'") from reason
    with (
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            memory_limit=memory,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as local,
        Client(local) as client,
    ):
        yield client


def peak_of_process() -> float:
    """Return the peak memory of this process in MB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def whole(options: DaskOptions, report: Report) -> dict[str, Any]:
    """Fit more rows than the workers can hold, and score new rows."""
    X, y = collection(options.rows)
    X_new, y_new = collection(min(options.rows, 100_000), first=10**6)
    with cluster(options.memory) as client:
        workers = set(client.scheduler_info()["workers"])
        begun = time.perf_counter()
        fitted = distributed.fit(model(options), X, y)
        ended = time.perf_counter()
        score = float(distributed.score(fitted, X_new, y_new))
        scored = time.perf_counter()
        peak = max(client.run(peak_of_process).values())
        lost = len(workers - set(client.scheduler_info()["workers"]))
        limit = min(w["memory_limit"] for w in client.scheduler_info()["workers"].values()) / 2**20
    sizes = fitted.region_sizes_[0]
    report.quality("rows in regions", sizes.sum(), "==", options.rows)
    report.quality("largest region", sizes.max(), "<=", options.max_region_size)
    report.quality("workers lost", lost, "==", 0)
    report.quality("peak memory of a worker, MB", peak, "<=", limit)
    return {
        "rows": options.rows,
        "data, MB": options.rows * FEATURES * 8 / 2**20,
        f"{WORKERS} workers of": options.memory,
        "regions": len(sizes),
        "model, MB": pickled_size(fitted) / 2**20,
        "fit, s": ended - begun,
        "score on new rows, s": scored - ended,
        "accuracy on new rows": 100 * score,
        "peak memory of a worker, MB": peak,
    }


def share_of_equal(fitted: Any, plain: Any, fresh: Any) -> float:
    return agreement(fitted.predict(fresh), plain.predict(fresh))


def kill_one(client: Any, killed: list[int]) -> None:
    """Kill a worker while models are being fitted."""

    def fitting(dask_scheduler: Any) -> bool:
        states = [t.state for t in dask_scheduler.tasks.values() if "fit_batch" in str(t.key)]
        return "processing" in states and ("memory" in states or "forgotten" in states)

    while not client.run_on_scheduler(fitting):
        if client.status != "running":
            return
        time.sleep(0.01)
    pid = next(iter(client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)
    killed.append(pid)


def part(options: DaskOptions, report: Report) -> list[dict[str, Any]]:
    """Compare fits of rows in memory with fits on workers, for several chunk sizes."""
    rows = min(options.part, options.rows)
    X, y = collection(rows)
    fresh = collection(20_000, first=10**6)[0].compute()
    in_memory = X.compute(), y.compute()
    begun = time.perf_counter()
    plain = model(options).fit(*in_memory)
    fits = [{"part": "in memory", "fit, s": time.perf_counter() - begun, "equal": 1.0}]
    with cluster(options.memory) as client:
        for chunks in (GENERATED, rows // 3 + 1, 7_001):
            begun = time.perf_counter()
            fitted = distributed.fit(model(options), X.rechunk((chunks, -1)), y.rechunk(rows // 7))
            seconds = time.perf_counter() - begun
            equal = share_of_equal(fitted, plain, fresh)
            fits.append({"part": f"chunks of {chunks}", "fit, s": seconds, "equal": equal})
            report.quality(f"chunks of {chunks}: equal predictions", equal, ">=", 0.999)
        killed: list[int] = []
        hunter = threading.Thread(target=kill_one, args=(client, killed))
        hunter.start()
        begun = time.perf_counter()
        fitted = distributed.fit(model(options), X, y)
        seconds = time.perf_counter() - begun
        hunter.join(timeout=60)
        equal = share_of_equal(fitted, plain, fresh)
        fits.append({"part": "a worker killed", "fit, s": seconds, "equal": equal})
        report.quality("workers killed during a fit", len(killed), "==", 1)
        report.quality("a worker killed: equal predictions", equal, ">=", 0.999)
    return fits


def run(options: Any, report: Report) -> None:
    parts = part(options, report)
    report.table(f"{min(options.part, options.rows)} rows, {FEATURES} features", parts)
    report.table("rows generated block by block", [whole(options, report)])


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", type=int, help="rows that are also fitted in memory (200000)")
    parser.add_argument("--memory", help="memory of each of the two workers (1GB)")
    parser.add_argument("--max-region-size", type=int, help="most rows of a region (4000)")


if __name__ == "__main__":
    main(run, DaskOptions(), more_options)
