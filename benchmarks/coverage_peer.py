"""Prediction sets of MAPIE in its own environment, without any part of this project.

Arguments: a folder of training and test parts (npz files whose name begins with the conformity
score, "aps" or "lac"), and the confidence level. Writes one line of JSON: by file, the set of each
test sample as a list of 0 and 1.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np


def main():
    warnings.simplefilter("ignore")
    from mapie.classification import CrossConformalClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    found = {}
    for path in sorted(Path(sys.argv[1]).glob("*.npz")):
        data = np.load(path)
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        sets = CrossConformalClassifier(
            model,
            confidence_level=float(sys.argv[2]),
            conformity_score=path.name[:3],
            cv=5,
            random_state=0,
        )
        sets.fit_conformalize(data["X"], data["y"])
        found[path.stem] = sets.predict_set(data["X_test"])[1][:, :, 0].astype(int).tolist()
    print(json.dumps(found))


main()
