"""
All methods on one toy problem
==============================

Every method gets the same samples and the same two kernels, a linear and a Gaussian one. The left
half is a checkerboard, which needs the Gaussian kernel. In the right half the border is straight,
and 15 % of the training labels are wrong, which the Gaussian kernel memorises.

The percentage is the accuracy on 2,000 new samples. It does not rank the methods: all have default
settings, and this is one toy problem. :doc:`/benchmarks` compares them on real data.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import lokl
from lokl.kernels import RBF, Linear


def draw(n, rng):
    """Samples, labels with errors in the right half, and true labels."""
    X = rng.uniform((-3, -1.5), (3, 1.5), size=(n, 2))
    left = X[:, 0] < 0
    checkerboard = np.floor(X / 0.75).sum(axis=1) % 2 == 1
    truth = np.where(left, checkerboard, X[:, 1] > 0.3 * X[:, 0] - 0.4)
    return X, truth ^ (~left & (rng.random(n) < 0.15)), truth


rng = np.random.default_rng(0)
X, y, _ = draw(400, rng)
new, _, truth = draw(2000, rng)
kernels = {"linear": Linear(), "Gaussian": RBF(8.0)}

# %%
# Global methods learn one weight for each kernel, localized methods a function of the sample.

global_methods = ["UniformMKL", "LpMKL", "SimpleMKL", "GMKL", "EasyMKL", "MWUMKL"]
localized = ["LMKL", "CLMKL", "SwMKL", "SAMKL", "LDMKL", "GSMKL", "PCKLMKL", "TrustedVote"]
models = {}
for name in ["ExpertAverage", *global_methods, *localized]:
    model = getattr(lokl, f"{name}Classifier")(kernels, C=10)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    with warnings.catch_warnings():
        # A few methods stop at their limit of rounds, or warn that the gate does not help here.
        warnings.simplefilter("ignore")
        models[name] = model.fit(X, y)

# %%
# Decision values
# ---------------
# The background is the decision value: where it is pale, the model is undecided. The black line is
# the decision boundary.

across, up = np.meshgrid(np.linspace(-3.1, 3.1, 100), np.linspace(-1.5, 1.5, 50))
grid = np.column_stack([across.ravel(), up.ravel()])
figure, axes = plt.subplots(5, 3, figsize=(10, 9), sharex=True, sharey=True)
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    values = model.decision_function(grid).reshape(across.shape)
    values /= np.quantile(np.abs(values), 0.95)
    ax.pcolormesh(across, up, values, vmin=-1, vmax=1, cmap="PuOr", rasterized=True)
    ax.contour(across, up, values, [0], colors="k", linewidths=1)
    ax.scatter(*X[y == 0].T, s=5, marker="o", color="0.3")
    ax.scatter(*X[y == 1].T, s=5, marker="^", color="black")
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.set_title(f"{name} {model.score(new, truth):.1%}", fontsize=10)
plt.show()
