"""
The leaderboard of AutoMKL
==========================

:class:`~lokl.search.AutoMKLClassifier` keeps the held-out score of every candidate in
``leaderboard_``. Scores that differ by less than their standard errors are not different, and the
model averages all kernels that are close to the best one.
"""

# %%
# Fit a table with unscaled columns
# ---------------------------------

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from lokl import AutoMKLClassifier
from lokl.explain import SearchDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
model = AutoMKLClassifier().fit(X, y)
board = model.leaderboard_
print(board[["kernels", "C", "score", "score_error"]].head())
print("chosen:", model.kernel_names_)

# %%
# Scores and their errors
# -----------------------
# *ranks* means that the columns were replaced by their ranks before scaling. The numbers in
# parentheses are the widths.

SearchDisplay.from_estimator(model)
plt.show()
