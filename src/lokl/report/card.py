"""One sample: from the prior over the views to the decision."""

from dataclasses import dataclass

import numpy as np

from lokl.inspection.answers import DISAGREE
from lokl.report.content import Cases
from lokl.report.words import FAMILIAR, Words, chance


@dataclass(frozen=True)
class Step:
    """One bar of the way to a decision; places are in per cent of the width."""

    left: float
    width: float
    pull: str


@dataclass(frozen=True)
class Voice:
    """A view that has its say."""

    view: int
    missing: bool
    says: str
    trust: str
    step: Step


@dataclass(frozen=True)
class Neighbour:
    """A sample that is like the one on the card."""

    name: str
    case: bool  # whether it can be picked
    words: str


@dataclass(frozen=True)
class Card:
    """What is told about one sample."""

    name: str
    says: str
    truth: str
    wrong: bool
    disagreement: str  # empty where views agree
    strange: str  # views that the sample is unlike what was learned from in; empty for none
    axis: tuple[str, str]  # what bars to the left and to the right speak for
    zero: float | None  # place of the line between both
    start: Step
    voices: list[Voice]
    end: Step
    neighbours: list[Neighbour]


def card(cases: Cases, words: Words, names: list[str], k: int) -> Card:
    """Tell about sample number k; `names` are those of the views."""
    start, parts = float(cases.start[k]), np.where(cases.present[k], cases.parts[k], 0.0)
    stops = start + np.concatenate([[0.0], np.cumsum(parts)])
    # Numbers are far from zero, and only their changes count; decisions begin there.
    ends = stops if not words.classes else np.append(stops, 0.0)
    low, high = float(ends.min()), float(ends.max())
    span = (high - low) or 1.0

    def bar(a: float, b: float, pull: str) -> Step:
        return Step(100 * (min(a, b) - low) / span, 100 * abs(b - a) / span, pull)

    base = 0.0 if words.classes else None
    end = float(stops[-1])
    told = words.part if words.classes else words.outcome
    differ = float(cases.disagreement[k])
    return Card(
        cases.ids[k],
        headline(cases, words, k),
        words.outcome(float(cases.truth[k])),
        bool(cases.wrong[k]),
        chance(differ) if np.isfinite(differ) and differ >= DISAGREE else "",
        _strange(cases, names, k),
        _axis(cases, words, k),
        None if base is None else 100 * (base - low) / span,
        bar(start if base is None else base, start, told(start)),
        [
            Voice(
                v,
                not bool(cases.present[k, v]),
                _says(cases, words, k, v),
                chance(float(cases.trust[k, v])),
                bar(float(stops[v]), float(stops[v + 1]), words.part(float(parts[v]))),
            )
            for v in range(len(parts))
        ],
        bar(end if base is None else base, end, told(end)),
        neighbours(cases, words, k),
    )


def headline(cases: Cases, words: Words, k: int) -> str:
    """Return the answer with the probabilities of the likeliest classes."""
    said = words.outcome(float(cases.predicted[k]))
    if cases.probabilities is None:
        return said
    own = cases.probabilities[k]
    predicted = int(cases.predicted[k])
    others = [c for c in np.argsort(-own, kind="stable") if c != predicted][:3]
    rest = ", ".join(f"{words.classes[c]} {chance(float(own[c]))}" for c in others)
    return f"{said}, probability {chance(float(own[predicted]))} ({rest})"


def _says(cases: Cases, words: Words, k: int, view: int) -> str:
    said = words.outcome(float(cases.says[k, view]))
    sure = float(cases.sure[k, view])
    return f"{said} {chance(sure)}" if said and np.isfinite(sure) else said


def _strange(cases: Cases, names: list[str], k: int) -> str:
    if cases.familiar is None:
        return ""
    found = [
        f"{name} {chance(float(known))}"
        for name, known, here in zip(names, cases.familiar[k], cases.present[k], strict=True)
        if here and known < FAMILIAR
    ]
    return ", ".join(found)


def _axis(cases: Cases, words: Words, k: int) -> tuple[str, str]:
    if not words.classes:
        return "less", "more"
    others = np.arange(len(words.classes)) != int(cases.predicted[k])
    if cases.probabilities is None or len(words.classes) == 2:
        names = [name for name, other in zip(words.classes, others, strict=True) if other]
        rival = names[0] if len(names) == 1 else "the runner-up"
    else:
        chances = np.where(others, cases.probabilities[k], -1.0)
        rival = words.classes[int(chances.argmax())]
    return rival, words.classes[int(cases.predicted[k])]


def neighbours(cases: Cases, words: Words, k: int) -> list[Neighbour]:
    """Return the samples that are most like sample number k."""
    if cases.support is not None:
        known = set(cases.ids)
        own = cases.support
        return [
            Neighbour(own.ids[j], own.ids[j] in known, _like(words.outcome(float(own.truth[j])), a))
            for j, a in zip(own.near[k], own.alike[k], strict=True)
        ]
    return [
        Neighbour(
            cases.ids[j], True, words.outcome(float(cases.truth[j])) if cases.known[j] else ""
        )
        for j in cases.near[k]
    ]


def _like(outcome: str, alike: float) -> str:
    return ", ".join(part for part in (outcome, f"alike {chance(alike)}") if part)
