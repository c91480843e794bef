"""
Risk against coverage
=====================

A model need not answer every time. If it passes its least certain cases to a person, the remaining
predictions should be more often right. :func:`lokl.explain.risk_coverage` returns the error of the
most confident predictions, for every share of answered cases.
"""

# %%
# Digits of which some views belong to other digits
# -------------------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from lokl import TrustedVoteClassifier, UniformMKLClassifier
from lokl.datasets import corrupt_views, load
from lokl.explain import risk_coverage
from lokl.kernels import RBF, per_view
from lokl.search import CalibratedMKLClassifier

digits = load("digit_views")
X, new, y, truth = train_test_split(digits.data, digits.target, train_size=300, random_state=0)
damaged, _ = corrupt_views(new, truth, digits.views, share=0.6, random_state=0)
scaler = StandardScaler().fit(X)
X, damaged = scaler.transform(X), scaler.transform(damaged)
kernels = per_view(RBF(), digits.views)

models = {
    "trusted vote": TrustedVoteClassifier(kernels, C=10, random_state=0),
    "uniform mix": CalibratedMKLClassifier(UniformMKLClassifier(kernels, C=10)),
    "pixels alone": CalibratedMKLClassifier(
        UniformMKLClassifier({"pixels": kernels["pixels"]}, C=10)
    ),
}

# %%
# The curve
# ---------
# The confidence is the probability of the predicted class. At a coverage of 100 %, the risk is the
# error rate of the model.

figure, ax = plt.subplots(figsize=(6.8, 3.8))
for (name, model), style in zip(models.items(), ("-", "--", "-."), strict=True):
    probability = model.fit(X, y).predict_proba(damaged)
    wrong = model.classes_[probability.argmax(axis=1)] != truth
    curve = risk_coverage(wrong, probability.max(axis=1))
    ax.plot(100 * curve.coverage, 100 * curve.risk, style, label=name)
    usable = np.flatnonzero(curve.risk <= 0.01)
    if len(usable):
        print(f"{name}: answers {curve.coverage[usable[-1]]:.0%} of the cases with 1 % errors")
    else:
        print(f"{name}: no share of the cases has 1 % errors")
ax.set(xlabel="coverage: answered cases (%)", ylabel="risk: wrong answers (%)", ylim=(0, None))
ax.legend()
plt.show()
