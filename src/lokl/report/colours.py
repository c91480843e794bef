"""Colours of classes, which are never those of views.

Views have accents, the variables ``--v0`` and so on of the style sheet. Classes are told apart by
their symbols; where a picture is coloured by class, the colours run from dark blue to yellow, so
that every kind of sight and every printer sees their order.
"""

import numpy as np

_RAMP = (
    (0, 34, 78),
    (53, 69, 108),
    (102, 105, 112),
    (148, 142, 119),
    (200, 184, 102),
    (254, 232, 56),
)
# Steps of numbers, where there are no classes.
STEPS = 8


def ramp(count: int) -> list[str]:
    """Return colours from dark to light."""
    anchors = np.array(_RAMP, dtype=float)
    places = np.linspace(0, len(anchors) - 1, count) if count > 1 else np.zeros(1)
    mixed = [np.interp(places, np.arange(len(anchors)), anchors[:, c]) for c in range(3)]
    return ["#" + "".join(f"{round(v):02x}" for v in rgb) for rgb in zip(*mixed, strict=True)]


def class_styles(n_classes: int) -> str:
    """Return the rules of the style sheet for so many classes, or for steps of numbers."""
    colours = ramp(n_classes or STEPS)
    return "".join(
        f"svg .c{k},.key.c{k}{{fill:{c}}}.swatch.c{k}{{background:{c}}}"
        for k, c in enumerate(colours)
    )
