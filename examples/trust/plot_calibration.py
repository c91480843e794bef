"""
Reliability before and after calibration
========================================

A probability of 0.8 should be right in 80 % of the cases. Probabilities learned from the decisions
on training samples promise too much, because an SVM is surer about samples that it has seen.
:func:`lokl.search.calibrated` learns them from held-out decisions instead.
"""

# %%
# A noisy problem
# ---------------

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression

from lokl import UniformMKLClassifier
from lokl.kernels import RBF
from lokl.search import calibrated, expected_calibration_error

rng = np.random.default_rng(0)
X = rng.normal(size=(4400, 6))
y = (rng.random(4400) < expit(1.5 * X[:, 0] + X[:, 1] * X[:, 2])).astype(int)
train, test = slice(0, 400), slice(400, 4400)
svm = UniformMKLClassifier([RBF(0.3)], C=100).fit(X[train], y[train])

# %%
# Three kinds of probabilities
# ----------------------------
# *Raw*: the logistic function of the decision value. *From training decisions*: a logistic
# regression on the decisions about the training samples. *Held out*: ``calibrated``, which fits
# the SVM again without each fold, and leaves the model itself as it is.

decision = svm.decision_function(X)[:, np.newaxis]
naive = LogisticRegression(C=1e6).fit(decision[train], y[train])
probabilities = {
    "raw": expit(decision[test, 0]),
    "from training decisions": naive.predict_proba(decision[test])[:, 1],
    "held out": calibrated(svm, X[train], y[train]).predict_proba(X[test])[:, 1],
}

figure, axes = plt.subplots(1, 3, figsize=(9.6, 4.2), sharey=True)
for ax, (name, p) in zip(axes, probabilities.items(), strict=True):
    observed, predicted = calibration_curve(y[test], p, n_bins=10, strategy="quantile")
    error = expected_calibration_error(y[test], np.column_stack([1 - p, p]))
    ax.plot([0, 1], [0, 1], color="0.7", label="perfect")
    ax.plot(predicted, observed, "o-", label="observed")
    ax.set(title=f"{name}\ncalibration error {error:.2f}", xlabel="predicted probability")
    ax.set(aspect="equal", xlim=(0, 1), ylim=(0, 1))
axes[0].set_ylabel("share of class 1")
axes[0].legend(loc="upper left")
plt.show()
