"""
Four kinds of gate
==================

A gate ``h_i(x)`` says how much kernel ``i`` counts at sample ``x``. The library has four gates with
parameters: constant (the same everywhere), softmax (kernels compete, straight borders), sigmoid
(kernels do not compete) and Gaussian (each kernel has a centre). Here the informative view changes
along one axis.
"""

import matplotlib.pyplot as plt
import numpy as np

from lokl import LMKLClassifier
from lokl.gates import ConstantGate, GaussianGate, SigmoidGate, SoftmaxGate
from lokl.kernels import Linear

# %%
# The informative view depends on the first column
# ------------------------------------------------
# The second column predicts the class where the first one is negative, the third column elsewhere.

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(800, 3))
informative = np.where(X[:, 0] < 0, X[:, 1], X[:, 2])
y = (informative > 0).astype(int)
kernels = {"second": Linear().on([1]), "third": Linear().on([2])}
train, test = slice(0, 400), slice(400, 800)

gates = {
    "constant": ConstantGate(),
    "softmax": SoftmaxGate(),
    "sigmoid": SigmoidGate(),
    "Gaussian": GaussianGate(),
}
models = {
    name: LMKLClassifier(kernels, gate=gate.on([0]), C=10, random_state=0).fit(X[train], y[train])
    for name, gate in gates.items()
}

# %%
# Gate values along the first column
# ----------------------------------
# ``kernel_.gates`` returns the gate values themselves, before they are normalised to weights.

line = np.zeros((200, 3))
line[:, 0] = np.linspace(-2, 2, 200)
figure, axes = plt.subplots(2, 2, figsize=(8.4, 5.4), sharex=True)
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    values = model.kernel_.gates(model.kernel_.samples(line))
    ax.axvline(0, color="0.8")
    for column, (kernel, style) in enumerate(zip(kernels, ("-", "--"), strict=True)):
        ax.plot(line[:, 0], values[:, column], style, label=f"{kernel} column")
    ax.set(title=f"{name}: accuracy {model.score(X[test], y[test]):.2f}", ylim=(-0.03, 1.05))
for ax in axes[1]:
    ax.set_xlabel("first column")
for ax in axes[:, 0]:
    ax.set_ylabel("gate value")
axes[0, 1].legend(loc="center left")
plt.show()
