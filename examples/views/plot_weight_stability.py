"""
Can I believe the weights?
==========================

A gate assigns a weight to each view at each sample, and the weights invite stories: "the scan
decided this case". A story is only worth telling if the weights are stable and if they help. If a
refit on resampled patients gives other weights, or if the plain average predicts as well, do not
interpret them. :func:`lokl.explain.weight_stability` measures both.
"""

# %%
# One data set with local structure, one without
# ----------------------------------------------
# In :func:`~lokl.datasets.make_views`, a different view is informative in each of three regions,
# and the gate of :class:`~lokl.LMKLClassifier` can find the regions. The wine data has no such
# regions.

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import LMKLClassifier
from lokl.datasets import make_views
from lokl.explain import weight_stability
from lokl.kernels import Linear, per_view

X, y, views, region = make_views(300, random_state=0)
wine = load_wine()
cases = {
    "three regions": (X, y, views),
    "wine": (wine.data, wine.target, {"acids": slice(0, 5), "colours": slice(5, 13)}),
}

results, gates = {}, {}
for name, (data, target, columns) in cases.items():
    gate = LMKLClassifier(per_view(Linear(), columns), C=10, random_state=0)
    model = make_pipeline(StandardScaler(), gate)
    results[name] = weight_stability(model, data, target, n_repeats=4, random_state=0)
    gates[name] = model.fit(data, target)[-1].weights(model[:-1].transform(data))
    print(f"{name}\n{'-' * len(name)}\n{results[name]}\n")

# %%
# The weights themselves look alike
# ---------------------------------
# Both gates separate the samples. Only one of them improves the held-out accuracy over the plain
# average of the kernels.

figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.2), width_ratios=(1, 1, 1.2))
for ax, (name, weights) in zip(axes, gates.items(), strict=False):
    ax.hist(weights[:, 0], 20, range=(0, 1), color="C0")
    ax.set(title=name, xlabel="weight of the first view", ylabel="samples")
for row, found in enumerate(results.values()):
    low, high = found.gain.low, found.gain.high
    axes[2].plot([low, high], [row, row], color="C1", linewidth=2)
    axes[2].plot(found.gain.mean, row, "o", color="C1", markersize=8)
axes[2].axvline(0, color="0.5", linestyle=":")
axes[2].set_yticks(range(len(results)), list(results))
axes[2].set(ylim=(-0.6, 1.6), xlabel="accuracy gained over the average")
axes[2].set_title("Does the gate help?")
plt.show()
