"""All who compute cells, the most specialised first."""

from lokl.selection.lines import LineFits
from lokl.selection.machines import SharedMachines
from lokl.selection.ordinary import OrdinaryFits
from lokl.selection.pipelines import LastSteps
from lokl.selection.work import Worker

# For estimators that are no pipelines. A candidate belongs to the first that takes it; the last
# takes all.
WORKERS: tuple[type[Worker], ...] = (SharedMachines, LineFits, OrdinaryFits)


def new_workers() -> list[Worker]:
    """Return workers for one search."""
    bare = [kind() for kind in WORKERS]
    return [LastSteps(bare), *bare]
