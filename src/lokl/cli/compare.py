"""``lokl compare`` cross-validates models on tables; ``lokl demo`` does so on generated tables."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import Progress, ProgressColumn
from rich.progress_bar import ProgressBar
from rich.table import Table

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
from lokl.cli.results import show_results
from lokl.cli.terminal import print_notes, print_wrapped, terminal_width

# Characters of the progress bar, and numbers of a unit of time below which it is used.
_BAR = 36
# Characters around the bar and the text of the progress.
_GAPS = 4
_MOST = {"s": 100.0, "min": 100.0, "h": float("inf")}


@takes(
    **TABLES,
    test=option(
        list[str],
        "File of a test cohort, with the columns of a view; repeat the option for each view. The "
        "target is in one of them, or in the FILE of --target.",
    ),
    methods=option(
        list[str],
        "Candidates, separated by commas: AutoMKL, trusted vote, uniform mix, LMKL, ..., views, "
        "forest, ..., baselines. All but further methods if not given.",
    ),
    folds=option(int, "Folds of the cross-validation; 5 if not given."),
    repeats=option(int, "Repeats of the cross-validation; 2 if not given."),
    leave_one_group_out=option(
        str, "Column, or FILE:COLUMN, such as the site: each of its values is held out in turn."
    ),
    score=option(
        str,
        "Score by which models are compared and chosen: accuracy (the default), balanced accuracy, "
        "AUROC, average precision, log loss, Brier score, F1, MCC; R squared, MAE, RMSE, Spearman; "
        "or a scorer of scikit-learn.",
    ),
    goal=option(
        str,
        "Which of the models that are about as good as the best is chosen: explain (the one that "
        "says most about the views; the default), accuracy (the best) or simple.",
    ),
    permutations=option(
        int,
        "Permutations of the target for a p-value of the chosen model; none if not given.",
        min=0,
    ),
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
        show_results(outputs)


@takes(
    seed=option(int, "Seed of data and splits.", default=0, min=0),
    jobs=JOBS,
    output=output_path("Folder for tables and reports.", "lokl_demo"),
    as_json=AS_JSON,
)
def demo(seed: int, jobs: int, output: Path, as_json: bool) -> None:
    """Compare models on example tables, and find tables that were exchanged.

    Writes tables to OUTPUT, compares models on them as `lokl compare` does, and predicts new
    samples of which some have a table of another one: how many are among the least trusted?

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
    """Run one comparison, show it, and look for exchanged tables among new samples.

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
    from lokl.persistence import load
    from lokl.study import Comparison
    from lokl.study.candidates import VOTE, fit_candidate

    if not quiet:
        print_wrapped(example.title)
        print_wrapped(example.command)
        typer.echo()
    outputs = _run_comparison(Comparison(example.settings, example.folder), jobs, None)
    is_vote = outputs.results.chosen.name == VOTE
    if is_vote:
        model = load(outputs.files["model.lokl"])
    else:
        # Another model may be better on clean tables, but has no trust.
        model = fit_candidate(outputs.results.table, VOTE, example.settings.seed)
    explanation = example.explained(model)
    exchange = example.exchange(explanation)
    if quiet:
        return {**outputs.to_dict(), "exchanged tables": vars(exchange)}
    show_results(outputs)
    typer.echo()
    print_wrapped(example.new_title)
    if is_vote:
        print_wrapped(example.new_command)
    typer.echo()
    for line in str(explanation.sample(exchange.sample)).splitlines():
        typer.echo(f" {line}")
    table = example.exchanged[exchange.sample]
    print_wrapped(f"The table {table} of {exchange.sample} belongs to another sample.")
    typer.echo()
    print_wrapped(f"{exchange}.", "bold")
    typer.echo()
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
    print_notes(comparison.table.describe())
    with resumable(comparison, f"of {len(comparison.cells)} fits"), comparison.open():
        clock = comparison.clock(jobs)
        print_notes([("plan", _plan(comparison, clock))])
        with Progress(
            _ClockColumn(clock),
            console=Console(stderr=True),
            transient=True,
            disable=not Console(stderr=True).is_terminal,
        ) as progress:
            task = progress.add_task("", total=None)
            comparison.run(jobs, clock.finished, time_limit)
            return comparison.finish(lambda step: progress.update(task, description=step))


class _ClockColumn(ProgressColumn):
    """A bar, the current candidate, the share that is done, and the time that is left.

    Parameters
    ----------
    clock : RunClock
    """

    def __init__(self, clock: Any):
        super().__init__()
        self._clock = clock

    def render(self, task: Any) -> Table:
        """Return the line."""
        share, left = self._clock.share, timedelta(seconds=round(self._clock.left))
        shown = str(left).removeprefix("0:")
        line = Table.grid(padding=(0, 1))
        step = self._clock.current or task.description
        text = " · ".join(part for part in (step, f"{100 * share:.0f} %", f"{shown} left") if part)
        # One line: a long step takes its room from the bar.
        room = max(terminal_width() - len(text) - _GAPS, 1)
        line.add_row("", ProgressBar(total=1.0, completed=share, width=min(_BAR, room)), text)
        return line


def _plan(comparison: Any, clock: Any) -> str:
    """Return how many fits there are, how many are finished already, and how long they take.

    Parameters
    ----------
    comparison : Comparison
    clock : RunClock
    """
    settings, missing, cells = comparison.settings, len(comparison.missing), len(comparison.cells)
    repeats = f"{settings.repeats} repeats" if settings.repeats > 1 else "1 repeat"
    folds = f"{settings.folds} folds x {repeats}"
    if settings.leave_one_group_out:
        name, count = comparison.table.groups.name, len(comparison.experiment.splits)
        folds = f"each of {count} values of {name} held out"
    n_candidates = len(comparison.experiment.candidates)
    text = f"{folds}, {n_candidates} candidate{'s' * (n_candidates > 1)}"
    if comparison.experiment.cohort is not None:
        text += f", {len(comparison.experiment.cohort.ids)} samples of a test cohort"
    if settings.permutations:
        text += f", {settings.permutations} permutations"
    if missing < cells:
        text += f"; {cells - missing} of {cells} fits are in {comparison.folder} already"
    return f"{text}, about {_duration(clock.left)}"


def _duration(seconds: float) -> str:
    """Return an estimated duration with one or two digits."""
    for unit, size in (("s", 1.0), ("min", 60.0), ("h", 3600.0)):
        value = seconds / size
        if value < _MOST[unit]:
            break
    step = 10 ** max(len(f"{value:.0f}") - 1, 0)
    return f"{max(round(value / step), 1) * step} {unit}"
