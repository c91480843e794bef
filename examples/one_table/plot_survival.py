"""
How long will this patient live?
================================

Survival data is censored: for many patients only a lower bound of the time is known, because the
study ended first. :class:`~lokl.UniformMKLSurvival` learns a risk from such data, and estimates the
probability of survival at each time. The patients of this example are generated.
"""

# %%
# Patients with three columns
# ---------------------------
# The risk rises with the first column, and with the square of the second one. About half of the
# patients are censored.

import matplotlib.pyplot as plt
import numpy as np

from lokl import UniformMKLSurvival, survival_target
from lokl.kernels import RBF, Linear

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 3))
risk = X[:, 0] + 0.8 * X[:, 1] ** 2
death = rng.exponential(5 * np.exp(-risk))
end_of_study = rng.uniform(0, 6, size=600)
y = survival_target(death <= end_of_study, np.minimum(death, end_of_study))
train, test = slice(0, 400), slice(400, 600)
print(f"{1 - y['event'].mean():.0%} of the patients are censored")

# %%
# A linear kernel misses the second column
# ----------------------------------------
# The score is the concordance index: the share of comparable pairs of patients of whom the one with
# the higher risk died first.

models = {
    "linear": UniformMKLSurvival([Linear()]),
    "linear and Gaussian": UniformMKLSurvival([Linear(), RBF("scale")]),
}
for name, model in models.items():
    model.fit(X[train], y[train])
    print(f"{name}: concordance index {model.score(X[test], y[test]):.2f}")

# %%
# Survival curves of three new patients
# -------------------------------------
# Pale lines are the true curves, which are known because the data is generated.

model = models["linear and Gaussian"]
order = np.argsort(model.predict(X[test]))
chosen = [order[20], order[100], order[180]]
figure, ax = plt.subplots(figsize=(7, 3.8))
for number, label in zip(chosen, ("low risk", "medium risk", "high risk"), strict=True):
    curve = model.predict_survival_function(X[test][[number]])[0]
    (line,) = ax.step(curve.x, curve.y, where="post", label=label)
    times = np.linspace(0, 6, 100)
    ax.plot(
        times, np.exp(-times / 5 * np.exp(risk[test][number])), color=line.get_color(), alpha=0.35
    )
ax.set(xlabel="years (pale: true curve)", ylabel="probability of survival", ylim=(0, 1.02))
ax.legend()
plt.show()
