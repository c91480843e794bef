"""
How sparse are the weights?
===========================

Ten kernels, three of which are informative. Methods differ in how many weights they leave above
zero. Sparse weights are easy to read; spread weights are often more accurate if many kernels carry
some information.
"""

# %%
# Ten views, three informative
# ----------------------------

import matplotlib.pyplot as plt
import numpy as np

from lokl import (
    EasyMKLClassifier,
    LpMKLClassifier,
    MWUMKLClassifier,
    SimpleMKLClassifier,
    UniformMKLClassifier,
)
from lokl.kernels import RBF, per_view

rng = np.random.default_rng(0)
y = rng.integers(2, size=900)
strength = np.array([1.0, 0.7, 0.4] + [0.0] * 7)
sign = 2 * y[:, np.newaxis] - 1
X = np.hstack([s * sign + rng.normal(size=(900, 2)) for s in strength])
views = {f"view {v + 1}": slice(2 * v, 2 * v + 2) for v in range(10)}
kernels = per_view(RBF(0.5), views)
train, test = slice(0, 300), slice(300, 900)

# %%
# From uniform to sparse
# ----------------------
# The norm ``p`` of :class:`~lokl.LpMKLClassifier` interpolates between the uniform average (large
# ``p``) and SimpleMKL (``p=1``).

models = {
    "uniform average": UniformMKLClassifier(kernels),
    "l_p, p=4": LpMKLClassifier(kernels, p=4),
    "l_p, p=2": LpMKLClassifier(kernels, p=2),
    "l_p, p=1.2": LpMKLClassifier(kernels, p=1.2),
    "SimpleMKL": SimpleMKLClassifier(kernels),
    "EasyMKL": EasyMKLClassifier(kernels),
    "MWUMKL": MWUMKLClassifier(kernels),
}
weights, scores = [], []
for model in models.values():
    model.fit(X[train], y[train])
    # Constant weights are the same for every sample, and sum to one.
    weights.append(model.weights(X[:1])[0])
    scores.append(model.score(X[test], y[test]))

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.6), width_ratios=(1.6, 1), sharey=True)
image = left.imshow(weights, aspect="auto", cmap="cividis", vmin=0)
left.set_xticks(range(10), range(1, 11))
left.set_yticks(range(len(models)), list(models))
left.set(xlabel="view (1 to 3 are informative)")
for row, values in enumerate(weights):
    for column, value in enumerate(values):
        if value > 0.005:
            colour = "black" if value > 0.5 * np.max(weights) else "white"
            left.annotate(
                f"{value:.2f}", (column, row), ha="center", va="center", color=colour, fontsize=7
            )
figure.colorbar(image, ax=left, label="weight")
right.plot(scores, range(len(models)), "o", markersize=8)
right.grid(axis="x", color="0.9")
right.set(xlabel="accuracy on 600 new samples")
plt.show()
