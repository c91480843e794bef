"""How large something is that was learned."""

import pickle
from typing import Any


def pickled_size(learned: Any) -> int:
    """Bytes of a model on its way to another process; arrays are counted where they are."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        rest = len(pickle.dumps(learned, protocol=5, buffer_callback=buffers.append))
    except Exception:
        # Functions of a user's own session go another way, and are small.
        return 0
    return rest + sum(buffer.raw().nbytes for buffer in buffers)
