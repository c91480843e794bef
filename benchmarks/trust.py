"""Views that are wrong at some samples: the trusted vote against plain combinations.

`trust_damage.py` says how test rows are spoiled, `trust_methods.py` what each method chooses inside
the training part. Random 80/20 splits; sets whose test part has under 150 rows are split four times
as often. With ``--records`` every finished method is a line of a file, and a run that was cut off
goes on where it ended.
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

# Quick ones first.
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
    parser.add_argument("--sets", help=f"data sets, with commas between ({','.join(SETS)})")
    parser.add_argument("--methods", help=f"methods, with commas between ({','.join(METHODS)})")
    parser.add_argument(
        "--splits",
        type=int,
        help=f"random splits of each set, {MORE} times as many of small ones ({SPLITS})",
    )
    parser.add_argument(
        "--fixed", action="store_true", help='choose nothing: RBF of width "scale", C 10'
    )
    parser.add_argument("--records", type=Path, help="file of finished work, to go on with")
    parser.add_argument("--tables", action="store_true", help="show what the records have, only")


def judged(split: Split, name: str, number: int, method: str) -> dict[str, Any]:
    """Accuracies of one method on all kinds of damage; of the vote, what its trust is worth."""
    begun = time.process_time()
    model = split.vote() if method == VOTE else None
    predict = RIVALS[method](split) if model is None else model.predict
    seconds = time.process_time() - begun
    accuracy, found = {}, {}
    for k, kind in enumerate(KINDS):
        rng = np.random.RandomState(1000 * k + number)
        part = Part(split.test, split.y_test, list(split.views.values()), rng).damaged(kind)
        Z = split.seen(part.X)
        accuracy[kind] = 100.0 * float(np.mean(predict(Z) == split.y_test))
        if model is not None and kind in ("swap", "noise"):
            found[kind] = detection(model.trust(Z), part.spoiled)
        if model is not None and kind == "swap":
            # As far as one could get by what views say if the true class were known.
            truth = np.searchsorted(split.classes, split.y_test)
            said = model.predict_proba_alone(Z)[np.arange(len(Z)), :, truth]
            found["swap, class known"] = detection(said, part.spoiled)
    record = {"set": name, "split": number, "method": method, "accuracy": accuracy}
    record |= {"cpu seconds": round(seconds, 2), "views": len(split.views)}
    if model is not None:
        Z = split.seen(split.test)
        p = model.predict_proba(Z)
        record |= {
            "detection": found,
            "confidence": np.round(p.max(axis=1), 4).tolist(),
            "right": (split.classes[p.argmax(axis=1)] == split.y_test).tolist(),
            "C": split.vote_cost,
            "weights": np.round(
                [*model.weights_, model.joint_weight_, model.prior_weight_], 3
            ).tolist(),
        }
        if number == 0:
            moved = np.abs(split.vote(seed=1).trust(Z) - model.trust(Z))
            record["seed"] = float(moved.mean())
    return record


@dataclass
class Plan:
    """All that is to be done, and how long it will take about."""

    sets: dict[str, Any]
    splits: int
    done: float = 0.0
    begun: float = field(default_factory=time.perf_counter)

    def numbers(self, name: str) -> range:
        few = len(self.sets[name].data) < FEW_ROWS / 0.2
        return range(self.splits * MORE if few else self.splits)

    def size(self, name: str) -> float:
        """Pairs of samples, times machines."""
        found = self.sets[name]
        n, classes = len(found.data), len(np.unique(found.target))
        return float(n) ** 2 * len(found.views) * max(classes, 2)

    def jobs(self, records: Records, methods: list[str]) -> Iterator[tuple[str, int, list[str]]]:
        """Splits with something to do, and the methods left."""
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
        for name, number, own in left:
            yield name, number, own
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
        plan = Plan({name: load_set(name) for name in names}, options.splits)
        for name, number, left in plan.jobs(records, methods):
            split = Split(plan.sets[name], number, FIXED if options.fixed else TUNED)
            for method in left:
                records.add(judged(split, name, number, method))
    chosen = [r for r in records.found if r["set"] in names and r["method"] in methods]
    show(report, chosen, names)


if __name__ == "__main__":
    main(run, TrustOptions(), more_options)
