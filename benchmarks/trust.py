"""Views that are corrupted for some samples: the trusted vote compared with other combinations.

`trust_damage.py` defines the corruption of the test rows, `trust_methods.py` the settings that each
method chooses on the training part. There are random 80/20 splits, four times as many for data sets
with fewer than 150 test rows. With ``--records`` every finished method is a line of a file, from
which an interrupted run resumes.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common import Options, Report, console, load_set, main
from benchmarks.records import Records
from benchmarks.trust_damage import KINDS, Part, detection
from benchmarks.trust_methods import FIXED, RIVALS, TUNED, VOTE, Split
from benchmarks.trust_tables import show

# The quickest first.
SETS = (
    *("breast_tcga", "msrc", "bbcsport", "prokaryotic", "webkb", "protein_fold"),
    *("reuters", "mfeat", "leaves", "scene15"),
)
METHODS = (VOTE, *RIVALS)
SPLITS, FEW_ROWS, MORE = 5, 150, 4


@dataclass
class TrustOptions(Options):
    sets: str = ",".join(SETS)
    methods: str = ",".join(METHODS)
    splits: int = SPLITS
    fixed: bool = False
    records: Path | None = None
    tables: bool = False


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", help=f"data sets, separated by commas ({','.join(SETS)})")
    parser.add_argument("--methods", help=f"methods, separated by commas ({','.join(METHODS)})")
    parser.add_argument(
        "--splits",
        type=int,
        help=f"random splits of each data set, {MORE} times as many of small ones ({SPLITS})",
    )
    parser.add_argument(
        "--fixed",
        action="store_true",
        help='use Laplacian kernels of width "median" and C 10 without a search',
    )
    parser.add_argument(
        "--records", type=Path, help="file of finished work, from which the run resumes"
    )
    parser.add_argument("--tables", action="store_true", help="only show the tables of the records")


def judged(split: Split, name: str, number: int, method: str) -> dict[str, Any]:
    """Return accuracies of one method for all kinds of corruption, and the quality of trust."""
    begun = time.process_time()
    model, cost = split.vote() if method == VOTE else (None, None)
    predict = RIVALS[method](split) if model is None else model.predict
    seconds = time.process_time() - begun
    accuracy, found = {}, {}
    for k, kind in enumerate(KINDS):
        rng = np.random.RandomState(1000 * k + number)
        part = Part(split.test, split.y_test, list(split.views.values()), rng).damaged(kind)
        Z = split.seen(part.X)
        accuracy[kind] = 100.0 * float(np.mean(predict(Z) == split.y_test))
        if model is not None and kind in ("swap", "noise"):
            found[kind] = detection(model.trust(Z), part.corrupted)
        if model is not None and kind == "swap":
            # Upper bound: the probability that each view assigns to the true class.
            truth = np.searchsorted(split.classes, split.y_test)
            true_class = model.predict_proba_alone(Z)[np.arange(len(Z)), :, truth]
            found["swap, class known"] = detection(true_class, part.corrupted)
    record = {"set": name, "split": number, "method": method, "accuracy": accuracy}
    record |= {"cpu seconds": round(seconds, 2), "views": len(split.views)}
    if model is not None:
        Z = split.seen(split.test)
        p = model.predict_proba(Z)
        record |= {
            "detection": found,
            "confidence": np.round(p.max(axis=1), 4).tolist(),
            "right": (split.classes[p.argmax(axis=1)] == split.y_test).tolist(),
            "C": cost,
            "kernels": list(model.kernel_names_),
            "weights": np.round(
                [*model.weights_, model.joint_weight_, model.prior_weight_], 3
            ).tolist(),
        }
    return record


@dataclass
class Schedule:
    """Splits of all data sets, and an estimate of the remaining time."""

    sets: dict[str, Any]
    splits: int
    done: float = 0.0
    begun: float = field(default_factory=time.perf_counter)

    def numbers(self, name: str) -> range:
        few = len(self.sets[name].data) < FEW_ROWS / 0.2
        return range(self.splits * MORE if few else self.splits)

    def size(self, name: str) -> float:
        """Return the number of pairs of samples times the number of SVMs."""
        found = self.sets[name]
        n, classes = len(found.data), len(np.unique(found.target))
        return float(n) ** 2 * len(found.views) * max(classes, 2)

    def jobs(self, records: Records, methods: list[str]) -> Iterator[tuple[str, int, list[str]]]:
        """Yield splits with unfinished methods, and these methods."""
        left = [
            (
                name,
                number,
                [m for m in methods if not records.has(set=name, split=number, method=m)],
            )
            for name in self.sets
            for number in self.numbers(name)
        ]
        left = [job for job in left if job[2]]
        total = sum(self.size(name) for name, _, _ in left)
        for name, number, unfinished in left:
            yield name, number, unfinished
            self.done += self.size(name)
            seconds = (time.perf_counter() - self.begun) * (total / self.done - 1.0)
            console.print(
                f"[dim]{name}, split {number + 1} of {len(self.numbers(name))}; about "
                f"{seconds / 60:.0f} minutes left[/]"
            )


def run(options: TrustOptions, report: Report) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", message=".*lack a view.*")
    warnings.filterwarnings("ignore", message="the best .* of the grid")
    records = Records(options.records, ("set", "split", "method"), {"fixed": options.fixed})
    names, methods = options.sets.split(","), options.methods.split(",")
    if not options.tables:
        schedule = Schedule({name: load_set(name) for name in names}, options.splits)
        for name, number, left in schedule.jobs(records, methods):
            split = Split(schedule.sets[name], number, FIXED if options.fixed else TUNED)
            for method in left:
                records.add(judged(split, name, number, method))
    chosen = [r for r in records.found if r["set"] in names and r["method"] in methods]
    show(report, chosen, names)


if __name__ == "__main__":
    main(run, TrustOptions(), more_options)
