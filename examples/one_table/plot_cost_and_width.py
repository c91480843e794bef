"""
The landscape of cost and width
===============================

A Gaussian SVM has two settings, the cost ``C`` and the width ``gamma``. Good values lie on a ridge:
a narrower kernel needs another cost. :class:`~lokl.search.KernelSearchCV` has the interface of
``GridSearchCV`` and shares the work of all candidates, so that a fine grid is affordable.
"""

# %%
# 15 costs and 15 widths on five folds
# ------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from lokl import KernelSearchCV, UniformMKLClassifier
from lokl.kernels import RBF

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
costs = 10.0 ** np.linspace(-2, 4, 15)
widths = 2.0 ** np.linspace(-14, 0, 15)
grid = {"C": costs, "kernels": [[RBF(gamma)] for gamma in widths]}
search = KernelSearchCV(UniformMKLClassifier(), grid, cv=5).fit(X, y)
simple = KernelSearchCV(UniformMKLClassifier(), grid, cv=5, rule="one_se").fit(X, y)

# %%
# Best and simplest
# -----------------
# The best mean score is partly luck. ``rule="one_se"`` takes the simplest candidate within one
# standard error of the best one: the smallest cost, then the widest kernel.


def position(params):
    """Cost and width of a candidate."""
    return params["C"], params["kernels"][0].gamma


scores = np.empty((len(costs), len(widths)))
for params, score in zip(
    search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
):
    cost, width = position(params)
    scores[np.searchsorted(costs, cost), np.searchsorted(widths, width)] = score

figure, ax = plt.subplots(figsize=(6.6, 4.4))
levels = np.array([0.6, 0.7, 0.8, 0.9, 0.93, 0.95, 0.96, 0.97, 0.975, 0.98, 0.985])
filled = ax.contourf(widths, costs, scores, levels, cmap="cividis", extend="both")
for found, marker, label in ((search, "*", "best"), (simple, "s", "one standard error")):
    cost, width = position(found.best_params_)
    ax.plot(
        width,
        cost,
        marker,
        color="white",
        markeredgecolor="black",
        markersize=12,
        label=label,
        linestyle="",
    )
    print(f"{label}: C={cost:.3g}, gamma={width:.2g}, accuracy {found.best_score_:.3f}")
ax.set(xscale="log", yscale="log", xlabel="gamma", ylabel="C")
ax.legend(loc="lower left", facecolor="white", frameon=True)
figure.colorbar(filled, ax=ax, label="accuracy in five folds")
plt.show()

# %%
# If the best value lies on an edge of the grid, the search warns and names the side to extend.
