"""KernelExplainer of shap in its own environment, without any part of this project.

Arguments: a file (npz) of the samples X, support vectors Z, coefficients, gamma and background of
``f(x) = sum_j coef_j exp(-gamma |x - z_j|^2)``, and of the factors of one sample for a game of few
columns. Writes one line of JSON: seconds of processor for each sample, and the values of the game.
"""

import json
import sys
import time
import warnings

import numpy as np


def main():
    warnings.simplefilter("ignore")
    import shap

    data = np.load(sys.argv[1])
    X, Z, coef, gamma = data["X"], data["Z"], data["coef"], float(data["gamma"])
    norms = (Z**2).sum(axis=1)

    def decide(rows):
        distances = (rows**2).sum(axis=1)[:, None] + norms - 2.0 * rows @ Z.T
        return np.exp(-gamma * distances) @ coef

    explainer = shap.KernelExplainer(decide, data["background"])
    begun = time.process_time()
    explainer.shap_values(X, silent=True)
    seconds = (time.process_time() - begun) / len(X)

    present, absent, load = data["present"], data["absent"], data["load"]

    def game(masks):
        chosen = masks[:, None, :] > 0.5
        return np.where(chosen, present, absent).prod(axis=2) @ load

    width = present.shape[1]
    small = shap.KernelExplainer(game, np.zeros((1, width)))
    values = small.shap_values(np.ones((1, width)), nsamples=2**width, silent=True)
    print(json.dumps({"seconds": seconds, "values": np.ravel(values).tolist()}))


main()
