"""The report about a comparison, from its results.

The end of a comparison: the chosen model, and all files.

The few lines that most readers look at, as plain values.

The report about one model on samples that were brought.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._environment import system, versions
from lokl._files import replace_file
from lokl.explain.explanation import DISAGREE, Explanation
from lokl.persistence import load, need_skops, save
from lokl.report import (
    Finding,
    Interval,
    LeaderboardRow,
    Report,
    SourceFile,
    ViewSubset,
    ViewSummary,
    report_from_model,
    sample_map,
    write,
)
from lokl.report.from_model import count_duplicates, known_alignment
from lokl.report.page import need_jinja
from lokl.study.candidates import BASELINE, fit_candidate
from lokl.study.findings import findings
from lokl.study.results import (
    MODEL,
    PREDICTIONS,
    REPORT,
    RESULTS,
    Results,
    Row,
    predictions_csv,
    results_csv,
)
from lokl.study.run import Comparison
from lokl.study.settings import CONFIG, Settings, stored_model
from lokl.tables import Table, TableError


def report_of(
    results: Results, settings: Settings, found: list[Finding], model: Any, again: str
) -> Report:
    """Return the content of the page.

    Parameters
    ----------
    results : Results
    settings : Settings
    found : list of Finding
    model : Pipeline or None
        The chosen one, fitted to all samples: it says which samples are alike.
    again : str
        The command that makes the report again.
    """
    chosen = results.chosen
    frame = results.table.frame
    what = "table" if len(results.table.views) > 1 else "model"
    explanation = similar = alignment = None
    if chosen is not None and model is not None:
        explanation = results.held_out(chosen.name, 0)
    if explanation is not None:
        training = (frame, results.bench.part.y, results.table.ids)
        similar = sample_map(model, frame, explanation, training=training)
        alignment = known_alignment(model, frame, explanation)
    return Report(
        title=f"{results.table.target.name}: which {what} to trust",
        verdict=verdict(results),
        score_name=results.score_name,
        classes=[str(label) for label in results.bench.question.classes],
        views=_views(results),
        leaderboard=[_leaderboard_row(row, results) for row in results.rows],
        findings=found,
        subsets=_subsets(results),
        explanation=explanation,
        sample_map=similar,
        audit=_audit(results, settings),
        command=again,
        alignment=alignment,
        sources=_sources(results, settings),
    )


def verdict(results: Results) -> str:
    """Two sentences: how good the chosen model is, and how good what is simpler."""
    chosen = results.chosen
    if chosen is None:
        best = results.rows[0]
        return (
            f"{_sentence(best, results)} Nothing of lokl was compared, so that nothing is chosen."
        )
    others = [row for row in (results.best_single, results.best_baseline) if row is not None]
    known = [f"{row.name} {_span(row, results)}" for row in others if not row.failed]
    rest = f" For comparison: {'; '.join(known)}." if known else ""
    return _sentence(chosen, results) + rest


def _sentence(row: Row, results: Results) -> str:
    name = row.name[:1].upper() + row.name[1:]
    return f"{name} reaches {results.score_name} {_span(row, results)} on samples left out."


def _span(row: Row, results: Results) -> str:
    factor, digits, unit = (100, 1, " %") if results.bench.question.classes else (1, 3, "")
    mean, low, high = (f"{factor * value:.{digits}f}" for value in row.interval)
    return f"{mean}{unit} ({low} to {high})"


def _leaderboard_row(row: Row, results: Results) -> LeaderboardRow:
    return LeaderboardRow(
        row.name,
        None if row.failed else Interval(*row.interval),
        row.seconds,
        row.support,
        chosen=row is results.chosen,
        baseline=row.role == BASELINE,
        note=row.note,
        behind=_behind(row, results),
    )


def _behind(row: Row, results: Results) -> Interval | None:
    chosen = results.chosen
    if chosen is None or row.failed or row is chosen:
        return None
    return Interval(*results.difference(chosen, row))


def _views(results: Results) -> list[ViewSummary]:
    n, lacking = len(results.bench.part.y), results.table.lacking()
    return [
        ViewSummary(
            worth.view,
            len(results.table.views[worth.view]),
            None if worth.alone is None else Interval(*worth.alone),
            None if worth.loss is None else Interval(*worth.loss),
            lacking.get(worth.view, 0) / n,
        )
        for worth in results.worth()
    ]


def _subsets(results: Results) -> list[ViewSubset]:
    """Each view alone, all but each, and all of them."""
    chosen, worth = results.chosen, results.worth()
    if chosen is None or len(worth) < 2:
        return []
    views = [own.view for own in worth]
    found = [
        ViewSubset((own.view,), Interval(*own.alone)) for own in worth if own.alone is not None
    ]
    # Of two views, all but one is the other one, which is there already.
    for own in worth if len(views) > 2 else ():
        if own.without is not None:
            left = tuple(view for view in views if view != own.view)
            found.append(ViewSubset(left, Interval(*own.without)))
    return [*found, ViewSubset(tuple(views), Interval(*chosen.interval))]


def _sources(results: Results, settings: Settings) -> list[SourceFile]:
    """Files that went in; the one of the target may have nothing else in it."""
    sizes = {Path(name).name: size for name, size in results.table.files.items()}
    checks = settings.checksums()
    found = []
    for name in dict.fromkeys([*sizes, *checks]):
        rows, columns, empty = sizes.get(name, (None, None, None))
        found.append(SourceFile(name, rows, columns, empty, checks.get(name, "")))
    return found


def _twins(results: Results) -> str:
    """How many samples equal one that their model had learned from, in the first repeat."""
    bench, frame = results.bench, results.table.frame
    splits = [bench.splits[k] for k, label in enumerate(bench.labels) if label[0] == 0]
    twins = sum(count_duplicates(frame.iloc[kept], frame.iloc[left]) for kept, left in splits)
    return f"{twins} of {len(frame)}"


def _audit(results: Results, settings: Settings) -> dict[str, str]:
    table, bench = results.table, results.bench
    folds = len({fold for _, fold in bench.labels})
    groups = f", {table.groups.name} kept together" if table.groups is not None else ""
    kept = {name: value for name, value in versions().items() if value}
    return {
        "samples": str(len(bench.part.y)),
        "target": str(table.target.name),
        "folds": f"{folds}, {max(repeat for repeat, _ in bench.labels) + 1} times{groups}",
        "duplicates across the split": _twins(results),
        "settings of each model": "chosen inside the samples that it learned from",
        "chosen": "the simplest of ours within one standard error of the best of ours",
        "answers": "of models that had not learned from the sample, of the first repeat",
        "seconds": "of the processor, for one fit and everything that is chosen for it",
        "seed": str(settings.seed),
        "versions": ", ".join(f"{name} {value}" for name, value in kept.items()),
        "system": system(),
    }


@dataclass(frozen=True, eq=False)
class Finished:
    """What came out, and where it is."""

    results: Results
    findings: list[Finding]
    model: Any
    files: dict[str, Path]


def finish(comparison: Comparison, on_step: Callable[[str], None] | None = None) -> Finished:
    """Fit the chosen candidate to all samples, and write everything.

    Parameters
    ----------
    comparison : Comparison
        At work in its folder.
    on_step : callable, optional
        Called with a word about what is done next.
    """
    tell = on_step or (lambda step: None)
    results, folder = comparison.results(), comparison.folder
    if len(results.splits) < 2:
        raise TableError(
            f"{len(results.splits)} of {len(comparison.bench.splits)} folds are finished, too few "
            "to compare anything; raise --time-limit: the same command goes on"
        )
    chosen, model, made = results.chosen, None, None
    if chosen is not None:
        tell(f"fitting {chosen.name} to all samples")
        model, checksum = _final_model(comparison, chosen.name)
        made = (chosen.name, checksum)
    tell("writing the report")
    found = findings(results)
    replace_file(folder / RESULTS, results_csv(results).encode())
    if chosen is not None:
        replace_file(folder / PREDICTIONS, predictions_csv(results).encode())
    replace_file(folder / CONFIG, comparison.settings.text(folder, made).encode())
    again = f"lokl compare {folder / CONFIG}"
    write(report_of(results, comparison.settings, found, model, again), folder / REPORT)
    there = (REPORT, RESULTS, PREDICTIONS, MODEL, CONFIG)
    files = {name: folder / name for name in there if (folder / name).exists()}
    return Finished(results, found, model, files)


def check_ready() -> None:
    """Raise where a library is missing that is needed at the end, before minutes of work."""
    need_skops("lokl compare")
    need_jinja()


def _final_model(comparison: Comparison, name: str) -> tuple[Any, str]:
    """Return the model in the folder where it is that of the candidate, else fit and save it.

    Also returned is the checksum of its file.
    """
    path = comparison.folder / MODEL
    if path.exists() and stored_model(comparison.folder / CONFIG) == (name, _sha256(path)):
        return load(path), _sha256(path)
    model = fit_candidate(comparison.table, name, comparison.settings.seed)
    save(model, path)
    return model, _sha256(path)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# Trust from which on a view counts, and the share of it that an equal part is taken for.
_TRUSTED, _ABOUT = 0.5, 0.9
# Shares that differ by less between samples are the same.
_SAME = 1e-3
_THIRDS = ("low values", "middle values", "high values")


def trusted_where(results: Results) -> dict[str, str]:
    """Return for which classes, or values, the chosen model trusts each view."""
    told = None if results.chosen is None else results.held_out(results.chosen.name, 0)
    trust = None if told is None else told.trust_or_weights
    if told is None or trust is None:
        return {}
    names, code = _regions(results)
    limit = _ABOUT / len(told.views) if told.trust is None else _TRUSTED
    full = told.presence.all(axis=1)
    if told.trust is None and full.any() and np.ptp(trust[full], axis=0).max() < _SAME:
        return dict.fromkeys(told.views, "the same for all")
    found = {}
    for place, view in enumerate(told.views):
        has = told.presence[:, place]
        means = [_mean(trust[has & (code == k), place]) for k in range(len(names))]
        found[view] = _listed(names, [mean >= limit for mean in means], results)
    return found


def _regions(results: Results) -> tuple[list[str], Array]:
    question, y = results.bench.question, results.bench.part.y
    if question.classes:
        return [str(label) for label in question.classes], question.codes(y)
    low, high = np.quantile(y, [1 / 3, 2 / 3])
    return list(_THIRDS), (y > low).astype(int) + (y > high)


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else 0.0


def _listed(names: list[str], trusted: list[bool], results: Results) -> str:
    if all(trusted):
        return "all classes" if results.bench.question.classes else "everywhere"
    return ", ".join(name for name, own in zip(names, trusted, strict=True) if own) or "little"


def disagreeing(results: Results) -> list[str]:
    """Return samples whose views speak for different classes, the worst first."""
    told = None if results.chosen is None else results.held_out(results.chosen.name, 0)
    if told is None or told.probabilities is None or len(told.views) < 2:
        return []
    rows = np.flatnonzero(_differ(told) & (told.disagreement >= DISAGREE))
    order = rows[np.argsort(-told.disagreement[rows], kind="stable")]
    return [results.table.ids[row] for row in order]


def _differ(told: Explanation) -> Array:
    """Whether two views that are there speak for different classes."""
    known = told.alone_codes >= 0
    top = np.where(known, told.alone_codes, -1).max(axis=1)
    least = np.where(known, told.alone_codes, np.iinfo(int).max).min(axis=1)
    return np.asarray(known.any(axis=1) & (top != least))


def as_dict(finished: Finished) -> dict[str, Any]:
    """Return everything as plain values, for machines."""
    results, chosen = finished.results, finished.results.chosen
    where = trusted_where(results)
    return {
        "score": results.score_name,
        "samples": len(results.bench.part.y),
        "classes": results.bench.question.classes,
        "folds": len(results.splits),
        "chosen": None if chosen is None else chosen.name,
        "candidates": [
            {
                "name": row.name,
                "role": row.role,
                **_interval("score", None if row.failed else row.interval),
                "seconds": row.seconds,
                "support": row.support,
                "error": row.note or None,
            }
            for row in results.rows
        ],
        "views": [
            {
                "name": worth.view,
                **_interval("alone", worth.alone),
                **_interval("loss when withheld", worth.loss),
                "trusted where": where.get(worth.view),
            }
            for worth in results.worth()
        ],
        "views disagree": disagreeing(results),
        "findings": [vars(finding) for finding in finished.findings],
        "files": {name: str(path) for name, path in finished.files.items()},
    }


def _interval(name: str, values: tuple[float, float, float] | None) -> dict[str, float | None]:
    ends = (None, None, None) if values is None else values
    return dict(zip((name, f"{name} low", f"{name} high"), ends, strict=True))


def report_about(model: Any, table: Table, name: str, again: str = "") -> Report:
    """Return the content of a page about a fitted model.

    Parameters
    ----------
    model : Pipeline
        Fitted to tables.
    table : Table
        Samples; where its target is known, answers are judged by it.
    name : str
        Of the model.
    again : str
        The command that makes the report again.
    """
    y = None if table.target is None else _labels(table.target)
    report = report_from_model(
        model,
        table.frame,
        y,
        ids=table.ids,
        title=f"{name} on {len(table.ids)} samples",
        audit={
            "file": name,
            "samples": len(table.ids),
            "answers": "of the model itself, also about samples that it learned from",
            "system": system(),
        },
    )
    sources = [SourceFile(Path(file).name, *size) for file, size in table.files.items()]
    return replace(report, verdict=_verdict(report), command=again, sources=sources)


def _labels(target: Any) -> Any:
    """Return classes or numbers; None or NaN where nothing is known."""
    return target.to_numpy() if target.dtype.kind == "f" else target.astype(object).to_numpy()


def _verdict(report: Report) -> str:
    """How often the model is right here; empty, so that the page says it, where nobody knows."""
    explanation = report.explanation
    if explanation is None or explanation.truth is None or not explanation.known.any():
        return ""
    said, truth = (v[explanation.known] for v in (explanation.predictions, explanation.truth))
    if report.classes:
        score = f"{100 * float(np.mean(said == truth)):.1f} %"
    else:
        spread = float(((truth - truth.mean()) ** 2).sum())
        score = f"{1 - float(((truth - said) ** 2).sum()) / spread:.3f}" if spread else "unknown"
    return (
        f"The model reaches {report.score_name} {score} on {len(truth)} samples of which the truth "
        "is known. Samples that it learned from look better than new ones."
    )
