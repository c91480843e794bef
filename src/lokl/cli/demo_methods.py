"""``lokl demo --methods``: single kernels, their mix and all methods, on sets of scikit-learn."""

import json
import tempfile
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from lokl._methods import METHODS
from lokl.cli.terminal import stop

SETS = ("breast_cancer", "digits", "wine", "iris")


def demo_methods(
    data: list[str], repeats: int, seed: int, as_json: bool, figure: Path, draw: bool
) -> None:
    """Compare single kernels with all methods that combine them."""
    for name in data:
        if name not in SETS:
            stop(f"unknown data set {name!r}; choose {', '.join(SETS)}", 2)
    draw = draw and not as_json and _can_draw(figure)
    records = []
    for name in data:
        title, scores = _compare(name, repeats, seed)
        records += [{"data": name, **asdict(score)} for score in scores]
        if not as_json:
            Console().print(_table(title, scores, repeats))
    if as_json:
        typer.echo(json.dumps(records, indent=2))
    if draw:
        _draw(figure, seed)


def _models() -> dict[str, Any]:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import lokl
    from lokl.kernels import standard

    kernels = dict(zip(("linear", "quadratic", "rbf"), standard(), strict=True))
    models = {name: lokl.UniformMKLClassifier({name: kernel}) for name, kernel in kernels.items()}
    # The first of METHODS, by a name that says what it does.
    models["uniform mix"] = lokl.UniformMKLClassifier(kernels)
    for method in METHODS[1:]:
        models[method.name] = getattr(lokl, method.classifier)(kernels, random_state=0)
    return {name: make_pipeline(StandardScaler(), model) for name, model in models.items()}


def _compare(name: str, repeats: int, seed: int) -> tuple[str, list[Any]]:
    """Return a line about a data set, and the scores of all models on it."""
    from lokl.datasets import load
    from lokl.datasets.download import progress_bar
    from lokl.study import compare

    bunch, models, scores = load(name), _models(), []
    with warnings.catch_warnings(), progress_bar() as progress:
        # The table itself shows which methods are no better than the uniform mix.
        warnings.filterwarnings("ignore", message="the class label explains")
        task = progress.add_task(f"fitting {name}", total=len(models))
        for score in compare(models, bunch.data, bunch.target, repeats=repeats, seed=seed):
            scores.append(score)
            progress.advance(task)
    n, d = bunch.data.shape
    return f"{name}: {n} samples, {d} features, {len(bunch.target_names)} classes", scores


def _table(title: str, scores: list[Any], repeats: int) -> Table:
    splits = "split" if repeats == 1 else "splits"
    caption = (
        f"mean (standard deviation) over {repeats} random 75/25 {splits}; median time of a fit, "
        "with the cross-validation that looks into a gate that repeats the labels"
    )
    table = Table(title=title, caption=caption)
    table.add_column("kernel or method")
    for column in ("accuracy %", "fit ms", "support %"):
        table.add_column(column, justify="right")
    best = max(score.accuracy for score in scores)
    for score in scores:
        accuracy = f"{100 * score.accuracy:.1f} ({100 * score.spread:.1f})"
        if score.accuracy == best:
            accuracy = f"[bold]{accuracy}[/bold]"
        fit, support = f"{1000 * score.fit_seconds:.1f}", f"{100 * score.support:.0f}"
        table.add_row(score.model, accuracy, fit, support)
    return table


def _can_draw(path: Path) -> bool:
    """Look for what keeps a figure from being written, before minutes of work on it."""
    from lokl.explain.displays import pyplot

    try:
        pyplot()
    except ImportError as reason:
        typer.echo(f"no figure: {reason}")
        return False
    from matplotlib.backend_bases import FigureCanvasBase

    formats = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.removeprefix(".").lower() not in formats:
        what = f"format {path.suffix!r}" if path.suffix else "format without an ending"
        stop(f"cannot write {path}: no {what}; choose among {', '.join(formats)}", 2)
    try:
        # An existing file stays as it is until the figure is there.
        with path.open("r+b") if path.exists() else tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as reason:
        _cannot_write(path, reason)
    return True


def _cannot_write(path: Path, reason: OSError) -> NoReturn:
    why = f"cannot write {path}: {reason.strerror or reason}"
    stop(f"{why}; name another file with --figure, or give --no-figure", 2)


def _draw(path: Path, seed: int) -> None:
    """Draw two regions that need different kernels, and which kernel models trust in each."""
    from lokl import LDMKLClassifier, LMKLClassifier, UniformMKLClassifier
    from lokl.datasets import make_two_regions
    from lokl.explain import plot_regions
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
        plot_regions(fitted, X, y).savefig(path, dpi=120)
    except OSError as reason:
        _cannot_write(path, reason)
    typer.echo(f"two regions, and which kernel rules where: {path}")
