"""Several models on the same splits of the same data, and what came out of it."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.comparison.models import Score as Score
    from lokl.comparison.models import compare as compare
    from lokl.comparison.results import Results as Results
    from lokl.comparison.run import Comparison as Comparison
    from lokl.comparison.settings import Settings as Settings

__getattr__, __all__ = lazy_exports(
    __name__,
    {
        "Comparison": "lokl.comparison.run",
        "Results": "lokl.comparison.results",
        "Score": "lokl.comparison.models",
        "Settings": "lokl.comparison.settings",
        "compare": "lokl.comparison.models",
    },
)
