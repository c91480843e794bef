"""
Prediction sets
===============

A prediction set contains all classes that remain possible. On average over new samples, the true
class is in the set with the chosen probability, whatever the model. Easy samples get one class,
hard samples several. :class:`lokl.explain.PredictionSets` computes the sets by cross-conformal
prediction.
"""

# %%
# Three overlapping classes
# -------------------------

import matplotlib.pyplot as plt
import numpy as np

from lokl import UniformMKLClassifier
from lokl.explain import PredictionSets
from lokl.kernels import RBF
from lokl.search import CalibratedMKLClassifier

rng = np.random.default_rng(3)
centres = np.array([[-1.2, 0.0], [1.2, 0.0], [0.0, 1.8]])
y = rng.integers(3, size=1600)
X = centres[y] + rng.normal(size=(1600, 2))
train, test = slice(0, 400), slice(400, 1600)
svm = CalibratedMKLClassifier(UniformMKLClassifier([RBF(0.3)], C=3))
sets = PredictionSets(svm, alpha=0.1).fit(X[train], y[train])
print(sets.coverage(X[test], y[test]))

# %%
# Size of the sets
# ----------------
# Left: the number of classes in the set of each point of the plane, for a coverage of 90 %. Right:
# the observed coverage of new samples against the requested one.

across, up = np.meshgrid(np.linspace(-4, 4, 90), np.linspace(-3, 5, 90))
grid = np.column_stack([across.ravel(), up.ravel()])
size = sets.predict_set(grid).sum(axis=1).reshape(across.shape)

requested = np.array([0.8, 0.85, 0.9, 0.95, 0.99])
inside = [
    sets.predict_set(X[test], alpha=1 - c)[np.arange(1200), y[test]].mean() for c in requested
]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 4), width_ratios=(1.2, 1))
image = left.pcolormesh(
    across, up, size, cmap=plt.get_cmap("cividis", 4), vmin=-0.5, vmax=3.5, rasterized=True
)
for label, marker in enumerate("o^s"):
    left.scatter(*X[train][y[train] == label].T, s=12, marker=marker, color="white", alpha=0.7)
left.set(xlim=(-4, 4), ylim=(-3, 5), title="classes in the set")
figure.colorbar(image, ax=left, ticks=[0, 1, 2, 3])
right.plot([0.75, 1], [0.75, 1], color="0.7")
right.plot(requested, inside, "o-")
right.set(xlabel="requested coverage", ylabel="observed coverage", aspect="equal")
plt.show()

# %%
# The coverage holds on average over training sets. With 400 training samples, the coverage of a
# single fit varies by about two percentage points.
