"""Results of a comparison in the terminal."""

from collections.abc import Iterator
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from lokl._text import shortened
from lokl.cli.terminal import print_wrapped, terminal_width

# Characters of names of candidates and views, of the axis of scores at least, and of seconds.
_CANDIDATE, _VIEW, _AXIS, _SECONDS = 19, 24, 14, 7
# Mark of the chosen candidate.
_CHOSEN = "chosen"
# Scores in columns of their own, as far as they fit.
_MORE_SCORES = (
    *("AUROC", "balanced accuracy", "log loss"),
    *("Uno's concordance", "integrated Brier score", "time-dependent AUC"),
)
# Samples that are listed.
_LISTED = 5
# How the terminal counts samples of each status.
_COUNTED = {
    "agree": ("sample: all views agree", "samples: all views agree"),
    "hinges": ("hinges on one view", "hinge on one view"),
    "contradict": ("contradicts", "contradict"),
    "unsure": ("without a sure view", "without a sure view"),
}


def show_results(outputs: Any) -> None:
    """Print the leaderboard, the choice, findings, views, samples and the next commands.

    Parameters
    ----------
    outputs : StudyOutputs
    """
    console = Console(highlight=False, soft_wrap=True)
    results = outputs.results
    for line in _leaderboard(results, results.leaderboard, "held out"):
        console.print(line)
    console.print()
    print_wrapped(results.sentences())
    print_wrapped(_positive_scores(results))
    for finding in outputs.findings:
        print_wrapped(f"{finding.text}   [{finding.code}]", "yellow")
    console.print()
    for line in _view_table(results):
        console.print(line)
    if results.test_leaderboard:
        n = len(results.experiment.cohort.ids)
        print_wrapped(f"Test cohort: {n} samples that nothing was chosen on.")
        for line in _leaderboard(results, results.test_leaderboard, "test cohort"):
            console.print(line)
        console.print()
    print_wrapped(_status_counts(results))
    _show_next(outputs)


