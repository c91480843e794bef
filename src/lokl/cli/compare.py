"""``lokl compare`` cross-validates models on tables; ``lokl demo`` does so on generated tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from lokl._text import shortened
from lokl.cli.options import (
    AS_JSON,
    FITTING,
    JOBS,
    TABLES,
    flag,
    one_line_errors,
    option,
    output_path,
    print_json,
    read_settings,
    resumable,
    takes,
)
from lokl.cli.terminal import WIDTH, print_notes, wrapped

# Characters of names of candidates and views, and of the line on which scores are drawn.
_CANDIDATE, _VIEW, _LINE = 22, 30, 14
# Samples that are listed.
_LISTED = 4


@takes(
    **TABLES,
    methods=option(
        list[str],
        "Candidates, separated by commas: AutoMKL, trusted vote, uniform mix, LMKL, ..., views, "
        "forest, ..., baselines. All but further methods if not given.",
    ),
    folds=option(int, "Folds of the cross-validation; 5 if not given."),
    repeats=option(int, "Repeats of the cross-validation; 2 if not given."),
    **FITTING,
    output=output_path("Folder for all files; `run`, or that of config.toml, if not given."),
    overwrite=flag("--overwrite", "Replace a comparison with other settings in OUTPUT."),
    as_json=AS_JSON,
)
def compare(
    *,
    jobs: int,
    time_limit: float | None,
    output: Path | None,
    overwrite: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Cross-validate models and baselines, and show the value of each view.

    OUTPUT gets report.html, results.csv, predictions.csv, model.lokl and config.toml. After an
    interruption the same command resumes; `lokl compare OUTPUT/config.toml` runs it again.

    Example: lokl compare blood.csv pulse.csv --on patient --target clinic.csv:ill -o run
    """
    with one_line_errors():
        from lokl.study import Comparison

        settings, folder, _ = read_settings(**given)
        comparison = Comparison(settings, output or folder or Path("run"), overwrite=overwrite)
        outputs = _run_comparison(comparison, jobs, time_limit)
    if as_json:
        print_json(outputs.to_dict())
    else:
        _show_results(outputs)


@takes(
    seed=option(int, "Seed of data and splits.", default=0, min=0),
    jobs=JOBS,
    output=output_path("Folder for tables and reports.", "lokl_demo"),
    as_json=AS_JSON,
)
def demo(seed: int, jobs: int, output: Path, as_json: bool) -> None:
    """Compare models on tables with wrong or missing parts, and explain one sample.

    Writes the tables to OUTPUT and compares a trusted vote with a uniform mix, single views and a
    random forest, as `lokl compare` does. Each comparison ends with a report.

    Example: lokl demo -o lokl_demo
    """
    with one_line_errors():
        from lokl.study.demo import demo_tables

        summaries = [
            _run_example(example, jobs, quiet=as_json) for example in demo_tables(output, seed)
        ]
    if as_json:
        print_json(summaries)


def _run_example(example: Any, jobs: int, *, quiet: bool) -> Any:
    """Run one comparison, show it and explain one of its samples.

    Parameters
    ----------
    example : lokl.study.demo.Example
    jobs : int
    quiet : bool
        Whether to return the results, for JSON, instead of showing them.

    Returns
    -------
    values : dict or None
        Plain values of the results if `quiet`.
    """
    from lokl.cli.models import explain_sample
    from lokl.study import Comparison
    from lokl.study.candidates import VOTE, fit_candidate

    if not quiet:
        for text in (example.title, example.command):
            typer.echo("\n".join(wrapped(text)))
        typer.echo()
    outputs = _run_comparison(Comparison(example.settings, example.folder), jobs, None)
    if quiet:
        return outputs.to_dict()
    _show_results(outputs)
    table = outputs.results.table
    sample = (outputs.results.disagreeing() or table.ids)[0]
    typer.echo(f"\n one sample, explained by the {VOTE}")
    model = fit_candidate(table, VOTE, example.settings.seed)
    for line in str(explain_sample(model, table, sample)).splitlines():
        typer.echo(f" {line}")
    typer.echo(f"\n report: {outputs.files['report.html']}\n")
    return None


def _run_comparison(comparison: Any, jobs: int, time_limit: float | None) -> Any:
    """Run a comparison behind a progress bar, and describe it on standard error.

    Parameters
    ----------
    comparison : Comparison
    jobs : int
        Number of processes, -1 for all cores.
    time_limit : float or None
        Seconds after which no fit is started.

    Returns
    -------
    outputs : StudyOutputs
    """
    from lokl.datasets.loader import progress_bar

    print_notes(comparison.table.notes)
    with resumable(comparison, f"of {len(comparison.cells)} fits"), comparison.open():
        print_notes([_plan(comparison)])
        with progress_bar() as progress:
            task = progress.add_task("fitting", total=len(comparison.missing) + 1)
            comparison.run(jobs, lambda record: progress.advance(task), time_limit)
            return comparison.finish(lambda step: progress.update(task, description=step))


