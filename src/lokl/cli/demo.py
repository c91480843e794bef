"""``lokl demo``: single kernels against their combination, on data that is always there."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn import datasets
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl.comparison import Score, compare

_LOADERS = {
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "wine": datasets.load_wine,
    "iris": datasets.load_iris,
}


def demo(
    data: Annotated[
        list[str] | None,
        typer.Option(help=f"Data set, again for more: {', '.join(_LOADERS)}.", show_default=False),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Random 75/25 splits.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Decides all splits.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print records, not tables.")] = False,
) -> None:
    """Fit single kernels and their uniform mix, and compare accuracy, time and support."""
    names = data or list(_LOADERS)[:3]
    unknown = [name for name in names if name not in _LOADERS]
    if unknown:
        typer.echo(f"unknown data set {unknown[0]!r}; choose {', '.join(_LOADERS)}", err=True)
        raise typer.Exit(2)
    console = Console()
    records = []
    for name in names:
        scores = _compare(name, repeats, seed)
        records += [{"data": name, **asdict(score)} for score in scores]
        if not as_json:
            console.print(_table(name, scores, repeats))
    if as_json:
        typer.echo(json.dumps(records, indent=2))


def _models() -> dict[str, Any]:
    from lokl import UniformMKLClassifier
    from lokl.kernels import RBF, Linear, Polynomial

    kernels = {
        "linear": Linear().normalized("mean_diag"),
        "quadratic": Polynomial(2).normalized("mean_diag"),
        "rbf": RBF("scale"),
    }
    models = {name: UniformMKLClassifier({name: kernel}) for name, kernel in kernels.items()}
    models["uniform mix"] = UniformMKLClassifier(kernels)
    return {name: make_pipeline(StandardScaler(), model) for name, model in models.items()}


def _compare(name: str, repeats: int, seed: int) -> list[Score]:
    loaded = _LOADERS[name]()
    models = _models()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    scores = []
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"fitting {name}", total=len(models))
        for score in compare(models, loaded.data, loaded.target, repeats=repeats, seed=seed):
            scores.append(score)
            progress.advance(task)
    return scores


def _table(name: str, scores: list[Score], repeats: int) -> Table:
    loaded = _LOADERS[name]()
    n, d = loaded.data.shape
    table = Table(
        title=f"{name}: {n} samples, {d} features, {len(loaded.target_names)} classes",
        caption=f"mean and standard deviation over {repeats} random 75/25 splits",
    )
    table.add_column("kernel")
    table.add_column("accuracy %", justify="right")
    table.add_column("fit ms", justify="right")
    table.add_column("support %", justify="right")
    best = max(score.accuracy for score in scores)
    for score in scores:
        accuracy = f"{100 * score.accuracy:.1f} ± {100 * score.spread:.1f}"
        table.add_row(
            score.model,
            f"[bold]{accuracy}[/bold]" if score.accuracy == best else accuracy,
            f"{1000 * score.fit_seconds:.1f}",
            f"{100 * score.support:.0f}",
        )
    return table