def _leaderboard(results: Any, rows: Any, where: str) -> Iterator[Text]:
    """Yield the axis of the scores, and a line for each candidate.

    Parameters
    ----------
    results : Results
    rows : list of CandidateResult
        A candidate that failed is shown with the reason.
    where : str
        Which samples the scores are of.
    """
    from lokl.report.figures import Axis
    from lokl.study.candidates import CONSTANT_BASELINES

    fitted = [row for row in rows if not row.failed]
    scale = results.scale
    places = scale.places(row.score for row in fitted)
    texts = {row.name: _with_interval(scale, row.score, places) for row in fitted}
    head = f" {results.target.score_name}, {where} (95 % interval)"
    width = max(len(head), _CANDIDATE + 2 + max(map(len, texts.values())))
    columns = _more_scores(fitted, terminal_width() - width - _AXIS - _SECONDS - len(_CHOSEN) - 6)
    used = width + sum(len(name) + 2 for name in columns) + _SECONDS + len(_CHOSEN) + 6
    room = max(terminal_width() - used, _AXIS)
    # The line would be too short for the other candidates if it began at a constant prediction.
    shown = [row.score for row in fitted if row.name not in CONSTANT_BASELINES]
    intervals = [scale.bounded(score) for score in shown or [row.score for row in fitted]]
    ends = [end for interval in intervals for end in interval]
    axis = Axis.over(ends, scale.factor, whole=True, parts=max(2, room // 8))
    heads = "".join(f"  {name}" for name in columns)
    yield Text(f"{head:<{width}}  {_tick_labels(axis, room)}{heads}{'seconds':>9}", "bold")
    for row in rows:
        name = f" {shortened(row.name, _CANDIDATE):<{_CANDIDATE}}"
        if row.failed:
            yield Text(shortened(f"{name} {row.note}", terminal_width()), "dim")
            continue
        line = f"{f'{name} {texts[row.name]}':<{width}}  {_interval_line(axis, row.score, room)}"
        line += "".join(f"  {texts[row.name]:>{len(name)}}" for name, texts in columns.items())
        seconds = f"{row.seconds:.2g}" if row.seconds < 9.95 else f"{row.seconds:.0f}"
        line += f"  {seconds:>{_SECONDS}}  {_CHOSEN if row.chosen else ''}"
        yield Text(
            line.rstrip(), "bold green" if row.chosen else "" if row.role == "ours" else "dim"
        )


def _with_interval(scale: Any, score: Any, places: int) -> str:
    """Return a score and its interval as text.

    Parameters
    ----------
    scale : Scale
    score : Interval
    places : int
        Number of decimals.
    """
    limits = scale.limits(score, places)
    limits = limits if "−" in limits else limits.replace(" to ", " - ")
    return scale.mean(score, places) + (f" ({limits})" if limits else "")


def _more_scores(fitted: list[Any], room: int) -> dict[str, dict[str, str]]:
    """Return columns of other scores that fit: the text of each candidate, by name of the score.

    Parameters
    ----------
    fitted : list of CandidateResult
    room : int
        Characters.
    """
    from lokl.report.formatting import Scale

    columns: dict[str, dict[str, str]] = {}
    for name in _MORE_SCORES:
        values = {row.name: row.other_scores.get(name) for row in fitted}
        room -= len(name) + 2
        if room >= 0 and any(value is not None for value in values.values()):
            scale = Scale.of_score(name)
            columns[name] = {
                key: scale.mean(value, 1 if scale.percent else 2) for key, value in values.items()
            }
    return columns


def _tick_labels(axis: Any, room: int) -> str:
    """Return the labels of an axis above their ticks.

    Parameters
    ----------
    axis : lokl.report.figures.Axis
    room : int
        Characters of the axis.
    """
    line = [" "] * room
    end = -1
    for value, label in axis.labels:
        first = round(axis.share(value) * (room - 1)) - (len(label) - 1) // 2
        first = min(max(first, 0), room - len(label))
        if first > end:
            line[first : first + len(label)] = label
            end = first + len(label)
    return "".join(line)


def _interval_line(axis: Any, interval: Any, room: int) -> str:
    """Return a score and its interval drawn along an axis.

    Parameters
    ----------
    axis : lokl.report.figures.Axis
    interval : Interval
    room : int
        Characters of the axis.
    """
    middle, first, last = (round(axis.share(value) * (room - 1)) for value in interval)
    signs = ["─" if first <= position <= last else " " for position in range(room)]
    # A constant prediction may be beyond the axis.
    signs[middle] = "●" if interval.mean >= axis.low else "◀"
    return "".join(signs)


def _positive_scores(results: Any) -> str:
    """Return the scores of the positive class, if there is one.

    Parameters
    ----------
    results : Results
    """
    from lokl.report.formatting import Scale

    n_samples = len(results.table.ids)
    scales = {n: Scale.of_score(n, n_samples=n_samples) for n in results.positive_scores()}
    texts = [
        f"{name} {scales[name].mean(value)}{scales[name].unit} ({scales[name].limits(value)})"
        for name, value in results.positive_scores().items()
    ]
    return f"{results.target.positive}: {', '.join(texts)}" if texts else ""


def _view_table(results: Any) -> Iterator[Text]:
    """Yield a line for each of several views: its score alone, its loss, and where it decides.

    Parameters
    ----------
    results : Results
        A single view has no lines.
    """
    if results.n_views < 2:
        return
    decisive, scale, signed = results.decisive_for(), results.scale, results.scale.differences
    head = f" {'view':<{_VIEW}}   alone   loss without it"
    yield Text(head + ("   decisive for" if decisive else ""), "bold")
    sign = results.target.score.sign
    for scores in sorted(results.view_scores, key=lambda view: -sign * (view.alone or (0.0,))[0]):
        name = f" {shortened(scores.name, _VIEW):<{_VIEW}}"
        line = f"{name}{scale.mean(scores.alone):>8}{signed.mean(scores.loss):>18}"
        line += f"   {decisive.get(scores.name, '')}"
        yield Text(shortened(line.rstrip(), terminal_width()))
    yield Text()


def _status_counts(results: Any) -> str:
    """Return how many samples have each status, with the ids of those that need a look.

    Parameters
    ----------
    results : Results
    """
    parts = []
    for status, ids in results.with_status().items():
        if ids:
            text = f"{len(ids)} {_COUNTED[status][len(ids) > 1]}"
            if status == "contradict":
                text += f": {', '.join(ids[:_LISTED])}" + (" ..." if len(ids) > _LISTED else "")
            parts.append(text)
    return " · ".join(parts)


def _show_next(outputs: Any) -> None:
    """Print the commands that look further.

    Parameters
    ----------
    outputs : StudyOutputs
    """
    folder = outputs.files["report.html"].parent
    samples = outputs.results.with_status()
    first = next(
        (ids[0] for s in ("contradict", "hinges", "unsure") if (ids := samples.get(s))), ""
    )
    first = first or outputs.results.table.ids[0]
    texts = [f"open {outputs.files['report.html']}"]
    if outputs.results.chosen is not None:
        texts.insert(0, f"lokl explain {folder} --sample {first}")
    line = f" next: {'      '.join(texts)}"
    if len(line) > terminal_width():
        line = f" next: {texts[0]}" + "".join(f"\n       {text}" for text in texts[1:])
    typer.echo(line)
