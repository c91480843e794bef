"""Files of a finished comparison: results, predictions, the chosen model, and the report."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lokl._environment import system, versions
from lokl._exports import need
from lokl._files import replace_file
from lokl.persistence import load, save
from lokl.report import (
    Finding,
    Interval,
    LeaderboardEntry,
    Report,
    SourceFile,
    ViewSubset,
    ViewSummary,
    report_from_model,
    sample_map,
    write,
)
from lokl.report.from_model import count_duplicates, known_alignment
from lokl.study.candidates import BASELINE, fit_candidate
from lokl.study.comparison import Comparison
from lokl.study.findings import findings, model_verdict, verdict
from lokl.study.results import (
    CandidateResult,
    Results,
    ScoreInterval,
    predictions_csv,
    results_csv,
)
from lokl.study.settings import CONFIG, Settings, sha256, stored_model
from lokl.tables import Table, TableError

RESULTS, PREDICTIONS, MODEL, REPORT = "results.csv", "predictions.csv", "model.lokl", "report.html"


@dataclass(frozen=True, eq=False)
class StudyOutputs:
    """Results of a finished comparison, and its files.

    Attributes
    ----------
    results : Results
    findings : list of Finding
    model : Pipeline or None
        The chosen model, fitted to all samples.
    files : dict of str to Path
    """

    results: Results
    findings: list[Finding]
    model: Any
    files: dict[str, Path]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        results, chosen = self.results, self.results.chosen
        trusted = results.trusted_where()
        return {
            "score": results.score_name,
            "samples": len(results.table.ids),
            "classes": results.classes,
            "folds": len(results.splits),
            "chosen": None if chosen is None else chosen.name,
            "candidates": [
                {
                    "name": row.name,
                    "role": row.role,
                    **_interval_values("score", None if row.failed else row.interval),
                    "seconds": row.seconds,
                    "support": row.support,
                    "error": row.error or None,
                }
                for row in results.leaderboard
            ],
            "views": [
                {
                    "name": scores.view,
                    **_interval_values("alone", scores.alone),
                    **_interval_values("loss when removed", scores.loss),
                    "trusted where": trusted.get(scores.view),
                }
                for scores in results.view_scores
            ],
            "views disagree": results.disagreeing(),
            "findings": [vars(finding) for finding in self.findings],
            "files": {name: str(path) for name, path in self.files.items()},
        }


def _interval_values(name: str, interval: ScoreInterval | None) -> dict[str, float | None]:
    ends = (None, None, None) if interval is None else interval
    return dict(zip((name, f"{name} low", f"{name} high"), ends, strict=True))


def check_ready() -> None:
    """Raise an ImportError if a library is missing that is needed after minutes of work."""
    need("skops.io", "lokl compare")
    need("jinja2", "lokl compare")


def finish(comparison: Comparison, on_step: Callable[[str], None] | None = None) -> StudyOutputs:
    """Fit the chosen candidate to all samples, and write all files.

    Parameters
    ----------
    comparison : Comparison
        Opened.
    on_step : callable, optional
        Called with a description of the next step.
    """
    report_step = on_step or (lambda step: None)
    results, folder = comparison.results(), comparison.folder
    if len(results.splits) < 2:
        raise TableError(
            f"{len(results.splits)} of {len(comparison.experiment.splits)} folds are finished, too "
            "few to compare; raise --time-limit: the same command resumes"
        )
    chosen, model, stored = results.chosen, None, None
    if chosen is not None:
        report_step(f"fitting {chosen.name} to all samples")
        model = _final_model(comparison, chosen.name)
        stored = (chosen.name, sha256(folder / MODEL))
    report_step("writing the report")
    found = findings(results)
    replace_file(folder / RESULTS, results_csv(results).encode())
    if chosen is not None:
        replace_file(folder / PREDICTIONS, predictions_csv(results).encode())
    replace_file(folder / CONFIG, comparison.settings.to_toml(folder, stored).encode())
    write(study_report(results, comparison.settings, found, model, folder), folder / REPORT)
    names = (REPORT, RESULTS, PREDICTIONS, MODEL, CONFIG)
    files = {name: folder / name for name in names if (folder / name).exists()}
    return StudyOutputs(results, found, model, files)


def _final_model(comparison: Comparison, name: str) -> Any:
    """Return the model in the folder if it is this candidate, else fit and save it."""
    path = comparison.folder / MODEL
    if path.exists() and stored_model(comparison.folder / CONFIG) == (name, sha256(path)):
        return load(path)
    model = fit_candidate(comparison.table, name, comparison.settings.seed)
    save(model, path)
    return model


def study_report(
    results: Results, settings: Settings, found: list[Finding], model: Any, folder: Path
) -> Report:
    """Return the content of the report about a comparison.

    Parameters
    ----------
    results : Results
    settings : Settings
    found : list of Finding
    model : Pipeline or None
        The chosen model, fitted to all samples.
    folder : Path
        Folder of the comparison.
    """
    frame = results.table.frame
    explanation = None if model is None else results.held_out()
    similar = alignment = None
    if explanation is not None:
        training = (frame, results.experiment.samples.y, results.table.ids)
        similar = sample_map(model, frame, explanation, training=training)
        alignment = known_alignment(model, frame, explanation)
    what = "table" if len(results.table.views) > 1 else "model"
    return Report(
        title=f"{results.table.target.name}: which {what} to trust",
        verdict=verdict(results),
        score_name=results.score_name,
        classes=[str(label) for label in results.classes],
        views=_view_summaries(results),
        leaderboard=[_leaderboard_row(row, results) for row in results.leaderboard],
        findings=found,
        subsets=_subsets(results),
        explanation=explanation,
        sample_map=similar,
        audit=_audit(results, settings),
        command=f"lokl compare {folder / CONFIG}",
        alignment=alignment,
        sources=_sources(results, settings),
    )


def _optional(interval: ScoreInterval | None) -> Interval | None:
    return None if interval is None else Interval(*interval)


def _leaderboard_row(row: CandidateResult, results: Results) -> LeaderboardEntry:
    chosen, behind = results.chosen, None
    if chosen is not None and not row.failed and row is not chosen:
        behind = Interval(*results.difference(chosen, row))
    return LeaderboardEntry(
        row.name,
        None if row.failed else Interval(*row.interval),
        row.seconds,
        row.support,
        chosen=row is chosen,
        baseline=row.role == BASELINE,
        note=row.error,
        behind=behind,
    )


def _view_summaries(results: Results) -> list[ViewSummary]:
    missing = results.table.n_missing()
    return [
        ViewSummary(
            scores.view,
            len(results.table.views[scores.view]),
            _optional(scores.alone),
            _optional(scores.loss),
            missing.get(scores.view, 0) / len(results.table.ids),
        )
        for scores in results.view_scores
    ]


def _subsets(results: Results) -> list[ViewSubset]:
    """Return scores of each view alone, of all views but one, and of all views."""
    chosen, views = results.chosen, list(results.table.views)
    if chosen is None or len(views) < 2:
        return []
    scores = results.view_scores
    alone = [ViewSubset((own.view,), Interval(*own.alone)) for own in scores if own.alone]
    # With two views, all but one is the other one, which is there already.
    without = [
        ViewSubset(tuple(view for view in views if view != own.view), Interval(*own.without))
        for own in scores
        if own.without and len(views) > 2
    ]
    return [*alone, *without, ViewSubset(tuple(views), Interval(*chosen.interval))]


def _sources(results: Results, settings: Settings) -> list[SourceFile]:
    """Return the input files; a file with nothing but the target has no size."""
    files = {
        Path(path).name: SourceFile(Path(path).name, *size)
        for path, size in results.table.files.items()
    }
    checksums = settings.checksums()
    return [
        replace(files.get(name, SourceFile(name)), sha256=checksums.get(name, ""))
        for name in dict.fromkeys([*files, *checksums])
    ]


def _audit(results: Results, settings: Settings) -> dict[str, str]:
    table, experiment, frame = results.table, results.experiment, results.table.frame
    repeats, folds = (max(column) + 1 for column in zip(*experiment.labels, strict=True))
    groups = f", {table.groups.name} kept together" if table.groups is not None else ""
    first = [
        split
        for split, label in zip(experiment.splits, experiment.labels, strict=True)
        if label[0] == 0
    ]
    copies = sum(count_duplicates(frame.iloc[train], frame.iloc[test]) for train, test in first)
    installed = {name: value for name, value in versions().items() if value}
    return {
        "samples": str(len(frame)),
        "target": str(table.target.name),
        "folds": f"{folds}, {repeats} times{groups}",
        "duplicates across the split": f"{copies} of {len(frame)}",
        "settings of each model": "chosen inside the training samples",
        "chosen": "the simplest model of lokl within one standard error of the best one",
        "predictions": "of models that were not trained on the sample, from the first repeat",
        "seconds": "processor time of one fit, including the choice of settings",
        "seed": str(settings.seed),
        "versions": ", ".join(f"{name} {value}" for name, value in installed.items()),
        "system": system(),
    }


def model_report(model: Any, table: Table, name: str, command: str = "") -> Report:
    """Return the content of a report about a fitted model.

    Parameters
    ----------
    model : Pipeline
        Fitted to tables.
    table : Table
        Samples; known targets are compared with the predictions.
    name : str
        Name of the model.
    command : str
        The command that makes the report again.
    """
    target = table.target
    if target is not None:
        target = target.to_numpy() if target.dtype.kind == "f" else target.astype(object).to_numpy()
    report = report_from_model(
        model,
        table.frame,
        target,
        ids=table.ids,
        title=f"{name} on {len(table.ids)} samples",
        audit={
            "file": name,
            "samples": len(table.ids),
            "predictions": "of the model itself, also for samples that it was trained on",
            "system": system(),
        },
    )
    sources = [SourceFile(Path(file).name, *size) for file, size in table.files.items()]
    return replace(
        report, verdict=model_verdict(report.explanation), command=command, sources=sources
    )
