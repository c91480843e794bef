"""
Low rank against exact
======================

If the border between the classes is smooth, few landmarks describe a kernel well.
``solver="primal"`` gives every kernel at most ``rank`` features and solves the SVM on them. This
example compares it with the exact solver for growing ranks, for a wide and for a narrow kernel.
"""

import matplotlib.pyplot as plt
import numpy as np

from lokl import UniformMKLClassifier
from lokl.kernels import RBF
from lokl.solvers import Primal

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 4))
smooth = X[:, 0] + X[:, 1] * X[:, 2] > 0
cubes = np.floor(1.5 * X[:, :3]).sum(axis=1) % 2 == 1
train, test = slice(0, 3000), slice(3000, 4000)
problems = {
    "smooth border, wide kernel": (smooth, 0.05),
    "small cubes, narrow kernel": (cubes, 8.0),
}

# %%
# Accuracy and the missed part of the kernel
# ------------------------------------------
# ``kernel_residual_`` is the share of the kernel's trace that the features miss.

ranks = [10, 30, 100, 300, 1000]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
for ax, (name, (y, gamma)) in zip(axes, problems.items(), strict=True):
    exact = UniformMKLClassifier([RBF(gamma).on([0, 1, 2])], C=10).fit(X[train], y[train])
    scores, missed = [], []
    for rank in ranks:
        model = UniformMKLClassifier(
            [RBF(gamma).on([0, 1, 2])], C=10, solver=Primal(rank=rank), random_state=0
        )
        model.fit(X[train], y[train])
        scores.append(model.score(X[test], y[test]))
        missed.append(model.kernel_residual_[0])
    ax.plot(ranks, scores, "o-", label="accuracy, low rank")
    ax.axhline(exact.score(X[test], y[test]), color="0.4", linestyle="--", label="accuracy, exact")
    ax.plot(ranks, missed, "s:", color="C1", label="missed share of the kernel")
    ax.set(xscale="log", xlabel="rank", title=name, ylim=(-0.03, 1.03))
axes[0].legend(loc="center right")
plt.show()

# %%
# For the smooth border, 30 features are as good as 3,000 samples. For the small cubes, even 1,000
# features miss a part of the kernel. Regions suit such data better: :doc:`plot_many_rows`.
