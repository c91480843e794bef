"""
Convergence and certified gaps
==============================

A convex method can certify its answer: the duality gap bounds how far the objective is from the
optimum. A callback receives the objective and the gap after every round.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from lokl import CLMKLClassifier, GMKLClassifier, LpMKLClassifier, SimpleMKLClassifier
from lokl.kernels import rbf_ladder

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
kernels = rbf_ladder(-9, 0)

# %%
# Record every round
# ------------------


def run(estimator):
    """Relative gap after each round, and the fitted model."""
    gaps = []
    estimator.set_params(callback=lambda step: gaps.append(step.gap / abs(step.objective)))
    return gaps, estimator.fit(X, y)


methods = {
    "l_p-norm MKL, p=2": LpMKLClassifier(kernels, p=2, learn_tol=1e-4),
    "l_p-norm MKL, p=1": LpMKLClassifier(kernels, p=1, learn_tol=1e-3),
    "SimpleMKL": SimpleMKLClassifier(kernels, learn_tol=1e-4),
    "SPG-GMKL": GMKLClassifier(kernels, learn_tol=1e-4),
    "C-LMKL, 3 clusters": CLMKLClassifier(kernels, n_clusters=3, learn_tol=1e-4, random_state=0),
}
curves = {name: run(estimator) for name, estimator in methods.items()}

# %%
# The gap after each round
# ------------------------

figure, ax = plt.subplots(figsize=(7.2, 4))
for (name, (gaps, _)), style in zip(curves.items(), ("-", "--", "-.", ":", "-"), strict=True):
    ax.plot(range(1, len(gaps) + 1), gaps, style, marker=".", label=f"{name}, {len(gaps)} rounds")
ax.set(xscale="log", yscale="log", xlabel="round", ylabel="relative duality gap")
ax.legend(loc="upper right", fontsize=9)
plt.show()

# %%
# The fitted attribute ``duality_gap_`` is the gap of the last round.

for name, (gaps, model) in curves.items():
    print(f"{name:20} gap {model.duality_gap_:.2g} after {len(gaps)} rounds")
