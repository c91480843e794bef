"""
Your own gate
=============

If you know what decides which kernel to use, put it into the gate. Here the informative view
depends on the distance from the origin. A softmax gate of the columns cannot express that. Two
remedies are shown: a function that gives the gate other inputs, and a new gate class.
"""

# %%
# The informative view depends on the radius
# ------------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from lokl import LMKLClassifier
from lokl.gates import Gate
from lokl.kernels import Linear

rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 4))
radius = np.linalg.norm(X[:, :2], axis=1)
y = (np.where(radius < 1.2, X[:, 2], X[:, 3]) > 0).astype(int)
kernels = {"third": Linear().on([2]), "fourth": Linear().on([3])}
train, test = slice(0, 500), slice(500, 1000)

# %%
# Another input of the gate
# -------------------------
# ``gating`` may be a function of the samples.


def distance(X):
    """Distance from the origin in the first two columns."""
    return np.linalg.norm(np.asarray(X)[:, :2], axis=1, keepdims=True)


# %%
# Another gate
# ------------
# A gate has start values, gate values, and a gradient (``pullback``). This one belongs to two
# kernels: the first counts inside of a circle, the second outside of it. Its parameters are the
# logarithm of the radius and the sharpness of the border.


class CircleGate(Gate):
    """One kernel inside of a circle, another outside."""

    sums_to_one = True

    def init(self, X, n_kernels, rng):
        return np.array([0.0, 1.0])

    def _inside(self, X, params):
        radius = np.linalg.norm(X, axis=1)
        return radius, expit(params[1] * (np.exp(params[0]) - radius))

    def __call__(self, X, params, present=None):
        inside = self._inside(X, params)[1]
        return np.column_stack([inside, 1 - inside])

    def pullback(self, X, params, H, G):
        radius, inside = self._inside(X, params)
        slope = (G[:, 0] - G[:, 1]) * inside * (1 - inside)
        border = np.exp(params[0])
        return np.array([np.sum(slope * params[1] * border), np.sum(slope * (border - radius))])


settings = {
    "softmax of the columns": {"gate": "softmax"},
    "softmax of the radius": {"gate": "softmax", "gating": distance},
    "circle gate": {"gate": CircleGate().on([0, 1])},
}
models = {
    name: LMKLClassifier(kernels, C=10, random_state=0, **setting).fit(X[train], y[train])
    for name, setting in settings.items()
}

# %%
# Where the third column counts
# -----------------------------

side = np.linspace(-3, 3, 80)
across, up = np.meshgrid(side, side)
grid = np.zeros((across.size, 4))
grid[:, 0], grid[:, 1] = across.ravel(), up.ravel()
figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.4), sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    weight = model.weights(grid)[:, 0].reshape(across.shape)
    image = ax.pcolormesh(across, up, weight, vmin=0, vmax=1, cmap="cividis", rasterized=True)
    ax.add_patch(plt.Circle((0, 0), 1.2, fill=False, color="white", linestyle="--"))
    ax.set(aspect="equal", xlabel="first column")
    ax.set_title(f"{name}\naccuracy {model.score(X[test], y[test]):.2f}", fontsize=10)
axes[0].set_ylabel("second column")
figure.colorbar(image, ax=axes, label="weight of the third column", shrink=0.8)
plt.show()
