"""
A tuned SVM in one call
=======================

:class:`~lokl.search.AutoMKLClassifier` takes a table as it is. It scales the columns, chooses
kernels, widths and costs by exact leave-one-out predictions, and provides probabilities. This
example compares it with scikit-learn's ``SVC`` with default settings and with a tuned ``SVC``.
"""

from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from lokl import AutoMKLClassifier

# %%
# One call
# --------

X, y = load_wine(return_X_y=True)
model = AutoMKLClassifier().fit(X, y)
print(model.predict_proba(X[:2]).round(3))
print("kernels:", model.kernel_names_)

# %%
# Against two SVMs of scikit-learn
# --------------------------------
# The grid of the tuned ``SVC`` has 5 costs and 5 widths. All three are evaluated on the same five
# folds; tuning happens inside of each fold. We count the processor time of all fits.

grid = {"svc__C": [0.1, 1, 10, 100, 1000], "svc__gamma": 2.0 ** np.arange(-9, 0, 2)}
models = {
    "SVC, default": make_pipeline(StandardScaler(), SVC()),
    "SVC, tuned on a grid": GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=5),
    "AutoMKLClassifier": AutoMKLClassifier(),
}
data = {
    "wine": (X, y),
    "breast cancer": load_breast_cancer(return_X_y=True),
    "iris": load_iris(return_X_y=True),
}

errors, seconds = {}, {}
for table, (samples, labels) in data.items():
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(samples, labels))
    for name, candidate in models.items():
        start, wrong = process_time(), 0
        for train, test in folds:
            predicted = candidate.fit(samples[train], labels[train]).predict(samples[test])
            wrong += int(np.sum(predicted != labels[test]))
        errors[table, name] = 100 * wrong / len(labels)
        seconds[table, name] = process_time() - start

figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.0), sharey=True)
for ax, table in zip(axes, data, strict=True):
    values = [errors[table, name] for name in models]
    ax.barh(list(models), values, color=["0.7", "C0", "C1"])
    for row, (name, value) in enumerate(zip(models, values, strict=True)):
        text = f" {value:.1f} %, {seconds[table, name]:.1f} s"
        ax.annotate(text, (value, row), va="center", annotation_clip=False)
    ax.set(title=table, xlabel="wrong in five folds (%)", xlim=(0, 1.9 * max(values)))
axes[0].invert_yaxis()
plt.show()

# %%
# On small tables like these, the three are about as accurate: a difference of one percentage point
# is two or three samples. AutoMKL needed neither a pipeline nor a grid. It takes longer than a
# small grid if there are many classes, because it compares several families of kernels.
