"""Tables of the paper: which cells they need, and what the records say beside it."""

import csv
import difflib
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from statistics import fmean, stdev
from typing import Any

from lokl.paper.cells import Cell
from lokl.paper.methods import DICTIONARIES, GAMMAS, WITHOUT_GAMMA, method_names
from lokl.paper.published import PUBLISHED, SETS


@dataclass(frozen=True)
class TableSpec:
    """What a table shows.

    Attributes
    ----------
    title : str
    quantity : {"accuracy", "support"}
    solver : str
    methods : tuple of str
    """

    title: str
    quantity: str
    solver: str
    methods: tuple[str, ...]


_LOCALIZED = ("LMKL", "SwMKL", "LD-MKL", "C-LMKL")
TABLES = {
    "table2": TableSpec("Accuracy %, exact solver", "accuracy", "exact", _LOCALIZED),
    "table3": TableSpec("Accuracy %, multiplicative weights", "accuracy", "mwu", _LOCALIZED),
    "table4": TableSpec(
        "Support points, % of the training samples",
        "support",
        "exact",
        (*_LOCALIZED, "MWUMKL", "UNIFORM", "UNIFORM, trace", "GMKL"),
    ),
}
# A look at every set and method in minutes.
_QUICK_REPEATS, _QUICK_ROWS = 3, 1000


def nearest(what: str, name: str, known: Iterable[str]) -> str:
    """Return the known name, or raise with those that look like it."""
    known = list(known)
    if name in known:
        return name
    folded = {other.lower(): other for other in known}
    if name.lower() in folded:
        return folded[name.lower()]
    close = difflib.get_close_matches(name, known) or difflib.get_close_matches(
        name.lower(), folded
    )
    hint = f"did you mean {folded.get(close[0], close[0])!r}?" if close else "choose one of"
    raise ValueError(f"unknown {what} {name!r}; {hint} ({', '.join(known)})")


def make_cells(
    table: str,
    *,
    sets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    repeats: int | None = None,
    dictionaries: Sequence[str] = ("quadratic, Gaussian",),
    selection: str = "paper",
    solver: str | None = None,
    seed: int = 0,
    quick: bool = False,
) -> list[Cell]:
    """Return all cells of a table.

    Parameters
    ----------
    table : str
        One of ``TABLES``.
    sets, methods : sequences of str, optional
        Only these.
    repeats : int, optional
        Splits; None is the paper's number.
    dictionaries : sequence of str
        Of the kernels, which the paper does not state.
    selection : {"paper", "nested"}, default="paper"
    solver : str, optional
        Another solver than the table's.
    seed : int, default=0
    quick : bool, default=False
        Three splits, three widths, at most 1,000 rows of a set.
    """
    spec = TABLES[nearest("table", table, TABLES)]
    selection = nearest("selection", selection, ("paper", "nested"))
    names = [nearest("data set", name, SETS) for name in sets or SETS]
    chosen = [nearest("method", name, method_names()) for name in methods or spec.methods]
    lists = [nearest("dictionary", name, DICTIONARIES) for name in dictionaries]
    widths: Sequence[float | None] = GAMMAS[::4] if quick else GAMMAS
    if selection == "nested":
        widths = [None]
    cells = []
    for name, method, dictionary in product(names, chosen, lists):
        count = repeats or (_QUICK_REPEATS if quick else SETS[name].repeats)
        own = [None] if dictionary in WITHOUT_GAMMA else widths
        cells += [
            Cell(
                SETS[name].name,
                method,
                dictionary,
                gamma,
                "paper" if dictionary in WITHOUT_GAMMA else selection,
                solver or spec.solver,
                split,
                seed=seed,
                rows=_QUICK_ROWS if quick else None,
            )
            for gamma, split in product(own, range(count))
        ]
    return cells


@dataclass(frozen=True)
class Entry:
    """One method on one data set, ours and published.

    Attributes
    ----------
    set, method : str
    mean, spread : float or None
        Of the quantity over the splits; None where all cells failed.
    published, published_spread : float or None
    difference : float or None
    outside : bool
        Whether ours is farther from the published mean than its standard deviation.
    bold : bool
        Better than all other methods on the set by both standard deviations: the paper's rule.
    accuracy : float or None
        In %, whatever the table shows.
    fit_seconds : float or None
    dictionary : str or None
    gamma : float or None
        Of the best mean accuracy; None where each split chose its own.
    splits, failures : int
    """

    set: str
    method: str
    mean: float | None
    spread: float | None
    published: float | None
    published_spread: float | None
    difference: float | None
    outside: bool
    bold: bool
    accuracy: float | None
    fit_seconds: float | None
    dictionary: str | None
    gamma: float | None
    splits: int
    failures: int


