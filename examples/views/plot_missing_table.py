"""
Patients without a protein table
================================

Expensive measurements are missing for some patients. Dropping these patients wastes the other
tables; imputing a whole table invents data. The estimators of lokl accept samples without a view
directly: the weight of the missing view is zero, and the other views share it.
"""

# %%
# Data with a missing view
# ------------------------
# We take the tumours of scikit-learn's breast cancer data, and treat its three groups of columns as
# three tables. The third table is the most informative one. It is missing at random for a growing
# share of the samples, in training and in testing.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import UniformMKLClassifier
from lokl.kernels import RBF, per_view

data = load_breast_cancer()
X, y = data.data, data.target
views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}


def without_third_table(X, share, seed=0):
    """Copy of X in which the third table is missing for a share of the samples."""
    X = X.copy()
    absent = np.random.default_rng(seed).random(len(X)) < share
    X[absent, 20:30] = np.nan
    return X, absent


# %%
# Three ways to cope
# ------------------
# *All samples, missing view*: one model of all samples with NaN in the missing columns.
# *Complete samples only*: the model learns from samples that have all tables.
# *Without the table*: the third table is not used at all.


def score(X, views, usable):
    """Accuracy over five folds; models learn from the usable samples only."""
    right = np.zeros(len(X), dtype=bool)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        train = train[usable[train]]
        model = make_pipeline(StandardScaler(), UniformMKLClassifier(per_view(RBF(), views), C=10))
        right[test] = model.fit(X[train], y[train]).predict(X[test]) == y[test]
    return right.mean()


shares = [0.0, 0.25, 0.5, 0.75, 0.9]
everyone = np.ones(len(X), dtype=bool)
first_two = {name: views[name] for name in ("mean", "error")}
curves = {"all samples, missing view": [], "complete samples only": []}
for share in shares:
    reduced, absent = without_third_table(X, share)
    curves["all samples, missing view"].append(score(reduced, views, everyone))
    curves["complete samples only"].append(score(reduced, views, ~absent))
without = score(X[:, :20], first_two, everyone)

figure, ax = plt.subplots(figsize=(6.4, 3.6))
for (name, values), style in zip(curves.items(), ("o-", "s--"), strict=True):
    ax.plot(100 * np.array(shares), values, style, label=name)
ax.axhline(without, color="0.4", linestyle=":", label="without the table")
ax.set(xlabel="samples without the third table (%)", ylabel="accuracy in five folds")
ax.legend()
plt.show()

# %%
# The weights show what the model uses
# ------------------------------------
# A missing view has weight zero, and each row of weights sums to one.

reduced, absent = without_third_table(X, 0.5)
Z = StandardScaler().fit_transform(reduced)
model = UniformMKLClassifier(per_view(RBF(), views), C=10).fit(Z, y)
print("with all tables:   ", model.weights(Z[~absent][:1]).round(2))
print("without the third: ", model.weights(Z[absent][:1]).round(2))
