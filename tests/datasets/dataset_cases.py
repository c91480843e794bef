"""A small data set in LIBSVM's format."""

import hashlib

from lokl.datasets import DatasetInfo

TEXT = b"+1 1:0.5 3:2\n-1 2:1\n+1 1:1 2:-4 3:1e-3\n-1\n"
CLASSES = {-1: 2, 1: 2}


def tiny(url=None, text=TEXT, **changes):
    """Description of `text`, four rows and five columns, of which the last two are never used."""
    settings = {
        "files": ("tiny",),
        "sha256": hashlib.sha256(text).hexdigest(),
        "url": url,
        **changes,
    }
    return DatasetInfo("tiny", 4, 5, CLASSES, "this test", "none", **settings)
