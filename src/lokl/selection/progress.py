"""How far a search is, for callbacks and the log."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """State of a search after a candidate."""

    lines_done: int  # candidates are computed in lines that share work, several at a time
    n_lines: int
    done: int  # candidates that were evaluated
    n_candidates: int
    best_score: float  # NaN where no candidate could be fitted so far
    best_params: dict[str, Any] | None
    seconds: float  # since the start of the search
