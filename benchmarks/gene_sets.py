"""One kernel for each of 1,000 gene sets on 500 samples: processor time, memory, and sets found."""

import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.common import Options, Report, main
from lokl import LpMKLClassifier, SimpleMKLClassifier, TrustedVoteClassifier
from lokl.kernels import RBF, per_gene_set

SAMPLES, GENES, SETS, INFORMATIVE = 500, 8000, 1000, 2
METHODS = {
    "SimpleMKL": SimpleMKLClassifier,
    "l_p-norm MKL": LpMKLClassifier,
    "trusted vote": TrustedVoteClassifier,
}
# Megabytes of the unit of the largest resident set.
_UNIT = 2**20 if sys.platform == "darwin" else 2**10


def data() -> tuple[Any, Any, dict[str, Any]]:
    """Return expression, classes that depend on the first sets, and kernels of all sets."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(SAMPLES, GENES))
    genes = [f"G{j}" for j in range(GENES)]
    members = [rng.choice(GENES, rng.randint(10, 60), replace=False) for _ in range(SETS)]
    signal = sum(X[:, own].sum(axis=1) / np.sqrt(len(own)) for own in members[:INFORMATIVE])
    y = signal + 0.3 * rng.normal(size=SAMPLES) > 0
    sets = {f"set {k}": [genes[j] for j in own] for k, own in enumerate(members)}
    return X, y, per_gene_set(RBF(), genes, sets)


def measure(name: str) -> None:
    """Fit one method in this process, and print seconds of processor, megabytes and rank."""
    X, y, kernels = data()
    # Loops are loaded, or compiled, before the measurement.
    few = dict(list(kernels.items())[:70])
    METHODS[name](few, C=10, random_state=0).fit(X[:100], y[:100])
    begun = time.process_time()
    model = METHODS[name](kernels, C=10, random_state=0).fit(X, y)
    seconds = time.process_time() - begun
    weights = model.trust(X).mean(axis=0) if name == "trusted vote" else model.weights_
    largest = np.argsort(-weights, kind="stable")[:INFORMATIVE]
    found = int((largest < INFORMATIVE).sum())
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _UNIT * 1.0
    print(seconds, megabytes, found)


def run(options: Options, report: Report) -> None:
    rows, measured = [], {}
    for name in METHODS:
        # A process of its own, for its largest resident set.
        command = [sys.executable, "-m", "benchmarks.gene_sets", "--measure", name]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seconds, megabytes, found = map(float, output.split()[-3:])
        measured[name] = seconds, megabytes, found
        rows.append(
            {
                "": name,
                "seconds of processor": round(seconds, 1),
                "megabytes": round(megabytes),
                f"of {INFORMATIVE} informative sets first": int(found),
            }
        )
    report.table(
        f"{SETS} gene sets of 10 to 59 genes, {SAMPLES} samples, one RBF kernel each", rows
    )
    for name in ("SimpleMKL", "l_p-norm MKL"):
        seconds, megabytes, found = measured[name]
        report.target(f"seconds of processor, {name}", seconds, "<=", 30.0)
        report.target(f"megabytes, {name}", megabytes, "<=", 2000.0)
        report.quality(f"informative sets that {name} ranks first", found, ">=", INFORMATIVE)


if __name__ == "__main__":
    if "--measure" in sys.argv:
        measure(sys.argv[-1])
    else:
        main(run)
