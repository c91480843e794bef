"""What a reader should know before believing the rest: each finding has a code that stays."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array
from lokl.explain.stability import LARGE_CHANGE, MANY_LEADERS, other_leader
from lokl.report.content import Finding
from lokl.search import expected_calibration_error
from lokl.study.candidates import GUESSES
from lokl.study.results import Results

# Samples of a class below which its share of the score is chance.
_FEW_OF_A_CLASS = 10
# Share of the splits in which a warning of fits is worth a finding.
_OFTEN = 0.5
# Distance of stated and true probabilities that is too large.
_UNCALIBRATED = 0.1
# Shares of trust this close lead together.
_EQUAL = 0.05
# Samples that lack a view, and points by which they are worse, before that is told.
_ENOUGH, _MUCH_WORSE = 10, 0.1


@dataclass(frozen=True)
class Kind:
    """A finding that may be made.

    Attributes
    ----------
    code : str
        It stays the same from version to version.
    condition : str
        When it is told, in a few words.
    look : callable
        Takes results, and returns what to tell, or nothing.
    """

    code: str
    condition: str
    look: Callable[[Results], str]


def findings(results: Results) -> list[Finding]:
    """Return everything that was found, in the order of the codes."""
    found = [(kind.code, kind.look(results)) for kind in KINDS]
    return [Finding(code, text) for code, text in found if text]


def _small_classes(results: Results) -> str:
    if not results.bench.question.classes:
        return ""
    counts = results.table.target.value_counts()
    small = [f"{label} {count}" for label, count in counts.items() if count < _FEW_OF_A_CLASS]
    return f"classes of few samples are hardly judged: {', '.join(small[:5])}" if small else ""


def _edges(results: Results) -> str:
    if results.chosen is None:
        return ""
    told = results.notices(results.chosen.name)
    edges = {
        "cost C" if kind.endswith("C") else "width of the kernels"
        for kind, (_, count) in told.items()
        if kind.startswith("edge of the grid") and count > _OFTEN * len(results.splits)
    }
    if not edges:
        return ""
    what = " and the ".join(sorted(edges))
    return f"the best {what} of {results.chosen.name} lies on the edge of what was tried"


def _no_better_than_a_view(results: Results) -> str:
    chosen, single = results.chosen, results.best_single
    if chosen is None or single is None or single.failed:
        return ""
    gap = results.difference(chosen, single)
    if gap[1] > 0:
        return ""
    words = "clearly worse than" if gap[2] < 0 else "not clearly better than"
    return f"{chosen.name} is {words} {single.name} (difference {_points(results, gap)})"


def _no_better_than_a_baseline(results: Results) -> str:
    chosen, other = results.chosen, results.best_baseline
    if chosen is None or other is None:
        return ""
    gap = results.difference(chosen, other)
    if gap[0] > 0:
        return ""
    words = "clearly worse than" if gap[2] < 0 else "no better than"
    return f"{chosen.name} is {words} {other.name} (difference {_points(results, gap)})"


def _no_better_than_guessing(results: Results) -> str:
    chosen = results.chosen
    guess = [row for row in results.rows if row.name in GUESSES]
    if chosen is None or not guess or guess[0].failed:
        return ""
    gap = results.difference(chosen, guess[0])
    if gap[1] > 0:
        return ""
    return f"{chosen.name} is not clearly better than guessing (difference {_points(results, gap)})"


def _unstable(results: Results) -> str:
    chosen = results.chosen
    if chosen is None or len(results.table.views) < 2 or chosen.complexity < 2:
        return ""
    first, second = (results.held_out(chosen.name, repeat) for repeat in (0, 1))
    if first is None or second is None:
        return ""
    a, b = (_shares(np.asarray(own.trust_or_weights)) for own in (first, second))
    change, leaders = float(np.abs(a - b).mean()), float(other_leader(a, b, _EQUAL).mean())
    if change <= LARGE_CHANGE and leaders <= MANY_LEADERS:
        return ""
    return (
        f"which view leads changes with the training samples: another one for {leaders:.0%} of the "
        f"samples in the second repeat, trust differs by {change:.2f}"
    )


def _shares(trust: Array) -> Array:
    total = trust.sum(axis=1, keepdims=True)
    equal = 1.0 / trust.shape[1]
    return np.asarray(np.where(total > 0, trust / np.where(total > 0, total, 1.0), equal))


def _better_without(results: Results) -> str:
    worse = [worth for worth in results.worth() if worth.loss is not None and worth.loss[2] < 0]
    if not worse:
        return ""
    names = ", ".join(worth.view for worth in worse)
    return f"the model is clearly better without: {names}; leave the file or --view out"


def _from_fits(kind: str, text: str) -> Callable[[Results], str]:
    """Return a look for something that fits of the chosen candidate warn of."""

    def look(results: Results) -> str:
        if results.chosen is None:
            return ""
        _, count = results.notices(results.chosen.name).get(kind, ("", 0))
        often = count > _OFTEN * len(results.splits)
        where = f" ({results.chosen.name}, {count} of {len(results.splits)} folds)"
        return text + where if often else ""

    return look


def _uncalibrated(results: Results) -> str:
    chosen = results.chosen
    told = None if chosen is None else results.held_out(chosen.name, 0)
    if told is None or told.probabilities is None:
        return ""
    classes = range(len(results.bench.question.classes))
    truth = results.bench.question.codes(results.bench.part.y)
    error = expected_calibration_error(truth, told.probabilities, classes=classes)
    if error <= _UNCALIBRATED:
        return ""
    return f"stated probabilities are {error:.2f} off on average; do not act on them alone"


def _worse_where_missing(results: Results) -> str:
    chosen = results.chosen
    told = None if chosen is None else results.held_out(chosen.name, 0)
    if told is None or told.probabilities is None:
        return ""
    right = ~told.wrong
    lacking = ~told.presence.all(axis=1)
    if lacking.sum() < _ENOUGH or (~lacking).sum() < _ENOUGH:
        return ""
    with_all, without = right[~lacking].mean(), right[lacking].mean()
    if with_all - without < _MUCH_WORSE:
        return ""
    return (
        f"samples that lack a view are predicted worse: {100 * without:.1f} % right, others "
        f"{100 * with_all:.1f} %"
    )


def _twins(results: Results) -> str:
    frame, groups = results.table.frame, results.table.groups
    twins = frame.duplicated(keep=False).to_numpy()
    if groups is not None or not twins.any():
        return ""
    names = [name for name, own in zip(results.table.ids, twins, strict=True) if own]
    shown = ", ".join(names[:4]) + (" ..." if len(names) > 4 else "")
    return (
        f"{len(names)} samples have the same values as another one ({shown}); if they are the same "
        "case, remove copies or name --groups"
    )


def _failures(results: Results) -> str:
    failed = [row for row in results.rows if row.failed and row.note]
    return "; ".join(f"{row.name} {row.note}" for row in failed)


def _unfinished(results: Results) -> str:
    done, asked = len(results.splits), len(results.bench.splits)
    if done == asked:
        return ""
    return f"only {done} of {asked} folds are finished; the same command goes on"


def _points(results: Results, gap: tuple[float, float, float]) -> str:
    factor, digits = (100, 1) if results.bench.question.classes else (1, 3)
    mean, low, high = (f"{factor * value:.{digits}f}" for value in gap)
    return f"{mean}, interval {low} to {high}"


KINDS = (
    Kind("LOKL001", "a class has fewer than 10 samples", _small_classes),
    Kind("LOKL002", "the best cost or width is the last one that was tried", _edges),
    Kind("LOKL003", "a single view may be as good as the chosen model", _no_better_than_a_view),
    Kind("LOKL004", "a baseline is as good as the chosen model", _no_better_than_a_baseline),
    Kind("LOKL005", "guessing may be as good as the chosen model", _no_better_than_guessing),
    Kind("LOKL006", "a refit trusts other views", _unstable),
    Kind("LOKL007", "the model is better without a view", _better_without),
    Kind(
        "LOKL008",
        "all samples get the decision of the larger class",
        _from_fits("saturated", "the machine is saturated: C is too small for these kernels"),
    ),
    Kind(
        "LOKL009",
        "a solver stopped before its tolerance",
        _from_fits("unconverged", "fits stopped before they converged"),
    ),
    Kind(
        "LOKL010",
        "the gate repeats the class label and does not help",
        _from_fits("trust misleads", "learned trust repeats the class label and does not help"),
    ),
    Kind("LOKL011", "stated probabilities are off by more than 0.1", _uncalibrated),
    Kind("LOKL012", "samples that lack a view are predicted much worse", _worse_where_missing),
    Kind("LOKL013", "samples have the same values as another one", _twins),
    Kind("LOKL014", "a candidate failed", _failures),
    Kind("LOKL015", "the time limit ended the comparison early", _unfinished),
)
