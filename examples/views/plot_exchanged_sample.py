"""
An exchanged sample is found
============================

In a laboratory, two tubes are swapped: the proteins of one patient end up in the row of another.
The other tables are sound, so a model that looks at each table separately can notice. Here we
exchange one view of some handwritten digits, and check whether the
:class:`~lokl.TrustedVoteClassifier` gives the exchanged views little trust.
"""

# %%
# Digits with four views
# ----------------------
# Each digit is described by its pixels, its profiles, its spectrum and its edges. The model learns
# from 600 sound digits. In 40 % of the new digits, one view comes from a digit of another class.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from lokl import TrustedVoteClassifier, UniformMKLClassifier
from lokl.datasets import corrupt_views, load
from lokl.explain import TrustDisplay
from lokl.kernels import RBF, per_view

digits = load("digit_views")
X, new, y, truth = train_test_split(
    digits.data, digits.target, train_size=600, test_size=400, random_state=0
)
damaged, exchanged = corrupt_views(new, truth, digits.views, share=0.4, random_state=0)

scaler = StandardScaler().fit(X)
X, new, damaged = scaler.transform(X), scaler.transform(new), scaler.transform(damaged)
kernels = per_view(RBF(), digits.views)
vote = TrustedVoteClassifier(kernels, C=10, random_state=0).fit(X, y)
mix = UniformMKLClassifier(kernels, C=10).fit(X, y)

# %%
# Trust of sound and of exchanged views
# -------------------------------------
# :meth:`~lokl.TrustedVoteClassifier.trust` returns one number for each view of each sample. It does
# not use the label.

trust = vote.trust(damaged)
bins = np.linspace(0, 1, 21)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(1.2, 1))
left.hist(trust[~exchanged], bins, color="C0", label=f"{(~exchanged).sum()} sound views")
left.hist(trust[exchanged], bins, color="C1", label=f"{exchanged.sum()} exchanged views")
left.set_yscale("log")
left.set(xlabel="trust", ylabel="number of views (log scale)")
left.set_title("Exchanged views get little trust", loc="left")
left.legend(loc="upper center")

names = ["trusted vote", "uniform mix"]
clean = [model.score(new, truth) for model in (vote, mix)]
wrong = [model.score(damaged, truth) for model in (vote, mix)]
right.plot([0, 1], [clean[0], wrong[0]], "o-", label=names[0])
right.plot([0, 1], [clean[1], wrong[1]], "s--", label=names[1])
right.set_xticks([0, 1], ["all views\nsound", "40 % with one\nexchanged view"])
right.set(xlim=(-0.3, 1.3), ylim=(0.95, 1), ylabel="accuracy")
right.set_title("The vote loses less", loc="left")
right.legend(loc="lower left")
plt.show()

# %%
# The first 100 samples one by one. Dots mark the exchanged views.

few = slice(0, 100)
TrustDisplay.from_estimator(vote, damaged[few], truth[few], marked=exchanged[few])
plt.show()

# %%
# As a detector, the trust ranks almost every exchanged view below the sound ones.

auroc = roc_auc_score(exchanged.ravel(), -trust.ravel())
print(f"AUROC of low trust for exchanged views: {auroc:.3f}")

# %%
# The least trusted views are the ones to check first.

order = np.argsort(trust.ravel())[: exchanged.sum()]
print(f"{exchanged.ravel()[order].sum()} of {exchanged.sum()} exchanged views")
print(f"are among the {len(order)} least trusted ones")

# %%
# When this does not work: with two views only, nothing tells which of the two is wrong. If the
# views predict the class poorly on their own, low trust is a weak sign as well.
