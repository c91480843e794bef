"""
A width for every column
========================

A Gaussian kernel with one width takes a difference in any column for as important as in any other.
Uninformative columns then hide the informative ones. Two estimators learn a factor for each column:
:class:`~lokl.GMKLClassifier` with products of Gaussians, by the gradient of the SVM's objective,
and :class:`~lokl.RegionClassifier` with ``scale_features="shared"``, by predicting every sample
from the others.
"""

# %%
# Three informative columns, seventeen of noise
# ---------------------------------------------

import matplotlib.pyplot as plt
import numpy as np

from lokl import GMKLClassifier, RegionClassifier, UniformMKLClassifier
from lokl.kernels import RBF

rng = np.random.default_rng(0)
X = rng.normal(size=(900, 20))
y = (X[:, 0] ** 2 + X[:, 1] ** 2 + 0.5 * X[:, 2] ** 2 > 2.2).astype(int)
train, test = slice(0, 400), slice(400, 900)

models = {
    "one width": UniformMKLClassifier([RBF()], C=10),
    "product of Gaussians": GMKLClassifier(combine="product", C=10, random_state=0),
    "feature scaling": RegionClassifier(
        UniformMKLClassifier([RBF()], C=10), scale_features="shared", random_state=0
    ),
}
for model in models.values():
    model.fit(X[train], y[train])
scores = {name: model.score(X[test], y[test]) for name, model in models.items()}

# %%
# What was learned
# ----------------
# Exponents of the Gaussians are ``weights_``; factors of the columns are ``feature_scale_``, whose
# squares multiply the exponent of the kernel. For the figure, the largest value of each is 1.

widths = models["product of Gaussians"].weights_
factors = models["feature scaling"].feature_scale_ ** 2
columns = np.arange(1, 21)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.4), width_ratios=(1.7, 1))
left.bar(columns - 0.2, widths / widths.max(), 0.4, label="product of Gaussians")
left.bar(columns + 0.2, factors / factors.max(), 0.4, label="feature scaling")
left.set_xticks(columns, columns, fontsize=8)
left.set(xlabel="column (1 to 3 are informative)", ylabel="relative importance")
left.legend()
right.barh(list(scores), list(scores.values()), color=["0.7", "C0", "C1"])
for row, score in enumerate(scores.values()):
    right.annotate(f" {score:.2f}", (score, row), va="center", annotation_clip=False)
right.set(xlim=(0.5, 1), xlabel="accuracy on 500 new samples")
right.invert_yaxis()
plt.show()
