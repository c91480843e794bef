"""Tables of the paper: means of the records alongside the published numbers."""

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from statistics import fmean, stdev
from typing import Any

from lokl.paper.cells import TABLES, nearest
from lokl.paper.methods import READINGS
from lokl.paper.published import OVERLAPPING_TIMES, PUBLISHED, SETS, breaks_bold_rule, is_ahead


@dataclass(frozen=True)
class Entry:
    """One method on one data set, ours and published."""

    set: str
    method: str
    reading: str = ""  # of the paper
    counted: bool = False  # stands for the published number, and is not a variant
    mean: float | None = None  # over the splits; None if all cells failed
    spread: float | None = None
    published: float | None = None
    published_spread: float | None = None
    published_seconds: float | None = None
    published_bold: bool = False  # printed in bold by the paper
    published_bold_seconds: bool = False
    breaks_rule: bool = False  # printed in bold although the paper's own rule would not
    breaks_rule_seconds: bool = False
    difference: float | None = None
    # Published deviations that the difference is within, but for rounding: 1, 2, or 3 if farther.
    within: int | None = None
    bold: bool = False  # ahead of all other methods by both deviations: the paper's rule
    accuracy: float | None = None  # in %, even if the table shows another quantity
    expert_support: float | None = None  # in %, mean over the experts of a vote
    fit_seconds: float | None = None  # mean of a fit
    fit_memory: float | None = None  # most MB that a fit added to its process
    dictionary: str | None = None
    gamma: float | None = None  # with the best mean accuracy; None if each split chose its own
    splits: int = 0
    failures: int = 0


@dataclass(frozen=True)
class Shown:
    """Text of a table cell; the mark follows it and refers to the legend."""

    text: str
    bold: bool = False
    mark: str = ""

    def markdown(self) -> str:
        text = f"**{self.text}**" if self.bold else self.text
        return f"{text} {self.mark}" if self.mark else text


@dataclass(frozen=True)
class Agreement:
    """Number of results of a reading that are near the published ones."""

    reading: str
    cells: int  # with a published number
    within_one: int  # published deviation
    within_two: int

    def __str__(self) -> str:
        return (
            f"Reading {self.reading!r}: {self.within_one} of {self.cells} within one published "
            f"deviation, {self.within_two} within two."
        )


@dataclass(frozen=True)
class PaperTable:
    """A finished table."""

    name: str
    title: str
    entries: list[Entry]

    def rows(self) -> list[dict[str, Shown]]:
        """Return the texts of each entry, by ``COLUMNS``."""
        return [_row(entry) for entry in self.entries]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        rows = [[shown.markdown() for shown in row.values()] for row in self.rows()]
        lines = [f"| {' | '.join(row)} |" for row in [COLUMNS, ["---"] * len(COLUMNS), *rows]]
        counts = [line for agreement in self.agreement() for line in (str(agreement), "")]
        return "\n".join([f"**{self.title}**", "", *lines, "", *counts, LEGEND, ""])

    def agreement(self) -> list[Agreement]:
        """Count the results near the published ones for each reading."""
        found = []
        for reading in dict.fromkeys(entry.reading for entry in self.entries):
            counted = [e for e in self.entries if e.reading == reading and e.counted]
            within = [e.within for e in counted if e.published is not None]
            if within:
                found.append(Agreement(reading, len(within), _near(within, 1), _near(within, 2)))
        return found

    def csv(self) -> str:
        """Return the table as CSV."""
        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(Entry.__dataclass_fields__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(entry) for entry in self.entries)
        return stream.getvalue()

    def as_dict(self) -> dict[str, Any]:
        """Return the table as plain values."""
        return {**asdict(self), "agreement": [asdict(agreement) for agreement in self.agreement()]}


def _near(within: list[int | None], most: int) -> int:
    return sum(steps is not None and steps <= most for steps in within)


# Most published means have one decimal.
_ROUNDING = 0.05
# Marks of differences beyond one and two published deviations.
_FAR: dict[int | None, str] = {2: "*", 3: "‡"}
TIES = ("smallest", "largest")

LEGEND = (
    "Mean (standard deviation) over the splits. Bold: better than all others of the set by both "
    "deviations. *: farther from the published mean than its deviation, ‡: than two of them. †: "
    "printed in bold, against the paper's own rule. Each expert: mean support of the machines of a "
    "vote, whose support is the union. Counted is one method for each number of the paper."
)


