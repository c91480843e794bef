"""Findings of a comparison: what a reader should know before relying on the results.

Conditions of the findings, whose codes stay the same in all versions:

- LOKL001: a class has fewer than 10 samples
- LOKL002: the best C or width is at the boundary of the search
- LOKL003: a single view may be as good as the chosen model
- LOKL004: a baseline is as good as the chosen model
- LOKL005: a constant prediction may be as good as the chosen model
- LOKL006: a second fit trusts other views
- LOKL007: the model is better without a view
- LOKL008: all samples get the decision of the larger class
- LOKL009: a solver stopped before its tolerance
- LOKL010: the gate repeats the class label and does not help
- LOKL011: probabilities are off by more than 0.1
- LOKL012: samples with a missing view are predicted much worse
- LOKL013: samples have the same values as another one
- LOKL014: a candidate failed
- LOKL015: the time limit ended the comparison early
- LOKL016: a permuted target often gives as good a score
"""

from collections.abc import Iterator, Sequence

import numpy as np

from lokl._arrays import Array
from lokl.explain.explanation import Explanation
from lokl.explain.stability import LARGE_CHANGE, MANY_LEADERS, leader_changed
from lokl.report.content import Finding
from lokl.search import expected_calibration_error
from lokl.study.candidates import BASELINE, CONSTANT_BASELINES, VIEW, single_view_name
from lokl.study.results import CandidateResult, Results

# Findings from a warning of most fits of the chosen model: kind of the warning, and text.
_FROM_WARNINGS = {
    "LOKL008": ("saturated", "the SVM is saturated: C is too small for these kernels"),
    "LOKL009": ("unconverged", "fits stopped before they converged"),
    "LOKL010": (
        "trust misleads",
        "learned weights repeat the class label and do not improve the score",
    ),
}
# A finding reports p-values above this level.
_CHANCE = 0.05
# Share of the splits above which a warning of the fits becomes a finding.
_OFTEN = 0.5
# Number of samples below which the score of a class is uncertain.
_FEW_SAMPLES = 10
# Calibration error above which probabilities should not be relied on.
_CALIBRATION_ERROR = 0.1
# Weights that differ by less are both the largest.
_EQUAL_WEIGHTS = 0.05
# Views that are listed by name.
_FEW_NAMES = 4
# Least number of samples with and without a missing view, and least loss of accuracy.
_ENOUGH_SAMPLES, _LARGE_LOSS = 10, 0.1

# Code and text of a finding.
_Coded = tuple[str, str]


def findings(results: Results) -> list[Finding]:
    """Return all findings about the results of a comparison.

    Parameters
    ----------
    results : Results

    Returns
    -------
    findings : list of Finding
        Sorted by code.
    """
    found = [*_about_data(results), *_about_run(results)]
    chosen, explanation = results.chosen, results.held_out()
    if chosen is not None:
        found += [*_compared(results, chosen), *_from_warnings(results, chosen)]
        found += _about_views(results, chosen)
    if explanation is not None and explanation.probabilities is not None:
        found += _about_predictions(results, explanation, explanation.probabilities)
    return [Finding(code, text) for code, text in sorted(found)]


def _about_data(results: Results) -> Iterator[_Coded]:
    """Yield findings about small classes and equal samples."""
    table = results.table
    counts = table.target.value_counts() if results.target.classes else {}
    small = [f"{label} {count}" for label, count in counts.items() if count < _FEW_SAMPLES]
    if small:
        yield "LOKL001", f"scores of small classes are uncertain: {', '.join(small[:5])}"
    rows = np.flatnonzero(table.frame.duplicated(keep=False))
    if len(rows) and table.groups is None:
        shown = ", ".join(table.ids[row] for row in rows[:4]) + (" ..." if len(rows) > 4 else "")
        yield (
            "LOKL013",
            f"{len(rows)} samples have the same values as another sample ({shown}); if they are "
            "copies, remove them or keep them together with --groups",
        )


def _about_run(results: Results) -> Iterator[_Coded]:
    """Yield findings about failed candidates and unfinished folds."""
    failed = [f"{row.name} {row.note}" for row in results.leaderboard if row.note]
    if failed:
        yield "LOKL014", "; ".join(failed)
    finished, total = len(results.splits), len(results.experiment.splits)
    if finished < total:
        yield (
            "LOKL015",
            f"only {finished} of {total} folds are finished; run the same command to continue",
        )
    wanted, test = results.experiment.settings.permutations, results.permutation_test
    permuted = 0 if test is None else test.n_permutations
    if finished == total and permuted < wanted and results.chosen is not None:
        yield (
            "LOKL015",
            f"only {permuted} of {wanted} permutations are finished; run the same command to "
            "continue",
        )
    if test is not None and test.p_value > _CHANCE:
        yield (
            "LOKL016",
            f"the score may be due to chance: p = {test.p_value:.2g} in the permutation test",
        )


