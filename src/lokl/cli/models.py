"""Commands about one model: ``lokl fit``, ``predict``, ``explain`` and ``info``."""

import shlex
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from lokl.cli.options import (
    AS_JSON,
    FITTING,
    MODEL_FILE,
    PREDICTION,
    TABLES,
    argument,
    flag,
    one_line_errors,
    option,
    output_path,
    print_json,
    read_settings,
    takes,
)
from lokl.cli.terminal import print_notes, stop, wrapped

# Similar samples that `explain` lists.
_NEIGHBOURS = 3
# Samples that `predict` explains at a time, which bounds its memory.
_BATCH = 10_000
# Columns of a view, and classes, that `info` shows.
_SHOWN = 6


@takes(
    **TABLES,
    method=option(str, "Method such as LMKL; AutoMKL chooses everything if not given."),
    cost=option(float, "C of a --method; 1 if not given.", "--cost", "-C"),
    **FITTING,
    sets=flag("--sets", "Also learn prediction sets for `lokl predict`, by five more fits."),
    output=output_path("File for the model.", "model.lokl"),
    as_json=AS_JSON,
)
def fit(
    *,
    method: str | None,
    cost: float | None,
    jobs: int,
    time_limit: float | None,
    sets: bool,
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
        from lokl.tables.learning import learn, method_named

        if method is not None:
            # Before any file is read.
            method_named(method)
        settings, _, chosen = read_settings(**given)
        # Models never learn from a test cohort.
        table, _ = settings.read_cohorts()
        check_writable(output)
        print_notes(table.describe())
        if chosen is not None and method is None:
            from lokl.study.candidates import fit_candidate

            if sets:
                stop("--sets needs tables, or a --method next to a config.toml", 2)
            if jobs != -1:
                note = f"{chosen} is fitted in one thread, as in the comparison"
                print_notes([("note", f"{note}: --jobs has no effect")])
            model = fit_candidate(table, chosen, settings.seed, time_limit)
        else:
            # -1 is the default of the model, which its file omits.
            n_jobs, cost = None if jobs == -1 else jobs, 1.0 if cost is None else cost
            options: Any = {"time_limit": time_limit, "n_jobs": n_jobs, "sets": sets}
            model = learn(table, method, C=cost, seed=settings.seed, **options)
        save(model, output)
        stored = info(output)
        print_notes(_chosen(stored))
        if as_json:
            print_json(stored)
        else:
            typer.echo(str(output))


def _chosen(stored: dict[str, Any]) -> list[tuple[str, str]]:
    """Return lines about the method of a model and its held-out score.

    Parameters
    ----------
    stored : dict
        Description of the file of the model.
    """
    lines = [("model", stored["method"])]
    held_out = stored["held_out"]
    if held_out is None:
        return [*lines, ("score", "not measured; `lokl compare` measures it")]
    name, value = held_out["score"], held_out["value"]
    shown = f"{100 * value:.0f} %" if "accuracy" in name else f"{value:.3g}"
    return [*lines, ("score", f"{name} {shown}, held out inside the search that chose the model")]


def _read_samples(model: Path, data: list[str], given: dict[str, Any]) -> tuple[Any, Any]:
    """Return a model from its file and a table of new samples.

    Parameters
    ----------
    model : Path
    data : list of str
        Files of new samples.
    given : dict
        Options of :func:`lokl.tables.table.read_new`.

    Returns
    -------
    fitted : fitted model
    table : Table
    """
    from lokl.persistence import load
    from lokl.tables.preparation import schema_of
    from lokl.tables.table import read_new

    fitted = load(model)
    table = read_new(data, schema_of(fitted), **given)
    print_notes(table.describe())
    return fitted, table


@takes(
    **PREDICTION,
    coverage=option(float, "Coverage of the prediction sets of `lokl fit --sets`, such as 0.9."),
    output=output_path("Copy of the .h5ad or .h5mu file in DATA, with the predictions."),
    as_json=AS_JSON,
)
def predict(
    model: Path,
    data: list[str],
    *,
    coverage: float | None,
    output: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Predict samples of tables, as CSV on standard output.

    With --output, predictions are written to a copy of a container instead: obs has predictions,
    probabilities and states, obsm has trust or weights, and contributions, of all views.

    Columns: id, prediction, probability of each class, prediction set or limits of the interval of
    a model with --sets and, for several views, trust (trusted vote) or weight of each view,
    disagreement and status. Columns of the tables are matched by name; views may be absent.

    Example: lokl predict ill.lokl new_blood.csv > predictions.csv
    """
    with one_line_errors():
        from lokl._text import csv_text

        if output is not None:
            _check_container(data, output, as_json)
        fitted, table = _read_samples(model, data, given)
        if coverage is not None:
            _check_coverage(coverage, fitted, model)
        if output is not None:
            _write_predictions(fitted, table, coverage, Path(data[0]), output)
            return
        columns = {"id": table.ids, **_predictions(fitted, table, coverage)}
    rows = list(zip(*columns.values(), strict=True))
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        typer.echo(csv_text(columns, rows), nl=False)


def _predictions(fitted: Any, table: Any, coverage: float | None) -> dict[str, list[Any]]:
    """Return columns of predictions by name; samples are predicted in batches.

    Parameters
    ----------
    fitted : fitted model
    table : Table
    coverage : float or None
        Of prediction sets.
    """
    import numpy as np

    from lokl._arrays import slices
    from lokl.explain import explain

    parts = []
    for rows in slices(len(table.ids), _BATCH):
        found = explain(fitted, table.frame.iloc[rows], ids=table.ids[rows], coverage=coverage)
        parts.append(found.table(details=False))
    columns: dict[str, list[Any]] = {}
    # Samples with one view have no disagreement; batches of such samples lack its column.
    for name in max(parts, key=len):
        columns[name] = []
        for part in parts:
            values = part.get(name, np.full(len(part["prediction"]), np.nan))
            columns[name] += values.tolist()
    return columns


def _check_container(data: list[str], output: Path, as_json: bool) -> None:
    """Exit unless predictions can be written to a copy of the only file."""
    from lokl._files import check_writable
    from lokl.datasets.readers import Container, split_sheet

    ending = output.suffix.lower()
    if not Container.has_ending(output):
        stop(f"--output {output}: write to a .h5ad or .h5mu file, or leave it out for CSV", 2)
    if as_json:
        stop("pass --output or --json, not both", 2)
    if len(data) != 1 or split_sheet(data[0])[0].suffix.lower() != ending:
        stop(f"--output {output} needs one {ending} file of samples, got {', '.join(data)}", 2)
    check_writable(output)


def _write_predictions(
    fitted: Any, table: Any, coverage: float | None, source: Path, output: Path
) -> None:
    """Write a copy of a container with the predictions of its samples.

    Parameters
    ----------
    fitted : fitted model
    table : Table
    coverage : float or None
        Of prediction sets.
    source, output : Path
        Files of the container and of the copy.
    """
    from lokl.datasets.readers import read_container, write_container
    from lokl.explain import explain

    container = read_container(source)
    found = explain(fitted, table.frame, ids=table.ids, coverage=coverage)
    with warnings.catch_warnings():
        # About future versions of the libraries.
        warnings.simplefilter("ignore")
        found.write_to(container)
    write_container(container, output)
    typer.echo(str(output))


def _check_coverage(coverage: float, fitted: Any, model: Path) -> None:
    """Exit if a coverage is impossible, or if the model has no prediction sets."""
    from lokl.base.model import model_layers
    from lokl.explain import PredictionSets

    if not 0 < coverage < 1:
        stop(f"--coverage must be between 0 and 1, got {coverage:g}; 0.9 is 90 %", 2)
    if not any(isinstance(layer, PredictionSets) for layer, _ in model_layers(fitted)):
        stop(f"{model} has no prediction sets; fit it with `lokl fit --sets`", 2)


@takes(
    **{
        **PREDICTION,
        "model": argument(Path, "File that `lokl fit` wrote, or folder of a comparison."),
        "data": argument(list[str], "Samples for a model: files as for fit.", required=False),
    },
    sample=option(str, "Id of the sample to explain in the terminal."),
    output=output_path("File for the report about all samples."),
    target=option(str, "Column with the true values, or FILE:COLUMN, for the report."),
    as_json=AS_JSON,
)
def explain(
    model: Path,
    data: list[str] | None,
    sample: str | None,
    output: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Explain predictions by views: predictions of each view, trust or weights, contributions.

    --sample explains one sample in the terminal, --output writes a report about all of them.
    Samples of a comparison are explained by models that have not learned from them.

    Examples: lokl explain run --sample P017

    lokl explain ill.lokl blood.csv pulse.csv --sample P017 -o report.html
    """
    _check_explained(model, data, sample, output)
    files, explanation = data or [], None
    with one_line_errors():
        from lokl._files import check_writable

        if model.is_dir() and sample is not None:
            explanation = explain_held_out(model, sample)
        else:
            if output is not None:
                check_writable(output)
            fitted, table = _read_samples(model, files, given)
            if sample is not None:
                explanation = explain_sample(fitted, table, sample)
            if output is not None:
                from lokl.report import write
                from lokl.study.comparison import model_report

                again = shlex.join(["lokl", "explain", str(model), *files, "-o", str(output)])
                write(model_report(fitted, table, model.name, again), output)
    if explanation is not None and as_json:
        print_json(explanation.to_dict())
    elif explanation is not None:
        typer.echo(str(explanation))
    if output is not None and not as_json:
        typer.echo(str(output))


def _check_explained(
    model: Path, data: list[str] | None, sample: str | None, output: Path | None
) -> None:
    """Exit if there is nothing to explain, or if the arguments contradict each other.

    Parameters
    ----------
    model : Path
        File, or folder of a comparison.
    data : list of str or None
    sample : str or None
    output : Path or None
    """
    if model.is_dir():
        if data:
            stop(
                f"{model} is a comparison, which has its own samples; leave out the files, or "
                f"explain them with {model / 'model.lokl'}",
                2,
            )
        if output is not None:
            stop(f"{model / 'report.html'} is the report of {model}; leave out --output", 2)
        if sample is None:
            stop(f"nothing to do; pass --sample ID for a sample of {model}", 2)
    elif sample is None and output is None:
        stop("nothing to do; pass --sample ID, --output report.html, or both", 2)
    elif not data and model.exists():
        stop(f"no samples; name the files of the samples to explain after {model}", 2)


def explain_held_out(folder: Path, name: str) -> Any:
    """Return the explanation of a sample of a comparison by a model that has not learned from it.

    Parameters
    ----------
    folder : Path
        Folder of the comparison.
    name : str
        Id of the sample.

    Returns
    -------
    explanation : SampleExplanation
    """
    from lokl.persistence import load
    from lokl.study.comparison import MODEL, read_results
    from lokl.tables import TableError

    results = read_results(folder)
    explanation = results.held_out()
    if explanation is None:
        raise TableError(
            f"{folder} has no predictions of a chosen model; finish it with "
            f"`lokl compare {folder / 'config.toml'}`"
        )
    row = _row_of(name, explanation.ids)
    model = load(folder / MODEL)
    near = _neighbours(model, results.table, row, explanation.predictions)
    return replace(explanation.sample_at(row), neighbours=near)


def explain_sample(model: Any, table: Any, name: str) -> Any:
    """Return the explanation of one sample of a table, with its most similar samples.

    Parameters
    ----------
    model : fitted model
    table : Table
    name : str
        Id of the sample.

    Returns
    -------
    explanation : SampleExplanation
    """
    from lokl.explain import explain

    row = _row_of(name, table.ids)
    near = _neighbours(model, table, row)
    explanation = explain(model, table.frame.iloc[[row]], ids=[name], columns=True)
    return replace(explanation.sample(name), neighbours=near)


def _row_of(name: str, ids: list[str]) -> int:
    """Return the position of a sample, or raise a `TableError` that suggests an id."""
    from lokl._text import suggestion
    from lokl.tables import TableError

    if name not in ids:
        hint = suggestion(name, ids) or f"; the first are {', '.join(ids[:3])}"
        raise TableError(f"no sample {name!r}{hint}")
    return ids.index(name)


def _neighbours(model: Any, table: Any, row: int, predictions: Any = None) -> tuple[Any, ...]:
    """Return the samples of a table that are most similar to one of them.

    Parameters
    ----------
    model : fitted model
        Its kernel measures similarity.
    table : Table
    row : int
    predictions : array of shape (n_samples,), optional
        Of all samples; those of the model if not given.

    Returns
    -------
    neighbours : tuple of Neighbour
    """
    from lokl.explain import nearest_samples
    from lokl.explain.explanation import Neighbour, plain_value

    near = nearest_samples(model, table.frame, row, _NEIGHBOURS)
    rows = [k for k, _ in near]
    if predictions is None:
        predicted = model.predict(table.frame.iloc[rows]).tolist() if rows else []
    else:
        predicted = [plain_value(predictions[k]) for k in rows]
    return tuple(
        Neighbour(table.ids[k], prediction, similarity)
        for (k, similarity), prediction in zip(near, predicted, strict=True)
    )


@takes(model=MODEL_FILE, as_json=AS_JSON)
def info(model: Path, as_json: bool) -> None:
    """Show what the file of a model contains, without loading the model.

    Example: lokl info ill.lokl
    """
    with one_line_errors():
        from lokl._text import shorten_list
        from lokl.persistence import info as model_info

        stored = model_info(model)
    if as_json:
        print_json(stored)
        return
    accepted, target = stored["input"], stored["target"]
    views = accepted["views"] or {}
    rows = {
        "model": " > ".join(stored["model"]),
        "target": target["name"] or "",
        "classes": shorten_list(target["classes"] or [], _SHOWN),
        "columns": str(accepted["n_features"]),
        **{f"view {view}": shorten_list(names, _SHOWN) for view, names in views.items()},
        "adjusted for": shorten_list(accepted.get("covariates") or [], _SHOWN),
        "method": dict(_chosen(stored))["model"],
        "held out": dict(_chosen(stored))["score"],
        "settings": ", ".join(f"{k}={v}" for k, v in stored["settings"].items() if k != "kernels"),
        "saved": f"{stored['saved']} by lokl {stored['lokl']}, format {stored['format']}",
        "versions": ", ".join(f"{k} {v}" for k, v in stored["environment"].items() if v),
    }
    width = max(map(len, rows))
    for name, text in rows.items():
        if text:
            typer.echo("\n".join(wrapped(text, f"{name:<{width}}  ", " " * (width + 2))))