def _plan(comparison: Any) -> str:
    """Return how many fits there are, and how many are finished already.

    Parameters
    ----------
    comparison : Comparison
    """
    settings, missing, cells = comparison.settings, len(comparison.missing), len(comparison.cells)
    repeats = f"{settings.repeats} repeats" if settings.repeats > 1 else "1 repeat"
    text = f"{settings.folds} folds x {repeats}, {len(comparison.experiment.candidates)} candidates"
    if missing < cells:
        text += f"; {cells - missing} of {cells} fits are in {comparison.folder} already"
    return f"{len(comparison.table.ids)} samples, {text}"


def _show_results(outputs: Any) -> None:
    """Print tables, samples, findings and paths.

    Parameters
    ----------
    outputs : StudyOutputs
    """
    console = Console(highlight=False, soft_wrap=True)
    results = outputs.results
    for line in (*_leaderboard(results), Text(), *_view_table(results)):
        console.print(line)
    texts = [(_disagreement(outputs), "")]
    texts += [(f"! {finding.code} {finding.text}", "yellow") for finding in outputs.findings]
    lines = [(part, style) for text, style in texts for part in wrapped(text)]
    paths = wrapped("   ".join(map(str, outputs.files.values())))
    for part, style in (*lines, ("", ""), *((path, "cyan") for path in paths)):
        console.print(Text(part, style))


def _leaderboard(results: Any) -> Iterator[Text]:
    """Yield a line for each candidate: score, interval as text and drawn, and seconds.

    Parameters
    ----------
    results : Results
        A candidate that failed is shown with the reason.
    """
    from lokl.study.candidates import CONSTANT_BASELINES

    fitted = [row for row in results.leaderboard if not row.failed]
    texts = {}
    for row in fitted:
        mean, low, high = map(results.target.format_score, row.score)
        texts[row.name] = f"{mean:>6} ({low} - {high})"
    wide = max(map(len, texts.values()))
    head = f" {results.target.score_name}{results.target.unit}, held out (95 % interval)"
    yield Text(f"{head:<{_CANDIDATE + wide + _LINE + 6}}seconds", "bold")
    # The line would be too short for the other candidates if it began at a constant prediction.
    shown = [row.score for row in fitted if row.name not in CONSTANT_BASELINES]
    ends = shown or [row.score for row in fitted]
    limits = min(low for _, low, _ in ends), max(high for _, _, high in ends)
    for row in results.leaderboard:
        name = f" {shortened(row.name, _CANDIDATE):<{_CANDIDATE}}"
        if row.failed:
            yield Text(shortened(f"{name} {row.note}", WIDTH), "dim")
            continue
        mark = " ← chosen" if row.chosen else ""
        seconds = f"{row.seconds:.2g}" if row.seconds < 9.95 else f"{row.seconds:.0f}"
        drawn = _interval_line(row.score, limits)
        line = f"{name} {texts[row.name]:<{wide}} {drawn} {seconds:>7}{mark}"
        yield Text(line, "bold green" if row.chosen else "" if row.role == "ours" else "dim")


def _interval_line(interval: tuple[float, float, float], limits: tuple[float, float]) -> str:
    """Draw a score and its interval between common limits.

    Parameters
    ----------
    interval : (float, float, float)
        Mean, low and high end.
    limits : (float, float)
        Scores at the two ends of the line.
    """
    low, high = limits
    step = (high - low) / (_LINE - 1) or 1.0
    middle, first, last = (
        min(max(round((value - low) / step), 0), _LINE - 1) for value in interval
    )
    signs = ["─" if first <= position <= last else " " for position in range(_LINE)]
    signs[middle] = "●"
    return "".join(signs)


def _view_table(results: Any) -> Iterator[Text]:
    """Yield a line for each of several views: its score alone, its loss, and who trusts it.

    Parameters
    ----------
    results : Results
        A single view has no lines.
    """
    if len(results.table.views) < 2:
        return
    head = f" {'value of each view':<{_VIEW}}   alone   loss when removed   trusted where"
    yield Text(head, "bold")
    trusted = results.trusted_where()
    for scores in sorted(results.view_scores, key=lambda own: -(own.alone or (0.0,))[0]):
        alone = "" if scores.alone is None else results.target.format_score(scores.alone[0])
        loss = "" if scores.loss is None else results.target.format_score(scores.loss[0], "+")
        name = f" {shortened(scores.name, _VIEW):<{_VIEW}}"
        line = f"{name}{alone:>8}{loss:>20}   {trusted.get(scores.name, '')}"
        yield Text(shortened(line, WIDTH))
    yield Text()


def _disagreement(outputs: Any) -> str:
    """Return a sentence about samples whose views disagree, with the command to explain one.

    Parameters
    ----------
    outputs : StudyOutputs

    Returns
    -------
    sentence : str
        Empty without such samples.
    """
    names = outputs.results.disagreeing()
    if not names:
        return ""
    shown = ", ".join(names[:_LISTED]) + (" ..." if len(names) > _LISTED else "")
    samples = "1 sample" if len(names) == 1 else f"{len(names)} samples"
    command = f"lokl explain {outputs.files['model.lokl']} ... --sample {names[0]}"
    return f"{samples} with views that disagree: {shown}   ({command})"
