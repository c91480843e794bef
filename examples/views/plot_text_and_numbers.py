"""
Text and numbers side by side
=============================

Support tickets have a text and some numbers. Each needs its own kernel: the cosine of word
frequencies for the text, a Gaussian for the numbers. A scikit-learn ``ColumnTransformer`` prepares
both, and two kernels read their own columns of the result.
"""

# %%
# Tickets
# -------
# A ticket is urgent for two reasons: words that suggest an outage, or a customer with many users
# and a short contract. Neither part is sufficient.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import UniformMKLClassifier
from lokl.explain import explain
from lokl.kernels import RBF, Cosine

rng = np.random.default_rng(0)
n = 400
calm = ["please", "update", "invoice", "address", "question", "colour", "report", "thanks"]
alarm = ["outage", "failed", "down", "error", "lost", "timeout", "crash", "blocked"]
severity = rng.random(n)
texts = [
    " ".join(rng.choice(alarm if rng.random() < s else calm) for _ in range(8)) for s in severity
]
users, months = rng.lognormal(4, 1, n), rng.uniform(1, 36, n)
importance = np.log(users) - 0.08 * months
urgent = 4 * severity + importance + 0.3 * rng.normal(size=n) > 4.5
tickets = pd.DataFrame({"text": texts, "users": np.log(users), "months": months})
print(tickets.head(3).to_string(max_colwidth=40))

# %%
# One kernel for each part
# ------------------------
# The transformer puts the two numbers first. ``.on(columns)`` restricts a kernel to some columns.

prepare = ColumnTransformer(
    [("numbers", StandardScaler(), ["users", "months"]), ("text", TfidfVectorizer(), "text")],
    sparse_threshold=0,
)
n_columns = prepare.fit_transform(tickets).shape[1]
kernels = {"numbers": RBF().on(slice(0, 2)), "text": Cosine().on(slice(2, n_columns))}

scores = {}
for name, chosen in {
    "numbers": {"numbers": kernels["numbers"]},
    "text": {"text": kernels["text"]},
    "both": kernels,
}.items():
    model = make_pipeline(prepare, UniformMKLClassifier(chosen, C=3))
    scores[name] = cross_val_score(model, tickets, urgent, cv=5)

# %%
# Which part decides which ticket?
# --------------------------------
# The contribution of each kernel is its signed part of the decision. The contributions and the
# intercept add up to the decision value.

model = make_pipeline(prepare, UniformMKLClassifier(kernels, C=3)).fit(tickets[:300], urgent[:300])
parts = model[-1].contributions(model[:-1].transform(tickets[300:]))
truth = urgent[300:]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=(1, 1.3))
left.bar(list(scores), [s.mean() for s in scores.values()], color=["C0", "C0", "C1"])
for x, score in enumerate(scores.values()):
    left.annotate(f"{score.mean():.2f}", (x, score.mean()), ha="center", va="bottom")
left.set(ylim=(0.5, 1.02), ylabel="accuracy in five folds")
for value, marker, label in ((True, "^", "urgent"), (False, "o", "not urgent")):
    right.scatter(*parts[truth == value].T, s=22, marker=marker, label=label, alpha=0.8)
right.axhline(0, color="0.7", linewidth=0.8)
right.axvline(0, color="0.7", linewidth=0.8)
right.set(xlabel="contribution of the numbers", ylabel="contribution of the text")
right.set_title("100 new tickets", loc="left")
right.legend()
plt.show()

# %%
# Text and numbers may point in different directions. In this ticket they do:

explanation = explain(model, tickets[300:], truth)
conflict = np.argmax(np.where(parts.prod(axis=1) < 0, np.abs(parts).min(axis=1), 0))
print(tickets.iloc[300 + conflict].to_string())
print(explanation.sample(explanation.ids[conflict]))
