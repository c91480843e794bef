"""
What is each table worth?
=========================

Measurements cost money. Two questions sound alike and have different answers: how well does a table
predict *on its own*, and how much is lost if it is *left out* of all others? Two redundant tables
are each worth much alone, and neither is missed. :func:`lokl.explain.view_value` answers both, for
all subsets of the tables, on the same folds.
"""

# %%
# Four tables, one of them redundant and one of them noise
# --------------------------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import UniformMKLClassifier
from lokl.explain import view_value
from lokl.kernels import RBF, per_view

rng = np.random.default_rng(0)
n = 400
first, second = rng.normal(size=(2, n))
y = (first + second > 0).astype(int)


def table(signal, noise):
    """Three noisy copies of a signal."""
    return signal[:, np.newaxis] + noise * rng.normal(size=(n, 3))


blood = table(first, 0.5)
urine = table(blood.mean(axis=1), 0.3)  # repeats what the blood shows
scan = table(second, 0.7)
survey = rng.normal(size=(n, 3))  # unrelated to the target
X = np.hstack([blood, urine, scan, survey])
views = {"blood": slice(0, 3), "urine": slice(3, 6), "scan": slice(6, 9), "survey": slice(9, 12)}

# %%
# Fit all subsets of the tables
# -----------------------------

model = make_pipeline(StandardScaler(), UniformMKLClassifier(per_view(RBF(), views), C=1))
value = view_value(model, X, y)
print(value)

# %%
# Alone against left out
# ----------------------
# Blood and urine predict well alone, but leaving out one of them costs nothing that can be told
# from chance, because the other one repeats it. The scan is worth measuring: nothing replaces it.
# The survey is not. Intervals are 95 %.

frame = value.to_frame()
figure, axes = plt.subplots(1, 2, figsize=(8.4, 2.9), sharey=True)
for ax, name in zip(axes, ("alone", "loss"), strict=True):
    rows = np.arange(len(frame))
    low, high = frame[f"{name}_low"], frame[f"{name}_high"]
    ax.hlines(rows, low, high, color="C0", linewidth=2)
    ax.plot(frame[name], rows, "o", color="C0", markersize=8)
    ax.set_yticks(rows, list(frame.index))
axes[0].axvline(0.5, color="0.5", linestyle=":")
axes[1].axvline(0.0, color="0.5", linestyle=":")
axes[0].set(xlabel="accuracy (dotted: guessing)", title="Each table alone")
axes[1].set(xlabel="accuracy lost (dotted: nothing)", title="Left out of all tables")
axes[0].invert_yaxis()
plt.show()
