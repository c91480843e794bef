"""Several models on the same splits of the same data, and what came out of it."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.study.compare import Score as Score
    from lokl.study.compare import compare as compare
    from lokl.study.results import Results as Results
    from lokl.study.run import Comparison as Comparison
    from lokl.study.settings import Settings as Settings

__getattr__, __all__ = lazy_exports(
    __name__,
    {
        "Comparison": "lokl.study.run",
        "Results": "lokl.study.results",
        "Score": "lokl.study.compare",
        "Settings": "lokl.study.settings",
        "compare": "lokl.study.compare",
    },
)
