"""How a comparison looks in a terminal of 80 columns.

``lokl compare``: which model, which view, and how sure that is.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from lokl.cli.options import (
    AsJson,
    Data,
    Delimiter,
    Groups,
    Jobs,
    Kind,
    Na,
    On,
    Positive,
    Seed,
    Target,
    Task,
    TimeLimit,
    View,
    asked,
    explained,
)
from lokl.cli.terminal import stop

_WIDTH = 80
# Characters of names and of the line on which scores are marked.
_NAME, _LINE = 22, 14
# Samples that are named.
_NAMED = 4


def show_read(table: Any) -> None:
    """Say on standard error what was read and what is predicted."""
    files = " · ".join(
        f"{Path(name).name} {own.rows} x {own.columns}" for name, own in table.files.items()
    )
    how = f"joined on {table.on}: " if table.on else ""
    counts = [f"{count} lack {view}" for view, count in table.lacking().items()]
    _tell("read", f"{files}   {how}{', '.join([f'{len(table.frame)} samples', *counts])}")
    sizes = tuple(f"{name}: {own.rows} x {own.columns}" for name, own in table.files.items())
    for note in table.notes:
        told, _, rest = note.partition("target ")
        if not told:
            _tell("target", rest)
        elif note not in sizes and " lack " not in note:
            _tell("", note)


def show_plan(comparison: Any) -> None:
    """Say on standard error what is to be done."""
    settings, missing, cells = comparison.settings, len(comparison.missing), len(comparison.cells)
    names = len(comparison.candidates)
    text = f"{settings.folds} folds x {_times(settings.repeats)}, {names} candidates"
    if missing < cells:
        text += f"; {cells - missing} of {cells} fits are in {comparison.folder} already"
    _tell("plan", text)


def _times(repeats: int) -> str:
    return f"{repeats} repeats" if repeats > 1 else "1 repeat"


def _tell(head: str, text: str) -> None:
    typer.echo("\n".join(wrapped(text, f" {head:<8}", " " * 9)), err=True)


def wrapped(text: str, first: str = " ", others: str = "   ") -> list[str]:
    """Return a text in lines that fit; paths are not broken."""
    return wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
        break_long_words=False,
    )


def show_results(finished: Any) -> None:
    """Print tables, samples, findings and paths."""
    from lokl.study.outputs import disagreeing

    console = Console(highlight=False, soft_wrap=True)
    results = finished.results
    for line in (*_leaderboard(results), Text(), *_worths(results)):
        console.print(line)
    paths = "   ".join(map(str, finished.files.values()))
    for text, style in (
        (_disagreement(disagreeing(results), finished.files), ""),
        *((f"! {finding.code} {finding.text}", "yellow") for finding in finished.findings),
        (paths, "cyan"),
    ):
        if text is paths:
            console.print()
        for part in wrapped(text):
            console.print(Text(part, style))


def _leaderboard(results: Any) -> Iterator[Text]:
    from lokl.study.candidates import GUESSES

    classes = bool(results.bench.question.classes)
    factor, digits = (100, 1) if classes else (1, 3)
    texts = {row.name: _span(row, factor, digits) for row in results.rows}
    wide = max(map(len, texts.values()))
    unit = " %" if classes else ""
    head = f" {results.score_name}{unit}, held out (95 % interval)"
    yield Text(f"{head:<{_NAME + wide + _LINE + 6}}seconds", "bold")
    # Guesses would leave no room for what is compared.
    rows = [row for row in results.rows if not row.failed]
    ends = [r.interval for r in rows if r.name not in GUESSES] or [r.interval for r in rows]
    limits = min(low for _, low, _ in ends), max(high for _, _, high in ends)
    for row in results.rows:
        name = f" {_short(row.name, _NAME):<{_NAME}}"
        if row.failed:
            yield Text(_short(f"{name} {row.note}", _WIDTH), "dim")
            continue
        chosen = row is results.chosen
        mark = " ← chosen" if chosen else ""
        seconds = f"{row.seconds:.2g}" if row.seconds < 9.95 else f"{row.seconds:.0f}"
        line = f"{name} {texts[row.name]:<{wide}} {_dots(row.interval, limits)} {seconds:>7}{mark}"
        yield Text(line, "bold green" if chosen else "" if row.role == "ours" else "dim")


def _span(row: Any, factor: int, digits: int) -> str:
    if row.failed:
        return ""
    mean, low, high = (f"{factor * value:.{digits}f}" for value in row.interval)
    return f"{mean:>6} ({low} - {high})"


def _dots(interval: tuple[float, float, float], limits: tuple[float, float]) -> str:
    """Draw a score and its interval on one common line."""
    low, high = limits
    step = (high - low) / (_LINE - 1) or 1.0
    places = (round((value - low) / step) for value in interval)
    middle, first, last = (min(max(place, 0), _LINE - 1) for place in places)
    signs = ["─" if first <= place <= last else " " for place in range(_LINE)]
    signs[middle] = "●"
    return "".join(signs)


def _worths(results: Any) -> Iterator[Text]:
    from lokl.study.outputs import trusted_where

    if len(results.table.views) < 2:
        return
    factor, digits = (100, 1) if results.bench.question.classes else (1, 3)
    where = trusted_where(results)
    yield Text(f" {'what each view is worth':<30}   alone   when withheld   trusted where", "bold")
    for worth in sorted(results.worth(), key=lambda own: -(own.alone or (0.0,))[0]):
        alone = "" if worth.alone is None else f"{factor * worth.alone[0]:.{digits}f}"
        loss = "" if worth.loss is None else f"{-factor * worth.loss[0]:+.{digits}f}"
        line = f" {_short(worth.view, 30):<30}{alone:>8}{loss:>16}   {where.get(worth.view, '')}"
        yield Text(_short(line, _WIDTH))
    yield Text()


def _disagreement(names: Sequence[str], files: Any) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
    samples = "1 sample" if len(names) == 1 else f"{len(names)} samples"
    how = f"   (lokl explain {files['model.lokl']} ... --sample {names[0]})"
    return f"{samples} where views disagree: {shown}{how}"


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


Folds = Annotated[int | None, typer.Option(help="Parts of each division; 5 if not given.")]
Repeats = Annotated[int | None, typer.Option(help="Divisions; 2 if not given.")]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        help="Candidates, separated by commas: AutoMKL, trusted vote, uniform mix, LMKL, ..., "
        "views, forest, ..., baselines. All but other methods if not given."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Folder for everything; `run`, or that of config.toml, if not given."
    ),
]


def compare(
    data: Data,
    target: Target = None,
    on: On = None,
    view: View = None,
    groups: Groups = None,
    kind: Kind = None,
    task: Task = None,
    positive: Positive = None,
    na: Na = None,
    delimiter: Delimiter = "",
    methods: Methods = None,
    folds: Folds = None,
    repeats: Repeats = None,
    seed: Seed = None,
    jobs: Jobs = -1,
    time_limit: TimeLimit = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Cross-validate models and baselines, and say which view is worth what.

    OUTPUT gets report.html, results.csv, predictions.csv, model.lokl and config.toml. After an
    interruption the same command goes on; `lokl compare OUTPUT/config.toml` asks the same again.

    Example: lokl compare blood.csv pulse.csv --on patient --target clinic.csv:ill -o run
    """
    given = (target, on, view, groups, kind, task, positive, na, delimiter)
    with explained():
        from lokl.study.outputs import check_ready
        from lokl.study.run import Comparison

        check_ready()
        settings, folder, _ = asked(data, *given)
        settings = settings.changed(
            methods=tuple(methods or ()), folds=folds, repeats=repeats, seed=seed
        )
        comparison = Comparison(settings, output or folder or Path("run"))
        finished = run_comparison(comparison, jobs, time_limit)
    if as_json:
        from lokl.study.outputs import as_dict

        typer.echo(json.dumps(as_dict(finished), indent=1))
        return

    show_results(finished)


def run_comparison(comparison: Any, jobs: int, time_limit: float | None) -> Any:
    """Do everything behind a progress bar, and say what is done on standard error."""
    from lokl.datasets.download import progress_bar
    from lokl.study.outputs import finish
    from lokl.study.run_folder import BusyError

    show_read(comparison.table)
    try:
        with comparison.open():
            show_plan(comparison)
            with progress_bar() as progress:
                task = progress.add_task("fitting", total=len(comparison.missing) + 1)
                comparison.run(jobs, lambda record: progress.advance(task), time_limit)
                return finish(comparison, lambda step: progress.update(task, description=step))
    except KeyboardInterrupt:
        stop(f"lokl: interrupted; {_kept(comparison)}", 130)
    except BusyError as reason:
        stop(f"lokl: {reason}", 2)
    except OSError as reason:
        why = f"cannot write to {comparison.folder}: {reason.strerror or reason}"
        stop(f"lokl: {why}; {_kept(comparison)}", 1)


def _kept(comparison: Any) -> str:
    done, cells = len(comparison.records), len(comparison.cells)
    kept = f"{done} of {cells} fits are in {comparison.folder}"
    return (
        f"{kept}, and the same command resumes from them" if done else f"no fit is done of {cells}"
    )
