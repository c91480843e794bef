"""A comparison in a folder: its cells and their records, its results, and its report."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from lokl._deadline import Deadline
from lokl._environment import system, versions
from lokl._exports import need
from lokl._files import check_writable, replace_file
from lokl._text import shortened
from lokl.explain import SummaryTable, gene_set_importance
from lokl.persistence import load, save
from lokl.report import (
    Finding,
    Interval,
    Report,
    SourceFile,
    ViewSubset,
    report_from_model,
    sample_map,
    write,
)
from lokl.report.from_model import count_duplicates, known_alignment
from lokl.study.candidates import GENE_SETS, OURS, candidates_for, fit_candidate
from lokl.study.duration import RunClock
from lokl.study.experiment import MOST_CELLS, TEST, CandidateSplit, Experiment
from lokl.study.findings import findings
from lokl.study.results import Results, cohort_predictions_csv, predictions_csv, results_csv
from lokl.study.run_folder import Record, Records, open_run_folder, run_cells
from lokl.study.settings import CONFIG, Settings, load_settings, sha256
from lokl.tables import Table, TableError
from lokl.tables.learning import groups_of, target_of
from lokl.tables.preparation import SURVIVAL
from lokl.tables.table import CLASSIFICATION

# Files in the folder of a comparison, besides its settings.
CELLS, RESULTS, PREDICTIONS = "cells.jsonl", "results.csv", "predictions.csv"
TEST_PREDICTIONS = "test_predictions.csv"
MODEL, REPORT = "model.lokl", "report.html"
FILES = (REPORT, RESULTS, PREDICTIONS, TEST_PREDICTIONS, MODEL, CONFIG)


# How a model is chosen for each goal.
_RULES = {
    "explain": "among the models of lokl that are not worse than the best by more than a standard "
    "error: a trusted vote, then learned weights, then the uniform mix",
    "accuracy": "the best model of lokl",
    "simple": "the simplest model of lokl that is not worse than the best by more than a standard "
    "error",
}


def _check_classes(table: Table, cohort: Table) -> None:
    """Raise if the test cohort has a class that the other samples lack."""
    if table.task != CLASSIFICATION:
        return
    unknown = sorted(set(cohort.target) - set(table.target))
    if unknown:
        raise TableError(
            f"class {unknown[0]} of {cohort.target.name} is only in the test cohort; no model can "
            "learn it"
        )


class CellRecords(Records):
    """Records of the cells of a comparison."""

    cell_type = CandidateSplit
    value_types: ClassVar[Mapping[str, Any]] = {
        "seconds": float,
        "predictions": list,
    }
    error_type = TableError


@dataclass(frozen=True, eq=False)
class StudyOutputs:
    """Results of a finished comparison, and its files.

    Attributes
    ----------
    results : Results
    findings : list of Finding
    files : dict of str to Path
    """

    results: Results
    findings: list[Finding]
    files: dict[str, Path]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        results, chosen = self.results, self.results.chosen
        decisive, test = results.decisive_for(), results.permutation_test
        return {
            "score": results.target.score_name,
            "samples": len(results.table.ids),
            "classes": results.target.classes,
            "folds": len(results.splits),
            "covariates": {
                "columns": [*results.experiment.settings.covariates],
                "as": results.experiment.settings.covariates_as,
            },
            "goal": results.experiment.settings.goal,
            "chosen": None if chosen is None else chosen.name,
            "reason": results.reason(),
            "permutation test": None if test is None else {**vars(test), "p value": test.p_value},
            "candidates": [
                {
                    "name": row.name,
                    "role": row.role,
                    **_interval_values("score", row.score),
                    "seconds": row.seconds,
                    "scores": {name: value.mean for name, value in row.other_scores.items()},
                    "support": row.support,
                    "error": row.note or None,
                }
                for row in results.leaderboard
            ],
            "test": [
                {"name": row.name, **_interval_values("score", row.score)}
                for row in results.test_leaderboard
            ],
            "views": [
                {
                    "name": scores.name,
                    **_interval_values("alone", scores.alone),
                    **_interval_values("loss when removed", scores.loss),
                    "decisive for": decisive.get(scores.name),
                }
                for scores in results.view_scores
            ],
            "status": results.with_status(),
            "findings": [vars(finding) for finding in self.findings],
            "files": {name: str(path) for name, path in self.files.items()},
        }


def _interval_values(name: str, interval: Interval | None) -> dict[str, float | None]:
    """Return a mean and the limits of its interval by name, None for a missing interval."""
    names = (name, f"{name} low", f"{name} high")
    return dict(zip(names, interval or (None, None, None), strict=True))


class Comparison:
    """Candidates on the same splits of the same table.

    Parameters
    ----------
    settings : Settings
        Tables, target and cross-validation.
    folder : Path
        For records and results. A comparison with the same settings that is there is resumed. Other
        files raise a `TableError`, and so do other settings unless they are overwritten.
    overwrite : bool, default=False
        Whether a comparison with other settings in the folder is replaced by this one.

    Attributes
    ----------
    table : Table
    experiment : Experiment
        Samples, splits and candidates that all cells share.
    records : CellRecords
        Records of finished and failed cells, once the folder is open.

    See Also
    --------
    lokl.study.Settings : Describes it.
    lokl.study.Results : What it finds.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from lokl.study import Comparison, Settings
    >>> frame = load_iris(as_frame=True).frame.iloc[::3]
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "iris.csv"
    ...     frame.to_csv(path, index=False)
    ...     settings = Settings((str(path),), target="target", folds=2, methods=("uniform mix",))
    ...     comparison = Comparison(settings, Path(folder) / "run")
    ...     n_cells = len(comparison.cells)
    >>> n_cells
    4
    """

    records: CellRecords

    def __init__(self, settings: Settings, folder: Path, *, overwrite: bool = False):
        # Fail early if a library is missing that is needed after minutes of work.
        for module in ("skops.io", "jinja2"):
            need(module, "lokl compare")
        self.settings = settings
        self.folder = folder
        self._overwrite = overwrite
        # The input first: a wrong column is reported whatever the folder contains.
        self.table, cohort = settings.read_cohorts()
        candidates = candidates_for(self.table, settings.methods)
        self._check_sizes()
        if cohort is not None:
            _check_classes(self.table, cohort)
        self.experiment = Experiment(self.table, candidates, settings, cohort)
        if settings.permutations:
            self.experiment.permuted(1)
        self._check_folder()

    def _check_folder(self) -> bool:
        """Return whether the folder contains another comparison, which may be overwritten.

        Raise unless the folder is new, empty, contains this comparison, or one to overwrite.
        """
        folder, config = self.folder, self.folder / CONFIG
        if folder.exists() and not folder.is_dir():
            raise TableError(f"{folder} is a file; name a folder with --output")
        if not folder.exists():
            check_writable(folder)
        elif config.exists():
            difference = self._difference_from(config)
            if difference and not self._overwrite:
                raise TableError(
                    f"{folder} contains {difference}; add --overwrite to replace it, or name "
                    "another folder with --output"
                )
            check_writable(config)
            return bool(difference)
        elif any(folder.iterdir()):
            raise TableError(f"{folder} contains other files; name a new folder with --output")
        else:
            check_writable(config)
        return False

    def _difference_from(self, config: Path) -> str:
        """Return how the comparison of a settings file differs from this one, if it does."""
        state = "a finished" if (self.folder / REPORT).exists() else "an unfinished"
        try:
            there = load_settings(str(config)).identity
        except TableError as reason:
            return f"{state} comparison whose settings cannot be read ({reason})"
        for name, value in self.settings.stored().identity.items():
            if there.get(name) != value:
                shown = [shortened(repr(one), 60) for one in (there.get(name), value)]
                return (
                    f"{state} comparison with other settings ({name}: {shown[0]} there, {shown[1]} "
                    "here)"
                )
        return ""

    def _check_sizes(self) -> None:
        """Raise if there are too few samples, groups, folds or repeats to compare anything."""
        settings, y = self.settings, target_of(self.table)
        is_survival = self.table.task == SURVIVAL
        strata = y["event"] if is_survival else y
        if settings.folds < 2 or settings.repeats < 1:
            raise TableError(
                f"--folds {settings.folds} --repeats {settings.repeats}: at least two folds and "
                "one repeat are needed"
            )
        groups = groups_of(self.table)
        if settings.leave_one_group_out:
            for group in np.unique(groups):
                left = strata[groups != group]
                if not len(left) or (not left.any() if is_survival else len(np.unique(left)) < 2):
                    raise TableError(
                        f"--leave-one-group-out {self.table.groups.name}: without {group}, the "
                        f"samples have {'no event' if is_survival else 'one class only'}"
                    )
            return
        if groups is not None and len(np.unique(groups)) < settings.folds:
            raise TableError(
                f"--groups {self.table.groups.name} has {len(np.unique(groups))} groups, fewer "
                f"than the {settings.folds} folds; see --folds"
            )
        if is_survival and y["event"].sum() < settings.folds:
            raise TableError(
                f"--event {self.table.event.name}: {int(y['event'].sum())} events are too few for "
                f"{settings.folds} folds; see --folds"
            )
        if len(y) < 2 * settings.folds:
            raise TableError(
                f"{len(y)} samples are too few for {settings.folds} folds; see --folds"
            )

    @property
    def cells(self) -> list[CandidateSplit]:
        """All cells, split by split, so that finished splits can be compared at any time."""
        splits, names = [*range(len(self.experiment.splits))], self.experiment.candidates
        splits += [TEST] * (self.experiment.test is not None)
        return [CandidateSplit(name, split) for split in splits for name in names]

    @property
    def missing(self) -> list[CandidateSplit]:
        """Unfinished cells."""
        return cast(list[CandidateSplit], self.records.missing(self.cells))

    def permuted_cells(self, candidate: str) -> list[CandidateSplit]:
        """Return the cells of a candidate on permuted targets, permutation by permutation."""
        splits = self.experiment.splits_of(0)
        numbers = range(1, self.settings.permutations + 1)
        return [CandidateSplit(candidate, split, k) for k in numbers for split in splits]

    def clock(self, jobs: int) -> RunClock:
        """Return the clock of the unfinished cells; the folder is open.

        The candidate that will be chosen is unknown; the first one of lokl takes as long.
        """
        experiment, cells = self.experiment, self.missing
        first = next((one.name for one in experiment.candidates.values() if one.role == OURS), "")
        if first:
            cells += cast(list[CandidateSplit], self.records.missing(self.permuted_cells(first)))
        return RunClock(cells, experiment.candidates, experiment.samples, jobs)

    def _results(self) -> Results:
        """Return the results of the finished cells."""
        results = Results(self.experiment, self.records.of(self.cells))
        if not self.settings.permutations or results.chosen is None:
            return results
        permuted = self.permuted_cells(results.chosen.name)
        return Results(self.experiment, self.records.of([*self.cells, *permuted]))

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep other runs out of the folder; a run without any record leaves nothing behind."""
        config = self.folder / CONFIG
        with open_run_folder(self.folder):
            # Checked again: a run that has just ended may have written here.
            if config.exists() and self._check_folder():
                for name in (*FILES, CELLS):
                    (self.folder / name).unlink(missing_ok=True)
            new = not config.exists()
            if new:
                replace_file(config, self.settings.stored().to_toml(self.folder).encode())
            self.records = CellRecords(self.folder / CELLS)
            try:
                yield
            finally:
                if new and not (self.folder / CELLS).exists():
                    with suppress(OSError):
                        config.unlink(missing_ok=True)

    def run(
        self,
        jobs: int,
        on_record: Callable[[Record], None] | None = None,
        time_limit: float | None = None,
    ) -> None:
        """Run the unfinished cells, and then those of the chosen candidate on permuted targets.

        Parameters
        ----------
        jobs : int
            Processes, -1 for all cores.
        on_record : callable, optional
            Called with every new record.
        time_limit : float, optional
            Seconds after which no cell is started.
        """
        settings: dict[str, Any] = {"on_record": on_record, "deadline": Deadline(time_limit)}
        run_cells(self.cells, self.records, self.experiment.run, jobs=jobs, **settings)
        if self.settings.permutations and not settings["deadline"].passed:
            chosen = Results(self.experiment, self.records.of(self.cells)).chosen
            cells = [] if chosen is None else self.permuted_cells(chosen.name)
            run_cells(cells, self.records, self.experiment.run, jobs=jobs, **settings)

    def finish(self, on_step: Callable[[str], None] = lambda step: None) -> StudyOutputs:
        """Fit the chosen candidate to all samples, and write all files; the folder is open.

        Parameters
        ----------
        on_step : callable, optional
            Called with a description of the next step.

        Returns
        -------
        outputs : StudyOutputs

        Raises
        ------
        TableError
            If fewer than two splits are finished.
        """
        results, folder = self._results(), self.folder
        if len(results.splits) < 2:
            raise TableError(
                f"{len(results.splits)} of {len(self.experiment.splits)} folds are finished, too "
                "few to compare; raise --time-limit: the same command resumes"
            )
        chosen, model, stored = results.chosen, None, None
        if chosen is not None:
            on_step(f"fitting {chosen.name} to all samples")
            model = self._final_model(chosen.name)
            stored = {"candidate": chosen.name, "sha256": sha256(folder / MODEL)}
            replace_file(folder / PREDICTIONS, predictions_csv(results).encode())
            if results.test_leaderboard:
                replace_file(folder / TEST_PREDICTIONS, cohort_predictions_csv(results).encode())
        on_step("writing the report")
        found = findings(results)
        replace_file(folder / RESULTS, results_csv(results).encode())
        replace_file(folder / CONFIG, self.settings.stored(stored).to_toml(folder).encode())
        write(study_report(results, self.settings, found, model, folder), folder / REPORT)
        files = {name: folder / name for name in FILES if (folder / name).exists()}
        return StudyOutputs(results, found, files)

    def _final_model(self, name: str) -> Any:
        """Return the model in the folder if it is this candidate, else fit and save it."""
        path = self.folder / MODEL
        stored = load_settings(str(self.folder / CONFIG)).model
        if path.exists() and stored == {"candidate": name, "sha256": sha256(path)}:
            return load(path)
        model = fit_candidate(self.table, name, self.settings.seed)
        save(model, path)
        return model


