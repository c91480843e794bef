"""Models on disk: files that hold numbers and names, and no code."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.files.errors import ModelFileError as ModelFileError
    from lokl.files.models import info as info
    from lokl.files.models import load as load
    from lokl.files.models import save as save

__getattr__, __all__ = lazy_exports(
    __name__,
    {
        "ModelFileError": "lokl.files.errors",
        "info": "lokl.files.models",
        "load": "lokl.files.models",
        "save": "lokl.files.models",
    },
)