@dataclass(frozen=True)
class ResultTable:
    """A finished table."""

    name: str
    title: str
    entries: list[Entry]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [
            f"**{self.title}**",
            "",
            "| set | method | ours | published | difference | fit s | kernels | splits |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        lines += [" | ".join(["", *cells_of(entry), ""]).strip() for entry in self.entries]
        return "\n".join([*lines, "", LEGEND, ""])

    def csv(self) -> str:
        """Return the table as CSV."""
        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(Entry.__dataclass_fields__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(entry) for entry in self.entries)
        return stream.getvalue()

    def json(self) -> str:
        """Return the table as JSON."""
        return json.dumps(asdict(self), indent=1)


# What is not known of a method whose cells all failed.
_MEASURED = ("mean", "spread", "difference", "accuracy", "fit_seconds", "dictionary", "gamma")

LEGEND = (
    "Mean (standard deviation) over the splits. Bold: better than all others of the set by both "
    "deviations. *: farther from the published mean than its deviation."
)


def cells_of(entry: Entry) -> list[str]:
    """Texts of one row."""
    ours = "failed" if entry.mean is None else f"{entry.mean:.2f} ({entry.spread:.2f})"
    theirs = "-"
    if entry.published is not None:
        theirs = f"{entry.published:g} ({entry.published_spread:g})"
    difference = "-" if entry.difference is None else f"{entry.difference:+.2f}"
    kernels = entry.dictionary or "-"
    if entry.gamma is not None:
        kernels += f", gamma {entry.gamma:g}"
    splits = str(entry.splits) + (f", {entry.failures} failed" if entry.failures else "")
    return [
        entry.set,
        entry.method,
        f"**{ours}**" if entry.bold else ours,
        theirs,
        difference + (" *" if entry.outside else ""),
        "-" if entry.fit_seconds is None else f"{entry.fit_seconds:.3g}",
        kernels,
        splits,
    ]


def make_table(table: str, records: Iterable[dict[str, Any]]) -> ResultTable:
    """Sum up the records of a table's cells."""
    spec = TABLES[nearest("table", table, TABLES)]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    paper_names = {value.name: name for name, value in SETS.items()}
    for record in records:
        name = paper_names.get(record["data"], record["data"])
        groups.setdefault((name, record["method"]), []).append(record)
    entries = [_entry(table, spec, key, group) for key, group in groups.items()]
    return ResultTable(table, spec.title, _mark_best(entries, lower=spec.quantity == "support"))


def _entry(table: str, spec: TableSpec, key: tuple[str, str], group: list[dict[str, Any]]) -> Entry:
    name, method = key
    settings: dict[Any, list[dict[str, Any]]] = {}
    for record in group:
        if record["error"] is None:
            settings.setdefault((record["dictionary"], record["gamma"]), []).append(record)
    published = PUBLISHED[table].get(name, {}).get(method.split(",")[0])
    known: dict[str, Any] = {
        "set": name,
        "method": method,
        "published": published.mean if published else None,
        "published_spread": published.spread if published else None,
        "bold": False,
        "failures": sum(record["error"] is not None for record in group),
    }
    if not settings:
        known.update(dict.fromkeys(_MEASURED))
        return Entry(**known, outside=False, splits=0)
    # As in the paper: the setting with the best mean accuracy on the test parts.
    (dictionary, gamma), best = max(
        settings.items(), key=lambda item: fmean(r["accuracy"] for r in item[1])
    )
    values = [100.0 * record[spec.quantity] for record in best]
    mean = fmean(values)
    return Entry(
        **known,
        mean=mean,
        spread=stdev(values) if len(values) > 1 else 0.0,
        difference=None if published is None else mean - published.mean,
        outside=published is not None and abs(mean - published.mean) > published.spread,
        accuracy=100.0 * fmean(record["accuracy"] for record in best),
        fit_seconds=fmean(record["fit_seconds"] for record in best),
        dictionary=dictionary,
        gamma=gamma,
        splits=len(best),
    )


def _mark_best(entries: list[Entry], *, lower: bool) -> list[Entry]:
    """Set bold by the paper's rule: ahead of every other method by both deviations."""
    sign = -1.0 if lower else 1.0
    marked = []
    for entry in entries:
        others = [
            e for e in entries if e.set == entry.set and e is not entry and e.mean is not None
        ]
        bold = (
            entry.mean is not None
            and entry.spread is not None
            and bool(others)
            and all(
                sign * entry.mean - entry.spread > sign * (e.mean or 0.0) + (e.spread or 0.0)
                for e in others
            )
        )
        marked.append(Entry(**{**asdict(entry), "bold": bold}))
    return marked