def _compared(results: Results, chosen: CandidateResult) -> Iterator[_Coded]:
    """Yield other candidates that are about as good as the chosen model, or better."""
    fitted = [row for row in results.leaderboard if not row.failed]
    constant = next((row for row in fitted if row.name in CONSTANT_BASELINES), None)
    view = results.best(VIEW)
    others = [name for name in results.table.views if view and view.name != single_view_name(name)]
    worth = f"consider whether {_listed(others)} {'is' if len(others) == 1 else 'are'}"
    # Whether the whole interval of the difference must be above zero, or only its mean.
    for code, other, clearly, advice in (
        ("LOKL003", view, True, f"{worth} worth measuring"),
        ("LOKL004", results.best(BASELINE), False, "use it if nothing has to be explained"),
        ("LOKL005", constant, True, f"the {results.noun}s may not say anything about the target"),
    ):
        if other is None:
            continue
        difference = results.difference(chosen, other)
        if (difference.low if clearly else difference.mean) <= 0:
            relation = "may be as good" if clearly else "is as good"
            relation = "is clearly better" if difference.high < 0 else relation
            scale, unit = results.scale.differences, " points" if results.scale.percent else ""
            limits = scale.limits(difference)
            shown = f"{scale.mean(difference)}{unit}" + (f", {limits}" if limits else "")
            text = f"{other.name} {relation} as {chosen.name} (difference {shown}): {advice}"
            yield code, text.replace("better as", "better than")


def _listed(names: Sequence[str]) -> str:
    """Return names as text; many names are counted."""
    if len(names) > _FEW_NAMES:
        return f"the other {len(names)}"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _from_warnings(results: Results, chosen: CandidateResult) -> Iterator[_Coded]:
    """Yield findings from warnings in more than half of the fits of the chosen model."""
    counts, n_splits = results.warning_counts(chosen.name), len(results.splits)
    often = {kind: count for kind, count in counts.items() if count > _OFTEN * n_splits}
    edges = [kind for kind in often if kind.startswith("edge of the grid")]
    if edges:
        settings = {"C" if kind.endswith("C") else "width of the kernels" for kind in edges}
        listed = " and the best ".join(sorted(settings))
        yield "LOKL002", f"the best {listed} of {chosen.name} is at the boundary of the search"
    for code, (kind, text) in _FROM_WARNINGS.items():
        if kind in often:
            yield code, f"{text} ({chosen.name}, {often[kind]} of {n_splits} folds)"


def _about_views(results: Results, chosen: CandidateResult) -> Iterator[_Coded]:
    """Yield findings about unstable trust and about views that harm the chosen model."""
    first, second = results.held_out(0), results.held_out(1)
    localized = chosen.complexity >= 2 and len(results.table.views) > 1
    if localized and first is not None and second is not None:
        a, b = (_normalised(np.asarray(one.trust_or_weights)) for one in (first, second))
        change, leaders = np.abs(a - b).mean(), leader_changed(a, b, _EQUAL_WEIGHTS).mean()
        if change > LARGE_CHANGE or leaders > MANY_LEADERS:
            yield (
                "LOKL006",
                f"the leading view depends on the training samples: in the second repeat, "
                f"{leaders:.0%} of the samples have another leading view, and trust changes by "
                f"{change:.2f} on average",
            )
    harmful = [view.name for view in results.view_scores if view.loss and view.loss.high < 0]
    if harmful:
        yield (
            "LOKL007",
            f"the model is clearly better without {', '.join(harmful)}; leave out the file or "
            "--view",
        )


def _normalised(trust: Array) -> Array:
    """Return trust with rows that sum to one; rows of zeros become equal weights.

    Parameters
    ----------
    trust : array of shape (n_samples, n_views)
    """
    total = trust.sum(axis=1, keepdims=True)
    equal = 1.0 / trust.shape[1]
    return np.asarray(np.where(total > 0, trust / np.where(total > 0, total, 1.0), equal))


def _about_predictions(
    results: Results, explanation: Explanation, probabilities: Array
) -> Iterator[_Coded]:
    codes = range(len(results.target.classes))
    error = expected_calibration_error(explanation.truth_codes, probabilities, classes=codes)
    if error > _CALIBRATION_ERROR:
        yield (
            "LOKL011",
            f"probabilities are off by {error:.2f} on average; do not rely on them alone",
        )
    right, complete = ~explanation.wrong, explanation.presence.all(axis=1)
    if min(complete.sum(), (~complete).sum()) >= _ENOUGH_SAMPLES:
        with_all, without = right[complete].mean(), right[~complete].mean()
        if with_all - without >= _LARGE_LOSS:
            yield (
                "LOKL012",
                f"samples with a missing view are predicted worse: accuracy {100 * without:.1f} %, "
                f"other samples {100 * with_all:.1f} %",
            )
