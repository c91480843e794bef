"""``lokl fit``: fit one model to tables, and write it to a file."""

from pathlib import Path
from typing import Any

import typer

from lokl.cli.options import (
    AS_JSON,
    FITTING,
    TABLES,
    one_line_errors,
    option,
    output_path,
    print_notes,
    read_settings,
    takes,
    to_json,
)
from lokl.cli.terminal import stop


@takes(
    **TABLES,
    method=option(str, "Method such as LMKL; AutoMKL chooses everything if not given."),
    cost=option(float, "C of a --method; 1 if not given.", "--cost", "-C"),
    **FITTING,
    output=output_path("File for the model.", "model.lokl"),
    as_json=AS_JSON,
)
def fit(
    *,
    method: str | None,
    cost: float | None,
    jobs: int,
    time_limit: float | None,
    output: Path,
    as_json: bool,
    **given: Any,
) -> None:
    """Fit a model to tables and write it to a file.

    Numbers are scaled, words encoded and gaps filled inside the model, so that `lokl predict`
    takes tables as they are. What lokl read and inferred goes to standard error. A config.toml of
    `lokl compare` instead of tables fits the model that was chosen there.

    Example: lokl fit blood.csv pulse.csv --on patient --target clinic.csv:ill -o ill.lokl
    """
    if cost is not None and method is None:
        stop("--cost needs --method; name a method, or leave out --cost", 2)
    with one_line_errors():
        from lokl._files import check_writable
        from lokl.persistence import info, save

        check_writable(output)
        settings, _, chosen = read_settings(**given)
        table = settings.read()
        print_notes(table.notes)
        if chosen is not None and method is None:
            from lokl.study.candidates import fit_candidate

            if jobs != -1:
                note = f"{chosen} is fitted in one thread, as in the comparison"
                print_notes([f"{note}: --jobs has no effect"])
            model = fit_candidate(table, chosen, settings.seed, time_limit)
        else:
            from lokl.tables.learning import learn

            # -1 is the default of the model, which is not stored.
            n_jobs, cost = None if jobs == -1 else jobs, 1.0 if cost is None else cost
            options: Any = {"time_limit": time_limit, "n_jobs": n_jobs}
            model = learn(table, method, C=cost, seed=settings.seed, **options)
        save(model, output)
        typer.echo(to_json(info(output)) if as_json else str(output))
