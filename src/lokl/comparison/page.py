"""The report about a comparison, from its results."""

from pathlib import Path
from typing import Any

import numpy as np

from lokl._environment import system, versions
from lokl.comparison.candidates import BASELINE
from lokl.comparison.results import Results, Row
from lokl.comparison.settings import Settings
from lokl.report import Candidate, Finding, Interval, Report, Source, Subset, ViewWorth
from lokl.report.facts import duplicates
from lokl.report.gather import alignment_of, cases_from
from lokl.tables.schema import places_in_model


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
    told = None if chosen is None else results.held_out(chosen.name, 0)
    frame = results.table.frame
    what = "table" if len(results.table.views) > 1 else "model"
    cases = alike = None
    if told is not None and model is not None:
        y, ids = results.bench.part.y, results.table.ids
        cases = cases_from(told, model, frame, y, ids, training=(frame, y, ids))
        alike = alignment_of(model, frame, y, places_in_model(model))
    return Report(
        title=f"{results.table.target.name}: which {what} to trust",
        verdict=verdict(results),
        score_name=results.score_name,
        classes=[str(label) for label in results.bench.question.classes],
        views=_views(results, told),
        leaderboard=[_candidate(row, results) for row in results.rows],
        findings=found,
        subsets=_subsets(results),
        cases=cases,
        audit=_audit(results, settings),
        command=again,
        alignment=alike,
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


def _candidate(row: Row, results: Results) -> Candidate:
    return Candidate(
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


def _views(results: Results, told: Any) -> list[ViewWorth]:
    found = []
    n = len(results.bench.part.y)
    lacking = results.table.lacking()
    for place, worth in enumerate(results.worth()):
        part = trust = float("nan")
        if told is not None and told.present[:, place].any():
            has = told.present[:, place]
            part = float(np.abs(told.parts[has, place]).mean())
            trust = float(told.trust[has, place].mean())
        found.append(
            ViewWorth(
                worth.view,
                len(results.table.views[worth.view]),
                None if worth.alone is None else Interval(*worth.alone),
                None if worth.loss is None else Interval(*worth.loss),
                part,
                trust,
                lacking.get(worth.view, 0) / n,
            )
        )
    return found


def _subsets(results: Results) -> list[Subset]:
    """Each view alone, all but each, and all of them."""
    chosen, worth = results.chosen, results.worth()
    if chosen is None or len(worth) < 2:
        return []
    views = [own.view for own in worth]
    found = [Subset((own.view,), Interval(*own.alone)) for own in worth if own.alone is not None]
    # Of two views, all but one is the other one, which is there already.
    for own in worth if len(views) > 2 else ():
        if own.without is not None:
            left = tuple(view for view in views if view != own.view)
            found.append(Subset(left, Interval(*own.without)))
    return [*found, Subset(tuple(views), Interval(*chosen.interval))]


def _sources(results: Results, settings: Settings) -> list[Source]:
    """Files that went in; the one of the target may have nothing else in it."""
    sizes = {Path(name).name: size for name, size in results.table.files.items()}
    checks = settings.checksums()
    found = []
    for name in dict.fromkeys([*sizes, *checks]):
        rows, columns, empty = sizes.get(name, (None, None, None))
        found.append(Source(name, rows, columns, empty, checks.get(name, "")))
    return found


def _twins(results: Results) -> str:
    """How many samples equal one that their model had learned from, in the first repeat."""
    bench, frame = results.bench, results.table.frame
    splits = [bench.splits[k] for k, label in enumerate(bench.labels) if label[0] == 0]
    twins = sum(duplicates(frame.iloc[kept], frame.iloc[left]) for kept, left in splits)
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
