"""The chosen candidate, fitted to all samples."""

from typing import Any

from lokl._notices import apart
from lokl._threads import one_thread
from lokl.comparison.candidates import candidates_for
from lokl.comparison.parts import Part
from lokl.tables import Table
from lokl.tables.learning import groups_of, preparation_for, target_of


def everything(table: Table, seed: int, time_limit: float | None = None) -> Part:
    """Return all samples of a table as a candidate learns from them."""
    return Part(
        table.frame,
        target_of(table),
        groups_of(table),
        table.task == "numbers",
        preparation_for(table),
        seed,
        time_limit,
    )


def fit_candidate(table: Table, name: str, seed: int, time_limit: float | None = None) -> Any:
    """Fit a candidate of a comparison to a table, the same on every machine.

    What it has to warn of is among the findings of the comparison already.
    """
    candidate = candidates_for(table, [name])[0]
    with one_thread():
        fitted, _ = apart(candidate.recipe.fit, everything(table, seed, time_limit))
    return fitted.model
