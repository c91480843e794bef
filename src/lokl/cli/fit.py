"""``lokl fit``: one model from tables, written to a file."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lokl.cli.given import AsJson, Data, Delimiter, Na, On, explained, pairs, tell

Target = Annotated[
    str | None,
    typer.Option(help="Column to predict, or FILE:COLUMN. LIBSVM text and .npz bring their own."),
]
Groups = Annotated[
    str | None,
    typer.Option(help="Column, or FILE:COLUMN, of groups that stay together when data is divided."),
]
View = Annotated[
    list[str] | None,
    typer.Option(help="View of one file, NAME=PATTERN[,PATTERN]; give it again for each view."),
]
Kind = Annotated[
    list[str] | None,
    typer.Option(help="COLUMN=numeric or COLUMN=categorical, where the guess is wrong."),
]
Task = Annotated[
    str | None, typer.Option(help="classes or numbers: what the target holds; guessed if not told.")
]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--method", help="Such as LMKL. Trusted vote for several views, UNIFORM for one otherwise."
    ),
]
Cost = Annotated[float, typer.Option("--cost", "-C", help="Cost of errors beyond the margin.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides every random choice.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="File for the model.")]


def fit(
    data: Data,
    target: Target = None,
    on: On = None,
    view: View = None,
    groups: Groups = None,
    kind: Kind = None,
    task: Task = None,
    na: Na = None,
    delimiter: Delimiter = "",
    method: MethodName = None,
    cost: Cost = 1.0,
    seed: Seed = 0,
    output: Output = Path("model.lokl"),
    as_json: AsJson = False,
) -> None:
    """Learn a model from tables and write it to a file.

    Numbers are scaled, words encoded and gaps filled inside the model, so that `lokl predict`
    takes tables as they are. What was read and guessed is told on standard error.

    Example: lokl fit blood.csv pulse.csv --on patient --target clinic.csv:ill -o ill.lokl
    """
    with explained():
        from lokl._writing import check_writable
        from lokl.files import info, save
        from lokl.tables import read_table
        from lokl.tables.learning import learn

        check_writable(output)
        table = read_table(
            data,
            on=on,
            target=target,
            groups=groups,
            views=pairs(view, "--view"),
            kinds=pairs(kind, "--kind"),
            task=task,
            na=na or (),
            delimiter=delimiter,
        )
        tell(table.notes)
        save(learn(table, method, C=cost, seed=seed), output)
        typer.echo(json.dumps(info(output), indent=1) if as_json else str(output))
