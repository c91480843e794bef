"""
Two regions, two kernels
========================

On the left, the classes are opposite quadrants. On the right, one class is a disc. A polynomial of
degree two describes either region, but no single one describes both. A *localized* method learns
where to use which kernel. This is the toy problem of Moeller, Swaminathan and Venkatasubramanian
(2016).
"""

import matplotlib.pyplot as plt
import numpy as np

from lokl import LMKLClassifier, UniformMKLClassifier
from lokl.datasets import make_two_regions
from lokl.kernels import RBF, Polynomial

X, y = make_two_regions(300, random_state=0)
new, truth = make_two_regions(2000, random_state=1)

# %%
# A fixed mixture and a gate
# --------------------------
# The first two models have two copies of the same quadratic kernel. The first one averages them. In
# the second one, the gate of :class:`~lokl.LMKLClassifier` is a function of the sample, learned
# together with the SVM. The third model is a plain SVM with a Gaussian kernel, for comparison.

kernels = {"first": Polynomial(2), "second": Polynomial(2)}
models = {
    "uniform average": UniformMKLClassifier(kernels, C=100),
    "LMKL": LMKLClassifier(kernels, C=100, random_state=0),
    "Gaussian kernel": UniformMKLClassifier([RBF(4.0)], C=10),
}
for model in models.values():
    model.fit(X, y)

# %%
# Decision boundaries and weights
# -------------------------------
# The background is the weight of the second kernel; a model with one kernel has no weights to
# show. The black line is the decision boundary.

across, up = np.meshgrid(np.linspace(-3.1, 3.1, 160), np.linspace(-1.5, 1.5, 80))
grid = np.column_stack([across.ravel(), up.ravel()])
figure, axes = plt.subplots(3, 1, figsize=(6.8, 8.0), sharex=True, sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    if len(model.kernel_names_) == 2:
        weight = model.weights(grid)[:, 1].reshape(across.shape)
        shown = ax.pcolormesh(across, up, weight, vmin=0, vmax=1, cmap="cividis", rasterized=True)
    ax.contour(across, up, model.decision_function(grid).reshape(across.shape), [0], colors="k")
    for label, marker, colour in ((0, "o", "white"), (1, "^", "#D55E00")):
        part = X[y == label]
        ax.scatter(*part.T, s=18, marker=marker, color=colour, edgecolor="black", linewidth=0.5)
    ax.set(aspect="equal", title=f"{name}: {model.score(new, truth):.1%} of new samples correct")
figure.colorbar(shown, ax=axes, shrink=0.6, label="weight of the second kernel")
plt.show()

# %%
# The gate has found the two regions, and each kernel describes one of them. A Gaussian kernel also
# solves this problem, without a gate: try one before a localized method. The gate additionally
# shows where the border between the regions is.
