"""
Three tables, one prediction
============================

Three laboratories measure the same patients: messenger RNA, microRNA and proteins. Each table has
its own columns and its own list of patients. This example joins the tables, fits one model to all
of them and shows which table drives the prediction of one patient.
"""

# %%
# Generate three tables
# ---------------------
# There are three subtypes. Each table separates one subtype well and the other two poorly, and the
# protein table was measured for 120 of the 180 patients only.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import TrustedVoteClassifier, UniformMKLClassifier, join_views
from lokl.explain import ContributionDisplay, explain
from lokl.kernels import RBF, per_view

rng = np.random.default_rng(0)
patients = [f"P{number:03d}" for number in range(180)]
subtype = pd.Series(rng.choice(["Basal", "Her2", "LumA"], size=180), index=patients)


def table(prefix, n_columns, well_separated):
    """Values of one laboratory: columns shift with the subtype, most for one of them."""
    shift = {
        name: rng.normal(scale=1.3 if name == well_separated else 0.25, size=n_columns)
        for name in ("Basal", "Her2", "LumA")
    }
    values = np.stack([shift[name] for name in subtype]) + rng.normal(size=(180, n_columns))
    return pd.DataFrame(values, index=patients).add_prefix(prefix)


tables = {
    "mRNA": table("gene", 20, "Basal"),
    "microRNA": table("mir", 12, "LumA"),
    "protein": table("protein", 8, "Her2").sample(120, random_state=0),
}

# %%
# Join them
# ---------
# :func:`lokl.join_views` puts the tables side by side by their index. Patients who are missing
# from a table have NaN in its columns, and every method treats that as a missing view.

X, views = join_views(tables)
y = subtype[X.index]
print(X.shape, {name: len(columns) for name, columns in views.items()})

# %%
# One table or three?
# -------------------
# :func:`lokl.kernels.per_view` makes one kernel for each table. A model of a single table is
# evaluated on the patients who are in that table, all others on all patients.

kernels = per_view(RBF(), views)
models = {name: UniformMKLClassifier({name: kernels[name]}, C=10) for name in views}
models["uniform mix"] = UniformMKLClassifier(kernels, C=10)
models["trusted vote"] = TrustedVoteClassifier(kernels, C=10, random_state=0)
for name in models:
    scaler = StandardScaler().set_output(transform="pandas")
    models[name] = make_pipeline(scaler, models[name])
scores = {}
for name, model in models.items():
    rows = X[views[name]].notna().all(axis=1) if name in views else slice(None)
    scores[name] = cross_val_score(model, X[rows], y[rows], cv=5)

figure, ax = plt.subplots(figsize=(6.4, 3))
for row, score in enumerate(scores.values()):
    ax.plot(score, [row] * len(score), "o", color="0.7", markersize=5)
    ax.plot(score.mean(), row, "D", color="C0" if row < 3 else "C1", markersize=8)
    ax.annotate(f"{score.mean():.2f}", (1.03, row), va="center", annotation_clip=False)
ax.set(xlim=(0.4, 1.01), xlabel="accuracy in five folds (diamond: mean)")
ax.set_yticks(range(len(scores)), list(scores))
ax.invert_yaxis()
ax.set_title("Three tables together beat each one alone", loc="left")
plt.show()

# %%
# Which table drives the prediction of one patient?
# -------------------------------------------------
# Fit the trusted vote on 130 patients and explain the other 50. We pick a patient whose tables
# disagree the most.

train, test = train_test_split(np.arange(180), train_size=130, stratify=y, random_state=0)
vote = models["trusted vote"].fit(X.iloc[train], y.iloc[train])
explanation = explain(vote, X.iloc[test], y.iloc[test])
complete = explanation.presence.all(axis=1)
patient = explanation.ids[np.argmax(np.where(complete, explanation.disagreement, -1))]
print(explanation.sample(patient))

# %%
# The same as a picture: the prediction starts at the base value, and each table moves it.

ContributionDisplay.from_explanation(explanation, sample=patient)
plt.show()
