"""
Half a million rows
===================

A Gram matrix of half a million samples has 250 billion entries. :class:`~lokl.RegionClassifier`
divides the samples into regions by a tree and fits a copy of an estimator in each of them, so that
time and memory grow with the number of samples instead of its square.

This page uses 4,000 to 32,000 rows, so that it runs in seconds. The same lines fit 500,000 rows;
see :doc:`/scale` for measurements.
"""

# %%
# Time and accuracy of a growing table
# ------------------------------------

from time import process_time

import matplotlib.pyplot as plt
import numpy as np

from lokl import RegionClassifier, UniformMKLClassifier
from lokl.kernels import RBF


def draw(n, rng):
    """Points in the plane, on 36 squares of alternating class, and one column of noise."""
    X = rng.uniform(0, 6, size=(n, 3))
    return X, (np.floor(X[:, :2]).sum(axis=1) % 2).astype(int)


rng = np.random.default_rng(0)
new, truth = draw(3000, rng)
models = {
    "one SVM": UniformMKLClassifier([RBF(8.0)], C=10),
    "regions": RegionClassifier(
        UniformMKLClassifier([RBF(8.0)], C=10), max_region_size=1000, random_state=0
    ),
}
for model in models.values():  # load the compiled loops, so that they are not timed
    model.fit(*draw(1500, rng))

sizes = [4000, 8000, 16000, 32000]
seconds = {name: [] for name in models}
scores = {name: [] for name in models}
for n in sizes:
    X, y = draw(n, rng)
    for name, model in models.items():
        if name == "one SVM" and n > 16000:
            continue
        start = process_time()
        model.fit(X, y)
        seconds[name].append(process_time() - start)
        scores[name].append(model.score(new, truth))

# %%
# Time grows in proportion to the rows
# ------------------------------------
# The accuracy of the regions is that of the SVM, or nearly so: the kernel is narrow, so that
# samples of different regions hardly have anything to do with each other.

figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.4))
for name, style in (("one SVM", "s--"), ("regions", "o-")):
    shown = sizes[: len(seconds[name])]
    axes[0].plot(shown, seconds[name], style, label=name)
    axes[1].plot(shown, scores[name], style, label=name)
for ax in axes:
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.set_xlabel("training rows")
axes[0].set(ylabel="processor time of a fit (s)", ylim=(0, None))
axes[1].set(ylabel="accuracy on new rows")
axes[0].legend()
plt.show()

# %%
# A prediction only needs the model of its region.

X, y = draw(16000, rng)
model = models["regions"].fit(X, y)
print(f"{len(model.estimators_[0])} regions of at most {max(model.region_sizes_[0])} rows")
