"""Choosing among candidates by cross-validation, on work that candidates share."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.selection.progress import Progress as Progress
    from lokl.selection.search import KernelSearchCV as KernelSearchCV

__getattr__, __all__ = lazy_exports(
    __name__,
    {
        "KernelSearchCV": "lokl.selection.search",
        "Progress": "lokl.selection.progress",
    },
)
