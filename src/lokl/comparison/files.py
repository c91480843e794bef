"""Files of a comparison, each of them whole or as it was before."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lokl.comparison.results import Results

RESULTS, PREDICTIONS, MODEL, REPORT = "results.csv", "predictions.csv", "model.lokl", "report.html"
# Columns whose values are the machine's.
MEASURED = ("seconds",)
_HEAD = ("candidate", "role", "repeat", "fold", "samples", "score")
_TAIL = ("seconds", "support", "inner score", "settings", "error")


def results_csv(results: Results) -> str:
    """Return a line for each candidate and fold."""
    known = [record for record in results.records.values() if record["error"] is None]
    more = [name for name in _EXTRA if any(name in record for record in known)]
    return _csv([*_HEAD, *more, *_TAIL], _fold_rows(results, more))


_EXTRA = ("balanced accuracy", "log loss", "sensitivity", "specificity", "absolute error")


def _fold_rows(results: Results, more: Sequence[str]) -> Iterator[list[Any]]:
    for candidate in results.bench.candidates.values():
        for split, (repeat, fold) in enumerate(results.bench.labels):
            record = results.records.get((candidate.name, split))
            if record is None:
                continue
            yield [
                candidate.name,
                candidate.role,
                repeat + 1,
                fold + 1,
                len(results.bench.splits[split][1]),
                record.get("score"),
                *(record.get(name) for name in more),
                record.get("seconds"),
                record.get("support"),
                record.get("inner"),
                record.get("settings"),
                record["error"],
            ]


def predictions_csv(results: Results) -> str:
    """Return a line for each sample and repeat: what the chosen model said when it was left out."""
    chosen = results.chosen
    if chosen is None:
        return ""
    bench, views = results.bench, list(results.table.views)
    classes, ids = bench.question.classes, results.table.ids
    head = ["id", "repeat", "fold", str(results.table.target.name), "prediction"]
    head += [f"probability {label}" for label in classes]
    several = len(views) > 1
    head += [f"trust {view}" for view in views] + ["disagreement"] if several else []

    def rows() -> Iterator[list[Any]]:
        for split in results.splits:
            record, (repeat, fold) = results.records[chosen.name, split], bench.labels[split]
            chances = record["probabilities"] or [[None] * len(classes)] * len(record["predicted"])
            said = bench.question.names(record["predicted"])
            for k, row in enumerate(bench.splits[split][1]):
                line = [ids[row], repeat + 1, fold + 1]
                line += [bench.part.y[row], said[k], *chances[k]]
                if several:
                    line += [*record["trust"][k], record["disagreement"][k]]
                yield line

    order = {name: place for place, name in enumerate(ids)}
    return _csv(head, sorted(rows(), key=lambda line: (line[1], order[line[0]])))


def _csv(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow(
            f"{value:.6g}" if isinstance(value, float) else "" if value is None else value
            for value in row
        )
    return stream.getvalue()
