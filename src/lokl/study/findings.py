"""Verdict and findings of a comparison, in sentences.

A finding is something that a reader should know before relying on the results. Its code stays the
same in all versions.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import r2_score

from lokl._arrays import Array
from lokl.explain.explanation import Explanation
from lokl.explain.stability import LARGE_CHANGE, MANY_LEADERS, leader_changed
from lokl.report.content import Finding
from lokl.search import expected_calibration_error
from lokl.study.candidates import BASELINE, CONSTANT_BASELINES, VIEW
from lokl.study.results import CandidateResult, Results

# Samples of a class below which its share of the score is chance.
_FEW_SAMPLES = 10
# Fraction of the splits from which on a warning of fits becomes a finding.
_OFTEN = 0.5
# Calibration error that is too large.
_CALIBRATION_ERROR = 0.1
# Weights this close lead together.
_EQUAL_WEIGHTS = 0.05
# Samples without a view, and loss of accuracy for them, that make a finding.
_ENOUGH_SAMPLES, _LARGE_LOSS = 10, 0.1


def verdict(results: Results) -> str:
    """Return two sentences: the score of the chosen model, and of simpler models."""
    chosen = results.chosen
    if chosen is None:
        score = _score_sentence(results.leaderboard[0], results)
        return f"{score} No model of lokl was compared, so that none is chosen."
    others = [row for row in (results.best(VIEW), results.best(BASELINE)) if row is not None]
    interval = results.experiment.target.format_interval
    listed = "; ".join(f"{row.name} {interval(row.interval)}" for row in others)
    return _score_sentence(chosen, results) + (f" For comparison: {listed}." if listed else "")


def _score_sentence(row: CandidateResult, results: Results) -> str:
    score = results.experiment.target.format_interval(row.interval)
    name = row.name[:1].upper() + row.name[1:]
    return f"{name} reaches {results.score_name} {score} on held-out samples."


def model_verdict(explanation: Explanation | None) -> str:
    """Return the score of a model on samples with a known target; empty if there are none."""
    if explanation is None or explanation.truth is None or not explanation.known.any():
        return ""
    predicted, truth = (v[explanation.known] for v in (explanation.predictions, explanation.truth))
    if not explanation.is_regression:
        score = f"accuracy {100 * float(np.mean(predicted == truth)):.1f} %"
    elif len(truth) > 1 and np.ptp(truth):
        score = f"R squared {r2_score(truth, predicted):.3f}"
    else:
        score = "an unknown R squared"
    return (
        f"The model reaches {score} on {len(truth)} samples with a known target. Scores of samples "
        "that it was trained on are too optimistic."
    )


@dataclass(frozen=True)
class Check:
    """A check that may yield a finding.

    Attributes
    ----------
    code : str
        The same in all versions.
    condition : str
        When the finding is reported, in a few words.
    run : callable
        Takes results, and returns the text of the finding, or "".
    """

    code: str
    condition: str
    run: Callable[[Results], str]


def findings(results: Results) -> list[Finding]:
    """Return all findings, in the order of their codes."""
    texts = [(check.code, check.run(results)) for check in CHECKS]
    return [Finding(code, text) for code, text in texts if text]


def _small_classes(results: Results) -> str:
    if not results.classes:
        return ""
    counts = results.table.target.value_counts()
    small = [f"{label} {count}" for label, count in counts.items() if count < _FEW_SAMPLES]
    return f"scores of small classes are uncertain: {', '.join(small[:5])}" if small else ""


def _grid_boundary(results: Results) -> str:
    if results.chosen is None:
        return ""
    settings = {
        "C" if kind.endswith("C") else "width of the kernels"
        for kind, count in results.warning_counts(results.chosen.name).items()
        if kind.startswith("edge of the grid") and count > _OFTEN * len(results.splits)
    }
    if not settings:
        return ""
    listed = " and the best ".join(sorted(settings))
    return f"the best {listed} of {results.chosen.name} is at the boundary of the search"


def _compared_with(
    find: Callable[[Results], CandidateResult | None], weaker: str, *, clearly: bool
) -> Callable[[Results], str]:
    """Return a check that the chosen model is better than another candidate.

    Parameters
    ----------
    find : callable
        Returns the other candidate, or None.
    weaker : str
        Description of a chosen model that is not better.
    clearly : bool
        Whether the whole interval of the difference must be above zero, or only its mean.
    """

    def run(results: Results) -> str:
        chosen, other = results.chosen, find(results)
        if chosen is None or other is None:
            return ""
        mean, low, high = difference = results.difference(chosen, other)
        if (low if clearly else mean) > 0:
            return ""
        words = "clearly worse than" if high < 0 else weaker
        shown, lowest, highest = map(results.format_score, difference)
        interval = f"difference {shown}, 95 % interval {lowest} to {highest}"
        return f"{chosen.name} is {words} {other.name} ({interval})"

    return run


def _constant_baseline(results: Results) -> CandidateResult | None:
    rows = (row for row in results.leaderboard if row.name in CONSTANT_BASELINES)
    return next((row for row in rows if not row.failed), None)


def _unstable_trust(results: Results) -> str:
    chosen = results.chosen
    if chosen is None or len(results.table.views) < 2 or chosen.complexity < 2:
        return ""
    first, second = results.held_out(0), results.held_out(1)
    if first is None or second is None:
        return ""
    a, b = (_normalised(np.asarray(own.trust_or_weights)) for own in (first, second))
    change = float(np.abs(a - b).mean())
    leaders = float(leader_changed(a, b, _EQUAL_WEIGHTS).mean())
    if change <= LARGE_CHANGE and leaders <= MANY_LEADERS:
        return ""
    return (
        f"the leading view depends on the training samples: it is another one for {leaders:.0%} of "
        f"the samples in the second repeat, and trust differs by {change:.2f}"
    )


def _normalised(trust: Array) -> Array:
    """Return trust with rows that sum to one; rows of zeros become equal weights."""
    total = trust.sum(axis=1, keepdims=True)
    equal = 1.0 / trust.shape[1]
    return np.asarray(np.where(total > 0, trust / np.where(total > 0, total, 1.0), equal))


def _better_without(results: Results) -> str:
    harmful = [own.view for own in results.view_scores if own.loss is not None and own.loss[2] < 0]
    if not harmful:
        return ""
    return f"the model is clearly better without {', '.join(harmful)}; leave out the file or --view"


def _from_warnings(kind: str, text: str) -> Callable[[Results], str]:
    """Return a check for a warning of most fits of the chosen candidate."""

    def run(results: Results) -> str:
        if results.chosen is None:
            return ""
        count, n_splits = results.warning_counts(results.chosen.name)[kind], len(results.splits)
        where = f" ({results.chosen.name}, {count} of {n_splits} folds)"
        return text + where if count > _OFTEN * n_splits else ""

    return run


def _uncalibrated(results: Results) -> str:
    explanation = results.held_out()
    if explanation is None or explanation.probabilities is None:
        return ""
    codes = range(len(results.classes))
    truth = explanation.truth_codes
    error = expected_calibration_error(truth, explanation.probabilities, classes=codes)
    if error <= _CALIBRATION_ERROR:
        return ""
    return f"probabilities are off by {error:.2f} on average; do not rely on them alone"


def _worse_without_a_view(results: Results) -> str:
    explanation = results.held_out()
    if explanation is None or explanation.probabilities is None:
        return ""
    right, complete = ~explanation.wrong, explanation.presence.all(axis=1)
    if min(complete.sum(), (~complete).sum()) < _ENOUGH_SAMPLES:
        return ""
    with_all, without = right[complete].mean(), right[~complete].mean()
    if with_all - without < _LARGE_LOSS:
        return ""
    return (
        f"samples with a missing view are predicted worse: accuracy {100 * without:.1f} %, other "
        f"samples {100 * with_all:.1f} %"
    )


def _duplicates(results: Results) -> str:
    duplicated = results.table.frame.duplicated(keep=False).to_numpy()
    if results.table.groups is not None or not duplicated.any():
        return ""
    names = [results.table.ids[row] for row in np.flatnonzero(duplicated)]
    shown = ", ".join(names[:4]) + (" ..." if len(names) > 4 else "")
    return (
        f"{len(names)} samples have the same values as another one ({shown}); if they are the same "
        "case, remove copies or name --groups"
    )


def _failures(results: Results) -> str:
    failed = [row for row in results.leaderboard if row.failed and row.error]
    return "; ".join(f"{row.name} {row.error}" for row in failed)


def _unfinished(results: Results) -> str:
    finished, total = len(results.splits), len(results.experiment.splits)
    if finished == total:
        return ""
    return f"only {finished} of {total} folds are finished; the same command resumes"


CHECKS = (
    Check("LOKL001", "a class has fewer than 10 samples", _small_classes),
    Check("LOKL002", "the best C or width is at the boundary of the search", _grid_boundary),
    Check(
        "LOKL003",
        "a single view may be as good as the chosen model",
        _compared_with(lambda results: results.best(VIEW), "not clearly better than", clearly=True),
    ),
    Check(
        "LOKL004",
        "a baseline is as good as the chosen model",
        _compared_with(lambda results: results.best(BASELINE), "no better than", clearly=False),
    ),
    Check(
        "LOKL005",
        "a constant prediction may be as good as the chosen model",
        _compared_with(_constant_baseline, "not clearly better than", clearly=True),
    ),
    Check("LOKL006", "a second fit trusts other views", _unstable_trust),
    Check("LOKL007", "the model is better without a view", _better_without),
    Check(
        "LOKL008",
        "all samples get the decision of the larger class",
        _from_warnings("saturated", "the SVM is saturated: C is too small for these kernels"),
    ),
    Check(
        "LOKL009",
        "a solver stopped before its tolerance",
        _from_warnings("unconverged", "fits stopped before they converged"),
    ),
    Check(
        "LOKL010",
        "the gate repeats the class label and does not help",
        _from_warnings(
            "trust misleads", "learned weights repeat the class label and do not improve the score"
        ),
    ),
    Check("LOKL011", "probabilities are off by more than 0.1", _uncalibrated),
    Check("LOKL012", "samples with a missing view are predicted much worse", _worse_without_a_view),
    Check("LOKL013", "samples have the same values as another one", _duplicates),
    Check("LOKL014", "a candidate failed", _failures),
    Check("LOKL015", "the time limit ended the comparison early", _unfinished),
)
