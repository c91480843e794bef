"""
When a uniform average is enough
================================

The uniform average of the kernels is the baseline of multiple kernel learning, and it is hard to
beat. Learned weights pay off if some kernels are useless or harmful. In this example, four views
are informative, and a growing number of views is noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from lokl import LpMKLClassifier, SimpleMKLClassifier, TrustedVoteClassifier, UniformMKLClassifier
from lokl.kernels import RBF, per_view

# %%
# Four informative views and more and more noise
# ----------------------------------------------


def draw(n, rng):
    """Samples with four informative views of two columns and 28 views of noise."""
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 64))
    X[:, :8] += 0.5 * (2 * y[:, np.newaxis] - 1)
    return X, y


methods = {
    "uniform average": UniformMKLClassifier,
    "l_p-norm MKL": LpMKLClassifier,
    "SimpleMKL": SimpleMKLClassifier,
    "trusted vote": TrustedVoteClassifier,
}
n_noise = [0, 4, 12, 28]
scores = {name: np.empty((len(n_noise), 5)) for name in methods}
for repeat in range(5):
    rng = np.random.default_rng(repeat)
    X, y = draw(200, rng)
    new, truth = draw(1000, rng)
    for column, count in enumerate(n_noise):
        views = {f"view {v + 1}": slice(2 * v, 2 * v + 2) for v in range(4 + count)}
        for name, method in methods.items():
            model = method(per_view(RBF(), views))
            if "random_state" in model.get_params():
                model.set_params(random_state=0)
            scores[name][column, repeat] = model.fit(X, y).score(new, truth)

# %%
# The average loses when most kernels are noise
# ---------------------------------------------
# Without noise, all methods agree within one percentage point, and the average is the simplest and
# fastest. With 28 useless views out of 32, sparse weights and the trusted vote are more accurate.
# Lines are means over five draws.

figure, ax = plt.subplots(figsize=(6.8, 3.8))
markers = ("o-", "s--", "^-.", "D:")
for (name, values), style in zip(scores.items(), markers, strict=True):
    ax.plot(range(len(n_noise)), values.mean(axis=1), style, label=name)
ax.set_xticks(range(len(n_noise)), n_noise)
ax.set(xlabel="views of noise, next to four informative views", ylabel="accuracy on new samples")
ax.legend()
plt.show()