def read_results(folder: Path) -> Results:
    """Return the results of a comparison from its folder; nothing is fitted.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    results : Results
    """
    path = folder / CONFIG
    if not path.exists():
        raise TableError(f"{folder} is not the folder of a comparison: it has no {CONFIG}")
    comparison = Comparison(load_settings(str(path)).settings, folder)
    return Results(comparison.experiment, CellRecords(folder / CELLS).of(comparison.cells))


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

    Returns
    -------
    report : Report
        Without an explanation if no model was chosen.
    """
    frame = results.table.frame
    explanation = None if model is None else results.held_out()
    similar = alignment = None
    if explanation is not None:
        y = results.experiment.samples.y
        truth = y if results.target.times is None else y["time"]
        training = (frame, truth, results.table.ids)
        similar = sample_map(model, frame, explanation, training=training)
        alignment = known_alignment(model, frame, explanation)
    what = "table" if len(results.table.views) > 1 else "model"
    return Report(
        title=f"{results.table.target.name}: which {what} to trust",
        # With a chosen model, the page makes its verdict from the leaderboard.
        verdict="" if results.chosen else _without_a_model(results),
        choice=results.sentences(),
        score_name=results.target.score_name,
        classes=[str(label) for label in results.target.classes],
        views=list(results.view_scores),
        leaderboard=list(results.leaderboard),
        test=list(results.test_leaderboard),
        findings=found,
        subsets=_subsets(results),
        explanation=explanation,
        sample_map=similar,
        audit={**_audit(results, settings), **_when(folder)},
        command=f"lokl compare {folder / CONFIG}",
        alignment=alignment,
        sources=_sources(results.table, settings.checksums()),
        gene_sets=_gene_sets(results, model),
    )


def _gene_sets(results: Results, model: Any) -> SummaryTable | None:
    """Return the importance of gene sets in the chosen model; None if it has none."""
    if model is None or results.chosen is None or results.chosen.name != GENE_SETS:
        return None
    return gene_set_importance(model, results.table.frame, random_state=0)


def _without_a_model(results: Results) -> str:
    """Return the verdict of a comparison that had no candidate of lokl."""
    best, target = results.leaderboard[0], results.target
    score = f"{target.score_name} {results.scale.mean(best.score)}{results.scale.unit}"
    return (
        "No model of lokl was compared, so none is chosen. The best candidate, "
        f"{best.name}, reaches {score}."
    )


def _subsets(results: Results) -> list[ViewSubset]:
    """Return scores of each view alone, of all views but one, and of all views."""
    views = results.view_scores
    if results.chosen is None or results.chosen.score is None or len(views) < 2:
        return []
    names = tuple(view.name for view in views)
    subsets = [ViewSubset((view.name,), view.alone) for view in views if view.alone]
    # With two views, all but one is the other one, which is there already.
    for view in views if len(views) > 2 else ():
        if view.without:
            others = tuple(name for name in names if name != view.name)
            subsets.append(ViewSubset(others, view.without))
    return [*subsets, ViewSubset(names, results.chosen.score)]


def _sources(table: Table, checksums: Mapping[str, str]) -> list[SourceFile]:
    """Return the input files; a file with nothing but the target has no size.

    Parameters
    ----------
    table : Table
    checksums : mapping of str to str
        SHA-256 by the name of the file.
    """
    sizes = table.files.items()
    files = {Path(path).name: SourceFile(Path(path).name, *size) for path, size in sizes}
    return [
        replace(files.get(name, SourceFile(name)), sha256=checksums.get(name, ""))
        for name in dict.fromkeys([*files, *checksums])
    ]


def _audit(results: Results, settings: Settings) -> dict[str, Any]:
    """Return how the results were made, by name, as the report lists it."""
    table, experiment, frame = results.table, results.experiment, results.table.frame
    groups = f", {table.groups.name} kept together" if table.groups is not None else ""
    copies = sum(
        count_duplicates(frame.iloc[train], frame.iloc[test])
        for (train, test), (repeat, _) in zip(experiment.splits, experiment.labels, strict=True)
        if repeat == 0
    )
    return {
        "samples": str(len(frame)),
        "target": str(table.target.name),
        **({"input": _plain_notes(table)} if table.notes else {}),
        "folds": f"each {table.groups.name} held out in turn"
        if settings.leave_one_group_out
        else f"{settings.folds}, {settings.repeats} times{groups}",
        "test cohort": "none"
        if experiment.cohort is None
        else f"{len(experiment.cohort.ids)} samples that nothing was chosen on",
        "duplicates across the split": f"{copies} of {len(frame)}",
        "settings of each model": "chosen inside the training samples",
        "chosen": _RULES[settings.goal],
        **_permutation_notes(results),
        "predictions": "of models that were not trained on the sample, from the first repeat",
        "seconds": "processor time of one fit, including the choice of settings",
        "seed": str(settings.seed),
        "versions": {name: value for name, value in versions().items() if value},
        "system": system(),
    }


def _permutation_notes(results: Results) -> dict[str, str]:
    """Return how the permutation test was made, if there is one."""
    test = results.permutation_test
    if test is None or results.chosen is None:
        return {}
    return {
        "permutation test": f"{results.chosen.name} on {test.n_permutations} targets that are "
        "permuted within the folds of the first repeat, with new settings chosen each time; "
        "p = (1 + number as good) / (1 + number of permutations)"
    }


def _plain_notes(table: Table) -> str:
    """Return what was read and left out; the same wherever the files are."""
    text = "; ".join(table.notes)
    for path in table.files:
        text = text.replace(path, Path(path).name)
    return text


def _when(folder: Path) -> dict[str, str]:
    """Return the date of the last fit, so that a finished comparison gives the same page again."""
    cells = folder / CELLS
    if not cells.exists():
        return {}
    return {"date": datetime.fromtimestamp(cells.stat().st_mtime, UTC).strftime("%Y-%m-%d")}


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

    Returns
    -------
    report : Report
    """
    target = table.target
    if table.task == SURVIVAL:
        target = None if target is None or target.isna().any() else target_of(table)
    elif target is not None:
        target = target.to_numpy() if target.dtype.kind == "f" else target.astype(object).to_numpy()
    report = report_from_model(
        model,
        table.frame,
        target,
        ids=table.ids,
        title=f"{name} on {len(table.ids)} samples",
        columns=table.frame.size <= MOST_CELLS,
        audit={
            "file": name,
            "samples": len(table.ids),
            "predictions": "of the model itself; samples that it has learned from have no score",
            "system": system(),
        },
    )
    return replace(report, command=command, sources=_sources(table, {}))
