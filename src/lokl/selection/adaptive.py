"""Candidates that cannot win are left out: the score falls ever further towards them.

For scores that say nothing of single rows; where they do, there is a race over folds.

A line has ascending costs. Where the mean score has fallen three times in a row, each time strictly
below the one before, the rest of the line is skipped; equal scores are no fall, and neither is the
score of a candidate that could not be fitted. Lines that differ in one number, such as the width of
a kernel, are a sheet. Its middle costs are evaluated first; then lines are followed outwards from
the best one, and where the best score of a line has fallen three times in a row, the lines beyond
are skipped.
"""

from collections.abc import Iterable
from dataclasses import replace

from lokl.selection.assignment import Line
from lokl.selection.evaluation import Evaluation, run_lines
from lokl.selection.grid import Coordinates, coordinates, is_number, last_part
from lokl.selection.in_step import threads_for
from lokl.selection.side_by_side import Walk, follow, side_by_side

_FALLS = 3


def evaluate_promising(evaluation: Evaluation, lines: list[Line]) -> None:
    """Evaluate candidates line by line, as long as scores do not fall three times in a row."""
    costs = [part for line in lines for part in line.by_cost()]
    evaluation.n_lines += len(costs)
    for sheet in sheets(costs):
        if evaluation.is_over:
            return
        # Three falls and one line beyond, or nothing can be skipped.
        if len(sheet) > _FALLS + 1:
            _walk_outwards(evaluation, sheet)
        else:
            for line in sheet:
                follow(_promising(evaluation, line, threads_for(evaluation.task.n_jobs)))


def falls_in_a_row(scores: Iterable[float]) -> int:
    """How many times the scores have just fallen, one after the other."""
    falls, last = 0, None
    for score in scores:
        falls = falls + 1 if last is not None and score < last else 0
        last = score
    return falls


def sheets(lines: list[Line]) -> list[list[Line]]:
    """Put lines together that differ in one number, in its order; others are alone."""
    first = [coordinates(line.task.candidates[line.candidates[0]]) for line in lines]
    number = _most_varied(first)
    groups: dict[object, list[int]] = {}
    for index, place in enumerate(first):
        has = number is not None and is_number(place.get(number))
        fixed = frozenset(
            (name, value)
            for name, value in place.items()
            if last_part(name) != "C" and (name != number or not has)
        )
        groups.setdefault(fixed if has else index, []).append(index)
    return [
        [lines[i] for i in sorted(group, key=lambda i: first[i].get(number or "", 0))]
        for group in groups.values()
    ]


def _most_varied(places: list[Coordinates]) -> str | None:
    """Name of the number, other than the cost, that has the most values."""
    values: dict[str, set[object]] = {}
    for place in places:
        for name, value in place.items():
            if is_number(value) and last_part(name) != "C":
                values.setdefault(name, set()).add(value)
    return max(values, key=lambda name: len(values[name]), default=None)


def _walk_outwards(evaluation: Evaluation, sheet: list[Line]) -> None:
    """Follow the lines of a sheet from the best one to both sides."""
    middles = [replace(line, candidates=[_middle(line)]) for line in sheet]
    run_lines(evaluation, middles, evaluation.along)
    known = [place for place, line in enumerate(sheet) if _middle(line) in evaluation.cells]
    if not known:
        return
    start = max(known, key=lambda place: _or_lowest(evaluation.mean(_middle(sheet[place]))))
    threads = threads_for(evaluation.task.n_jobs)
    best = follow(_promising(evaluation, sheet[start], threads))
    sides = [side for side in (sheet[start + 1 :], sheet[:start][::-1]) if side]
    if sides:
        at_once = min(sheet[start].at_once, len(sides))
        threads = max(1, threads // at_once)
        side_by_side((_side(evaluation, side, best, threads) for side in sides), at_once)


def _middle(line: Line) -> int:
    return line.candidates[len(line.candidates) // 2]


def _side(evaluation: Evaluation, side: list[Line], best: float, threads: int) -> Walk[None]:
    """Follow lines until the best score of a line has fallen too often."""
    scores = [best]
    for place, line in enumerate(side):
        scores.append((yield from _promising(evaluation, line, threads)))
        if falls_in_a_row(scores) == _FALLS:
            for beyond in side[place + 1 :]:
                evaluation.skip(
                    beyond.candidates, f"the score fell {_FALLS} times in a row towards them"
                )
            return


def _promising(evaluation: Evaluation, line: Line, threads: int) -> Walk[float]:
    """Evaluate a line until its score has fallen too often; return its best score."""
    if evaluation.is_over:
        return float("nan")

    def stop(line: Line, known: int) -> bool:
        means = [evaluation.mean(candidate) for candidate in line.candidates[:known]]
        if falls_in_a_row(means) < _FALLS:
            return False
        rest = line.candidates[known:]
        evaluation.skip(rest, f"the score fell {_FALLS} times in a row along C")
        return True

    yield from evaluation.along(line, threads, stop)
    evaluation.finish_line(line)
    means = [evaluation.mean(candidate) for candidate in line.candidates]
    return max(map(_or_lowest, means), default=float("nan"))


def _or_lowest(score: float) -> float:
    return score if score == score else -float("inf")
