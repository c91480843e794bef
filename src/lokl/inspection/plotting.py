"""matplotlib, where it is installed."""

from typing import Any


def pyplot() -> Any:
    """Return matplotlib's pyplot, with a backend that needs no screen unless one is in use."""
    try:
        import matplotlib

        matplotlib.use("Agg", force=False)
        import matplotlib.pyplot as plt
    except ImportError as reason:
        raise ImportError(
            "plots need matplotlib; install it with: pip install 'lokl[plot]'"
        ) from reason
    return plt
