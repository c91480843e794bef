"""``lokl compare``: which model, which view, and how sure that is."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lokl.cli.given import (
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
        from lokl.comparison.finish import check_ready
        from lokl.comparison.run import Comparison

        check_ready()
        settings, folder, _ = asked(data, *given)
        settings = settings.changed(
            methods=tuple(methods or ()), folds=folds, repeats=repeats, seed=seed
        )
        comparison = Comparison(settings, output or folder or Path("run"))
        finished = run_comparison(comparison, jobs, time_limit)
    if as_json:
        from lokl.comparison.summary import as_dict

        typer.echo(json.dumps(as_dict(finished), indent=1))
        return
    from lokl.cli.compared import show_results

    show_results(finished)


def run_comparison(comparison: Any, jobs: int, time_limit: float | None) -> Any:
    """Do everything behind a progress bar, and say what is done on standard error."""
    from lokl._lock import BusyError
    from lokl.cli.compared import show_plan, show_read
    from lokl.comparison.finish import finish
    from lokl.datasets.progress import progress_bar

    show_read(comparison.table)
    try:
        with comparison.at_work():
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
        f"{kept}, and the same command goes on from them" if done else f"no fit is done of {cells}"
    )
