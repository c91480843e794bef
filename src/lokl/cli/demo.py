"""``lokl demo``: single kernels, their mix and all methods, on data that is always there."""

import json
from dataclasses import asdict
from pathlib import Path
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

_METHODS = {
    "LpMKL": "l_p-norm MKL",
    "SimpleMKL": "SimpleMKL",
    "GMKL": "SPG-GMKL",
    "EasyMKL": "EasyMKL",
    "MWUMKL": "MWUMKL",
    "LMKL": "LMKL",
    "CLMKL": "C-LMKL",
    "SwMKL": "SwMKL",
    "SAMKL": "SAMKL",
    "LDMKL": "LD-MKL",
    "GSMKL": "GS-MKL",
    "PCKLMKL": "PCK-LMKL",
}


def demo(
    data: Annotated[
        list[str] | None,
        typer.Option(help=f"Data set, again for more: {', '.join(_LOADERS)}.", show_default=False),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Random 75/25 splits.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Decides all splits.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print records, not tables.")] = False,
    figure: Annotated[
        Path, typer.Option(help="Where to draw which kernel rules where; needs matplotlib.")
    ] = Path("lokl_demo.png"),
    draw: Annotated[bool, typer.Option("--figure-too/--no-figure", help="Draw it.")] = True,
) -> None:
    """Compare single kernels, their uniform mix and the localized methods.

    Example: lokl demo --data wine --repeats 10
    """
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
    elif draw:
        _draw(figure, seed, console)


def _models() -> dict[str, Any]:
    import lokl
    from lokl import UniformMKLClassifier
    from lokl.kernels import RBF, Linear, Polynomial

    kernels = {
        "linear": Linear().normalized("mean_diag"),
        "quadratic": Polynomial(2).normalized("mean_diag"),
        "rbf": RBF("scale"),
    }
    models = {name: UniformMKLClassifier({name: kernel}) for name, kernel in kernels.items()}
    models["uniform mix"] = UniformMKLClassifier(kernels)
    for name, label in _METHODS.items():
        models[label] = getattr(lokl, f"{name}Classifier")(kernels, random_state=0)
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
    table.add_column("kernel or method")
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


def _draw(path: Path, seed: int, console: Console) -> None:
    """Two regions that need different kernels: the uniform mix, and methods that know where."""
    from lokl import LDMKLClassifier, LMKLClassifier, UniformMKLClassifier
    from lokl.datasets import make_two_regions
    from lokl.inspection import plot_regions
    from lokl.kernels import RBF, Polynomial

    X, y = make_two_regions(random_state=seed)
    kernels = {"quadratic": Polynomial(2), "Gaussian": RBF(0.5)}
    settings: dict[str, Any] = {"C": 10.0, "random_state": seed}
    models = {
        "uniform mix": UniformMKLClassifier(kernels, **settings),
        "LD-MKL": LDMKLClassifier(kernels, temperature=0.1, **settings),
        "LMKL": LMKLClassifier(kernels, **settings),
    }
    fitted = {name: model.fit(X, y) for name, model in models.items()}
    try:
        figure = plot_regions(fitted, X, y)
    except ImportError as reason:
        console.print(f"no figure: {reason}", markup=False)
        return
    try:
        figure.savefig(path, dpi=120)
    except OSError as reason:
        typer.echo(f"cannot write {path}: {reason.strerror or reason}", err=True)
        raise typer.Exit(2) from None
    console.print(f"two regions, and which kernel rules where: {path}")
