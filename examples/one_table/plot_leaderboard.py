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

figure, ax = plt.subplots(figsize=(7, 4.2))
rows = list(board.itertuples(index=False))[:14]
for position, row in enumerate(rows):
    ax.plot(
        [row.score - row.score_error, row.score + row.score_error],
        [position, position],
        color="C0",
        linewidth=2,
    )
    ax.plot(row.score, position, "o", color="C0")
names = [
    f"average of {row.kernels.count(';') + 1}" if ";" in row.kernels else row.kernels
    for row in rows
]
ax.set_yticks(range(len(rows)), names)
ax.invert_yaxis()
ax.set(xlabel="held-out score, with one standard error")
plt.show()
