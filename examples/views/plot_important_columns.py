"""
Which genes matter inside a view?
=================================

A table that drives a prediction has many columns. The contribution of a view is divided among its
columns, sample by sample; :class:`~lokl.explain.ColumnDisplay` draws the largest ones.
"""

# %%
# Two tables with few informative genes
# -------------------------------------
# In the tumour, the genes T1 to T4 shift with the outcome, in the blood B1 and B2. All other
# columns are noise.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lokl import UniformMKLClassifier
from lokl.explain import ColumnDisplay, explain
from lokl.kernels import RBF, per_view

rng = np.random.default_rng(0)
y = rng.integers(2, size=300)
X = pd.DataFrame(rng.normal(size=(300, 40)))
X.columns = [f"{table}{g}" for table in ("T", "B") for g in range(1, 21)]
for gene, shift in zip([0, 1, 2, 3, 20, 21], [2.0, 1.5, 1.0, 1.0, 1.5, 1.0], strict=True):
    X.iloc[:, gene] += shift * y
views = {"tumour": X.columns[:20], "blood": X.columns[20:]}
train, test = slice(0, 200), slice(200, 300)
model = UniformMKLClassifier(per_view(RBF("scale"), views), C=3).fit(X[train], y[train])
print(f"accuracy {model.score(X[test], y[test]):.2f}")

# %%
# All samples, and one sample
# ---------------------------
# Over all samples, the importance of a column is its mean absolute contribution. For one sample,
# contributions have a sign: they support the predicted class, or the other one.

explanation = explain(model, X[test], y[test], columns=True)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4))
ColumnDisplay.from_explanation(explanation, n_largest=10, ax=left)
left.set_title("all samples")
ColumnDisplay.from_explanation(explanation, sample=explanation.ids[0], n_largest=10, ax=right)
right.set_title(f"sample {explanation.ids[0]}, predicted {explanation.predictions[0]}")
plt.show()

# %%
# The informative genes are on top. An important column is not a cause: a column may repeat another
# one, and columns of kernels are important only together with others.
