"""Tables of the paper: means of the records alongside the published numbers."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from statistics import fmean, stdev
from typing import Any

from lokl._text import csv_text
from lokl.paper.cells import TABLES, nearest
from lokl.paper.methods import READINGS
from lokl.paper.published import OVERLAPPING_TIMES, PUBLISHED, SETS, breaks_bold_rule, is_ahead
from lokl.study.run_folder import Record


@dataclass(frozen=True)
class Entry:
    """One method on one data set, ours and published.

    Means, spreads and supports are percentages. Ours are None if all cells failed, and published
    ones if the paper has none.

    Attributes
    ----------
    set, method : str
        As in the paper; variants of a method are named after a comma.
    reading : str
        Reading of the paper.
    counted : bool
        Whether the method stands for the published number rather than a variant.
    mean, spread : float or None
        Mean and standard deviation over the splits.
    published, published_spread, published_seconds : float or None
        Published mean and standard deviation, and the time of a fit.
    published_bold, published_bold_seconds : bool
        Whether the paper prints the mean and the time in bold.
    breaks_rule, breaks_rule_seconds : bool
        Whether the bold print is against the paper's own rule.
    difference : float or None
        Our mean minus the published one.
    within : {1, 2, 3} or None
        Number of published deviations that the difference is within, except for rounding; 3 if it
        is larger than two of them.
    bold : bool
        Whether our mean is ahead of all other methods by both deviations, the paper's rule.
    accuracy : float or None
        Accuracy, even if the table shows another quantity.
    expert_support : float or None
        Mean support of the experts of a vote.
    fit_seconds : float or None
        Mean time of a fit.
    fit_memory : float or None
        Most MB that a fit added to its process.
    dictionary : str or None
        Name of the set of kernels.
    gamma : float or None
        Width with the best mean accuracy; None if each split chose its own.
    splits, failures : int
        Splits of the best setting, and failed cells of all settings.
    """

    set: str
    method: str
    reading: str = ""
    counted: bool = False
    mean: float | None = None
    spread: float | None = None
    published: float | None = None
    published_spread: float | None = None
    published_seconds: float | None = None
    published_bold: bool = False
    published_bold_seconds: bool = False
    breaks_rule: bool = False
    breaks_rule_seconds: bool = False
    difference: float | None = None
    within: int | None = None
    bold: bool = False
    accuracy: float | None = None
    expert_support: float | None = None
    fit_seconds: float | None = None
    fit_memory: float | None = None
    dictionary: str | None = None
    gamma: float | None = None
    splits: int = 0
    failures: int = 0


@dataclass(frozen=True)
class Shown:
    """Text of a table cell.

    Attributes
    ----------
    text : str
    bold : bool
    mark : str
        Sign after the text that refers to the legend.
    """

    text: str
    bold: bool = False
    mark: str = ""

    def markdown(self) -> str:
        """Return the cell as Markdown."""
        text = f"**{self.text}**" if self.bold else self.text
        return f"{text} {self.mark}" if self.mark else text


@dataclass(frozen=True)
class Agreement:
    """Number of results of a reading that are near the published ones.

    Attributes
    ----------
    reading : str
    cells : int
        Results with a published number.
    within_one, within_two : int
        Results within one and two published deviations.
    """

    reading: str
    cells: int
    within_one: int
    within_two: int

    def __str__(self) -> str:
        return (
            f"Reading {self.reading!r}: {self.within_one} of {self.cells} within one published "
            f"deviation, {self.within_two} within two."
        )


@dataclass(frozen=True)
class PaperTable:
    """A finished table.

    Attributes
    ----------
    name : str
        One of ``TABLES``.
    title : str
    entries : list of Entry
        In the order of the cells.

    See Also
    --------
    lokl.paper.make_table : Makes it.

    Examples
    --------
    >>> from lokl.paper import make_table
    >>> make_table("table2", records=[]).name
    'table2'
    """

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
        """Count the results near the published ones for each reading.

        Returns
        -------
        counts : list of Agreement
            Readings without a published number are left out.
        """
        counts = []
        for reading in dict.fromkeys(entry.reading for entry in self.entries):
            counted = [e for e in self.entries if e.reading == reading and e.counted]
            # A failed result is not near.
            within = [e.within or 3 for e in counted if e.published is not None]
            if within:
                near = (sum(steps <= most for steps in within) for most in (1, 2))
                counts.append(Agreement(reading, len(within), *near))
        return counts

    def csv(self) -> str:
        """Return the table as CSV."""
        rows = [asdict(entry).values() for entry in self.entries]
        return csv_text(Entry.__dataclass_fields__, rows)

    def as_dict(self) -> dict[str, Any]:
        """Return the table as plain values."""
        return {**asdict(self), "agreement": [asdict(agreement) for agreement in self.agreement()]}


# Most published means have one decimal.
_ROUNDING = 0.05
# Marks of differences beyond one and two published deviations.
_FAR: dict[int | None, str] = {2: "*", 3: "‡"}
TIES = ("smallest", "largest")

LEGEND = (
    "Mean (standard deviation) over the splits. Bold: better than all others of the set by both "
    "deviations. * and ‡: more than one and more than two published deviations from the published "
    "mean. †: bold in the paper, against its own rule. Each expert: mean support of the SVMs of a "
    "vote, whose own support is their union. The agreement counts one method for each number of "
    "the paper."
)


def _text(value: float | None, spec: str = "g") -> str:
    """Return a number in a format, or a dash for None."""
    return "-" if value is None else format(value, spec)


def _row(entry: Entry) -> dict[str, Shown]:
    """Return the texts of an entry by column."""
    ours = "failed" if entry.mean is None else f"{entry.mean:.2f} ({entry.spread:.2f})"
    theirs = _text(entry.published)
    if entry.published is not None:
        theirs += f" ({entry.published_spread:g})"
    rule, rule_seconds = ("†" if b else "" for b in (entry.breaks_rule, entry.breaks_rule_seconds))
    # Small fits use memory that the process already has.
    is_small = entry.fit_memory is not None and entry.fit_memory < 1
    return {
        "set": Shown(entry.set),
        "method": Shown(entry.method),
        "reading": Shown(entry.reading),
        "ours": Shown(ours, entry.bold),
        "published": Shown(theirs, entry.published_bold, rule),
        "difference": Shown(_text(entry.difference, "+.2f"), mark=_FAR.get(entry.within, "")),
        "each expert": Shown(_text(entry.expert_support, ".2f")),
        "fit s": Shown(_text(entry.fit_seconds, ".3g")),
        "published s": Shown(
            _text(entry.published_seconds), entry.published_bold_seconds, rule_seconds
        ),
        "fit MB": Shown("< 1" if is_small else _text(entry.fit_memory, ".0f")),
        "kernels": Shown(entry.dictionary or "-"),
        "gamma": Shown(_text(entry.gamma)),
        "splits": Shown(f"{entry.splits}{f', {entry.failures} failed' if entry.failures else ''}"),
    }


COLUMNS = tuple(_row(Entry("", "")))


def make_table(table: str, records: Iterable[Record], ties: str = "smallest") -> PaperTable:
    """Summarise the records of a table's cells.

    Parameters
    ----------
    table : str
        One of ``TABLES``.
    records : iterable of dict
        Records of the fits.
    ties : {"smallest", "largest"}, default="smallest"
        Which gamma of equal accuracy is shown.

    Returns
    -------
    table : PaperTable
        With an entry for each data set, method and reading.

    See Also
    --------
    lokl.paper.PaperTable : What it returns.
    lokl.paper.recorded_cells : Cells that have a record.

    Examples
    --------
    >>> from lokl.paper import make_table
    >>> list(make_table("table2", records=[]).as_dict())
    ['name', 'title', 'entries', 'agreement']
    """
    spec = TABLES[nearest("table", table, TABLES)]
    largest = nearest("choice of ties", ties, TIES) == "largest"
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        key = (record["data"], record["method"], record["reading"])
        groups.setdefault(key, []).append(record)
    entries = [_entry(table, *key, group, largest) for key, group in groups.items()]
    lower = spec.quantity == "support"
    marked = [replace(entry, bold=_is_best(entry, entries, lower)) for entry in entries]
    return PaperTable(table, spec.title, marked)


# Names of data sets in the paper, by their names here.
_TITLES: dict[str | None, str] = {value.name: name for name, value in SETS.items()}


def _entry(
    table: str, data: str, method: str, reading: str, group: list[Record], largest: bool
) -> Entry:
    """Return means over the splits of the best setting, next to the published value.

    Parameters
    ----------
    table : str
        One of ``TABLES``.
    data, method, reading : str
        As in all records of the group.
    group : list of dict
        Records of all settings and splits, failed ones included.
    largest : bool
        Whether the largest gamma of equal accuracy is chosen.
    """
    # Variants of a method share its published value.
    name, base = _TITLES.get(data, data), method.split(",")[0]
    fields: dict[str, Any] = {}
    published = PUBLISHED[table].get(name, {}).get(base)
    if published is not None:
        printed = {f"published_{field}": value for field, value in vars(published).items()}
        fields = {
            "published": printed.pop("published_mean"),
            **printed,
            "counted": READINGS[reading].method(base, group[0]["solver"]) == method,
            "breaks_rule": breaks_bold_rule(table, name, base),
            "breaks_rule_seconds": (table, name, base) in OVERLAPPING_TIMES,
        }
    fields["failures"] = sum(record["error"] is not None for record in group)
    best = _best_setting(group, largest)
    if best:
        values = [100.0 * record[TABLES[table].quantity] for record in best]
        experts = [v for r in best if (v := r.get("expert_support")) is not None]
        memory = [m for r in best if (m := r.get("fit_memory")) is not None]
        fields |= {
            "mean": fmean(values),
            "spread": stdev(values) if len(values) > 1 else 0.0,
            "accuracy": 100.0 * fmean(record["accuracy"] for record in best),
            "expert_support": 100.0 * fmean(experts) if experts else None,
            "fit_seconds": fmean(record["fit_seconds"] for record in best),
            "fit_memory": max(memory, default=None),
            "dictionary": best[0]["dictionary"],
            "gamma": best[0]["gamma"],
            "splits": len(best),
        }
        if published is not None:
            difference = fields["difference"] = fields["mean"] - published.mean
            steps = (k for k in (1, 2) if abs(difference) <= k * published.spread + _ROUNDING)
            fields["within"] = next(steps, 3)
    return Entry(name, method, reading, **fields)


def _best_setting(group: list[Record], largest: bool) -> list[Record]:
    """Return the records of the setting with the best mean accuracy on the test parts.

    This is how the paper chooses. A setting with fewer splits than others is unfinished, and its
    mean may be luck.

    Parameters
    ----------
    group : list of dict
    largest : bool
        Whether the largest gamma of equal accuracy is chosen.

    Returns
    -------
    records : list of dict
        One for each finished split; empty if all cells failed.
    """
    settings: dict[Any, list[Record]] = {}
    for record in group:
        if record["error"] is None:
            settings.setdefault((record["dictionary"], record["gamma"]), []).append(record)

    def rank(records: list[Record]) -> tuple[float, ...]:
        gamma = records[0]["gamma"] or 0.0
        accuracy = fmean(record["accuracy"] for record in records)
        return len(records), accuracy, gamma if largest else -gamma

    return max(settings.values(), key=rank, default=[])


def _is_best(entry: Entry, entries: list[Entry], lower: bool) -> bool:
    """Whether an entry is ahead of all others of the set and reading by the paper's rule.

    Parameters
    ----------
    entry : Entry
    entries : list of Entry
    lower : bool
        Whether smaller values are better.
    """
    key = (entry.set, entry.reading)
    rivals = [e for e in entries if (e.set, e.reading) == key and e is not entry]
    others = [(e.mean, e.spread or 0.0) for e in rivals if e.mean is not None]
    if entry.mean is None or not others:
        return False
    return is_ahead(entry.mean, entry.spread or 0.0, others, lower)
