"""Tables of the paper: what the records say beside the published numbers."""

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from statistics import fmean, stdev
from typing import Any

from lokl.paper.plan import TABLES, TableSpec, nearest
from lokl.paper.published import OVERLAPPING_TIMES, PUBLISHED, SETS, breaks_bold_rule, is_ahead


@dataclass(frozen=True)
class Entry:
    """One method on one data set, ours and published."""

    set: str
    method: str
    mean: float | None = None  # over the splits; None where all cells failed
    spread: float | None = None
    published: float | None = None
    published_spread: float | None = None
    published_seconds: float | None = None
    published_bold: bool = False  # printed in bold by the paper
    published_bold_seconds: bool = False
    breaks_rule: bool = False  # printed in bold although the paper's own rule would not
    breaks_rule_seconds: bool = False
    difference: float | None = None
    outside: bool = False  # farther from the published mean than its deviation and rounding
    bold: bool = False  # ahead of all other methods by both deviations: the paper's rule
    accuracy: float | None = None  # in %, also where the table shows another quantity
    fit_seconds: float | None = None  # mean of a fit
    fit_memory: float | None = None  # most MB that a fit added to its process
    dictionary: str | None = None
    gamma: float | None = None  # with the best mean accuracy; None where each split chose its own
    splits: int = 0
    failures: int = 0


@dataclass(frozen=True)
class Shown:
    """A number or name as a table shows it; the mark stands behind it and refers to the legend."""

    text: str
    bold: bool = False
    mark: str = ""

    def markdown(self) -> str:
        text = f"**{self.text}**" if self.bold else self.text
        return f"{text} {self.mark}" if self.mark else text


@dataclass(frozen=True)
class ResultTable:
    """A finished table."""

    name: str
    title: str
    entries: list[Entry]

    def rows(self) -> list[dict[str, Shown]]:
        """Return what the table shows of each entry, by ``COLUMNS``."""
        return [_row(entry) for entry in self.entries]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        rows = [[shown.markdown() for shown in row.values()] for row in self.rows()]
        lines = [f"| {' | '.join(row)} |" for row in [COLUMNS, ["---"] * len(COLUMNS), *rows]]
        return "\n".join([f"**{self.title}**", "", *lines, "", LEGEND, ""])

    def csv(self) -> str:
        """Return the table as CSV."""
        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(Entry.__dataclass_fields__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(entry) for entry in self.entries)
        return stream.getvalue()

    def as_dict(self) -> dict[str, Any]:
        """Return the table as plain values."""
        return asdict(self)


# Most published means have one decimal.
_ROUNDING = 0.05

LEGEND = (
    "Mean (standard deviation) over the splits. Bold: better than all others of the set by both "
    "deviations. *: farther from the published mean than its deviation. †: printed in bold, "
    "against the paper's own rule."
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
    # Small fits find room in memory that the process has already.
    memory = "< 1" if (entry.fit_memory or 0.0) < 1 else f"{entry.fit_memory:.0f}"
    breaks, breaks_seconds = entry.breaks_rule, entry.breaks_rule_seconds
    return {
        "set": Shown(entry.set),
        "method": Shown(entry.method),
        "ours": Shown(ours, entry.bold),
        "published": Shown(theirs, entry.published_bold, "†" if breaks else ""),
        "difference": Shown(difference, mark="*" if entry.outside else ""),
        "fit s": Shown("-" if entry.fit_seconds is None else f"{entry.fit_seconds:.3g}"),
        "published s": Shown(seconds, entry.published_bold_seconds, "†" if breaks_seconds else ""),
        "fit MB": Shown("-" if entry.fit_memory is None else memory),
        "kernels": Shown(entry.dictionary or "-"),
        "gamma": Shown("-" if entry.gamma is None else f"{entry.gamma:g}"),
        "splits": Shown(splits),
    }


COLUMNS = tuple(_row(Entry("", "")))


def make_table(table: str, records: Iterable[dict[str, Any]]) -> ResultTable:
    """Sum up the records of a table's cells."""
    spec = TABLES[nearest("table", table, TABLES)]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    titles = {value.name: name for name, value in SETS.items()}
    for record in records:
        name = titles.get(record["data"], record["data"])
        groups.setdefault((name, record["method"]), []).append(record)
    entries = [_entry(table, spec, *key, group) for key, group in groups.items()]
    return ResultTable(table, spec.title, _mark_best(entries, lower=spec.quantity == "support"))


def _entry(
    table: str, spec: TableSpec, name: str, method: str, group: list[dict[str, Any]]
) -> Entry:
    settings: dict[Any, list[dict[str, Any]]] = {}
    for record in group:
        if record["error"] is None:
            settings.setdefault((record["dictionary"], record["gamma"]), []).append(record)
    # Variants of a method stand beside its published result.
    base = method.split(",")[0]
    published = PUBLISHED[table].get(name, {}).get(base)
    entry = Entry(name, method, failures=sum(record["error"] is not None for record in group))
    if published:
        entry = replace(
            entry,
            published=published.mean,
            published_spread=published.spread,
            published_seconds=published.seconds,
            published_bold=published.bold,
            published_bold_seconds=published.bold_seconds,
            breaks_rule=breaks_bold_rule(table, name, base),
            breaks_rule_seconds=(table, name, base) in OVERLAPPING_TIMES,
        )
    if not settings:
        return entry
    # As in the paper: the setting with the best mean accuracy on the test parts, and of equal ones
    # the smallest gamma. One with fewer splits than others is not done yet: its mean may be luck.
    most = max(len(own) for own in settings.values())
    (dictionary, gamma), best = max(
        (item for item in settings.items() if len(item[1]) == most),
        key=lambda item: (fmean(r["accuracy"] for r in item[1]), -(item[0][1] or 0.0)),
    )
    values = [100.0 * record[spec.quantity] for record in best]
    mean = fmean(values)
    return replace(
        entry,
        mean=mean,
        spread=stdev(values) if len(values) > 1 else 0.0,
        difference=None if published is None else mean - published.mean,
        outside=published is not None and abs(mean - published.mean) > published.spread + _ROUNDING,
        accuracy=100.0 * fmean(record["accuracy"] for record in best),
        fit_seconds=fmean(record["fit_seconds"] for record in best),
        fit_memory=max((m for r in best if (m := r.get("fit_memory")) is not None), default=None),
        dictionary=dictionary,
        gamma=gamma,
        splits=len(best),
    )


def _mark_best(entries: list[Entry], *, lower: bool) -> list[Entry]:
    """Set bold by the paper's rule: ahead of every other method by both deviations."""
    marked = []
    for entry in entries:
        rivals = [e for e in entries if e.set == entry.set and e is not entry]
        others = [(e.mean, e.spread or 0.0) for e in rivals if e.mean is not None]
        if entry.mean is not None and others:
            bold = is_ahead(entry.mean, entry.spread or 0.0, others, lower)
            entry = replace(entry, bold=bold)
        marked.append(entry)
    return marked
