"""EasyMKL and the uniform mix of eleven kernels compared with MKLpy in its own environment."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import (
    Options,
    Ratio,
    Report,
    Timing,
    fresh_process,
    load_a9a,
    main,
    peer_environment,
    peer_record,
)

SIZES = (2000, 5000, 10_000)
# Megabytes of MKLpy for the Gram matrices and their copies, measured at 10,000 rows.
_NEEDED = 18_000
METHODS = {"EasyMKL": "EasyMKL", "uniform": "AverageMKL"}


def ours(data: str, method: str) -> None:
    """Fit once in a fresh process, and print the measurements."""
    import resource
    import time

    from lokl import EasyMKLClassifier, UniformMKLClassifier
    from lokl.kernels import Linear, Polynomial, rbf_ladder

    stored = np.load(data)
    X, y = stored["X"], stored["y"]
    simple = [Linear().normalized("mean_diag"), Polynomial(2).normalized("mean_diag")]
    kind: Any = EasyMKLClassifier if method == "EasyMKL" else UniformMKLClassifier
    model = kind([*simple, *rbf_ladder()])
    # Every process reads compiled loops from disk once, whatever the number of rows.
    model.fit(X[:100], y[:100])
    kind(model.kernels).fit(np.tile(X[:1100], (2, 1)), np.tile(y[:1100], 2))
    begun = time.perf_counter()
    model.fit(X, y)
    elapsed = time.perf_counter() - begun
    weights = getattr(model, "weights_", np.full(11, 1 / 11))
    record = {
        "seconds": elapsed,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "weights": np.asarray(weights).tolist(),
    }
    sys.stdout.write(json.dumps(record))


def available() -> float:
    """Return the free memory in MB."""
    text = Path("/proc/meminfo").read_text() if Path("/proc/meminfo").exists() else ""
    lines = dict(line.split(":", 1) for line in text.splitlines())
    return float(lines.get("MemAvailable", "0").split()[0]) / 1024


def run(options: Options, report: Report) -> None:
    X, _, y, _ = load_a9a(options.rows)
    python = peer_environment("MKLpy", "MKLpy")
    worker = Path(__file__).with_name("mklpy_peer.py")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            data = str(Path(folder, f"{size}.npz"))
            np.savez(data, X=X[:size], y=y[:size])
            if available() < _NEEDED * (size / SIZES[-1]) ** 2:
                report.note(f"{size} rows skipped: MKLpy needs more memory than is free")
                continue
            for name, theirs in METHODS.items():
                code = f"from benchmarks.mklpy import ours; ours({data!r}, {name!r})"
                mine = [fresh_process(code)[1] for _ in range(max(options.repeats, 3))]
                repeats = options.peer_repeats if size < SIZES[-1] else 1
                other = [peer_record(python, worker, data, theirs) for _ in range(max(repeats, 1))]
                quick = Timing([record["seconds"] for record in mine])
                slow = Timing([record["seconds"] for record in other])
                apart = np.abs(np.subtract(mine[0]["weights"], other[0]["weights"])).max()
                speed = Ratio(slow.median / quick.median)
                rows.append(
                    {
                        "method": name,
                        "rows": size,
                        "lokl": quick,
                        "MKLpy": slow,
                        "kernels only": Timing([record["kernels"] for record in other]),
                        "speed-up": speed,
                        "lokl, peak MB": round(max(record["peak"] for record in mine)),
                        "MKLpy, peak MB": round(max(record["peak"] for record in other)),
                        "difference of weights": float(apart),
                    }
                )
                what = f"{name}, {size} rows"
                report.quality(f"{what}: largest difference of weights", float(apart), "<=", 1e-3)
                report.target(f"{what}: speed-up", speed, ">=", 10.0)
    report.table("a9a, linear, quadratic and nine RBF kernels; from samples to fitted model", rows)


if __name__ == "__main__":
    main(run)