def _row(entry: Entry) -> dict[str, Shown]:
    ours = "failed" if entry.mean is None else f"{entry.mean:.2f} ({entry.spread:.2f})"
    theirs = seconds = "-"
    if entry.published is not None:
        theirs = f"{entry.published:g} ({entry.published_spread:g})"
    if entry.published_seconds is not None:
        seconds = f"{entry.published_seconds:g}"
    difference = "-" if entry.difference is None else f"{entry.difference:+.2f}"
    splits = str(entry.splits) + (f", {entry.failures} failed" if entry.failures else "")
    # Small fits use memory that the process already has.
    memory = "< 1" if (entry.fit_memory or 0.0) < 1 else f"{entry.fit_memory:.0f}"
    breaks, breaks_seconds = entry.breaks_rule, entry.breaks_rule_seconds
    return {
        "set": Shown(entry.set),
        "method": Shown(entry.method),
        "reading": Shown(entry.reading),
        "ours": Shown(ours, entry.bold),
        "published": Shown(theirs, entry.published_bold, "†" if breaks else ""),
        "difference": Shown(difference, mark=_FAR.get(entry.within, "")),
        "each expert": Shown(
            "-" if entry.expert_support is None else f"{entry.expert_support:.2f}"
        ),
        "fit s": Shown("-" if entry.fit_seconds is None else f"{entry.fit_seconds:.3g}"),
        "published s": Shown(seconds, entry.published_bold_seconds, "†" if breaks_seconds else ""),
        "fit MB": Shown("-" if entry.fit_memory is None else memory),
        "kernels": Shown(entry.dictionary or "-"),
        "gamma": Shown("-" if entry.gamma is None else f"{entry.gamma:g}"),
        "splits": Shown(splits),
    }


COLUMNS = tuple(_row(Entry("", "")))


def make_table(table: str, records: Iterable[dict[str, Any]], ties: str = "smallest") -> PaperTable:
    """Summarise the records of a table's cells.

    Parameters
    ----------
    table : str
        One of ``TABLES``.
    records : iterable of dict
    ties : {"smallest", "largest"}, default="smallest"
        Which gamma of equal accuracy is shown.
    """
    spec = TABLES[nearest("table", table, TABLES)]
    largest = nearest("choice of ties", ties, TIES) == "largest"
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    titles = {value.name: name for name, value in SETS.items()}
    for record in records:
        name = titles.get(record["data"], record["data"])
        groups.setdefault((name, record["method"], record["reading"]), []).append(record)
    entries = []
    for (name, method, reading), group in groups.items():
        entry = _with_published(table, Entry(name, method, reading), group[0]["solver"])
        entries.append(_with_means(entry, spec.quantity, group, largest))
    return PaperTable(table, spec.title, _mark_best(entries, lower=spec.quantity == "support"))


def _with_published(table: str, entry: Entry, solver: str) -> Entry:
    """Add the published value; variants of a method share its published value."""
    base = entry.method.split(",")[0]
    published = PUBLISHED[table].get(entry.set, {}).get(base)
    if published is None:
        return entry
    return replace(
        entry,
        counted=READINGS[entry.reading].method(base, solver) == entry.method,
        published=published.mean,
        published_spread=published.spread,
        published_seconds=published.seconds,
        published_bold=published.bold,
        published_bold_seconds=published.bold_seconds,
        breaks_rule=breaks_bold_rule(table, entry.set, base),
        breaks_rule_seconds=(table, entry.set, base) in OVERLAPPING_TIMES,
    )


def _with_means(entry: Entry, quantity: str, group: list[dict[str, Any]], largest: bool) -> Entry:
    """Add means over the splits of the best setting."""
    settings: dict[Any, list[dict[str, Any]]] = {}
    for record in group:
        if record["error"] is None:
            settings.setdefault((record["dictionary"], record["gamma"]), []).append(record)
    entry = replace(entry, failures=sum(record["error"] is not None for record in group))
    if not settings:
        return entry
    # As in the paper: the setting with the best mean accuracy on the test parts. A setting with
    # fewer splits is not finished, and its mean may be luck.
    most = max(len(splits) for splits in settings.values())
    sign = 1.0 if largest else -1.0
    (dictionary, gamma), best = max(
        (item for item in settings.items() if len(item[1]) == most),
        key=lambda item: (fmean(r["accuracy"] for r in item[1]), sign * (item[0][1] or 0.0)),
    )
    values = [100.0 * record[quantity] for record in best]
    mean = fmean(values)
    difference = None if entry.published is None else mean - entry.published
    experts = [v for r in best if (v := r.get("expert_support")) is not None]
    return replace(
        entry,
        mean=mean,
        spread=stdev(values) if len(values) > 1 else 0.0,
        difference=difference,
        within=None if difference is None else _deviations(difference, entry.published_spread),
        accuracy=100.0 * fmean(record["accuracy"] for record in best),
        expert_support=100.0 * fmean(experts) if experts else None,
        fit_seconds=fmean(record["fit_seconds"] for record in best),
        fit_memory=max((m for r in best if (m := r.get("fit_memory")) is not None), default=None),
        dictionary=dictionary,
        gamma=gamma,
        splits=len(best),
    )


def _deviations(difference: float, spread: float | None) -> int:
    """Return 1 or 2 if a difference is within that many published deviations, else 3."""
    far = (count for count in (1, 2) if abs(difference) <= count * (spread or 0.0) + _ROUNDING)
    return next(far, 3)


def _mark_best(entries: list[Entry], *, lower: bool) -> list[Entry]:
    """Set bold by the paper's rule: ahead of all others of the reading by both deviations."""
    marked = []
    for entry in entries:
        same = [e for e in entries if (e.set, e.reading) == (entry.set, entry.reading)]
        rivals = [e for e in same if e is not entry]
        others = [(e.mean, e.spread or 0.0) for e in rivals if e.mean is not None]
        if entry.mean is not None and others:
            bold = is_ahead(entry.mean, entry.spread or 0.0, others, lower)
            entry = replace(entry, bold=bold)
        marked.append(entry)
    return marked
