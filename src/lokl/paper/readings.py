"""Readings of the paper: what its unsaid settings are taken to be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reading:
    """The kernels, and the method that stands for each column of the paper's tables."""

    dictionary: str
    # Where the method has another name than the column.
    stands_for: Mapping[str, str]
    # The same for multiplicative weights.
    by_weights: Mapping[str, str] = field(default_factory=dict)
    # Further methods that tables show for a column; they are not counted.
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def method(self, column: str, solver: str) -> str:
        """Return the method that stands for a column."""
        own = {**self.stands_for, **(self.by_weights if solver == "mwu" else {})}
        return own.get(column, column)

    def methods(self, columns: Sequence[str], solver: str) -> list[str]:
        """Return all methods that are shown for columns; other names stand for themselves."""
        return [
            method
            for column in columns
            for method in (*self.beside.get(column, ()), self.method(column, solver))
        ]


READINGS = {
    # What most likely was done, found by a search: scikit-learn's defaults and nothing else.
    "paper": Reading(
        "linear, Gaussian, raw",
        {
            "SwMKL": "SwMKL, literal",
            "LD-MKL": "LD-MKL, literal",
            "UNIFORM": "UNIFORM, trace",
            "GMKL": "GMKL, simplex",
        },
        # Indefinite kernels have no class hulls, whose distance the weights could find.
        {"SwMKL": "SwMKL, repaired"},
        {"UNIFORM": ("UNIFORM",), "MWUMKL": ("MWUMKL, authors' constants",)},
    ),
    # What this library would do: normalised kernels, repaired methods.
    "lokl": Reading(
        "quadratic, Gaussian", {"UNIFORM": "UNIFORM, trace"}, beside={"UNIFORM": ("UNIFORM",)}
    ),
}
# Records made before there were several readings belong to this one.
FIRST_READING = "lokl"
