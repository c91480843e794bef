"""
Your own kernel
===============

A function of two arrays is enough: it returns the kernel values of all pairs. A class that derives
from :class:`lokl.kernels.Kernel` can also have settings, which searches then tune.
"""

# %%
# Hours of the day
# ----------------
# Hours are periodic: 23:30 is close to 00:30. A Gaussian on the number of the hour does not know
# that; a periodic kernel does.

import matplotlib.pyplot as plt
import numpy as np

from lokl import KernelSearchCV, UniformMKLRegressor
from lokl.kernels import RBF, Kernel

rng = np.random.default_rng(0)
hours = rng.uniform(0, 24, size=(60, 1))


def demand(hours):
    """Electricity demand at an hour of the day."""
    return 2 + np.sin((hours - 9) * np.pi / 12) + 0.6 * np.cos((hours - 19) * np.pi / 6)


target = demand(hours[:, 0]) + 0.25 * rng.normal(size=60)

# %%
# A function
# ----------


def periodic(X, Z):
    """Similarity of two hours on a clock."""
    difference = X[:, np.newaxis, 0] - Z[np.newaxis, :, 0]
    return np.exp(-2 * np.sin(np.pi * difference / 24) ** 2)


models = {
    "Gaussian": UniformMKLRegressor([RBF(0.05)], C=10).fit(hours, target),
    "periodic function": UniformMKLRegressor([periodic], C=10).fit(hours, target),
}

# %%
# A class with a setting
# ----------------------
# A kernel has a value for each pair of samples, and a diagonal. Settings of ``__init__`` are
# parameters of the estimator, by the name of the kernel.


class Periodic(Kernel):
    """Similarity of two values with a period.

    Parameters
    ----------
    sharpness : float, default=1.0
    """

    label = "periodic"

    def __init__(self, sharpness=1.0):
        self.sharpness = sharpness

    def __call__(self, X, Z=None):
        Z = X if Z is None else Z
        difference = np.asarray(X)[:, np.newaxis, 0] - np.asarray(Z)[np.newaxis, :, 0]
        return np.exp(-self.sharpness * np.sin(np.pi * difference / 24) ** 2)

    def diag(self, X):
        return np.ones(len(X))


grid = {"kernels__0__sharpness": [0.5, 1, 2, 4, 8, 16], "C": 10.0 ** np.arange(6)}
search = KernelSearchCV(UniformMKLRegressor([Periodic()]), grid).fit(hours, target)
models["tuned class"] = search
print(search.best_params_)

# %%
# The curves over two days
# ------------------------

shown = np.linspace(-12, 36, 400)[:, np.newaxis]
figure, ax = plt.subplots(figsize=(8, 3.6))
ax.axvspan(0, 24, color="0.95")
ax.plot(shown, demand(shown), color="0.6", linewidth=4, label="truth")
styles = ["--", "-.", "-"]
for (name, model), style in zip(models.items(), styles, strict=True):
    ax.plot(shown, model.predict(shown), style, label=name)
ax.plot(hours, target, "k.", markersize=5, label="training samples")
ax.set_xticks(range(-12, 37, 6))
ax.set(xlabel="hour (training samples lie in the grey day)", ylabel="demand")
ax.legend(ncols=1, loc="upper left", bbox_to_anchor=(1.0, 1.0))
plt.show()
