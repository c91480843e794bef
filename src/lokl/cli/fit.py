"""``lokl fit``: fit one model to tables, and write it to a file."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

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
    one_line_errors,
    print_notes,
    read_settings,
)
from lokl.cli.terminal import stop

MethodName = Annotated[
    str | None,
    typer.Option("--method", help="Method such as LMKL; AutoMKL chooses everything if not given."),
]
Cost = Annotated[
    float | None,
    typer.Option("--cost", "-C", help="C of a --method; 1 if not given."),
]
Output = Annotated[Path, typer.Option("--output", "-o", help="File for the model.")]


def fit(
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
    method: MethodName = None,
    cost: Cost = None,
    seed: Seed = None,
    jobs: Jobs = -1,
    time_limit: TimeLimit = None,
    output: Output = Path("model.lokl"),
    as_json: AsJson = False,
) -> None:
    """Fit a model to tables and write it to a file.

    Numbers are scaled, words encoded and gaps filled inside the model, so that `lokl predict`
    takes tables as they are. What lokl read and inferred goes to standard error. A config.toml of
    `lokl compare` instead of tables fits the model that was chosen there.

    Example: lokl fit blood.csv pulse.csv --on patient --target clinic.csv:ill -o ill.lokl
    """
    if cost is not None and method is None:
        stop("lokl: --cost needs --method; name a method, or leave out --cost", 2)
    given = (target, on, view, groups, kind, task, positive, na, delimiter)
    with one_line_errors():
        from lokl._files import check_writable
        from lokl.persistence import info, save

        check_writable(output)
        settings, _, chosen = read_settings(data, *given)
        settings = settings.updated(seed=seed)
        table = settings.read()
        print_notes(table.notes)
        if chosen is not None and method is None and jobs != -1:
            print_notes(
                (f"{chosen} is fitted in one thread, as in the comparison: --jobs has no effect",)
            )
        # -1 is the default of the model, which is not stored.
        n_jobs = None if jobs == -1 else jobs
        save(_fit(table, settings, method, cost, chosen, time_limit, n_jobs), output)
        typer.echo(json.dumps(info(output), indent=1) if as_json else str(output))


def _fit(
    table: Any,
    settings: Any,
    method: str | None,
    cost: float | None,
    chosen: str | None,
    limit: Any,
    n_jobs: int | None,
) -> Any:
    if method is None and chosen is not None:
        from lokl.study.candidates import fit_candidate

        return fit_candidate(table, chosen, settings.seed, limit)
    from lokl.tables.learning import learn

    cost = 1.0 if cost is None else cost
    return learn(table, method, C=cost, seed=settings.seed, time_limit=limit, n_jobs=n_jobs)
