"""
A kernel of strings, as a precomputed matrix
============================================

Kernels need no vectors: any symmetric positive semidefinite similarity will do. Here the samples
are DNA-like strings, and the kernel counts common substrings (a spectrum kernel, Leslie et al.,
2002). :func:`lokl.kernels.precomputed` makes such matrices usable in pipelines, cross-validation
and searches.
"""

# %%
# Strings with a hidden motif
# ---------------------------
# Strings of class 1 contain a motif, with one random error. Single letters are useless, long
# substrings are rarely shared, so the right length lies between.

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

from lokl import SimpleMKLClassifier, UniformMKLClassifier
from lokl.kernels import precomputed

rng = np.random.default_rng(0)
motif = "ACGTTGCA"
y = rng.integers(2, size=240)
strings = []
for label in y:
    letters = rng.choice(list("ACGT"), size=60)
    if label:
        start = rng.integers(60 - len(motif))
        letters[start : start + len(motif)] = list(motif)
        letters[start + rng.integers(len(motif))] = rng.choice(list("ACGT"))
    strings.append("".join(letters))
print(strings[0], "class", y[0])


def spectrum_kernel(strings, length):
    """Cosine of the counts of all substrings of one length."""
    counts = [Counter(s[i : i + length] for i in range(len(s) - length + 1)) for s in strings]
    words = {word: column for column, word in enumerate(sorted(set().union(*counts)))}
    table = np.zeros((len(strings), len(words)))
    for row, count in enumerate(counts):
        for word, number in count.items():
            table[row, words[word]] = number
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    return table @ table.T


# %%
# One kernel for each length, and a combination
# ---------------------------------------------
# ``precomputed`` returns kernels and an index column, which takes the place of the samples: every
# splitter works on it as on any other data.

lengths = [1, 2, 3, 4, 5, 6]
matrices = [spectrum_kernel(strings, length) for length in lengths]
kernels, index = precomputed(matrices)
alone = [
    cross_val_score(UniformMKLClassifier([kernel], C=10), index, y, cv=5).mean()
    for kernel in kernels
]
uniform = cross_val_score(UniformMKLClassifier(kernels, C=10), index, y, cv=5).mean()
simple = cross_val_score(SimpleMKLClassifier(kernels, C=10), index, y, cv=5).mean()
weights = SimpleMKLClassifier(kernels, C=10).fit(index, y).weights_

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.3))
names = [*map(str, lengths), "average", "SimpleMKL"]
left.bar(names, [*alone, uniform, simple], color=["C0"] * 6 + ["C1", "C2"])
left.set(ylim=(0.5, 0.92), xlabel="length of substrings", ylabel="accuracy in five folds")
left.tick_params(axis="x", rotation=40)
right.bar(lengths, weights, color="C2")
right.set(xlabel="length of substrings", ylabel="weight learned by SimpleMKL")
plt.show()

# %%
# Weights that fit the training data best need not predict best: compare them with the uniform
# average, and with the best single length.
