"""Style of the figures of the gallery. Its parallel workers import this module by name."""

from typing import Any

import matplotlib.pyplot as plt

# Okabe and Ito: distinguishable with every common colour vision.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]


def reset(gallery_conf: Any, fname: Any) -> None:
    """Give every script the same figures."""
    plt.rcdefaults()
    plt.rcParams.update(
        {
            "axes.prop_cycle": plt.cycler(color=COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.constrained_layout.use": True,
            "figure.dpi": 100,
            "font.size": 10.5,
            "legend.frameon": False,
        }
    )
